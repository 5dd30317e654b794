import GodwitObjectModel
import GodwitPersistentStore

/// Where the models leave it open that something is lost, and what that means.
///
/// Nothing is looked at but models. ``LossCounter`` asks a store's rows what this asks; without a store
/// every concrete entity may have rows, see `InferredMapping.losses`.
struct LossQuestions {
  /// Of the source.
  let layout: StoreLayout
  let successors: any Successors
  let mayHaveRows: (EntityName) -> Bool
  /// Whether references may lead to objects of wrong entities, as they do in a damaged store.
  var mayBeDamaged = false

  private var source: EntityHierarchy { successors.source }
}

// Values.
extension LossQuestions {
  /// Values in one column that may be lost.
  struct ValueDoubt {
    var column: String
    /// With the path to an element.
    var property: String
    var question: LossScan.Question
    var kind: Loss.Kind
    /// What is lost, of so many values.
    var counted: (Int64) -> String
    /// What any value would mean; nil where only values tell whether something is lost.
    var expected: String?
  }

  /// - Parameter entity: One that the successors keep.
  func values(of entity: EntityName) -> [ValueDoubt] {
    source.properties(of: entity).flatMap { declared -> [ValueDoubt] in
      guard declared.property.isStored, let attribute = declared.property.attribute else {
        return declared.property.relationship.flatMap { leadingOut($0, of: entity) }.map { [$0] }
          ?? []
      }
      let paths = successors.paths(of: attribute.name, in: entity)
        .map { $0.compactMap(\.attribute) }
      return layout.valueColumns(of: attribute, in: entity).compactMap { value in
        doubt(about: value, of: attribute, in: entity, paths)
      }
    }
  }

  /// References to objects of another configuration than the store is of. Core Data makes none.
  private func leadingOut(
    _ relationship: RelationshipDescription, of entity: EntityName
  ) -> ValueDoubt? {
    guard !relationship.isToMany, !source.contains(relationship.destinationEntity),
      let column = layout.column(of: relationship.name, in: entity)
    else { return nil }
    return ValueDoubt(
      column: column, property: relationship.name, question: .value(of: [column]),
      kind: .reference,
      counted: {
        "leads out of the configuration that the store is of: "
          + "\(Loss.number($0, "reference")) \($0 == 1 ? "is" : "are") dropped"
      })
  }

  /// What becomes of a value on one way.
  private enum ValueFate {
    case dropped(why: String, end: String)
    /// The types on the way that do not hold every number; none where nothing is lost.
    case converted(by: [AttributeType], to: AttributeType)
  }

  /// A value is lost where every way loses it.
  private func doubt(
    about value: ValueColumn, of attribute: AttributeDescription, in entity: EntityName,
    _ paths: [[AttributeDescription]]
  ) -> ValueDoubt? {
    /// Every value is lost.
    func all(_ why: String, _ end: String = "dropped") -> ValueDoubt {
      ValueDoubt(
        column: value.column, property: value.keyPath(below: attribute.name),
        question: .value(of: [value.column]), kind: .attribute,
        counted: { "\(why): \(Loss.number($0, "value")) \($0 == 1 ? "is" : "are") \(end)" },
        expected: "\(why): its values would be \(end)")
    }
    let isNamed =
      !value.path.isEmpty
      && successors.names(element: value.path, of: attribute.name, in: entity)
    let isRead =
      value.path.isEmpty || isNamed || successors.keepsWhole(attribute.name, in: entity)
    guard !paths.isEmpty, isRead else { return all(successors.propertyWords) }
    if isNamed { return nil }
    var (lost, chains): ((why: String, end: String)?, [[AttributeType]]) = (nil, [])
    var types: [AttributeType] = []
    for path in paths {
      switch fate(of: value, attribute, in: entity, path) {
      case .dropped(let why, let end): lost = lost ?? (why, end)
      case .converted(let conversions, let type):
        if conversions.isEmpty { return nil }
        guard !chains.contains(conversions) else { continue }
        chains.append(conversions)
        types.append(type)
      }
    }
    if chains.isEmpty { return lost.map { all($0.why, $0.end) } }
    return narrowing(of: value, attribute, by: chains, to: types)
  }

