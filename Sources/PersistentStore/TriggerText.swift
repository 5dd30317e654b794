/// A trigger's text, as far as it means something that it does not name: columns by their place in a row, and
/// what a table keeps unique.
package struct TriggerText {
  private enum Token: Equatable {
    /// A name or a keyword, however it is quoted.
    case word(String)
    case symbol(UInt8)
    /// A text, a number or a parameter.
    case value
  }

  private let tokens: [Token]

  package init(_ sql: String) { tokens = Self.tokens(of: Array(sql.utf8)) }

  /// True for `SELECT *`, `SELECT t.*` and `NATURAL JOIN`, which compares whatever columns both tables have.
  package var takesAllColumns: Bool {
    tokens.indices.contains { isAllColumns($0) || isNaturalJoin($0) }
  }

  /// Tables of which `INSERT INTO t VALUES …` or `(…) IN t` does not name the columns. In a trigger a table is
  /// not renamed there, and qualified behind `IN` alone: by `main`, since others cannot be named.
  package var namedByPlace: [String] {
    tokens.indices.compactMap { place in
      guard isWord("INTO", at: place) || isWord("IN", at: place) else { return nil }
      let dot = Token.symbol(UInt8(ascii: "."))
      let name = place + 2 < tokens.count && tokens[place + 2] == dot ? place + 3 : place + 1
      guard name + 1 < tokens.count, case .word(let table) = tokens[name],
        tokens[name + 1] != .symbol(UInt8(ascii: "("))
      else { return nil }
      return table
    }
  }

  /// Tables that are written to with `OR IGNORE`, `OR REPLACE`, `REPLACE` or `ON CONFLICT`, which act where a
  /// table keeps something unique.
  package var settlingConflicts: [String] {
    tokens.indices.compactMap { place in
      guard place > 1, case .word(let table) = tokens[place] else { return nil }
      let isSettling =
        isWord("INTO", at: place - 1)
        ? isIgnoreOrReplace(place - 2) || hasUpsert(after: place)
        : place > 2 && isIgnoreOrReplace(place - 1) && isWord("OR", at: place - 2)
          && isWord("UPDATE", at: place - 3)
      return isSettling ? table : nil
    }
  }

  private func isIgnoreOrReplace(_ place: Int) -> Bool {
    isWord("IGNORE", at: place) || isWord("REPLACE", at: place)
  }

  /// Whether the statement goes on with `ON CONFLICT`.
  private func hasUpsert(after place: Int) -> Bool {
    let rest = tokens[place...].prefix { $0 != .symbol(UInt8(ascii: ";")) }
    return rest.indices.dropLast().contains {
      isWord("ON", at: $0) && isWord("CONFLICT", at: $0 + 1)
    }
  }

  /// What stands before tells it from `count(*)` and from a product.
  private func isAllColumns(_ place: Int) -> Bool {
    guard place > 0, tokens[place] == .symbol(UInt8(ascii: "*")) else { return false }
    return switch tokens[place - 1] {
    case .symbol(UInt8(ascii: ".")), .symbol(UInt8(ascii: ",")): true
    case .word(let word): ["SELECT", "DISTINCT", "ALL", "RETURNING"].contains(word.uppercased())
    default: false
    }
  }

  /// SQLite takes the words of a join in any order: `NATURAL LEFT OUTER JOIN`, `LEFT NATURAL JOIN`.
  private func isNaturalJoin(_ place: Int) -> Bool {
    isWord("NATURAL", at: place)
      && tokens[place...].prefix(4).indices.contains { isWord("JOIN", at: $0) }
  }

  private func isWord(_ word: String, at place: Int) -> Bool {
    if case .word(let found) = tokens[place] { found.uppercased() == word } else { false }
  }

  private static func tokens(of bytes: [UInt8]) -> [Token] {
    var tokens: [Token] = []
    var place = 0
    /// Up to the mark that closes what is quoted; a doubled one is part of it.
    func end(_ mark: UInt8) -> Int {
      var end = place + 1
      while end < bytes.count {
        if bytes[end] == mark {
          guard end + 1 < bytes.count, bytes[end + 1] == mark else { return end }
          end += 1
        }
        end += 1
      }
      return end
    }
    while place < bytes.count {
      let byte = bytes[place]
      switch byte {
      case UInt8(ascii: "'"):
        place = end(byte) + 1
        tokens.append(.value)
      case UInt8(ascii: "\""), UInt8(ascii: "`"), UInt8(ascii: "["):
        let close = end(byte == UInt8(ascii: "[") ? UInt8(ascii: "]") : byte)
        tokens.append(.word(String(decoding: bytes[place..<close].dropFirst(), as: UTF8.self)))
        place = close + 1
      case UInt8(ascii: "-") where bytes[place...].starts(with: "--".utf8):
        place = bytes[place...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
      case UInt8(ascii: "/") where bytes[place...].starts(with: "/*".utf8):
        place += 2
        while place < bytes.count, !bytes[place...].starts(with: "*/".utf8) { place += 1 }
        place += 2
      case _ where isOfWord(byte):
        let start = place
        while place < bytes.count, isOfWord(bytes[place]) { place += 1 }
        let isNumber = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        tokens.append(
          isNumber ? .value : .word(String(decoding: bytes[start..<place], as: UTF8.self)))
      default:
        if byte > 0x20 { tokens.append(.symbol(byte)) }
        place += 1
      }
    }
    return tokens
  }

  private static func isOfWord(_ byte: UInt8) -> Bool {
    byte >= 0x80 || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$")
      || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }
}
