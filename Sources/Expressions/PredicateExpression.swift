/// A condition: the tree of an `NSPredicate`.
///
/// `NONE a = b` is kept as `NOT ANY a = b`, `SOME` as `ANY`: they mean the same.
/// Source: `core-data-migration.md` §4.2.
public indirect enum PredicateExpression: Sendable, Hashable {
  /// `TRUEPREDICATE` or `FALSEPREDICATE`.
  case constant(Bool)
  /// Two values and an operator between them.
  case comparison(Comparison)
  /// Two or more.
  case and([PredicateExpression])
  /// Two or more.
  case or([PredicateExpression])
  /// True where the predicate is false.
  case not(PredicateExpression)
}

/// `[ANY|ALL] left operator[options] right`
public struct Comparison: Sendable, Hashable {
  /// How a collection on the left side is compared.
  package enum Modifier: String, Sendable, Hashable {
    /// The left side as it is.
    case direct
    /// True where the comparison holds for at least one member. False for an empty collection.
    case any = "ANY"
    /// True where the comparison holds for every member. True for an empty collection.
    case all = "ALL"
  }

  /// How the two sides are compared. Raw values are the spellings that are written.
  package enum Operator: String, Sendable, Hashable, CaseIterable {
    /// Equal. Nil equals nil only.
    case equal = "=="
    /// Not equal.
    case notEqual = "!="
    /// Less. False where a side is nil.
    case less = "<"
    /// Less or equal. False where a side is nil.
    case lessOrEqual = "<="
    /// Greater. False where a side is nil.
    case greater = ">"
    /// Greater or equal. False where a side is nil.
    case greaterOrEqual = ">="
    /// Within a pair of bounds, both inclusive. False where a side or a bound is nil.
    case between = "BETWEEN"
    /// The left side is a member of the right side, or a part of it where both are texts.
    case `in` = "IN"
    /// The right side is a member of the left side, or a part of it where both are texts.
    case contains = "CONTAINS"
    /// The text on the left side begins with that on the right side.
    case beginsWith = "BEGINSWITH"
    /// The text on the left side ends with that on the right side.
    case endsWith = "ENDSWITH"
    /// The text on the left side matches a pattern: `*` is any text, `?` any one character.
    case like = "LIKE"
    /// The whole text on the left side matches an ICU regular expression.
    case matches = "MATCHES"
  }

  /// `[cdnl]` after the operator.
  package struct Options: OptionSet, Sendable, Hashable {
    /// One bit for each option.
    package let rawValue: UInt8
    /// Makes a set of options of their bits.
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    /// `[c]`: case does not matter.
    package static let caseInsensitive = Options(rawValue: 1)
    /// `[d]`: diacritics do not matter.
    package static let diacriticInsensitive = Options(rawValue: 2)
    /// Bytes are compared; excludes the other two.
    package static let normalized = Options(rawValue: 4)
    /// `[l]`: kept and written, without effect on evaluation.
    package static let localeSensitive = Options(rawValue: 8)
  }

  /// How a collection on the left side is compared.
  package var modifier: Modifier
  /// The left side.
  package var left: ValueExpression
  /// The operator between the two sides.
  package var `operator`: Operator
  /// The options of a comparison of texts.
  package var options: Options
  /// The right side.
  package var right: ValueExpression

  /// Makes a comparison. Whether the operator applies to the two sides is not checked.
  package init(
    _ left: ValueExpression, _ comparison: Operator, _ right: ValueExpression,
    modifier: Modifier = .direct, options: Options = []
  ) {
    self.left = left
    self.operator = comparison
    self.right = right
    self.modifier = modifier
    self.options = options
  }
}
