import Foundation
import GodwitKeyedArchive

// Our own functions, with the prefix `godwit.`: the changes of type that otherwise need a policy,
// and properties of a property-list dictionary in a binary attribute. Locale POSIX, time zone UTC.
// Nil gives nil.
extension Evaluation {
  func converted(
    _ name: String, _ arguments: [ExpressionValue]
  ) throws(EvaluationProblem) -> ExpressionValue {
    switch name {
    case "godwit.bucket": return try Bucket.value(in: arguments[0], forKey: arguments[1])
    case "godwit.bucketSetting":
      return try Bucket.setting(arguments[2], forKey: arguments[1], in: arguments[0])
    default: break
    }
    if arguments.contains(where: \.isNull) { return .null }
    let first = arguments[0]
    let second: String? = arguments.count > 1 ? try text(arguments[1]) : nil
    switch name {
    case "godwit.integer": return try integer(first)
    case "godwit.double": return .real(try number(first, Casting.real))
    case "godwit.decimal":
      if case .string(let text) = first { return .decimal(try Casting.decimal(text)) }
      return try Casting.cast(first, to: "NSDecimalNumber")
    case "godwit.date":
      guard let format = second else {
        if case .date = first { return first }
        return .date(
          try number(
            first,
            { _ throws(EvaluationProblem) in
              throw .wrongKind(found: "a text without a format", needed: "a number or a format")
            }))
      }
      return .date(try evaluator.dates.date(try text(first), format: format))
    case "godwit.dateString": return try dateText(first, second ?? "")
    case "godwit.seconds", "godwit.timestamp":
      guard case .date(let seconds) = first else {
        throw .wrongKind(found: first.kind, needed: "a date")
      }
      return .real(seconds)
    case "godwit.uuid":
      if case .uuid = first { return first }
      if case .data(let bytes) = first {
        guard let uuid = UUIDBytes(bytes) else { throw .notConvertible(to: "a UUID") }
        return .uuid(uuid)
      }
      return try Casting.uuid(try text(first))
    case "godwit.url":
      if case .url = first { return first }
      return try Casting.url(try text(first))
    case "godwit.data":
      if case .uuid(let uuid) = first, second == nil { return .data(uuid.bytes) }
      return .data(try TextEncoding(second ?? "utf8").bytes(try text(first)))
    case "godwit.text": return try encoded(first, second ?? "utf8")
    case "godwit.string":
      guard let second else {
        guard let text = ValueMessages.description(of: first) else {
          throw .wrongKind(found: first.kind, needed: "something with a text form")
        }
        return .string(text)
      }
      if case .date = first { return try dateText(first, second) }
      return try encoded(first, second)
    default: throw .unknownFunction(name)
    }
  }

  private func text(_ value: ExpressionValue) throws(EvaluationProblem) -> String {
    guard case .string(let text) = value else {
      throw .wrongKind(found: value.kind, needed: "a text")
    }
    return text
  }

  private func integer(_ value: ExpressionValue) throws(EvaluationProblem) -> ExpressionValue {
    if case .string(let text) = value { return .integer(try Casting.integer(text)) }
    guard Number.isNumber(value) else {
      throw .wrongKind(found: value.kind, needed: "a text or number")
    }
    guard let integer = Casting.truncated(value) else { throw .overflow }
    return .integer(integer)
  }

  private func number(
    _ value: ExpressionValue, _ read: (String) throws(EvaluationProblem) -> Double
  ) throws(EvaluationProblem) -> Double {
    if case .string(let text) = value { return try read(text) }
    guard Number.isNumber(value) else {
      throw .wrongKind(found: value.kind, needed: "a number")
    }
    return Number.double(value)
  }

  private func dateText(
    _ value: ExpressionValue, _ format: String
  ) throws(EvaluationProblem) -> ExpressionValue {
    guard case .date(let seconds) = value else {
      throw .wrongKind(found: value.kind, needed: "a date")
    }
    return .string(try evaluator.dates.text(seconds, format: format))
  }

  private func encoded(
    _ value: ExpressionValue, _ encoding: String
  ) throws(EvaluationProblem) -> ExpressionValue {
    guard case .data(let bytes) = value else {
      throw .wrongKind(found: value.kind, needed: "data")
    }
    return .string(try TextEncoding(encoding).text(bytes))
  }
}

/// How text stands for bytes.
enum TextEncoding {
  case utf8, base64, hexadecimal

  init(_ name: String) throws(EvaluationProblem) {
    switch name.lowercased() {
    case "utf8", "utf-8": self = .utf8
    case "base64": self = .base64
    case "hex": self = .hexadecimal
    default: throw .badPattern(what: "encoding: use utf8, base64 or hex")
    }
  }

  func bytes(_ text: String) throws(EvaluationProblem) -> [UInt8] {
    switch self {
    case .utf8: return Array(text.utf8)
    case .base64:
      guard let data = Data(base64Encoded: text) else { throw .notConvertible(to: "base64") }
      return [UInt8](data)
    case .hexadecimal:
      let units = Array(text.utf8)
      guard units.count % 2 == 0 else { throw .notConvertible(to: "hexadecimal bytes") }
      var result: [UInt8] = []
      result.reserveCapacity(units.count / 2)
      for place in stride(from: 0, to: units.count, by: 2) {
        guard let high = HexadecimalText.digit(units[place]),
          let low = HexadecimalText.digit(units[place + 1])
        else { throw .notConvertible(to: "hexadecimal bytes") }
        result.append(high << 4 | low)
      }
      return result
    }
  }

  func text(_ bytes: [UInt8]) throws(EvaluationProblem) -> String {
    guard bytes.count <= EvaluationLimits.bytes / 2 else {
      throw .tooLarge(what: "bytes of text", limit: EvaluationLimits.bytes)
    }
    switch self {
    case .utf8:
      guard let text = String(validating: bytes, as: UTF8.self) else {
        throw .notConvertible(to: "UTF-8")
      }
      return text
    case .base64: return Data(bytes).base64EncodedString()
    case .hexadecimal: return HexadecimalText.text(bytes)
    }
  }
}
