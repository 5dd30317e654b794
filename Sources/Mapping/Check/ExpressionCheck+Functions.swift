import GodwitExpressions
import GodwitObjectModel

extension ExpressionCheck {
  mutating func function(
    _ receiver: ValueExpression, _ selector: String, _ arguments: [ValueExpression]
  ) -> ExpressionType {
    let first = findings.count
    let type = type(of: receiver)
    let types = arguments.map { self.type(of: $0) }
    let colons = selector.utf8.count { $0 == UInt8(ascii: ":") }
    if colons != arguments.count {
      find(
        .argumentCount, .error,
        "\(selector) takes \(colons) argument(s) and is given \(arguments.count)")
    }
    // Key-value coding is understood by everything; a policy answers it by its code.
    if type == .helper("entityPolicy"), case .constant(.string(let key))? = arguments.first,
      selector == ManagerSelector.valueForKey || selector == "valueForKeyPath:"
    {
      missingSelector(key.keyPathParts.first { !$0.isEmpty } ?? key)
      return .unknown
    }
    if selector == ManagerSelector.valueForKey || selector == "valueForKeyPath:" {
      guard case .constant(.string(let text))? = arguments.first else {
        if case .object = type {
          find(
            .unknownKey, .error,
            "\(selector) needs a key that the expression spells, which says what is read")
        }
        return .unknown
      }
      let keys = selector == ManagerSelector.valueForKey ? [.key(text)] : text.keyPathElements
      return follow(keys[...], from: type)
    }
    let found = ofEach(type.cases) { $0.send(selector, arguments, types, to: $1) }
    tryOut([receiver] + arguments, [type] + types, unlessFoundSince: first) {
      .function(receiver: $0[0], selector: selector, arguments: Array($0.dropFirst()))
    }
    return ExpressionType(anyOf: found)
  }

  private mutating func send(
    _ selector: String, _ arguments: [ValueExpression], _ types: [ExpressionType],
    to type: ExpressionType
  ) -> ExpressionType {
    switch type {
    case .helper("manager"): return manager(selector, arguments, types)
    case .helper("entityPolicy"):
      missingSelector(selector)
      checkPassed(arguments, types)
      return .unknown
    case .value(.transformed), .value(.unknown): return .unknown
    case .value(let kind): return selectorResult(selector, on: kind)
    case .collection(let member):
      return collectionResult(selector, member)
    case .object, .made:
      if selector == "self" { return type }
      if selector == "objectID" || selector == "description" { return .value(.url) }
      if selector == "isEqual:" { return .value(.number) }
      unknown(selector, ["valueForKey:", "valueForKeyPath:", "objectID", "isEqual:"])
      return .unknown
    case .helper(let name):
      // A key's getter is a message, too.
      guard let keys = ValueSelectors.helperKeys[name] else { return .unknown }
      if selector == "self" { return type }
      if selector == "isEqual:" { return .value(.number) }
      if keys.contains(selector) { return follow([.key(selector)], from: type) }
      unknown(selector, keys)
      return .unknown
    case .someDestinationObjects, .either, .null, .unknown: return .unknown
    }
  }

  /// A method or a key that the policy's own code must have.
  mutating func missingSelector(_ selector: String) {
    find(
      .missingPolicySelector, .error,
      MappingFinding.missingSelector(selector, of: mapping.policy), subject: selector)
  }

  private mutating func unknown(_ selector: String, _ known: [String]) {
    let suggestion = Spelling.closest(
      to: selector, among: known.sorted { $0.precedesInBytes($1) })
    let place = text.ranges(of: ExpressionPrinter.quoted(selector)).first.map {
      " (character \(text.distance(from: text.startIndex, to: $0.lowerBound) + 1))"
    }
    find(
      .unknownSelector, .error,
      "there is no selector \(selector) here\(place ?? "")"
        + (suggestion.map { ". Did you mean \($0)?" } ?? ""))
  }

  private mutating func selectorResult(_ selector: String, on kind: ValueKind) -> ExpressionType {
    if let found = ValueSelectors.result(of: selector, on: kind) { return found }
    unknown(selector, ValueSelectors.names(on: kind))
    return .unknown
  }

