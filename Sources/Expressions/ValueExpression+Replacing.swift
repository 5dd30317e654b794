extension ValueExpression {
  /// The same with others in the place of some of its parts, itself among them. What is replaced is not looked into.
  ///
  /// Recursion is bounded: no tree is deeper than ``ExpressionLimits/depth``.
  ///
  /// - Parameter other: What comes in the place of a part; nil where it stays.
  package func replacingParts(by other: (ValueExpression) -> ValueExpression?) -> ValueExpression {
    if let found = other(self) { return found }
    switch self {
    case .constant, .variable, .evaluatedObject: return self
    case .keyPath(let base, let keys):
      return .keyPath(base: base.replacingParts(by: other), keys: keys)
    case .function(let receiver, let selector, let arguments):
      return .function(
        receiver: receiver.replacingParts(by: other), selector: selector,
        arguments: arguments.map { $0.replacingParts(by: other) })
    case .call(let name, let arguments):
      return .call(name, arguments.map { $0.replacingParts(by: other) })
    case .aggregate(let members):
      return .aggregate(members.map { $0.replacingParts(by: other) })
    case .cast(let operand, let type):
      return .cast(operand.replacingParts(by: other), type: type)
    case .ternary(let test, let then, let otherwise):
      return .ternary(
        test.replacingParts(by: other), then: then.replacingParts(by: other),
        otherwise: otherwise.replacingParts(by: other))
    case .subquery(let collection, let variable, let predicate):
      return .subquery(
        collection: collection.replacingParts(by: other), variable: variable,
        predicate: predicate.replacingParts(by: other))
    case .fetch(let request, let context, let countOnly):
      return .fetch(
        request: request.replacingParts(by: other), context: context.replacingParts(by: other),
        countOnly: countOnly)
    case .element(let collection, .index(let index)):
      return .element(
        of: collection.replacingParts(by: other), at: .index(index.replacingParts(by: other)))
    case .element(let collection, let place):
      return .element(of: collection.replacingParts(by: other), at: place)
    case .assignment(let variable, let value):
      return .assignment(variable: variable, value: value.replacingParts(by: other))
    }
  }
}

extension PredicateExpression {
  /// As ``ValueExpression/replacingParts(by:)``, for both sides of every comparison.
  package func replacingParts(
    by other: (ValueExpression) -> ValueExpression?
  ) -> PredicateExpression {
    switch self {
    case .constant: return self
    case .comparison(var comparison):
      comparison.left = comparison.left.replacingParts(by: other)
      comparison.right = comparison.right.replacingParts(by: other)
      return .comparison(comparison)
    case .and(let parts): return .and(parts.map { $0.replacingParts(by: other) })
    case .or(let parts): return .or(parts.map { $0.replacingParts(by: other) })
    case .not(let inner): return .not(inner.replacingParts(by: other))
    }
  }
}
