public import GodwitObjectModel

/// An entity or an attribute of the source model that has no successor: a store that has objects or
/// values of it loses them.
public struct InferredLoss: Sendable, Hashable, Codable {
  /// Of the source model.
  public let entity: EntityName
  /// The attribute, for an element of a composite one with the path to it; nil for the entity.
  public let property: String?
  /// What would be dropped, as a sentence without its full stop.
  public let message: String
}

extension InferredMapping {
  /// What the two models alone tell to be lost, in the order of the source's entities.
  ///
  /// Derived attributes are not listed, since their values are computed from others; nor are
  /// relationships, which an inverse may keep.
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
        for path in Self.lost(attribute, kept[NameKey(attribute.name)]) {
          losses.append(
            InferredLoss(
              entity: old, property: path,
              message: "\(old).\(path) has no successor: its values would be dropped"))
        }
      }
    }
    return losses
  }

  /// The paths from an attribute to what of it is not in the other: itself, or elements.
  private static func lost(_ old: AttributeDescription, _ new: AttributeDescription?) -> [String] {
    guard let new else { return [old.name] }
    return (old.compositeElements ?? []).flatMap { element in
      let other = new.compositeElements?.first { $0.name.isSameName(as: element.name) }
      return lost(element, other).map { "\(old.name).\($0)" }
    }
  }
}