  private mutating func collectionResult(
    _ selector: String, _ member: ExpressionType
  ) -> ExpressionType {
    switch selector {
    case "self": return .collection(of: member)
    case "count": return .value(.number)
    case "firstObject", "lastObject", "anyObject": return member
    case "allObjects": return .collection(of: member)
    case "componentsJoinedByString:": return .value(.string)
    case "containsObject:": return .value(.number)
    default:
      unknown(selector, ValueSelectors.collection)
      return .unknown
    }
  }

  private mutating func manager(
    _ selector: String, _ arguments: [ValueExpression], _ types: [ExpressionType]
  ) -> ExpressionType {
    let asked: Set = [
      ManagerSelector.instancesForMapping, ManagerSelector.instancesForRelationship,
      ManagerSelector.sourceInstancesForMapping,
    ]
    if asked.contains(selector), isEvaluated {
      if !isLinked {
        find(
          .yieldsNothing, .error,
          "what became of other objects is known in relationships only, when all are there")
      } else if arguments.last == .constant(.null) {
        // An empty to-one gives nil, too, and asks for none.
        find(
          .yieldsNothing, .error,
          "nil asks for all objects in Core Data, and for none here. Ask for those of a FETCH")
      }
    }
    switch selector {
    case "sourceContext", "destinationContext": return .helper(selector)
    case ManagerSelector.instancesForMapping:
      let maker = mappingNamed(arguments.first)
      guard checkGiven(types.last, .source, to: maker), let maker,
        let entity = maker.destinationEntity
      else { return .collection(of: .someDestinationObjects) }
      guard maker.policy != nil else { return .collection(of: .made(entity)) }
      let isMade = mayKnow(types.last, .source, maker)
      return .collection(of: isMade ? .object(.destination, entity) : .someDestinationObjects)
    case ManagerSelector.sourceInstancesForMapping:
      let maker = mappingNamed(arguments.first)
      checkGiven(types.last, .destination, to: maker)
      guard let maker, let entity = maker.sourceEntity,
        maker.policy == nil || mayKnow(types.last, .destination, maker)
      else { return .collection(of: .unknown) }
      return .collection(of: .object(.source, entity))
    case ManagerSelector.instancesForRelationship:
      checkGiven(types.last, .source)
      return .collection(of: made(along: arguments.first))
    case ManagerSelector.fetchRequest:
      return fetched(arguments)
    case let name where ValueSelectors.manager.contains(name): return .unknown
    default:
      unknown(selector, ValueSelectors.manager)
      return .collection(of: .someDestinationObjects)
    }
  }

  private mutating func mappingNamed(_ argument: ValueExpression?) -> EntityMapping? {
    guard case .constant(.string(let name))? = argument else { return nil }
    if let found = mappings[name] { return found }
    let known = mappings.keys.sorted { $0.precedesInBytes($1) }
    let suggestion = Spelling.closest(to: name, among: known)
    find(
      .unknownMapping, .error,
      "there is no entity mapping \(name)" + (suggestion.map { ". Did you mean \($0)?" } ?? ""))
    return nil
  }

  /// The objects that are asked after. False where there cannot be any: a value is refused when it is
  /// evaluated, and objects of the other store, or that the mapping does not take, yield nothing. A
  /// policy may have associated objects of any entity.
  @discardableResult private mutating func checkGiven(
    _ instances: ExpressionType?, _ side: ExpressionType.Side, to maker: EntityMapping? = nil
  ) -> Bool {
    let found = ofEach(instances?.leaves ?? []) { $0.checkGiven($1, side, to: maker) }
    return found.isEmpty || found.contains(true)
  }

  /// What a policy's selector is called with.
  private mutating func checkPassed(_ arguments: [ValueExpression], _ types: [ExpressionType]) {
    if !isLinked, arguments.contains(.variable("destination")) {
      find(
        .typeMismatch, .error,
        "$destination cannot be passed to a selector while its attributes are being set. Set them in the "
          + "policy's createDestinationInstances, after super has made the object")
    }
    if types.contains(.helper("propertyMapping")) {
      find(.typeMismatch, .error, "$propertyMapping cannot be passed to a selector")
    }
  }

