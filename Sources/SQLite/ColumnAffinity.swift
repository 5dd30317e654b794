/// What a column makes of the values that are put into it.
///
/// Source: https://sqlite.org/datatype3.html §3 and §3.1.
public enum ColumnAffinity: Equatable, Sendable {
  case blob, text, numeric, integer, real

  public init(declaredType: String) {
    let type = declaredType.uppercased()
    func has(_ word: String) -> Bool { type.contains(word) }
    if has("INT") {
      self = .integer
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
      self = .text
    } else if has("BLOB") || type.isEmpty {
      self = .blob
    } else if has("REAL") || has("FLOA") || has("DOUB") {
      self = .real
    } else {
      self = .numeric
    }
  }
}
