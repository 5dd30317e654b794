// Conditions. Source: `core-data-migration.md` §4.5.
extension Evaluation {
  mutating func holds(_ predicate: PredicateExpression) throws -> Bool {
    try enter()
    defer { leave() }
    switch predicate {
    case .constant(let value): return value
    case .comparison(let comparison): return try holds(comparison)
    case .and(let parts):
      for part in parts where try !holds(part) { return false }
      return true
    case .or(let parts):
      for part in parts where try holds(part) { return true }
      return false
    case .not(let inner): return try !holds(inner)
    }
  }

  private mutating func holds(_ comparison: Comparison) throws -> Bool {
    let left = try value(comparison.left)
    let right = try value(comparison.right)
    guard comparison.modifier != .direct else { return try compare(left, comparison, right) }
    // A to-one is a collection of one or none; to-manys behind to-manys run together.
    let members = left.isNull ? [] : try flatAll(left)
    let isAny = comparison.modifier == .any
    for member in members {
      try step()
      if try compare(member, comparison, right) == isAny { return isAny }
    }
    return !isAny
  }

  private mutating func flatAll(_ value: ExpressionValue) throws -> [ExpressionValue] {
    guard var members = value.members else { return [value] }
    while members.contains(where: { $0.members != nil }) { members = try flat(members) }
    return members
  }

  private mutating func compare(
    _ left: ExpressionValue, _ comparison: Comparison, _ right: ExpressionValue
  ) throws(EvaluationProblem) -> Bool {
    let options = comparison.options
    switch comparison.operator {
    case .equal: return equal(left, right, options)
    case .notEqual: return !equal(left, right, options)
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      // Nil is in no order with anything.
      if left.isNull || right.isNull { return false }
      let order = try self.order(left, right, options)
      return switch comparison.operator {
      case .less: order < 0
      case .lessOrEqual: order <= 0
      case .greater: order > 0
      default: order >= 0
      }
    case .between:
      if left.isNull || right.isNull { return false }
      guard let bounds = right.members, bounds.count == 2 else {
        throw .wrongKind(found: right.kind, needed: "a pair of bounds")
      }
      if bounds[0].isNull || bounds[1].isNull { return false }
      let lower = try order(left, bounds[0], options)
      let upper = try order(left, bounds[1], options)
      return lower >= 0 && upper <= 0
    case .in: return try contains(right, left, options)
    case .contains: return try contains(left, right, options)
    case .beginsWith, .endsWith, .like, .matches: return try compareTexts(left, comparison, right)
    }
  }

  private func equal(
    _ a: ExpressionValue, _ b: ExpressionValue, _ options: Comparison.Options
  ) -> Bool {
    guard !options.isEmpty, case .string(let x) = a, case .string(let y) = b else { return a == b }
    let texts = evaluator.texts
    return texts.folded(x, options).utf8.elementsEqual(texts.folded(y, options).utf8)
  }

  private func order(
    _ a: ExpressionValue, _ b: ExpressionValue, _ options: Comparison.Options
  ) throws(EvaluationProblem) -> Int {
    guard !options.isEmpty, case .string(let x) = a, case .string(let y) = b else {
      return try Ordering.order(a, b)
    }
    let texts = evaluator.texts
    return try Ordering.order(
      .string(texts.folded(x, options)), .string(texts.folded(y, options)))
  }

  /// Membership, or a text inside a text; an empty text is inside every text.
  private mutating func contains(
    _ whole: ExpressionValue, _ part: ExpressionValue, _ options: Comparison.Options
  ) throws(EvaluationProblem) -> Bool {
    switch whole {
    case .null: return false
    case .array(let members), .set(let members), .orderedSet(let members):
      steps += members.count
      return members.contains { equal($0, part, options) }
    case .dictionary(let pairs): return pairs.values.contains { equal($0, part, options) }
    case .string(let text):
      if part.isNull { return false }
      guard case .string(let needle) = part else {
        throw .wrongKind(found: part.kind, needed: "a text")
      }
      let texts = evaluator.texts
      return ByteSearch.contains(texts.folded(text, options), texts.folded(needle, options))
    default: throw .wrongKind(found: whole.kind, needed: "a collection or text")
    }
  }

  private func compareTexts(
    _ left: ExpressionValue, _ comparison: Comparison, _ right: ExpressionValue
  ) throws(EvaluationProblem) -> Bool {
    if left.isNull || right.isNull { return false }
    guard case .string(let text) = left else {
      throw .wrongKind(found: left.kind, needed: "a text")
    }
    guard case .string(let pattern) = right else {
      throw .wrongKind(found: right.kind, needed: "a text")
    }
    let (texts, options) = (evaluator.texts, comparison.options)
    switch comparison.operator {
    case .like: return try texts.isLike(text, pattern, options)
    case .matches: return try texts.matches(text, pattern, options)
    case .beginsWith:
      return texts.folded(text, options).utf8.starts(with: texts.folded(pattern, options).utf8)
    default:
      return texts.folded(text, options).utf8.reversed()
        .starts(with: texts.folded(pattern, options).utf8.reversed())
    }
  }
}
