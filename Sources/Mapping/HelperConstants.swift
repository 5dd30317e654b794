import GodwitExpressions
import GodwitObjectModel

extension EntityMapping {
  /// The same with a constant for what its expressions ask `$entityMapping` and `$propertyMapping`
  /// for by key: the entities' names and the user info of a row are known before a row is read, and
  /// need not reach those who evaluate.
  package var withHelperConstants: EntityMapping {
    replacingParts { HelperConstants(self, rowInfo: $1).replacement(of: $0) }
  }

  /// The same with other expressions in the place of parts of its own.
  ///
  /// - Parameter other: What comes in the place of a part, by the user info of the row that it is in; nil where
  ///   it stays.
  func replacingParts(
    by other: (ValueExpression, [String: String]) -> ValueExpression?
  ) -> EntityMapping {
    var result = self
    switch sourceSelection {
    case .all: break
    case .filter(let predicate):
      result.sourceSelection = .filter(predicate.replacingParts { other($0, [:]) })
    case .expression(let value):
      result.sourceSelection = .expression(value.replacingParts { other($0, [:]) })
    }
    func replaced(_ rows: [PropertyMapping]) -> [PropertyMapping] {
      rows.map { row in
        PropertyMapping(
          name: row.name,
          expression: row.expression?.replacingParts { other($0, row.userInfo) },
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

  /// What comes in the place of an expression; nil for what stays.
  func replacement(of expression: ValueExpression) -> ValueExpression? {
    switch expression {
    case .keyPath(.variable(let helper), let keys): return value(helper, keys)
    case .function(let receiver, let selector, let arguments):
      guard let asked = keys(selector, arguments), let (helper, first) = path(receiver) else {
        return nil
      }
      return value(helper, first + asked)
    case .element(let collection, .index(.constant(.string(let key)))):
      guard let (helper, first) = path(collection) else { return nil }
      return value(helper, first + [.key(key)])
    default: return nil
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
}
