import GodwitExpressions
import GodwitKeyedArchive
import GodwitObjectModel

/// Reads expressions as `NSKeyedArchiver` writes them.
///
/// Source: `core-data-migration.md` §3.4; aggregates as in archived predicates, `core-data-models.md` §4.
/// Classes whose keys nobody has seen (subqueries, ternaries) are refused by name, not guessed at.
struct ExpressionArchive {
  enum Failure: Error {
    case unknownClass(String)
    case malformed(String)
  }

  static func value(_ object: ArchivedObject) throws(Failure) -> ValueExpression {
    var archive = ExpressionArchive()
    return try archive.value(object, depth: 0)
  }

  /// Parts read so far: an archive may refer to one part many times, and parts of parts.
  private var parts = 0
  private static let partLimit = 1_000

  /// Depth is bounded, so an archive that goes in circles ends in an error.
  private mutating func value(
    _ object: ArchivedObject, depth: Int
  ) throws(Failure) -> ValueExpression {
    // Half of the limit: a key path on an operand adds a level that the archive does not have.
    guard depth < ExpressionLimits.depth / 2 else { throw .malformed("it is nested too deep") }
    parts += 1
    guard parts <= Self.partLimit else { throw .malformed("it has too many parts") }
    switch object.className {
    case "NSConstantValueExpression": return try constant(object["NSConstantValue"])
    case "NSSelfExpression": return .evaluatedObject
    case "NSVariableExpression":
      guard let name = object.string("NSVariable"), Keywords.isWord(name) else {
        throw .malformed("a variable without a name")
      }
      return .variable(name)
    case "NSKeyPathExpression":
      return try keyPath(object, depth: depth)
    case "NSFunctionExpression":
      return try function(object, depth: depth)
    case "NSAggregateExpression":
      return .aggregate(try values(object, "NSCollection", depth: depth))
    case "NSFetchRequestExpression":
      return .fetch(
        request: try operand(object, "NSFRExpression", depth: depth),
        context: try operand(object, "NSMOCExpression", depth: depth),
        countOnly: object.boolean("NSCountOnlyFlag"))
    case let name: throw .unknownClass(name)
    }
  }

  private mutating func operand(
    _ object: ArchivedObject, _ key: String, depth: Int
  ) throws(Failure) -> ValueExpression {
    guard let inner = object.object(key) else { throw .malformed("\(key) is missing") }
    return try value(inner, depth: depth + 1)
  }

  private mutating func values(
    _ object: ArchivedObject, _ key: String, depth: Int
  ) throws(Failure) -> [ValueExpression] {
    var values: [ValueExpression] = []
    for element in object.elements(key) {
      guard let inner = element.object else { throw .malformed("an element of \(key)") }
      values.append(try value(inner, depth: depth + 1))
    }
    return values
  }

  private mutating func keyPath(
    _ object: ArchivedObject, depth: Int
  ) throws(Failure) -> ValueExpression {
    let base = try operand(object, "NSOperand", depth: depth)
    guard let specifier = object.elements("NSArguments").first?.object,
      let path = specifier.string("NSKeyPath")
    else { throw .malformed("a key path expression without a key path") }
    let keys = try self.keys(path)
    if case .keyPath(let inner, let first) = base, first.areKeys {
      return .keyPath(base: inner, keys: first + keys)
    }
    return .keyPath(base: base, keys: keys)
  }

  private func keys(_ path: String) throws(Failure) -> [KeyPathElement] {
    var result: [KeyPathElement] = []
    for part in path.keyPathParts {
      let first = part.unicodeScalars.first
      let isOperator = first == "@"
      let name =
        isOperator || first == "#" ? String(part.unicodeScalars.dropFirst()) : part
      guard Keywords.isWord(name) else { throw .malformed("the key path \(path)") }
      result.append(isOperator ? .collectionOperator(name) : .key(name))
    }
    return result
  }

  private mutating func function(
    _ object: ArchivedObject, depth: Int
  ) throws(Failure) -> ValueExpression {
    guard let selector = object.string("NSSelectorName"), let receiver = object.object("NSOperand")
    else { throw .malformed("a function without a receiver or a selector") }
    let arguments = try values(object, "NSArguments", depth: depth)
    // The operators and functions are messages of a class of utilities.
    guard receiver.string("NSConstantValueClassName") == "_NSPredicateUtilities" else {
      return .function(
        receiver: try value(receiver, depth: depth + 1), selector: selector, arguments: arguments)
    }
    switch (selector, arguments.count) {
    case ("castObject:toType:", 2):
      guard case .constant(.string(let type)) = arguments[1] else { break }
      return .cast(arguments[0], type: type)
    case ("objectFrom:withIndex:", 2): return .element(of: arguments[0], at: .index(arguments[1]))
    default: break
    }
    guard let known = BuiltInFunction.named(selector, argumentCount: arguments.count),
      known.arguments.contains(arguments.count)
    else { throw .malformed("the unknown function \(selector)") }
    return .call(known.name, arguments)
  }

  /// Literals, and casts of literals for values that none can spell.
  private func constant(_ value: ArchivedValue?) throws(Failure) -> ValueExpression {
    guard let value else { return .constant(.null) }
    switch value {
    case .null: return .constant(.null)
    case .boolean(let boolean): return .constant(.boolean(boolean))
    case .integer(let integer): return .constant(.integer(integer))
    case .real(let real) where real.isFinite: return .constant(.real(real))
    default: break
    }
    if let string = value.string { return .constant(.string(string)) }
    if let date = value.date, date.isFinite {
      return .cast(.constant(.real(date)), type: "NSDate")
    }
    if let url = value.url { return .cast(.constant(.string(url)), type: "NSURL") }
    if let uuid = value.uuid {
      return .cast(.constant(.string(text(ofUUID: uuid))), type: "NSUUID")
    }
    switch value.number {
    case .integer(let integer)?: return .constant(.integer(integer))
    case .real(let real)? where real.isFinite: return .constant(.real(real))
    case .decimal(let isNegative, let mantissa, let exponent)?:
      let digits = "\(isNegative ? "-" : "")\(mantissa)" + (exponent == 0 ? "" : "e\(exponent)")
      return .cast(.constant(.string(digits)), type: "NSDecimalNumber")
    default: break
    }
    throw .malformed("a constant of a kind that no literal can spell")
  }

  private func text(ofUUID bytes: [UInt8]) -> String {
    var result = ""
    for (place, byte) in bytes.enumerated() {
      if [4, 6, 8, 10].contains(place) { result += "-" }
      let digits = String(byte, radix: 16, uppercase: true)
      result += digits.count < 2 ? "0" + digits : digits
    }
    return result
  }
}