  private func fate(
    of value: ValueColumn, _ attribute: AttributeDescription, in entity: EntityName,
    _ path: [AttributeDescription]
  ) -> ValueFate {
    var types = path.map(\.type)
    if !value.path.isEmpty {
      types = path.compactMap { step in step.leaves.first { $0.path == value.path }?.element.type }
    }
    let isKept = types.allSatisfy { type in
      value.path.isEmpty || type == value.type
        || (successors.convertsElements && value.type.convertsElement(to: type))
    }
    guard types.count == path.count, isKept else {
      return .dropped(why: "has no element of its key path and type", end: "dropped")
    }
    let wasDerived = attribute.derivationExpression != nil
    // What was derived and is derived anew is no loss.
    if let isComputed = successors.derivesAnew(attribute, in: entity), !(wasDerived && isComputed) {
      return .dropped(
        why: wasDerived ? "is derived in another way" : "becomes derived",
        end: isComputed
          ? "replaced by what the derivation gives"
          : "dropped, and derived when Core Data saves an object")
    }
    var (type, conversions) = (value.type, [AttributeType]())
    for step in types where step != type {
      if !type.keepsNumbers(as: step) { conversions.append(step) }
      type = step
    }
    return .converted(by: conversions, to: type)
  }

  /// - Parameters:
  ///   - chains: Of each way; none is empty.
  ///   - types: What each way ends with.
  private func narrowing(
    of value: ValueColumn, _ attribute: AttributeDescription, by chains: [[AttributeType]],
    to types: [AttributeType]
  ) -> ValueDoubt {
    let onTheWay = chains[0].map(\.xmlName).joined(separator: " or ")
    let why =
      chains.count > 1
      ? "none of the types can hold"
      : chains == [types] ? "the type cannot hold" : "\(onTheWay), its type on the way, cannot hold"
    let becomes = types.map(\.xmlName).joined(separator: " and ")
    let end =
      successors.refusesOutOfRange
      ? ". One beyond the type's range ends the migration (1610, 1620): cut it in an expression"
      : ""
    return ValueDoubt(
      column: value.column, property: value.keyPath(below: attribute.name),
      question: .changed(value.column, by: chains), kind: .narrowing,
      counted: {
        "becomes \(becomes): \(Loss.number($0, "number")) \($0 == 1 ? "changes" : "change"), "
          + "because \(why) \($0 == 1 ? "it" : "them")\(end)"
      })
  }
}

extension AttributeType {
  /// True when no number of this type changes as one of the other.
  func keepsNumbers(as other: AttributeType) -> Bool {
    if keepsValues(as: other) { return true }
    return switch (self, other) {
    case (_, .decimal): true
    case (.boolean, .float), (.integer16, .float): true
    case (.boolean, .double), (.integer16, .double), (.integer32, .double): true
    default: false
    }
  }
}

// References.
extension LossQuestions {
  /// The entities of two objects that a relationship connects.
  struct Pair: Hashable {
    var owner: EntityName
    var target: EntityName
  }

  typealias Inverse = (entity: EntityName, relationship: RelationshipDescription)

  /// The relationships that have a place in the store, each with its inverse once: from the side that
  /// holds the key, else from the first by name.
  var relationships: [(EntityName, RelationshipDescription, Inverse?)] {
    source.order.flatMap { entity in
      (source[entity]?.properties ?? []).compactMap { property in
        guard let relationship = property.relationship, source.storesPairs(of: relationship)
        else { return nil }
        let inverse = source.inverse(of: relationship)
        // A side that has no place in the store speaks for nobody.
        if let inverse, source.storesPairs(of: inverse.relationship),
          !isFirst(relationship, of: entity, before: inverse)
        {
          return nil
        }
        return (entity, relationship, inverse)
      }
    }
  }

  private func isFirst(
    _ relationship: RelationshipDescription, of entity: EntityName, before inverse: Inverse
  ) -> Bool {
    if relationship.isToMany != inverse.relationship.isToMany { return !relationship.isToMany }
    let own = "\(entity) \(relationship.name)"
    let other = "\(inverse.entity) \(inverse.relationship.name)"
    return own == other || own.precedesInBytes(other)
  }

  /// The pairs of which references are lost.
  ///
  /// - Parameter isAlone: Of a one-to-one, those that are in the owner's column alone.
  func references(
    of relationship: RelationshipDescription, declaredBy entity: EntityName, _ inverse: Inverse?,
    isAlone: Bool = false
  ) -> [Pair: ReferenceLoss] {
    var meaning: [Pair: ReferenceLoss] = [:]
    for group in groups(of: relationship, declaredBy: entity, inverse?.relationship.name) {
      let fate = successors.fate(
        of: relationship.name, from: group.owner, to: group.targets[0],
        inverse: inverse?.relationship.name, isAlone: isAlone)
      guard fate != .kept else { continue }
      var shared: ReferenceLoss?
      for target in group.targets {
        let pair = Pair(owner: group.owner, target: target)
        let loss =
          shared
          ?? ReferenceLoss(
            successors, relationship, inverse?.relationship, pair, fate, isAlone: isAlone)
        meaning[pair] = loss
        // Any other one names the target.
        if let loss, !loss.isOfTarget, loss.kind == .relationship { shared = loss }
      }
    }
    return meaning
  }

