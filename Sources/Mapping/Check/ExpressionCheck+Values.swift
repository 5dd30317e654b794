import GodwitExpressions

// What evaluating would say.
extension ExpressionCheck {
  /// Evaluates a part of the expression for operands of these types, and says why it has no value if it
  /// never has one. `first` is how many findings there were before its operands were looked at: what is wrong
  /// with them is said already.
  mutating func tryOut(
    _ operands: [ValueExpression], _ types: [ExpressionType], unlessFoundSince first: Int,
    shown: String? = nil, _ whole: ([ValueExpression]) -> ValueExpression
  ) {
    guard findings.count == first else { return }
    let known = zip(operands, types).compactMap { probe.operand($0, of: $1) }
    guard known.count == operands.count, let problem = probe.problem(known, whole) else { return }
    // What is written may be meant to fail in the rows that come to a branch.
    let isMeant = known.allSatisfy(\.isWritten) && isInBranch > 0
    find(
      .typeMismatch, isMeant ? .warning : .error,
      "\(problem), in: \((shown ?? whole(operands).description).cut(to: 200))")
  }

  /// Values of two kinds are never equal. What a filter asks of objects decides which there are.
  mutating func checkEquality(
    _ comparison: Comparison.Operator, _ sides: [ExpressionType], unlessFoundSince first: Int
  ) {
    var sides = sides
    switch comparison {
    case .equal, .notEqual: break
    case .in:
      guard case .collection(let member) = sides[1] else { return }
      sides[1] = member
    default: return
    }
    guard findings.count == first, case .value(let left) = sides[0],
      case .value(let right) = sides[1],
      left != right,
      [left, right].allSatisfy({ $0 != .unknown && $0 != .transformed })
    else { return }
    find(
      .typeMismatch, evaluated == nil ? .warning : .error,
      "\(left.description) is never equal to \(right.description). Convert one of them")
  }
}
