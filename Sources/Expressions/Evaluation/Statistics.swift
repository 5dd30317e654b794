/// Sums and the like over the members of a collection. Source: `core-data-migration.md` §4.4.
///
/// Members that are nil are left out; the caller turns them into zeros where that is the rule.
enum Statistics {
  /// Left to right by the rules of arithmetic; 0 of nothing.
  static func sum(_ values: [ExpressionValue]) throws(EvaluationProblem) -> ExpressionValue {
    var total = ExpressionValue.integer(0)
    for value in values where !value.isNull { total = try Number.apply(.add, total, value) }
    return total
  }

  /// Never cut to an integer; nil of nothing.
  static func average(_ values: [ExpressionValue]) throws(EvaluationProblem) -> ExpressionValue {
    let present = values.filter { !$0.isNull }
    guard !present.isEmpty else { return .null }
    let count = ExpressionValue.integer(Int64(present.count))
    let total = try sum(present)
    if case .decimal = total { return try Number.apply(.divide, total, count) }
    return try Number.apply(.divide, .real(Number.double(total)), count)
  }

  /// The least (`wanted` −1) or greatest (1); of equal ones the first; nil of nothing.
  static func extreme(
    _ values: [ExpressionValue], wanted: Int
  ) throws(EvaluationProblem) -> ExpressionValue {
    var best = ExpressionValue.null
    for value in values where !value.isNull {
      if best.isNull {
        best = value
      } else if try Ordering.order(value, best) == wanted {
        best = value
      }
    }
    return best
  }

  /// The middle one; of two the mean.
  static func median(_ values: [ExpressionValue]) throws(EvaluationProblem) -> ExpressionValue {
    let sorted = try numbers(values)
    guard !sorted.isEmpty else { return .null }
    let middle = sorted.count / 2
    if sorted.count % 2 == 1 { return sorted[middle] }
    return try average([sorted[middle - 1], sorted[middle]])
  }

  /// All of the most frequent ones, each once and the least first.
  static func mode(_ values: [ExpressionValue]) throws(EvaluationProblem) -> ExpressionValue {
    var runs: [(value: ExpressionValue, count: Int)] = []
    for value in try numbers(values) {
      if value == runs.last?.value {
        runs[runs.count - 1].count += 1
      } else {
        runs.append((value, 1))
      }
    }
    let most = runs.map(\.count).max()
    return .array(runs.filter { $0.count == most }.map(\.value))
  }

  /// Of the whole population, in doubles.
  static func standardDeviation(
    _ values: [ExpressionValue]
  ) throws(EvaluationProblem) -> ExpressionValue {
    let all = try numbers(values, sorted: false).map { Number.double($0) }
    guard !all.isEmpty else { return .null }
    let mean = all.reduce(0, +) / Double(all.count)
    let squares = all.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
    let result = (squares / Double(all.count)).squareRoot()
    guard result.isFinite else { throw .overflow }
    return .real(result)
  }

  private static func numbers(
    _ values: [ExpressionValue], sorted: Bool = true
  ) throws(EvaluationProblem) -> [ExpressionValue] {
    let present = values.filter { !$0.isNull }
    for value in present where !Number.isNumber(value) {
      throw .wrongKind(found: value.kind, needed: "a number")
    }
    // Stable, so that of equal numbers the kind of the first is kept.
    return sorted ? present.sorted { (Number.order($0, $1) ?? 0) < 0 } : present
  }
}

/// The order of values that have one: numbers, texts by code point, dates.
enum Ordering {
  /// −1, 0 or 1.
  static func order(
    _ a: ExpressionValue, _ b: ExpressionValue
  ) throws(EvaluationProblem) -> Int {
    if let order = Number.order(a, b) { return order }
    switch (a, b) {
    case (.string(let x), .string(let y)), (.url(let x), .url(let y)):
      return x.utf8.elementsEqual(y.utf8) ? 0 : x.utf8.lexicographicallyPrecedes(y.utf8) ? -1 : 1
    case (.date(let x), .date(let y)): return x == y ? 0 : x < y ? -1 : 1
    default: throw .notComparable(a.kind, b.kind)
    }
  }
}