  private mutating func checkGiven(
    _ given: ExpressionType, _ side: ExpressionType.Side, to maker: EntityMapping?
  ) -> Bool {
    let nothing: String
    switch given {
    case .value(let kind) where kind != .unknown && kind != .transformed:
      find(.typeMismatch, .error, "it is asked after \(kind.description), and takes objects")
      return false
    case .helper(let name):
      find(.typeMismatch, .error, "it is asked after $\(name), and takes objects")
      return false
    case .object(.source, _) where side == .destination:
      nothing = "it takes destination objects and is asked for source objects"
    case .object(.destination, _) where side == .source, .made where side == .source,
      .someDestinationObjects where side == .source:
      nothing = "it takes source objects and is asked for destination objects"
    case .object(_, let entity), .made(let entity):
      guard let maker, maker.policy == nil,
        let taken = side == .source ? maker.sourceEntity : maker.destinationEntity,
        !isRelated(entity, to: taken, side)
      else { return true }
      nothing =
        "\(maker.name) \(side == .source ? "takes" : "makes") objects of \(taken) and is "
        + "asked for those of \(entity)"
    case .value, .someDestinationObjects, .collection, .either, .null, .unknown: return true
    }
    find(.yieldsNothing, .warning, nothing + ": this yields nothing")
    return false
  }

  /// Whether an entity mapping may take or make one of the objects by itself. What it does not, a policy
  /// alone associates with others, and those may be of any entity.
  private func mayKnow(
    _ instances: ExpressionType?, _ side: ExpressionType.Side, _ maker: EntityMapping
  ) -> Bool {
    let known = side == .source ? maker.sourceEntity : maker.destinationEntity
    return (instances?.leaves ?? [.unknown]).contains {
      guard let known, let entity = $0.entity(of: side) else { return true }
      return isRelated(entity, to: known, side)
    }
  }

  /// Whether an object of one entity may be one of another, which an unknown one may.
  private func isRelated(
    _ entity: EntityName, to other: EntityName, _ side: ExpressionType.Side
  ) -> Bool {
    let model = side == .source ? source : destination
    return !model.contains(other) || model.isKind(entity, of: other)
      || model.isKind(other, of: entity)
  }

  /// What became of the objects that a relationship of the source leads to.
  private mutating func made(along argument: ValueExpression?) -> ExpressionType {
    guard case .constant(.string(let name))? = argument, let entity = mapping.sourceEntity else {
      return .someDestinationObjects
    }
    if let target = source.property(name, of: entity)?.property.relationship?.destinationEntity {
      let makers = siblings.filter {
        $0.destinationEntity != nil
          && $0.sourceEntity.map { source.isKind($0, of: target) } ?? false
      }
      guard !makers.isEmpty, makers.allSatisfy({ $0.policy == nil }) else {
        return .someDestinationObjects
      }
      return ExpressionType(anyOf: makers.compactMap(\.destinationEntity).map { .made($0) })
    }
    let known = source.properties(of: entity).compactMap { $0.property.relationship?.name }
    let suggestion = Spelling.closest(to: name, among: known)
    find(
      .unknownKey, .error,
      "the source entity \(entity) has no relationship \(name)"
        + (suggestion.map { ". Did you mean \($0)?" } ?? ""))
    return .someDestinationObjects
  }

  /// The fetch of another entity's objects, with the text of its predicate.
  private mutating func fetched(_ arguments: [ValueExpression]) -> ExpressionType {
    guard case .constant(.string(let name))? = arguments.first else { return .unknown }
    guard source.contains(EntityName(name)) else {
      let suggestion = Spelling.closest(to: name, among: source.order.map(\.rawValue))
      find(
        .unknownEntity, .error,
        "the source model has no entity \(name)"
          + (suggestion.map { ". Did you mean \($0)?" } ?? ""))
      return .unknown
    }
    if arguments.count == 2 { checkPredicate(arguments[1], of: EntityName(name)) }
    return .collection(of: .object(.source, EntityName(name)))
  }
}
