extension ValueExpression {
  /// True when a part of the expression is the variable, `name` being without its `$`.
  ///
  /// Recursion is bounded: no tree is deeper than ``ExpressionLimits/depth``.
  public func mentions(_ name: String) -> Bool {
    switch self {
    case .constant, .evaluatedObject: false
    case .variable(let found): found == name
    case .keyPath(let base, _): base.mentions(name)
    case .function(let receiver, _, let arguments):
      receiver.mentions(name) || arguments.contains { $0.mentions(name) }
    case .call(_, let arguments), .aggregate(let arguments):
      arguments.contains { $0.mentions(name) }
    case .cast(let operand, _): operand.mentions(name)
    case .ternary(let test, let then, let otherwise):
      test.mentions(name) || then.mentions(name) || otherwise.mentions(name)
    case .subquery(let collection, let variable, let predicate):
      collection.mentions(name) || (variable != name && predicate.mentions(name))
    case .fetch(let request, let context, _): request.mentions(name) || context.mentions(name)
    case .element(let collection, .index(let index)):
      collection.mentions(name) || index.mentions(name)
    case .element(let collection, _): collection.mentions(name)
    case .assignment(_, let value): value.mentions(name)
    }
  }
}

extension PredicateExpression {
  /// True when a part of the predicate is the variable, `name` being without its `$`.
  public func mentions(_ name: String) -> Bool {
    switch self {
    case .constant: false
    case .comparison(let comparison):
      comparison.left.mentions(name) || comparison.right.mentions(name)
    case .and(let parts), .or(let parts): parts.contains { $0.mentions(name) }
    case .not(let inner): inner.mentions(name)
    }
  }
}
