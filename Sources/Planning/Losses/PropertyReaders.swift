import GodwitExpressions
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

/// Who reads the source's properties, by the entities that have them: the rows of mapping models that
/// are evaluated, and whose value has a place in the store.
///
/// A filter or a source expression stores nothing of what it reads. Nor does a mapping without objects
/// of either model, a row for what is transient, or one for what a derivation gives anyway.
struct PropertyReaders {
  struct Property: Hashable {
    var entity: EntityName
    var name: String
  }

  /// A relationship of the destination that an expression of a known form sets.
  struct Link {
    var entity: EntityName
    var relationship: RelationshipDescription
  }

  /// What a source attribute is handed over to as it is.
  private(set) var handedTo: [Property: [AttributeDescription]] = [:]
  /// What a source attribute would be handed over to, if it were not derived.
  private(set) var derived: [Property: AttributeDescription] = [:]
  /// What is set to that which mappings made of a source relationship's objects.
  private(set) var links: [Property: [Link]] = [:]
  /// Source relationships about whose objects a policy is asked, whatever their entity.
  private(set) var askedOfPolicies: Set<Property> = []
  /// What else is read of a property: key paths behind its name, an empty one for all of it.
  private(set) var others: [Property: Set<[String]>] = [:]
  /// Names that are read of objects whose entity is not known.
  private let names: Set<String>
  /// What rows for relationships alone read, and policies: no other keeps a reference.
  private let byLinks: (places: Set<Property>, names: Set<String>)
  private let destination: EntityHierarchy

  init(_ mappings: [EntityMapping], source: EntityHierarchy, destination: EntityHierarchy) {
    self.destination = destination
    var valueReads = SourceReads(source: source, mappings: mappings)
    var linkReads = valueReads
    var (handedTo, derived) = (self.handedTo, self.derived)
    var links: [Property: [Link]] = [:]
    var askedOfPolicies: Set<Property> = []
    let policies = mappings.filter { $0.policy != nil }
    for mapping in mappings {
      let rows = mapping.properties
      guard let entity = mapping.sourceEntity, mapping.policy == nil else {
        guard mapping.policy != nil else { continue }
        for row in rows.attributes + rows.relationships {
          guard let expression = row.expression else { continue }
          linkReads.add(expression, of: mapping)
        }
        continue
      }
      guard let target = mapping.destinationEntity else { continue }
      for row in rows.attributes {
        guard let expression = row.expression,
          let attribute = destination.property(row.name, of: target)?.property.attribute,
          !attribute.traits.isTransient
        else { continue }
        let key = expression.plainSourceKey.map { Property(entity: entity, name: $0) }
        if attribute.isDerivedAnyway(destination, of: target) {
          if let key { derived[key] = attribute }
        } else if let key {
          handedTo[key, default: []].append(attribute)
        } else {
          valueReads.add(
            expression, of: mapping,
            elements: attribute.type == .composite ? attribute.leaves.map(\.path) : nil)
        }
      }
      for row in rows.relationships {
        guard let expression = row.expression,
          let declared = destination.property(row.name, of: target),
          let relationship = declared.property.relationship,
          destination.storesPairs(of: relationship)
        else { continue }
        for key in expression.firstKeys(of: "source")
        where expression.asks(policies, of: entity, source) {
          askedOfPolicies.insert(Property(entity: entity, name: key))
        }
        if let key = expression.followedSourceKey {
          links[Property(entity: entity, name: key), default: []].append(
            Link(entity: declared.entity, relationship: relationship))
        } else {
          linkReads.add(expression, of: mapping)
        }
      }
    }
    (self.handedTo, self.derived, self.links) = (handedTo, derived, links)
    self.askedOfPolicies = askedOfPolicies
    for place in valueReads.places.union(linkReads.places) {
      guard let name = place.path.first else { continue }
      others[Property(entity: place.entity, name: name), default: []].insert(
        Array(place.path.dropFirst()))
    }
    names = valueReads.names.union(linkReads.names)
    let places = linkReads.places.compactMap { place in
      place.path.first.map { Property(entity: place.entity, name: $0) }
    }
    byLinks = (Set(places), linkReads.names)
  }

  /// True where a row for a relationship reads one of the source, in whatever form.
  func links(_ property: Property) -> Bool {
    links[property] != nil || linksOtherwise(property)
  }

  /// True where an expression of such a row that is no plain one reads something of the property.
  func linksOtherwise(_ property: Property) -> Bool {
    byLinks.places.contains(property) || byLinks.names.contains(property.name)
  }

  /// True where an expression that is no plain one reads something of the property.
  func readsOtherwise(_ property: Property) -> Bool {
    others[property] != nil || names.contains(property.name)
  }

  /// Likewise for the property as a whole.
  func readsAllOtherwise(_ property: Property) -> Bool {
    others[property]?.contains([]) ?? false || names.contains(property.name)
  }

  /// True where an expression names the element of a composite, or one that it is an element of.
  func names(element path: [String], of composite: Property) -> Bool {
    others[composite]?.contains { !$0.isEmpty && (path.starts(with: $0) || $0.starts(with: path)) }
      ?? false || path.allSatisfy(names.contains)
  }
}

extension AttributeDescription {
  /// True for a derivation that a mapping model's migration computes, whatever a row says.
  fileprivate func isDerivedAnyway(_ hierarchy: EntityHierarchy, of entity: EntityName) -> Bool {
    if ownDerivation(hierarchy, of: entity) != nil { return true }
    guard let key = countedRelationship,
      let counted = hierarchy.property(key, of: entity)?.property, counted.isStored
    else { return false }
    return counted.relationship?.isToMany ?? false
  }
}

extension ValueExpression {
  /// True where the expression asks what the mapping of a policy made of something.
  fileprivate func asks(
    _ policies: [EntityMapping], of entity: EntityName, _ source: EntityHierarchy
  ) -> Bool {
    guard !policies.isEmpty else { return false }
    return managerCalls.contains { selector, name in
      switch selector {
      case ManagerSelector.instancesForMapping: return policies.contains { $0.name == name }
      case ManagerSelector.instancesForRelationship:
        guard
          let target = source.property(name, of: entity)?.property.relationship?.destinationEntity
        else { return false }
        return policies.contains { $0.sourceEntity.map { source.isKind($0, of: target) } ?? false }
      default: return false
      }
    }
  }
}
