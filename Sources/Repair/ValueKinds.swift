import GodwitSQLite

/// The storage classes of the values that may lie in a column: others were converted when they were
/// written, or refused.
struct ValueKinds {
  private let bits: UInt8
  private let affinity: ColumnAffinity

  init(_ column: SchemaSalvage.Column) {
    affinity = ColumnAffinity(declaredType: column.type)
    let kinds: [RawValue.Kind] =
      switch affinity {
      case .text: column.isStrict ? [.text] : [.text, .blob]
      case .integer where column.isStrict: [.integer]
      // Whole numbers lie there as integers.
      case .real where column.isStrict: [.integer, .real]
      case .blob where column.isStrict && !column.type.isEmpty: [.blob]
      default: [.integer, .real, .text, .blob]
      }
    bits = kinds.reduce(1 << RawValue.Kind.null.rawValue) { $0 | 1 << $1.rawValue }
  }

  func contains(_ kind: RawValue.Kind) -> Bool { bits & 1 << kind.rawValue != 0 }
}

extension ValueKinds {
  /// Whether the column makes a number of another storage class of a value, where SQLite writes it anew: of a
  /// text that reads as one, and of a whole real among integers.
  func converts(_ value: RawValue) -> Bool {
    switch (value.kind, affinity) {
    case (.text, .numeric), (.text, .integer), (.text, .real): Self.isNumber(value.buffer)
    // In columns of dates and decimals both are at home.
    case (.real, .integer): Int64(exactly: value.real) != nil
    default: false
    }
  }

  /// Source: https://sqlite.org/datatype3.html §3, https://sqlite.org/syntax/numeric-literal.html.
  private static func isNumber(_ text: UnsafeRawBufferPointer) -> Bool {
    var rest = text[...]
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    func takeSign() {
      if let sign = rest.first, [UInt8(ascii: "+"), UInt8(ascii: "-")].contains(sign) {
        rest = rest.dropFirst()
      }
    }
    func takeDigits() -> Bool {
      let count = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }.count
      rest = rest.dropFirst(count)
      return count > 0
    }
    rest = rest.drop(while: isSpace)
    takeSign()
    var hasDigits = takeDigits()
    if rest.first == UInt8(ascii: ".") {
      rest = rest.dropFirst()
      hasDigits = takeDigits() || hasDigits
    }
    guard hasDigits else { return false }
    if let mark = rest.first, mark | 0x20 == UInt8(ascii: "e") {
      rest = rest.dropFirst()
      takeSign()
      guard takeDigits() else { return false }
    }
    return rest.allSatisfy(isSpace)
  }
}
