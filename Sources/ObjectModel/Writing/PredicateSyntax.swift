/// Predicates of the forms that models are known to archive, from their text.
///
/// The counterpart of ``PredicateText``: what that writes, this reads. Comparisons between key
/// paths, variables and constants, joined by AND, OR and NOT. Models need no more; mapping models
/// have a grammar of their own.
indirect enum PredicateSyntax: Equatable {
  enum Join: Int64 {
    case not = 0
    case and = 1
    case or = 2
  }

  /// Raw values are those of `NSComparisonPredicate.Operator`.
  enum Comparison: Int64 {
    case less = 0
    case lessOrEqual = 1
    case greater = 2
    case greaterOrEqual = 3
    case equal = 4
    case notEqual = 5
    case matches = 6
    case isIn = 10
    case contains = 99
  }

  enum Operand: Equatable {
    case itself
    case keyPath(String)
    case variable(String, String?)
    case integer(Int64)
    case real(Double)
    case text(String)
    /// Seconds since 2001.
    case date(Double)
    case nothing
  }

  case compound(Join, [PredicateSyntax])
  case comparison(Operand, Comparison, Operand, options: Int64, modifier: Int64)

  /// Nil for a text of any other form.
  static func parse(_ text: String) -> PredicateSyntax? {
    guard let tokens = PredicateTokens.tokens(of: text) else { return nil }
    var parser = Parser(tokens: tokens)
    guard let predicate = parser.disjunction(depth: 0), parser.isAtEnd else { return nil }
    return predicate
  }
}

/// Cuts a predicate's text into words, strings and signs.
enum PredicateTokens: Equatable {
  case word(String)
  case string(String)
  case sign(String)

  /// 64 Ki characters. Predicates of models are lines.
  private static let lengthLimit = 65_536

  static func tokens(of text: String) -> [PredicateTokens]? {
    guard text.utf8.count <= lengthLimit else { return nil }
    let scalars = Array(text.unicodeScalars)
    var tokens: [PredicateTokens] = []
    var place = 0
    while place < scalars.count {
      let scalar = scalars[place]
      if scalar.properties.isWhitespace {
        place += 1
      } else if scalar == "\"" || scalar == "'" {
        guard let (string, end) = string(scalars, from: place) else { return nil }
        tokens.append(.string(string))
        place = end
      } else if "(),{}[]".unicodeScalars.contains(scalar) {
        tokens.append(.sign(String(scalar)))
        place += 1
      } else {
        let isSign = "<>=!&|".unicodeScalars.contains(scalar)
        let start = place
        while place < scalars.count, !scalars[place].properties.isWhitespace,
          !"(),{}[]\"'".unicodeScalars.contains(scalars[place]),
          "<>=!&|".unicodeScalars.contains(scalars[place]) == isSign
        {
          place += 1
        }
        let word = String(String.UnicodeScalarView(scalars[start..<place]))
        tokens.append(isSign ? .sign(word) : .word(word))
      }
    }
    return tokens
  }

  private static func string(
    _ scalars: [Unicode.Scalar], from start: Int
  ) -> (String, end: Int)? {
    var content = String.UnicodeScalarView()
    var place = start + 1
    while place < scalars.count {
      if scalars[place] == scalars[start] { return (String(content), place + 1) }
      if scalars[place] == "\\" { place += 1 }
      guard place < scalars.count else { return nil }
      content.append(scalars[place])
      place += 1
    }
    return nil
  }
}

