import GodwitMapping
import GodwitObjectModel

/// What an inferred migration makes of every entity and property, as a term over the source.
///
/// Two ways from one version to another come to the same where their terms are equal: that is how
/// a long inferred step is known to be as good as the short ones. Values are never looked at.
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

  /// One step.
  init(_ step: InferredMapping) {
    entities = step.entityPairs
    terms = [:]
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
      isExternal: attribute?.allowsExternalBinaryDataStorage ?? false)
  }

  /// NULL becomes the default where the destination needs a value.
  /// Source: `core-data-migration.md` §2.4.
  private static func filling(_ property: PropertyDescription) -> StoredDefault? {
    guard !property.traits.isOptional else { return nil }
    return property.attribute?.defaultValue
  }

  private static func joined(_ forms: [Form], _ next: Form) -> [Form] {
    forms.last == next ? forms : forms + [next]
  }
}
