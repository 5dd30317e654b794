// The functions that are called by name. Source: `core-data-migration.md` §4.4.
extension Evaluation {
  mutating func call(
    _ name: String, _ arguments: [ExpressionValue]
  ) throws -> ExpressionValue {
    guard let function = BuiltInFunction.named(name, argumentCount: arguments.count),
      function.name == name
    else { throw EvaluationProblem.unknownFunction(name) }
    guard function.arguments.contains(arguments.count) else {
      throw EvaluationProblem.argumentCount(name)
    }
    if let operation = Number.Operation(function: name) {
      return try Number.apply(operation, arguments[0], arguments[1])
    }
    if name.hasPrefix("godwit.") { return try converted(name, arguments) }
    switch name {
    case "now": return .date(evaluator.runDate)
    // 31 bits, so that an Integer 32 takes every value.
    case "random": return .integer(Int64(random() >> 33))
    case "random:": return try random(below: arguments[0])
    case "noindex:": return arguments[0]
    case "uppercase:": return try text(arguments[0]) { $0.uppercased() }
    case "lowercase:": return try text(arguments[0]) { $0.lowercased() }
    case "canonical:":
      let texts = evaluator.texts
      return try text(arguments[0]) { texts.folded($0, [.caseInsensitive, .diacriticInsensitive]) }
    case "length:":
      if arguments[0].isNull { return .null }
      guard case .string(let text) = arguments[0] else {
        throw EvaluationProblem.wrongKind(found: arguments[0].kind, needed: "a text")
      }
      return .integer(Int64(text.utf16.count))
    case "sum:": return try Statistics.sum(try members(arguments))
    case "count:": return .integer(Int64(try members(arguments).count))
    case "min:": return try Statistics.extreme(try members(arguments), wanted: -1)
    case "max:": return try Statistics.extreme(try members(arguments), wanted: 1)
    case "average:": return try Statistics.average(try members(arguments))
    case "median:": return try Statistics.median(try members(arguments))
    case "mode:": return try Statistics.mode(try members(arguments))
    case "stddev:": return try Statistics.standardDeviation(try members(arguments))
    default: break
    }
    if let result = try RealFunctions.apply(name, arguments[0]) { return result }
    if let result = try Bits.apply(name, arguments) { return result }
    throw EvaluationProblem.unknownFunction(name)
  }

  /// One collection gives its members, anything else itself.
  private mutating func members(_ arguments: [ExpressionValue]) throws -> [ExpressionValue] {
    arguments.count == 1 && arguments[0].isNull ? [] : try flat(arguments)
  }

  private func text(
    _ value: ExpressionValue, _ change: (String) -> String
  ) throws(EvaluationProblem) -> ExpressionValue {
    if value.isNull { return .null }
    guard case .string(let text) = value else {
      throw .wrongKind(found: value.kind, needed: "a text")
    }
    let result = change(text)
    try ValueMessages.checkSize(result)
    return .string(result)
  }

  private mutating func random(
    below value: ExpressionValue
  ) throws(EvaluationProblem) -> ExpressionValue {
    if value.isNull { return .null }
    guard case .integer(let bound) = value, bound > 0 else {
      throw .wrongKind(found: value.kind, needed: "a whole number above 0")
    }
    return .integer(Int64(random().multipliedFullWidth(by: UInt64(bound)).high))
  }
}

/// `bitwiseAnd:with:` and the like, over integers.
enum Bits {
  static func apply(
    _ name: String, _ arguments: [ExpressionValue]
  ) throws(EvaluationProblem) -> ExpressionValue? {
    let names = [
      "bitwiseAnd:with:", "bitwiseOr:with:", "bitwiseXor:with:", "leftshift:by:", "rightshift:by:",
      "onesComplement:",
    ]
    guard names.contains(name) else { return nil }
    var bits: [Int64] = []
    for argument in arguments {
      switch argument {
      case .null: return .null
      case .integer(let value): bits.append(value)
      case .boolean(let value): bits.append(value ? 1 : 0)
      default: throw .wrongKind(found: argument.kind, needed: "a whole number")
      }
    }
    switch name {
    case "bitwiseAnd:with:": return .integer(bits[0] & bits[1])
    case "bitwiseOr:with:": return .integer(bits[0] | bits[1])
    case "bitwiseXor:with:": return .integer(bits[0] ^ bits[1])
    case "onesComplement:": return .integer(~bits[0])
    default:
      guard (0...63).contains(bits[1]) else { throw .overflow }
      return .integer(name == "leftshift:by:" ? bits[0] << bits[1] : bits[0] >> bits[1])
    }
  }
}
