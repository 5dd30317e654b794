@testable import GodwitExpressions

/// Draws expressions from a seed.
struct ExpressionDraw {
  private var state: UInt64

  init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 0x1234_5678 }

  /// SplitMix64.
  private mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }

  private mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  private mutating func pick<T>(_ values: [T]) -> T { values[below(values.count)] }

  private mutating func name() -> String {
    pick(["a", "amount", "size", "first", "NOT", "_x", "ü", "godwit", "automatic", "x1", "self"])
  }

  private mutating func text() -> String {
    pick([
      "", "a", "\"", "\\", "'", "\n\t\r", "é", "e\u{301}", "\u{301}", "日本", "👩‍👩‍👧", "\u{0}",
      "\u{200D}", "$source",
    ])
  }

  private mutating func constant() -> Constant {
    switch below(5) {
    case 0: .null
    case 1: .boolean(below(2) == 0)
    case 2: .integer(pick([0, 1, -1, .max, .min, 42]))
    case 3: .real(pick([0.5, -0.25, 1e300, -1e-300, Double.leastNonzeroMagnitude, 3.0, 1e16]))
    default: .string(text())
    }
  }

  private mutating func keys() -> [KeyPathElement] {
    (0...below(3)).map { _ in
      below(5) == 0 ? .collectionOperator(pick(["count", "sum", "unionOfSets"])) : .key(name())
    }
  }

  mutating func value(depth: Int) -> ValueExpression {
    guard depth > 0 else {
      return below(2) == 0 ? .constant(constant()) : .variable(pick(["source", "manager"]))
    }
    func inner(_ draw: inout ExpressionDraw) -> ValueExpression { draw.value(depth: depth - 1) }
    switch below(15) {
    case 0: return .evaluatedObject
    case 1, 2:
      var base = inner(&self)
      // One key path, not two in a row: they are the same.
      if case .keyPath(let first, _) = base { base = first }
      return .keyPath(base: base, keys: keys())
    case 3:
      return .function(
        receiver: inner(&self), selector: pick(["a:", "b:c:", "d"]), arguments: [inner(&self)])
    case 4, 5, 6:
      return .call(
        pick([
          BuiltInFunction.Infix.add, BuiltInFunction.Infix.subtract,
          BuiltInFunction.Infix.multiply, BuiltInFunction.Infix.divide,
          BuiltInFunction.Infix.power, "modulus:by:", "godwit.bucket",
        ]), [inner(&self), inner(&self)])
    case 7: return .call(pick(["sum:", "abs:", "random:", "godwit.uuid"]), [inner(&self)])
    case 8: return .call(pick(["now", "random"]), [])
    case 9: return .aggregate((0..<below(4)).map { _ in inner(&self) })
    case 10: return .cast(inner(&self), type: pick(["NSDate", "NSNumber", "é\""]))
    case 11:
      return .ternary(predicate(depth: depth - 1), then: inner(&self), otherwise: inner(&self))
    case 12:
      return .subquery(
        collection: inner(&self), variable: "x", predicate: predicate(depth: depth - 1))
    case 13:
      let places: [ElementPlace] = [.first, .last, .size, .index(inner(&self))]
      return .element(of: inner(&self), at: pick(places))
    default:
      return below(2) == 0
        ? .assignment(variable: "x", value: inner(&self))
        : .fetch(request: inner(&self), context: inner(&self), countOnly: below(2) == 0)
    }
  }

  mutating func predicate(depth: Int) -> PredicateExpression {
    guard depth > 0 else { return .constant(below(2) == 0) }
    switch below(6) {
    case 0: return .and((0...(1 + below(2))).map { _ in predicate(depth: depth - 1) })
    case 1: return .or((0...(1 + below(2))).map { _ in predicate(depth: depth - 1) })
    case 2: return .not(predicate(depth: depth - 1))
    default:
      return .comparison(
        Comparison(
          value(depth: depth - 1), pick(Comparison.Operator.allCases), value(depth: depth - 1),
          modifier: pick([.direct, .any, .all]),
          options: pick([
            [], .caseInsensitive, [.caseInsensitive, .diacriticInsensitive], .normalized,
          ])))
    }
  }
}
