import GodwitObjectModel

extension MappingDocument {
  /// A mapping model to begin with: what can be inferred is filled in, the rest is left for the
  /// editor.
  ///
  /// As Xcode's template, one mapping for each pair of entities and for each added or removed one,
  /// and a property that inference would refuse keeps its default value. Entities are paired by
  /// renaming identifier, and where that refuses, by name.
  package init(defaultFor source: EntityHierarchy, to destination: EntityHierarchy) {
    let inferred = InferredMapping(source: source, destination: destination)
    let (oldHashes, newHashes) = (source.versionHashes, destination.versionHashes)
    var entries: [Entry] = []
    var taken: Set<EntityName> = []
    for name in destination.order where destination[name]?.isAbstract == false {
      var old = inferred.entityPairs[name]
      if old == nil, source.contains(name), inferred.successors[name] == nil { old = name }
      if let found = old, source[found]?.isAbstract != false { old = nil }
      if let old { taken.insert(old) }
      var entry = Entry(
        source: old, destination: name, sourceHash: old.flatMap { oldHashes[$0] },
        destinationHash: newHashes[name])
      if let old {
        for declared in destination.properties(of: name) where declared.property.isStored {
          Self.add(declared.property, from: old, to: name, inferred, &entry)
        }
      }
      entries.append(entry)
    }
    for name in source.order where source[name]?.isAbstract == false && !taken.contains(name) {
      entries.append(Entry(source: name, sourceHash: oldHashes[name]))
    }
    self.init(entityMappings: entries)
  }

  /// Writes a row where the automatic one would not do.
  private static func add(
    _ property: PropertyDescription, from old: EntityName, to name: EntityName,
    _ inferred: InferredMapping, _ entry: inout Entry
  ) {
    let hit =
      inferred.correspondence(of: property.name, in: name)
      ?? (inferred.entityPairs[name] == nil
        ? inferred.source.property(property.name, of: old) : nil)
    let sameName = inferred.source.property(property.name, of: old)?.property
    switch property {
    case .attribute(let new):
      guard let attribute = hit?.property.attribute, converts(attribute, to: new) else {
        // Automatic would take the attribute of the same name, whatever that means.
        if sameName?.attribute != nil { entry.attributes.append(Row(new.name, .unset)) }
        return
      }
      if !attribute.name.isSameName(as: new.name) {
        entry.attributes.append(Row(new.name, .expression(.sourceProperty(attribute.name))))
      }
    case .relationship(let new):
      guard let relationship = hit?.property.relationship else {
        if sameName?.relationship != nil { entry.relationships.append(Row(new.name, .unset)) }
        return
      }
      if !relationship.name.isSameName(as: new.name) {
        entry.relationships.append(Row(new.name, .along(.sourceProperty(relationship.name))))
      }
    case .fetchedProperty: break
    }
  }

  private static func converts(
    _ old: AttributeDescription, to new: AttributeDescription
  ) -> Bool {
    old.type == new.type || (old.type.isNumber && new.type.isNumber)
  }
}
