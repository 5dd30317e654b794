import Foundation

/// `CAST(value, "type")` and `castObject:toType:`. Source: `core-data-migration.md` §4.4.
enum Casting {
  static func cast(
    _ value: ExpressionValue, to type: String
  ) throws(EvaluationProblem) -> ExpressionValue {
    guard ["NSDate", "NSNumber", "NSDecimalNumber", "NSString", "NSURL", "NSUUID"].contains(type)
    else { throw .unknownCast(type) }
    if value.isNull { return .null }
    switch (type, value) {
    case ("NSDate", .date), ("NSString", .string), ("NSURL", .url), ("NSUUID", .uuid),
      ("NSNumber", .boolean), ("NSNumber", .integer), ("NSNumber", .real), ("NSNumber", .decimal),
      ("NSDecimalNumber", .decimal):
      return value
    case ("NSDate", _) where Number.isNumber(value): return .date(Number.double(value))
    case ("NSNumber", .date(let seconds)): return .real(seconds)
    case ("NSNumber", .string(let text)): return try number(text)
    case ("NSDecimalNumber", .string(let text)): return .decimal(try decimal(text))
    case ("NSDecimalNumber", _) where Number.isNumber(value):
      guard let decimal = Number.decimal(value) else { throw .overflow }
      return .decimal(decimal)
    case ("NSString", _):
      if let text = ValueMessages.description(of: value) { return .string(text) }
    case ("NSURL", .string(let text)): return try url(text)
    case ("NSUUID", .string(let text)): return try uuid(text)
    default: break
    }
    throw .wrongKind(found: value.kind, needed: "something that becomes \(type)")
  }

  /// Digits with a sign are an integer, anything else that spells a number is real.
  static func number(_ text: String) throws(EvaluationProblem) -> ExpressionValue {
    if isPlainNumber(text) {
      if let integer = Int64(text) { return .integer(integer) }
      if let real = Double(text), real.isFinite { return .real(real) }
      throw .overflow
    }
    throw .notConvertible(to: "a number")
  }

  static func integer(_ text: String) throws(EvaluationProblem) -> Int64 {
    guard isPlainNumber(text), !text.utf8.contains(where: { ".eE".utf8.contains($0) }) else {
      throw .notConvertible(to: "a whole number")
    }
    guard let integer = Int64(text) else { throw .overflow }
    return integer
  }

  static func real(_ text: String) throws(EvaluationProblem) -> Double {
    guard isPlainNumber(text) else { throw .notConvertible(to: "a number") }
    guard let real = Double(text), real.isFinite else { throw .overflow }
    return real
  }

  static func decimal(_ text: String) throws(EvaluationProblem) -> DecimalNumber {
    guard isPlainNumber(text) else { throw .notConvertible(to: "a decimal number") }
    guard let decimal = DecimalNumber(text: text) else { throw .overflow }
    return decimal
  }

  /// `[+-]digits[.digits][e[+-]digits]`, nothing before or behind it, at most 200 characters.
  private static func isPlainNumber(_ text: String) -> Bool {
    var units = text.utf8[...]
    guard units.count <= 200 else { return false }
    func sign() {
      if units.first == UInt8(ascii: "-") || units.first == UInt8(ascii: "+") {
        units.removeFirst()
      }
    }
    func digits() -> Bool {
      let rest = units.drop { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
      defer { units = rest }
      return rest.count < units.count
    }
    sign()
    guard digits() else { return false }
    if units.first == UInt8(ascii: ".") {
      units.removeFirst()
      guard digits() else { return false }
    }
    if let mark = units.first, mark | 0x20 == UInt8(ascii: "e") {
      units.removeFirst()
      sign()
      guard digits() else { return false }
    }
    return units.isEmpty
  }

  static func uuid(_ text: String) throws(EvaluationProblem) -> ExpressionValue {
    guard let uuid = UUIDBytes(text: text) else { throw .notConvertible(to: "a UUID") }
    return .uuid(uuid)
  }

  /// As `URL(string:)` makes one since iOS 17: what a URI cannot have is percent-encoded.
  static func url(_ text: String) throws(EvaluationProblem) -> ExpressionValue {
    guard let url = URL(string: text) else { throw .notConvertible(to: "a URI") }
    return .url(url.absoluteString)
  }

  /// Cut toward zero; nil outside the range, and for what is not a number.
  static func truncated(_ value: ExpressionValue) -> Int64? {
    switch value {
    case .boolean(let value): return value ? 1 : 0
    case .integer(let value): return value
    case .real(let value):
      let whole = value.rounded(.towardZero)
      return whole >= -0x1p63 && whole < 0x1p63 ? Int64(whole) : nil
    case .decimal(let value): return value.truncated
    default: return nil
    }
  }
}
