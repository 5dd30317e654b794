/// What a column makes of the values that are put into it.
///
/// Source: https://sqlite.org/datatype3.html §3 and §3.1.
public enum ColumnAffinity: Equatable, Sendable {
  case blob, text, numeric, integer, real

  public init(declaredType: String) {
    var type = declaredType
    self = type.withUTF8 { bytes in
      func has(_ words: StaticString...) -> Bool { words.contains { contains($0, bytes) } }
      if has("INT") { return .integer }
      if has("CHAR", "CLOB", "TEXT") { return .text }
      if bytes.isEmpty || has("BLOB") { return .blob }
      return has("REAL", "FLOA", "DOUB") ? .real : .numeric
    }
  }
}

/// Whether a word of ASCII capitals stands anywhere in a text, in capitals or not.
private func contains(_ word: StaticString, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
  let word = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
  guard bytes.count >= word.count else { return false }
  return (0...(bytes.count - word.count)).contains { start in
    word.indices.allSatisfy { place in
      let byte = bytes[start + place]
      let isSmall = byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
      return (isSmall ? byte - 32 : byte) == word[place]
    }
  }
}