  /// The pairs that stay, and in which the target's place in the owner's list does not.
  func unordered(
    _ relationship: RelationshipDescription, declaredBy entity: EntityName
  ) -> [Pair] {
    let inverse = source.inverse(of: relationship)?.relationship.name
    return groups(of: relationship, declaredBy: entity, inverse).filter {
      successors.losesPlace(
        in: relationship.name, from: $0.owner, to: $0.targets[0], inverse: inverse)
    }.flatMap { group in group.targets.map { Pair(owner: group.owner, target: $0) } }
  }

  private func groups(
    of relationship: RelationshipDescription, declaredBy entity: EntityName, _ inverse: String?
  ) -> [PairGroup] {
    let storage = layout.pairStorage(of: relationship, declaredBy: entity)
    // Without an inverse nothing says of an object of a wrong entity that it is an owner.
    let column = source.inverse(of: relationship) == nil ? nil : storage?.ownerColumn
    return successors.groups(
      of: relationship.name, from: entities(below: entity, column),
      to: entities(below: relationship.destinationEntity, storage?.targetColumn), inverse: inverse)
  }

  /// The entities of the objects on one side of a relationship.
  ///
  /// - Parameter column: Their keys', where they may be of wrong entities; a row with the key of another one
  ///   is of none.
  private func entities(below entity: EntityName, _ column: String?) -> [EntityName] {
    let found =
      mayBeDamaged && column.map { $0 != "Z_PK" } ?? false
      ? source.concrete(of: source.root(of: entity)) : source.concrete(of: entity)
    return found.filter(mayHaveRows)
  }
}

/// References of one entity's relationship that are lost, for one reason.
struct ReferenceLoss: Hashable {
  var kind: Loss.Kind
  var entity: EntityName
  var property: String
  var why: String
  /// True when the objects that lose a reference are those that the storage calls targets.
  var isOfTarget: Bool

  var place: String { "\(entity) \(property) \(kind.rawValue)" }

  /// From whichever side a pair is looked at.
  static func == (a: Self, b: Self) -> Bool { a.place == b.place && a.why == b.why }

  func hash(into hasher: inout Hasher) {
    hasher.combine(place)
    hasher.combine(why)
  }

  /// Nil where no object stays that has the reference: the entities are the loss.
  init?(
    _ successors: any Successors, _ relationship: RelationshipDescription,
    _ inverse: RelationshipDescription?, _ pair: LossQuestions.Pair, _ fate: PairFate,
    isAlone: Bool
  ) {
    let (owner, target) = (pair.owner, pair.target)
    let areKept = successors.keeps(owner) && successors.keeps(target)
    func has(_ relationship: RelationshipDescription, _ entity: EntityName) -> Bool {
      successors.keeps(entity) && successors.source.property(relationship.name, of: entity) != nil
    }
    isOfTarget = !has(relationship, owner)
    if isOfTarget, isAlone || !(inverse.map { has($0, target) } ?? false) { return nil }
    guard let own = isOfTarget ? inverse : relationship else { return nil }
    let other = areKept ? isOfTarget ? relationship : inverse : nil
    (entity, property) = (isOfTarget ? target : owner, own.name)
    if fate == .leftToInverse, let other {
      kind = .relationship
      why = "takes the references of its inverse \(other.name), which does not have them"
      return
    }
    guard let path = successors.paths(of: own.name, in: entity).first else {
      kind = .relationship
      why = successors.propertyWords
      if let other {
        let isLeft = isAlone && !successors.paths(of: other.name, in: target).isEmpty
        why +=
          isLeft
          ? ", and its inverse \(other.name) does not have them"
          : ", nor has its inverse \(other.name)"
      }
      return
    }
    kind = .reference
    let gone = isOfTarget ? owner : target
    why =
      areKept
      ? successors.words(ofReferencesTo: gone) : "points to objects of \(gone), which is dropped"
    if let next = path.last?.relationship, !next.isToMany, !next.traits.isOptional {
      why += ", and is required"
    }
  }

  func loss(_ tally: RowTally) -> Loss {
    Loss(
      kind, entity: entity.rawValue, property: property, count: tally.count,
      primaryKeys: Array(Set(tally.primaryKeys)).sorted(),
      message: "\(entity).\(property) \(why): \(Loss.number(tally.count, "reference")) "
        + "\(tally.count == 1 ? "is" : "are") dropped.")
  }
}