extension PredicateSyntax {
  /// Recursive descent; the depth of parentheses is bounded.
  fileprivate struct Parser {
    let tokens: [PredicateTokens]
    private var place = 0

    init(tokens: [PredicateTokens]) { self.tokens = tokens }

    var isAtEnd: Bool { place == tokens.count }

    private mutating func accept(word: String, or sign: String? = nil) -> Bool {
      guard place < tokens.count else { return false }
      switch tokens[place] {
      case .word(let text) where text.uppercased() == word: break
      case .sign(let text) where text == sign: break
      default: return false
      }
      place += 1
      return true
    }

    private mutating func accept(sign: String) -> Bool {
      guard place < tokens.count, tokens[place] == .sign(sign) else { return false }
      place += 1
      return true
    }

    mutating func disjunction(depth: Int) -> PredicateSyntax? {
      guard let first = conjunction(depth: depth) else { return nil }
      var parts = [first]
      while accept(word: "OR", or: "||") {
        guard let next = conjunction(depth: depth) else { return nil }
        parts.append(next)
      }
      return parts.count == 1 ? first : .compound(.or, parts)
    }

    private mutating func conjunction(depth: Int) -> PredicateSyntax? {
      guard let first = unary(depth: depth) else { return nil }
      var parts = [first]
      while accept(word: "AND", or: "&&") {
        guard let next = unary(depth: depth) else { return nil }
        parts.append(next)
      }
      return parts.count == 1 ? first : .compound(.and, parts)
    }

    private mutating func unary(depth: Int) -> PredicateSyntax? {
      guard depth < PredicateText.depthLimit else { return nil }
      if accept(word: "TRUEPREDICATE") { return .compound(.and, []) }
      if accept(word: "FALSEPREDICATE") { return .compound(.or, []) }
      if accept(word: "NOT", or: "!") {
        return unary(depth: depth + 1).map { .compound(.not, [$0]) }
      }
      if accept(sign: "(") {
        guard let inner = disjunction(depth: depth + 1), accept(sign: ")") else { return nil }
        return inner
      }
      return comparison()
    }

    private mutating func comparison() -> PredicateSyntax? {
      let modifier: Int64 = accept(word: "ALL") ? 1 : accept(word: "ANY") ? 2 : 0
      guard let left = operand(), let type = comparisonSign() else { return nil }
      var options: Int64 = 0
      if accept(sign: "[") {
        guard place < tokens.count, case .word(let letters) = tokens[place] else { return nil }
        place += 1
        guard accept(sign: "]") else { return nil }
        for letter in letters {
          switch letter {
          case "c": options |= 1
          case "d": options |= 2
          default: return nil
          }
        }
      }
      guard let right = operand() else { return nil }
      return .comparison(left, type, right, options: options, modifier: modifier)
    }

    private mutating func comparisonSign() -> Comparison? {
      guard place < tokens.count else { return nil }
      let known: [String: Comparison] = [
        "<": .less, "<=": .lessOrEqual, "=<": .lessOrEqual, ">": .greater,
        ">=": .greaterOrEqual, "=>": .greaterOrEqual, "==": .equal, "=": .equal,
        "!=": .notEqual, "<>": .notEqual, "MATCHES": .matches, "IN": .isIn,
        "CONTAINS": .contains,
      ]
      let found: Comparison? =
        switch tokens[place] {
        case .sign(let text): known[text]
        case .word(let text): known[text.uppercased()]
        case .string: nil
        }
      if found != nil { place += 1 }
      return found
    }

    private mutating func operand() -> Operand? {
      guard place < tokens.count else { return nil }
      defer { place += 1 }
      switch tokens[place] {
      case .string(let text): return .text(text)
      case .sign: return nil
      case .word(let word): return operand(word)
      }
    }

    private mutating func operand(_ word: String) -> Operand? {
      if let number = Int64(word) { return .integer(number) }
      if let number = Double(word), word.first.map({ $0.isNumber || $0 == "-" }) == true {
        return .real(number)
      }
      switch word.uppercased() {
      case "SELF": return .itself
      case "NIL", "NULL": return .nothing
      case "YES", "TRUE": return .integer(1)
      case "NO", "FALSE": return .integer(0)
      case "CAST": return date()
      default: break
      }
      if word.hasPrefix("$") {
        let parts = word.dropFirst().split(separator: ".", maxSplits: 1)
        guard let name = parts.first else { return nil }
        return .variable(String(name), parts.count > 1 ? String(parts[1]) : nil)
      }
      // A call: none is known in archived models.
      if place + 1 < tokens.count, tokens[place + 1] == .sign("(") { return nil }
      return .keyPath(word.hasPrefix("SELF.") ? String(word.dropFirst(5)) : word)
    }

    /// `CAST(0.0, "NSDate")`; ends on its last token.
    private mutating func date() -> Operand? {
      let wanted = tokens[place...].prefix(6)
      guard wanted.count == 6, case .word(let number) = tokens[place + 2],
        let seconds = Double(number), tokens[place + 1] == .sign("("),
        tokens[place + 3] == .sign(","), tokens[place + 4] == .string("NSDate"),
        tokens[place + 5] == .sign(")")
      else { return nil }
      place += 5
      return .date(seconds)
    }
  }
}
