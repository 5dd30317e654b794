import GodwitKeyedArchive

/// Default values as SQLite would hold them, from the two forms in which models keep them.
///
/// Source: `core-data-models.md` §2 (attributes) and §4; `core-data-sqlite-format.md` §5 for the
/// stored form of each type.
enum DefaultValue {
  // MARK: The stored form

  /// A whole number where it is one: the columns of Decimal and Date have NUMERIC affinity, which leaves
  /// −2^63 a real.
  private static func numeric(_ value: Double) -> StoredDefault {
    if let whole = Int64(exactly: value), whole > .min { return .integer(whole) }
    return real(value, "\(value)")
  }

  /// What no number of the type can hold stays a text: it is no default, but not the same as none, and
  /// whoever would give it to an object finds that it does not fit.
  private static func real(_ value: Double, _ text: String) -> StoredDefault {
    value.isFinite ? .real(value) : .text(text)
  }

  private static func stored(
    _ type: AttributeType, number: Double, text: String? = nil
  ) -> StoredDefault? {
    let text = text ?? "\(number)"
    switch type {
    case .integer16, .integer32, .integer64:
      return Int64(exactly: number.rounded(.towardZero)).map(StoredDefault.integer) ?? .text(text)
    case .boolean: return .integer(number != 0 ? 1 : 0)
    case .double: return real(number, text)
    case .float: return real(Double(Float(number)), text)
    case .decimal, .date: return numeric(number)
    default: return nil
    }
  }

  // MARK: From an archive

  static func read(_ type: AttributeType, archived value: ArchivedValue?) -> StoredDefault? {
    guard let value else { return nil }
    switch type {
    case .string, .uri:
      return (value.string ?? value.url).map(StoredDefault.text)
    case .binary, .uuid:
      return (value.uuid ?? value.data).map(StoredDefault.blob)
    case .integer16, .integer32, .integer64, .decimal:
      // Beyond 2^53 not every whole number is a Double.
      if let exact = value.integer ?? value.string.flatMap({ Int64($0) }),
        type != .decimal || exact > .min
      {
        return .integer(exact)
      }
    default: break
    }
    if let number = value.real ?? value.date { return stored(type, number: number) }
    // Some models keep a number as text.
    guard let text = value.string, !text.isEmpty else { return nil }
    if type == .boolean { return .integer(1) }
    return Double(text).flatMap { stored(type, number: $0) }
  }

  // MARK: From XML

  static func read(_ type: AttributeType, element: MarkupElement) -> StoredDefault? {
    if type == .date {
      // `defaultValueString` may stand beside it as display text; the interval wins.
      return element["defaultDateTimeInterval"].flatMap(Double.init).map(numeric)
    }
    guard let text = element["defaultValueString"] else { return nil }
    switch type {
    case .boolean:
      return .integer(["YES", "TRUE", "1"].contains(text.uppercased()) ? 1 : 0)
    case .integer16, .integer32, .integer64:
      // The model compiler reads the leading number; anything else, even "NO", is 0.
      guard let digits = leadingInteger(of: text) else { return .integer(0) }
      return Int64(digits).map(StoredDefault.integer) ?? .text(digits)
    case .double, .float, .decimal:
      guard let digits = leadingNumber(of: text) else { return stored(type, number: 0) }
      // Beyond 2^53 not every whole number is a Double.
      if type == .decimal, let whole = Int64(digits), whole > .min { return .integer(whole) }
      return Double(digits).flatMap { stored(type, number: $0, text: digits) }
    // What is none stays one that no column holds: without a word it would be as if there were no default.
    case .uuid: return hexadecimal(text).map(StoredDefault.blob) ?? .text(text)
    case .string, .uri: return .text(text)
    default: return nil
    }
  }

  private static func hexadecimal(_ text: String) -> [UInt8]? {
    let digits = text.filter { $0 != "-" && !$0.isWhitespace }.map(\.hexDigitValue)
    guard digits.count.isMultiple(of: 2) else { return nil }
    var bytes: [UInt8] = []
    for place in stride(from: 0, to: digits.count, by: 2) {
      guard let high = digits[place], let low = digits[place + 1] else { return nil }
      bytes.append(UInt8(high << 4 | low))
    }
    return bytes
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  private static func isSign(_ byte: UInt8?) -> Bool {
    byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+")
  }

  private static func withoutLeadingSpace(_ text: String) -> Substring.UTF8View {
    text.drop { $0.isWhitespace }.utf8
  }

  /// White space, a sign, digits: nil when there is no digit.
  static func leadingInteger(of text: String) -> String? {
    let bytes = withoutLeadingSpace(text)
    let signed = isSign(bytes.first)
    let digits = bytes.dropFirst(signed ? 1 : 0).prefix(while: isDigit)
    guard !digits.isEmpty else { return nil }
    return (signed ? String(decoding: bytes.prefix(1), as: UTF8.self) : "")
      + String(decoding: digits, as: UTF8.self)
  }

  /// White space, a sign, digits with a point, an exponent; nil when there is no digit.
  static func leadingNumber(of text: String) -> String? {
    let bytes = Array(withoutLeadingSpace(text))
    var end = isSign(bytes.first) ? 1 : 0
    let start = end
    while end < bytes.count, isDigit(bytes[end]) { end += 1 }
    var digits = end - start
    if end < bytes.count, bytes[end] == UInt8(ascii: ".") {
      var fraction = end + 1
      while fraction < bytes.count, isDigit(bytes[fraction]) { fraction += 1 }
      digits += fraction - end - 1
      if digits > 0 { end = fraction }
    }
    guard digits > 0 else { return nil }
    var number = Array(bytes[..<end])
    if number.last == UInt8(ascii: ".") { number.removeLast() }
    if end < bytes.count, bytes[end] | 0x20 == UInt8(ascii: "e") {
      var power = end + 1
      if power < bytes.count, isSign(bytes[power]) { power += 1 }
      let first = power
      while power < bytes.count, isDigit(bytes[power]) { power += 1 }
      if power > first { number += bytes[end..<power] }
    }
    return String(decoding: number, as: UTF8.self)
  }
}
