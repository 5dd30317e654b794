/// Words that a key path may not hold bare: `#size` is the property, `SIZE` the keyword.
/// Source: `core-data-migration.md` §4.2 ("Reserved words").
package enum Keywords {
  static let reserved: Set<String> = [
    "AND", "OR", "IN", "NOT", "ALL", "ANY", "SOME", "NONE", "LIKE", "CASEINSENSITIVE", "CI",
    "MATCHES", "CONTAINS", "BEGINSWITH", "ENDSWITH", "BETWEEN", "NULL", "NIL", "SELF", "TRUE",
    "YES", "FALSE", "NO", "FIRST", "LAST", "SIZE", "ANYKEY", "SUBQUERY", "FETCH", "CAST",
    "TRUEPREDICATE", "FALSEPREDICATE", "FUNCTION", "TERNARY",
  ]

  /// True for a key that can stand in a key path as it is.
  static func isPlainKey(_ key: String) -> Bool {
    isWord(key) && !reserved.contains(key.uppercased())
  }

  package static func isWord(_ key: String) -> Bool {
    guard let first = key.unicodeScalars.first, ExpressionLexer.beginsWord(first) else {
      return false
    }
    return key.unicodeScalars.allSatisfy(ExpressionLexer.continuesWord)
  }
}
