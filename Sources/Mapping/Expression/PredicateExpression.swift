/// A condition: the tree of an `NSPredicate`.
///
/// `NONE a = b` is kept as `NOT ANY a = b`, `SOME` as `ANY`: they mean the same.
/// Source: `core-data-migration.md` §4.2.
public indirect enum PredicateExpression: Sendable, Hashable {
  /// `TRUEPREDICATE` or `FALSEPREDICATE`.
  case constant(Bool)
  case comparison(Comparison)
  /// Two or more.
  case and([PredicateExpression])
  /// Two or more.
  case or([PredicateExpression])
  case not(PredicateExpression)
}

/// `[ANY|ALL] left operator[options] right`
public struct Comparison: Sendable, Hashable {
  /// How a collection on the left side is compared.
  public enum Modifier: String, Sendable, Hashable {
    case direct
    case any = "ANY"
    case all = "ALL"
  }

  public enum Operator: String, Sendable, Hashable, CaseIterable {
    case equal = "=="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case between = "BETWEEN"
    case `in` = "IN"
    case contains = "CONTAINS"
    case beginsWith = "BEGINSWITH"
    case endsWith = "ENDSWITH"
    case like = "LIKE"
    case matches = "MATCHES"
  }

  /// `[cdnl]` after the operator.
  public struct Options: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let caseInsensitive = Options(rawValue: 1)
    public static let diacriticInsensitive = Options(rawValue: 2)
    /// Bytes are compared; excludes the other two.
    public static let normalized = Options(rawValue: 4)
    public static let localeSensitive = Options(rawValue: 8)
  }

  public var modifier: Modifier
  public var left: ValueExpression
  public var `operator`: Operator
  public var options: Options
  public var right: ValueExpression

  public init(
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
