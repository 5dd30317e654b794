extension ValueExpression {
  /// The expressions that this one is made of, those of its predicates included.
  private var parts: [ValueExpression] {
    switch self {
    case .constant, .evaluatedObject, .variable: []
    case .keyPath(let base, _): [base]
    case .function(let receiver, _, let arguments): [receiver] + arguments
    case .call(_, let arguments), .aggregate(let arguments): arguments
    case .cast(let operand, _): [operand]
    case .ternary(let test, let then, let otherwise): test.operands + [then, otherwise]
    case .subquery(let collection, _, let predicate): [collection] + predicate.operands
    case .fetch(let request, let context, _): [request, context]
    case .element(let collection, .index(let index)): [collection, index]
    case .element(let collection, _): [collection]
    case .assignment(_, let value): [value]
    }
  }

  /// True when a part of the expression is the variable, `name` being without its `$`.
  ///
  /// Recursion is bounded: no tree is deeper than ``ExpressionLimits/depth``.
  public func mentions(_ name: String) -> Bool {
    switch self {
    case .variable(let found): found == name
    case .subquery(let collection, name, _): collection.mentions(name)
    default: parts.contains { $0.mentions(name) }
    }
  }

  /// The selectors and keys that the expression asks `$entityPolicy` for, in its order.
  var policySelectors: [String] {
    var own: [String] = []
    switch self {
    case .keyPath(.variable("entityPolicy"), let keys):
      if case .key(let key)? = keys.first { own = [key] }
    case .function(.variable("entityPolicy"), let selector, let arguments):
      if selector == ManagerSelector.valueForKey || selector == "valueForKeyPath:",
        case .constant(.string(let path))? = arguments.first
      {
        own = [path.split(separator: ".").first.map(String.init) ?? path]
      } else {
        own = [selector]
      }
    default: break
    }
    return own + parts.flatMap(\.policySelectors)
  }
}

extension PredicateExpression {
  /// Both sides of every comparison.
  fileprivate var operands: [ValueExpression] {
    switch self {
    case .constant: []
    case .comparison(let comparison): [comparison.left, comparison.right]
    case .and(let parts), .or(let parts): parts.flatMap(\.operands)
    case .not(let inner): inner.operands
    }
  }

  /// True when a part of the predicate is the variable, `name` being without its `$`.
  public func mentions(_ name: String) -> Bool { operands.contains { $0.mentions(name) } }

  var policySelectors: [String] { operands.flatMap(\.policySelectors) }
}
