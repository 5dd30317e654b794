/// Why a text is not a value expression or predicate. ``offset`` counts Unicode scalars from 0.
public struct ExpressionError: Error, Sendable, Equatable {
  /// What is wrong with the text.
  public enum Problem: Sendable, Equatable {
    /// Something else was expected; both in words.
    case unexpected(found: String, expected: String)
    /// A character that has no meaning in the grammar.
    case unknownCharacter(Character)
    /// `&source`: the variable was meant.
    case ampersand(name: String)
    /// A string without its closing quotation mark.
    case openString
    /// An escape in a string that is not known, with its backslash.
    case badEscape(String)
    /// A number that cannot be read, as it is written.
    case badNumber(String)
    /// A function that does not exist, and the one that was probably meant.
    case unknownFunction(String, suggestion: String?)
    /// A call with too few or too many arguments; `expected` is in words.
    case wrongArgumentCount(function: String, found: Int, expected: String)
    /// A predicate stands where a value must, or the other way round.
    case notAValue
    /// A value where a predicate is needed.
    case notAPredicate
    /// A letter in brackets after an operator that is not an option: see `Comparison.Options`.
    case unknownOption(Character)
    /// Nested deeper than `ExpressionLimits.depth`.
    case tooDeep
    /// Longer than `ExpressionLimits.length`.
    case tooLong
  }

  /// What is wrong.
  public var problem: Problem
  /// Where it is wrong, in Unicode scalars of ``text`` from 0.
  public var offset: Int
  /// The text that was read; its first 200 characters where it is too long.
  public var text: String

  /// Puts a problem at its place.
  package init(_ problem: Problem, at offset: Int, in text: String) {
    self.problem = problem
    self.offset = offset
    self.text = text
  }
}

/// Bounds that no honest expression meets, and that keep a hostile one from filling the stack.
package enum ExpressionLimits {
  /// Levels of the tree.
  package static let depth = 200
  /// Characters of the text.
  package static let length = 100_000
}

extension ExpressionError: CustomStringConvertible {
  /// What is wrong, where, and what to write instead.
  public var description: String {
    // Expressions are the team's own source, not row data; still, a very long one is cut.
    // What is wrong stands at its place, which may be far from the beginning.
    let scalars = text.unicodeScalars
    let start = scalars.count > 200 ? max(0, min(offset - 100, scalars.count - 200)) : 0
    let shown = (start > 0 ? "…" : "") + String(scalars.dropFirst(start)).cut(to: 200)
    return "\(problem.description.cut(to: 300)), at character \(offset + 1) of: \(shown)"
  }
}

extension ExpressionError.Problem: CustomStringConvertible {
  /// What is wrong with the text.
  public var description: String {
    switch self {
    case .unexpected(let found, let expected): "Expected \(expected) and found \(found)"
    case .unknownCharacter(let character): "The character \(character) has no meaning here"
    case .ampersand(let name): "A variable begins with $: did you mean $\(name)?"
    case .openString: "The text is not closed: its quotation mark is missing"
    case .badEscape(let escape):
      "\(escape) is not an escape. Write \\\\, \\\", \\', \\n, \\t, \\r or \\uXXXX"
    case .badNumber(let number): "\(number) is not a number"
    case .unknownFunction(let name, let suggestion):
      "There is no function \(name)" + (suggestion.map { ": did you mean \($0)?" } ?? "")
    case .wrongArgumentCount(let function, let found, let expected):
      "\(function) takes \(expected) argument(s) and was given \(found)"
    case .notAValue: "A condition stands where a value must. Use TERNARY(condition, YES, NO)"
    case .notAPredicate: "A value stands where a condition must. Compare it, as in \u{2026} == YES"
    case .unknownOption(let option): "[\(option)] is not an option of an operator. Use c, d, n or l"
    case .tooDeep: "The expression is nested deeper than \(ExpressionLimits.depth) levels"
    case .tooLong: "The expression is longer than \(ExpressionLimits.length) characters"
    }
  }
}

extension String {
  /// The text as a message shows it: its beginning, where it is longer than that.
  package func cut(to limit: Int) -> String {
    unicodeScalars.count <= limit
      ? self : String(String.UnicodeScalarView(unicodeScalars.prefix(limit))) + "…"
  }
}
