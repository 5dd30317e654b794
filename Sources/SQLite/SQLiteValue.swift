private import Glibc

/// One SQLite value that owns what it holds. For cold paths and tests; rows in bulk go by
/// ``RawValue``.
public enum SQLiteValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])
}

extension SQLiteValue {
  /// Copies a raw value. Text that is not valid UTF-8 is repaired with U+FFFD: bytes that must
  /// survive unchanged stay raw.
  public init(_ raw: RawValue) {
    switch raw.kind {
    case .null: self = .null
    case .integer: self = .integer(raw.bits)
    case .real: self = .real(raw.real)
    case .text: self = .text(String(decoding: raw.buffer, as: UTF8.self))
    case .blob: self = .blob([UInt8](raw.buffer))
    }
  }

  /// Copies a raw value, or is nil for text that is not valid UTF-8.
  public init?(exactly raw: RawValue) {
    guard raw.kind == .text else { self.init(raw); return }
    let text = String(decoding: raw.buffer, as: UTF8.self)
    // What is not UTF-8 comes out as other bytes. `String(validating:as:)` takes half as long again.
    guard text.hasBytes(raw.buffer) else { return nil }
    self = .text(text)
  }

  /// The integer, or `nil` for any other kind.
  public var integer: Int64? {
    if case .integer(let value) = self { value } else { nil }
  }

  /// The number of an integer or real, or `nil` for any other kind.
  public var number: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .real(let value): value
    case .null, .text, .blob: nil
    }
  }

  /// The text, or `nil` for any other kind.
  public var text: String? {
    if case .text(let value) = self { value } else { nil }
  }

  /// The bytes of a blob, or `nil` for any other kind.
  public var blob: [UInt8]? {
    if case .blob(let value) = self { value } else { nil }
  }

  public var isNull: Bool { self == .null }
}

extension String {
  fileprivate func hasBytes(_ bytes: UnsafeRawBufferPointer) -> Bool {
    utf8.withContiguousStorageIfAvailable { own in
      guard own.count == bytes.count else { return false }
      guard let one = own.baseAddress, let two = bytes.baseAddress else { return own.isEmpty }
      return memcmp(one, two, own.count) == 0
    } ?? utf8.elementsEqual(bytes)
  }

  /// The name of a column as a key: SQLite leaves the case of ASCII letters alone out of account, and
  /// compares all else byte by byte. Swift takes two spellings of an accent for one.
  ///
  /// Source: https://sqlite.org/c3ref/stricmp.html
  public var columnKey: [UInt8] {
    utf8.map { $0 &- UInt8(ascii: "A") < 26 ? $0 | 0x20 : $0 }
  }
}

/// An identifier in double quotes, quotes inside doubled: safe as a name in any statement.
///
/// Source: https://sqlite.org/lang_keywords.html
public func quoted(_ identifier: String) -> String {
  var text = "\""
  for scalar in identifier.unicodeScalars {
    if scalar == "\"" { text.unicodeScalars.append(scalar) }
    text.unicodeScalars.append(scalar)
  }
  text += "\""
  return text
}
