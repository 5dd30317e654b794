import GodwitExpressions
import GodwitObjectModel

extension EntityMapping {
  /// The same with a constant for what its expressions ask `$entityMapping` and `$propertyMapping`
  /// for by key: the entities' names and the user info of a row are known before a row is read, and
  /// need not reach those who evaluate.
  package var withHelperConstants: EntityMapping {
    var result = self
    let own = HelperConstants(self, rowInfo: [:])
    switch sourceSelection {
    case .all: break
    case .filter(let predicate): result.sourceSelection = .filter(own.replaced(in: predicate))
    case .expression(let value): result.sourceSelection = .expression(own.replaced(in: value))
    }
    func replaced(_ rows: [PropertyMapping]) -> [PropertyMapping] {
      rows.map { row in
        let own = HelperConstants(self, rowInfo: row.userInfo)
        return PropertyMapping(
          name: row.name, expression: row.expression.map { own.replaced(in: $0) },
          userInfo: row.userInfo)
      }
    }
    let old = self.properties
    let properties = PropertyMappings(
      attributes: replaced(old.attributes), relationships: replaced(old.relationships))
    switch type {
    case .add(let destination, _): result.type = .add(destination: destination, properties)
    case .copy(let source, let destination, _):
      result.type = .copy(source: source, destination: destination, properties)
    case .transform(let source, let destination, _):
      result.type = .transform(source: source, destination: destination, properties)
    case .custom(let source, let destination, let policy, _):
      result.type = .custom(
        source: source, destination: destination, policy: policy, properties)
    case .remove, .undefined: break
    }
    return result
  }
}

/// Puts constants in the place of keys of `$entityMapping` and `$propertyMapping`.
///
/// Recursion is bounded: no tree is deeper than ``ExpressionLimits/depth``.
private struct HelperConstants {
  private let source: EntityName?
  private let destination: EntityName?
  private let rowInfo: [String: String]

  init(_ mapping: EntityMapping, rowInfo: [String: String]) {
    source = mapping.sourceEntity
    destination = mapping.destinationEntity
    self.rowInfo = rowInfo
  }

  /// What the first keys of a path come to, and the keys behind them; nil for what has another way.
  private func constant(
    _ helper: String, _ keys: [KeyPathElement]
  ) -> (value: Constant, rest: ArraySlice<KeyPathElement>)? {
    func text(_ text: String?) -> Constant { text.map { .string($0) } ?? .null }
    guard case .key(let first)? = keys.first else { return nil }
    switch (helper, first) {
    case ("entityMapping", "sourceEntityName"):
      return (text(source?.rawValue), keys.dropFirst())
    case ("entityMapping", "destinationEntityName"):
      return (text(destination?.rawValue), keys.dropFirst())
    case ("propertyMapping", "userInfo"):
      guard keys.count > 1, case .key(let name) = keys[1] else { return nil }
      return (text(rowInfo[name]), keys.dropFirst(2))
    default: return nil
    }
  }

  private func value(_ helper: String, _ keys: [KeyPathElement]) -> ValueExpression? {
    constant(helper, keys).map { found in
      found.rest.isEmpty
        ? .constant(found.value)
        : .keyPath(base: .constant(found.value), keys: Array(found.rest))
    }
  }

  func replaced(in expression: ValueExpression) -> ValueExpression {
    switch expression {
    case .constant, .variable, .evaluatedObject: return expression
    case .keyPath(.variable(let helper), let keys): return value(helper, keys) ?? expression
    case .keyPath(let base, let keys): return .keyPath(base: replaced(in: base), keys: keys)
    case .function(let receiver, let selector, let arguments):
      if let asked = keys(selector, arguments),
        let (helper, first) = self.path(receiver), let found = value(helper, first + asked)
      {
        return found
      }
      return .function(
        receiver: replaced(in: receiver), selector: selector,
        arguments: arguments.map { replaced(in: $0) })
    case .call(let name, let arguments): return .call(name, arguments.map { replaced(in: $0) })
    case .aggregate(let members): return .aggregate(members.map { replaced(in: $0) })
    case .cast(let operand, let type): return .cast(replaced(in: operand), type: type)
    case .ternary(let test, let then, let otherwise):
      return .ternary(
        replaced(in: test), then: replaced(in: then), otherwise: replaced(in: otherwise))
    case .subquery(let collection, let variable, let predicate):
      return .subquery(
        collection: replaced(in: collection), variable: variable, predicate: replaced(in: predicate)
      )
    case .fetch(let request, let context, let countOnly):
      return .fetch(
        request: replaced(in: request), context: replaced(in: context), countOnly: countOnly)
    case .element(let collection, .index(let index)):
      if case .constant(.string(let key)) = index, let (helper, first) = self.path(collection),
        let found = value(helper, first + [.key(key)])
      {
        return found
      }
      return .element(of: replaced(in: collection), at: .index(replaced(in: index)))
    case .element(let collection, let place):
      return .element(of: replaced(in: collection), at: place)
    case .assignment(let variable, let value):
      return .assignment(variable: variable, value: replaced(in: value))
    }
  }

  /// A variable, and the keys behind it.
  private func path(_ expression: ValueExpression) -> (String, [KeyPathElement])? {
    switch expression {
    case .variable(let name): (name, [])
    case .keyPath(.variable(let name), let keys): (name, keys)
    default: nil
    }
  }

  /// The keys that a message asks for, where it is one of key-value coding or a getter.
  private func keys(_ selector: String, _ arguments: [ValueExpression]) -> [KeyPathElement]? {
    if arguments.isEmpty { return [.key(selector)] }
    guard arguments.count == 1, case .constant(.string(let text)) = arguments[0] else { return nil }
    switch selector {
    case ManagerSelector.valueForKey, "objectForKey:": return [.key(text)]
    case "valueForKeyPath:": return text.keyPathElements
    default: return nil
    }
  }

  func replaced(in predicate: PredicateExpression) -> PredicateExpression {
    switch predicate {
    case .constant: return predicate
    case .comparison(var comparison):
      comparison.left = replaced(in: comparison.left)
      comparison.right = replaced(in: comparison.right)
      return .comparison(comparison)
    case .and(let parts): return .and(parts.map { replaced(in: $0) })
    case .or(let parts): return .or(parts.map { replaced(in: $0) })
    case .not(let inner): return .not(replaced(in: inner))
    }
  }
}
