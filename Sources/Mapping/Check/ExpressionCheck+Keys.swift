import GodwitExpressions
import GodwitObjectModel

// Key paths.
extension ExpressionCheck {
  mutating func follow(
    _ keys: ArraySlice<KeyPathElement>, from start: ExpressionType
  ) -> ExpressionType {
    var current = start
    var rest = keys
    while let key = rest.popFirst() {
      switch key {
      case .key(let name): current = self.key(name, of: current)
      case .collectionOperator(let name): return collect(name, rest, over: current)
      }
    }
    return current
  }

  private mutating func key(_ name: String, of type: ExpressionType) -> ExpressionType {
    switch type {
    case .object(let side, let entity): return property(name, of: entity, side)
    case .made(let entity): return property(name, of: entity, .destination)
    case .either(let cases): return ExpressionType(anyOf: ofEach(cases) { $0.key(name, of: $1) })
    case .value(.transformed), .value(.unknown): return .unknown
    case .value(let kind):
      if let found = ValueSelectors.result(of: name, on: kind), !name.unicodeScalars.contains(":") {
        return found
      }
      find(
        .unknownKey, .error,
        "\(kind.description) has no key \(name)" + didYouMean(name, ValueSelectors.names(on: kind)))
      return .unknown
    case .collection(let member):
      if name == "self" { return type }
      // Asked of each member; collections of collections run together.
      let found = key(name, of: member)
      if case .collection = found { return found }
      return .collection(of: found)
    case .helper("manager"):
      if name == "userInfo" { return .unknown }
      if ["sourceContext", "destinationContext"].contains(name) { return .helper(name) }
      find(
        .unknownKey, .error,
        "$manager has no key \(name)" + didYouMean(name, ValueSelectors.manager))
      return .unknown
    case .helper("entityPolicy"):
      missingSelector(name)
      return .unknown
    case .helper(let helper):
      guard let known = ValueSelectors.helperKeys[helper], name != "self" else { return type }
      if known.contains(name) { return name == "userInfo" ? .unknown : .value(.string) }
      find(.unknownKey, .error, "$\(helper) has no key \(name)" + didYouMean(name, known))
      return .unknown
    case .someDestinationObjects, .null, .unknown: return .unknown
    }
  }

  private mutating func property(
    _ name: String, of entity: EntityName, _ side: ExpressionType.Side
  ) -> ExpressionType {
    let hierarchy = side == .source ? source : destination
    // An object may be of a sub-entity that has more properties.
    let found: [EntityHierarchy.Declared] =
      hierarchy.property(name, of: entity).map { [$0] }
      ?? hierarchy.subtree(of: entity).compactMap { hierarchy.property(name, of: $0) }
    let types = found.map { ExpressionType($0.property, side) }
    // Sub-entities may each have one of the name, and only a row tells which it is.
    guard types.allSatisfy({ $0 == types.first }) else { return .unknown }
    switch found.first?.property {
    case .attribute(let attribute)?:
      if attribute.traits.isTransient, side == .source, isEvaluated {
        find(
          .notStored, .warning,
          "\(entity).\(name) is transient: no store holds it, and its value is nil")
      }
    case .relationship?: if side == .destination { readsUnset(name) }
    case .fetchedProperty?:
      if isEvaluated {
        find(
          .notStored, .error,
          "\(entity).\(name) is a fetched property: no store holds it. Use FETCH(…) with its predicate"
        )
      }
    case nil:
      if name == "self" { return .object(side, entity) }
      if name == "objectID" { return .value(.url) }
      if name == "entity" { return .value(.composite(["name": .string])) }
      let known = hierarchy.properties(of: entity).map(\.property.name)
      find(
        .unknownKey, .error,
        "the \(side.rawValue) entity \(entity) has no property \(name)" + didYouMean(name, known))
    }
    return types.first ?? .unknown
  }

  /// A policy's own objects can be read in the link stage.
  private mutating func readsUnset(_ relationship: String) {
    guard mapping.policy == nil, isEvaluated, let property, let made = mapping.destinationEntity
    else { return }
    if destination.property(property, of: made)?.property.relationship != nil {
      find(
        .yieldsNothing, .error,
        "relationships of destination objects cannot be read while they are being set. Use the "
          + "source's")
    } else {
      find(
        .yieldsNothing, .warning,
        "\(relationship) of destination objects is set after their attributes: it is empty")
    }
  }

  /// Source: `core-data-migration.md` §4.2 (`collop`).
  private mutating func collect(
    _ name: String, _ rest: ArraySlice<KeyPathElement>, over type: ExpressionType
  ) -> ExpressionType {
    let known = [
      "count", "sum", "avg", "min", "max", "unionOfObjects", "distinctUnionOfObjects",
      "unionOfArrays", "distinctUnionOfArrays", "unionOfSets", "distinctUnionOfSets",
    ]
    guard known.contains(name) else {
      find(
        .unknownKey, .error,
        "there is no collection operator @\(name)" + didYouMean(name, known, mark: "@"))
      return .unknown
    }
    var member: ExpressionType
    switch type {
    case .collection(let inner): member = inner
    case .either(let cases):
      return ExpressionType(anyOf: ofEach(cases) { $0.collect(name, rest, over: $1) })
    case .unknown, .someDestinationObjects: member = .unknown
    default:
      find(.typeMismatch, .error, "@\(name) needs a collection before it")
      member = .unknown
    }
    if name == "count" { return .value(.number) }
    guard !rest.isEmpty else {
      find(.unknownKey, .error, "@\(name) needs a key after it")
      return .unknown
    }
    let first = findings.count
    member = follow(rest, from: member)
    while case .collection(let inner) = member { member = inner }
    if ["sum", "avg", "min", "max"].contains(name) {
      let path = ValueExpression.keyPath(
        base: .evaluatedObject, keys: [.collectionOperator(name)] + rest)
      tryOut([path], [.collection(of: member)], unlessFoundSince: first, shown: path.description) {
        .keyPath(base: $0[0], keys: [.collectionOperator(name), .key("self")])
      }
    }
    switch name {
    case "sum", "avg": return .value(.number)
    case "min", "max": return member
    default: return .collection(of: member)
    }
  }
}
