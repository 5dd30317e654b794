import GodwitMapping
import GodwitObjectModel

/// What an inferred migration makes of every entity and property, as a term over the source.
///
/// Two paths from one version to another come to the same where their terms are equal and every
/// step of both is plain, see ``isPlain(_:)``: that is how a long inferred step is known to be as
/// good as the short ones. Values are never looked at.
struct InferredTerms: Equatable {
  /// Where the value of a property comes from.
  private struct Term: Equatable {
    /// The source's property; nil for one that was added on the way.
    var property: String?
    /// What a new property begins with.
    var initial: StoredDefault?
    /// What NULL became on the way, the first time it had to become something.
    var filling: StoredDefault?
    /// The forms that the values went through, each but once in a row.
    var forms: [Form]
  }

  /// What a value looks like, as far as an inferred step can change it.
  private enum Form: Equatable {
    case attribute(AttributeType, isExternal: Bool)
    case relationship(isToMany: Bool, isOrdered: Bool)
  }

  /// Destination entity → source entity.
  private var entities: [EntityName: EntityName]
  private var terms: [EntityName: [String: Term]]
  /// Whether each step so far was plain.
  private(set) var isPlain: Bool

  /// One step.
  init(_ step: InferredMapping) {
    entities = step.entityPairs
    terms = [:]
    isPlain = Self.isPlain(step)
    for (name, old) in step.entityPairs {
      var known: [String: Term] = [:]
      for declared in step.destination.properties(of: name) where declared.property.isStored {
        let property = declared.property
        let form = Self.form(property)
        if let hit = step.correspondence(of: property.name, in: name) {
          let before = step.source.property(hit.property.name, of: old)?.property ?? hit.property
          known[property.name] = Term(
            property: before.name, initial: nil, filling: Self.filling(property),
            forms: Self.joined([Self.form(before)], form))
        } else {
          known[property.name] = Term(
            property: nil, initial: property.attribute?.defaultValue,
            filling: nil, forms: [form])
        }
      }
      terms[name] = known
    }
  }

  /// This, and then one more step.
  func followed(by step: InferredMapping) -> InferredTerms {
    var result = InferredTerms(step)
    let next = result.terms
    result.isPlain = isPlain && result.isPlain
    for (name, middle) in step.entityPairs {
      guard let old = entities[middle] else {
        // Added on the way: its objects do not come from the source.
        result.entities[name] = nil
        result.terms[name] = nil
        continue
      }
      result.entities[name] = old
      for (property, term) in next[name] ?? [:] {
        guard let between = term.property, let earlier = terms[middle]?[between] else { continue }
        var whole = earlier
        whole.filling = earlier.filling ?? term.filling
        whole.forms = term.forms.reduce(into: earlier.forms) { $0 = Self.joined($0, $1) }
        if whole.property == nil {
          // A value that was added and never was the source's: NULL is filled at once.
          whole.initial = earlier.initial ?? whole.filling
          whole.filling = nil
        }
        result.terms[name]?[property] = whole
      }
    }
    return result
  }

  private static func form(_ property: PropertyDescription) -> Form {
    if let relationship = property.relationship {
      return .relationship(
        isToMany: relationship.isToMany, isOrdered: relationship.isOrdered)
    }
    let attribute = property.attribute
    return .attribute(
      attribute?.type ?? .undefined,
      isExternal: attribute?.isExternal ?? false)
  }

  /// NULL becomes the default where the destination needs a value.
  /// Source: `core-data-migration.md` §2.4.
  private static func filling(_ property: PropertyDescription) -> StoredDefault? {
    guard let attribute = property.attribute, !attribute.mayBeNull else { return nil }
    return attribute.defaultValue
  }

  private static func joined(_ forms: [Form], _ next: Form) -> [Form] {
    forms.last == next ? forms : forms + [next]
  }
}

extension InferredTerms {
  /// True for a step that does nothing to objects but rename entities and properties, convert and
  /// fill attributes, and add or remove whole attributes, relationships with their inverses, and
  /// root entities.
  ///
  /// Anything else may fill a relationship from its inverse, clear references, choose among several,
  /// number the members of a list or count them again. What that leaves depends on what there was
  /// before the step, so no such step is jumped over.
  static func isPlain(_ step: InferredMapping) -> Bool {
    for name in step.source.order where step.successors[name] == nil {
      // References to its objects are cleared, and counts of them change.
      if step.source[name]?.superentity.map({ step.successors[$0] != nil }) == true {
        return false
      }
    }
    return step.entityPairs.allSatisfy { name, old in
      keepsPlace(name, old, step)
        && step.destination.properties(of: name).allSatisfy { declared in
          !declared.property.isStored || isPlain(declared, of: name, step)
        }
    }
  }

  /// The entity has the same superentity and is as abstract as before.
  private static func keepsPlace(
    _ name: EntityName, _ old: EntityName, _ step: InferredMapping
  ) -> Bool {
    guard let new = step.destination[name], let before = step.source[old],
      new.isAbstract == before.isAbstract
    else { return false }
    guard let parent = new.superentity else { return before.superentity == nil }
    guard let origin = step.entityPairs[parent] else { return false }
    return origin == before.superentity
  }

  private static func isPlain(
    _ declared: EntityHierarchy.Declared, of name: EntityName, _ step: InferredMapping
  ) -> Bool {
    guard let hit = step.correspondence(of: declared.property.name, in: name) else {
      return isPlainlyNew(declared, step)
    }
    // A property that moves between an entity and its superentity moves from row to row.
    guard step.entityPairs[declared.entity] == hit.entity else { return false }
    switch (hit.property, declared.property) {
    case (.attribute(let old), .attribute(let new)):
      return old.derivationExpression == new.derivationExpression
        && old.compositeElements == new.compositeElements
    case (.relationship(let old), .relationship(let new)):
      return isSameForm(old, new, step)
    default:
      return false
    }
  }

  /// A new property whose value follows from nothing in the source.
  private static func isPlainlyNew(
    _ declared: EntityHierarchy.Declared, _ step: InferredMapping
  ) -> Bool {
    if let attribute = declared.property.attribute {
      return attribute.derivationExpression == nil
    }
    guard let relationship = declared.property.relationship,
      let inverse = step.destination.inverse(of: relationship)
    else { return true }
    // An inverse that was there already fills it.
    return step.destination.subtree(of: inverse.entity).allSatisfy {
      step.correspondence(of: inverse.relationship.name, in: $0) == nil
    }
  }

  private static func isSameForm(
    _ old: RelationshipDescription, _ new: RelationshipDescription, _ step: InferredMapping
  ) -> Bool {
    guard old.isToMany == new.isToMany, old.isOrdered == new.isOrdered,
      step.entityPairs[new.destinationEntity] == old.destinationEntity
    else { return false }
    switch (step.source.inverse(of: old), step.destination.inverse(of: new)) {
    case (nil, nil):
      return true
    case (let before?, let after?):
      let hit = step.correspondence(of: after.relationship.name, in: after.entity)
      return hit?.property.name == before.relationship.name && hit?.entity == before.entity
        && before.relationship.isToMany == after.relationship.isToMany
        && before.relationship.isOrdered == after.relationship.isOrdered
    default:
      return false
    }
  }
}
