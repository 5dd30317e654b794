public import GodwitObjectModel

/// An entity, an attribute or a relationship of the source model that has no successor: a store that has
/// objects, values or references of it loses them.
public struct InferredLoss: Sendable, Hashable, Codable {
  /// Of the source model.
  public let entity: EntityName
  /// The attribute, for an element of a composite one with the path to it, or the relationship; nil for
  /// the entity.
  public let property: String?
  /// What would be dropped, as a sentence without its full stop.
  public let message: String
}

extension InferredMapping {
  /// What the two models alone tell to be lost, in the order of the source's entities.
  ///
  /// Derived attributes are not listed, since their values are computed from others; nor are
  /// relationships that their inverse keeps, or whose destination has no successor. A relationship and its
  /// inverse are listed once.
  public var losses: [InferredLoss] {
    var losses: [InferredLoss] = []
    for old in source.order where source[old]?.isAbstract == false {
      guard let name = successors[old] else {
        losses.append(
          InferredLoss(
            entity: old, property: nil,
            message: "entity \(old) has no successor: its objects would be dropped"))
        continue
      }
      var kept: [NameKey: AttributeDescription] = [:]
      for declared in destination.properties(of: name) {
        guard let new = declared.property.attribute,
          let hit = correspondence(of: new.name, in: name)
        else { continue }
        kept[NameKey(hit.property.name)] = new
      }
      for attribute in source.properties(of: old).compactMap(\.property.attribute)
      where !attribute.traits.isTransient && attribute.derivationExpression == nil {
        for (path, why) in Self.lost(attribute, kept[NameKey(attribute.name)]) {
          losses.append(
            InferredLoss(
              entity: old, property: path,
              message: "\(old).\(path) \(why): its values would be dropped"))
        }
      }
      losses += lostRelationships(of: old)
    }
    return losses
  }

  private func lostRelationships(of old: EntityName) -> [InferredLoss] {
    source.properties(of: old).compactMap { declared in
      guard let relationship = declared.property.relationship,
        source.storesPairs(of: relationship), !isKept(relationship.name, of: old)
      else { return nil }
      let targets = source.concrete(of: relationship.destinationEntity)
      guard targets.contains(where: { successors[$0] != nil }) else { return nil }
      if let inverse = source.inverse(of: relationship) {
        let isOwn =
          inverse.entity == declared.entity
          && inverse.relationship.name.isSameName(as: relationship.name)
        guard !targets.contains(where: { isKept(inverse.relationship.name, of: $0) }) else {
          return nil
        }
        // The side with the key stands for both, or the first one by name; one that has no place in
        // the store stands for none.
        let comesLater =
          relationship.isToMany == inverse.relationship.isToMany
          ? "\(inverse.entity) \(inverse.relationship.name)"
            .precedesInBytes("\(declared.entity) \(relationship.name)")
          : relationship.isToMany
        let isSecond = comesLater && source.storesPairs(of: inverse.relationship)
        guard isOwn || !isSecond else { return nil }
      }
      return InferredLoss(
        entity: old, property: relationship.name,
        message:
          "\(old).\(relationship.name) has no successor, nor has its inverse: its references "
          + "would be dropped")
    }
  }

  /// Whether a relationship of a source entity has a successor in what the entity becomes. One that
  /// stores no pairs is none.
  private func isKept(_ relationship: String, of old: EntityName) -> Bool {
    guard let name = successors[old] else { return false }
    return destination.properties(of: name).contains { declared in
      declared.property.relationship.map(destination.storesPairs(of:)) == true
        && correspondence(of: declared.property.name, in: name)?.property.name
          .isSameName(as: relationship) == true
    }
  }

  /// The paths from an attribute to what of it is not in the other, and why: itself, or elements. The types
  /// of attributes decide whether there is a mapping at all; elements of another type are just left out.
  private static func lost(
    _ old: AttributeDescription, _ new: AttributeDescription?, isElement: Bool = false
  ) -> [(path: String, why: String)] {
    guard let new else { return [(old.name, "has no successor")] }
    if isElement, old.type != new.type { return [(old.name, "becomes \(new.type.xmlName)")] }
    return (old.compositeElements ?? []).flatMap { element in
      let other = new.compositeElements?.first { $0.name.isSameName(as: element.name) }
      return lost(element, other, isElement: true).map { ("\(old.name).\($0.path)", $0.why) }
    }
  }
}
