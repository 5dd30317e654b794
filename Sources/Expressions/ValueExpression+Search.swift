import GodwitObjectModel

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
  package func mentions(_ name: String) -> Bool {
    switch self {
    case .variable(let found): found == name
    case .subquery(let collection, name, _): collection.mentions(name)
    default: parts.contains { $0.mentions(name) }
    }
  }

  /// True when what the expression yields may be what a bucket gives.
  package var givesBucket: Bool {
    switch self {
    case .call("godwit.bucket", _): true
    case .call("noindex:", let arguments): arguments.contains { $0.givesBucket }
    case .ternary(_, let then, let otherwise): then.givesBucket || otherwise.givesBucket
    case .keyPath(let base, _): base.givesBucket
    case .assignment(_, let value): value.givesBucket
    default: false
    }
  }

  /// True when what the expression yields may depend on the time at which it is evaluated.
  package var readsClock: Bool {
    switch self {
    case .call("now", _): true
    // A fetch request's predicate is given as text.
    case .constant(.string(let text)): text.contains("now")
    default: parts.contains(where: \.readsClock)
    }
  }

  /// What the expression reads of the object that a variable stands for: the first key of each key
  /// path, in its order and each once.
  package func firstKeys(of variable: String) -> [String] {
    var found: [String] = []
    switch self {
    case .keyPath(.variable(variable), let keys):
      if case .key(let key)? = keys.first { found = [key] }
    case .function(.variable(variable), let selector, let arguments)
    where selector == ManagerSelector.valueForKey || selector == "valueForKeyPath:":
      if case .constant(.string(let path))? = arguments.first {
        let isPath = selector != ManagerSelector.valueForKey
        found = [isPath ? path.keyPathParts.first { !$0.isEmpty } ?? path : path]
      }
    case .subquery(let collection, variable, _): return collection.firstKeys(of: variable)
    default: break
    }
    for key in parts.flatMap({ $0.firstKeys(of: variable) }) where !found.contains(key) {
      found.append(key)
    }
    return found
  }

  /// What is asked of `$manager`, in the order of the expression: the selector and its first argument, where
  /// that is a text.
  package var managerCalls: [(selector: String, name: String)] {
    var own: [(String, String)] = []
    if case .function(.variable("manager"), let selector, let arguments) = self,
      case .constant(.string(let name))? = arguments.first
    {
      own = [(selector, name)]
    }
    return own + parts.flatMap(\.managerCalls)
  }

  /// The selectors and keys that the expression asks `$entityPolicy` for, in its order.
  package var policySelectors: [String] {
    var own: [String] = []
    switch self {
    case .keyPath(.variable("entityPolicy"), let keys):
      if case .key(let key)? = keys.first { own = [key] }
    case .function(.variable("entityPolicy"), let selector, let arguments):
      if selector == ManagerSelector.valueForKey || selector == "valueForKeyPath:",
        case .constant(.string(let path))? = arguments.first
      {
        own = [path.keyPathParts.first { !$0.isEmpty } ?? path]
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
  package func mentions(_ name: String) -> Bool { operands.contains { $0.mentions(name) } }

  /// As ``ValueExpression/readsClock``.
  package var readsClock: Bool { operands.contains(where: \.readsClock) }

  package var policySelectors: [String] { operands.flatMap(\.policySelectors) }
}
