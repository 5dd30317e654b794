extension ManagedObjectModel {
  /// The entities that a configuration lists; nil where the model has none of that name, which is one of the same
  /// Unicode scalars.
  package func entities(inConfiguration name: String) -> [EntityName]? {
    configurations.first { $0.key.isSameName(as: name) }?.value
  }

  /// The entities of one configuration as a model of their own: what a store that was added with
  /// this configuration holds.
  ///
  /// Superentities are kept even where the configuration does not list them, since the others
  /// inherit from them. Relationships that lead out of it stay as they are, so that the version
  /// hashes do too.
  /// - Returns: Nil where the model has no such configuration.
  package func restricted(to configuration: String) -> ManagedObjectModel? {
    entities(inConfiguration: configuration).map { restricted(to: Set($0)) }
  }

  /// The model of these entities and their superentities.
  package func restricted(to names: Set<EntityName>) -> ManagedObjectModel {
    var superentities: [EntityName: EntityName] = [:]
    for entity in entities { superentities[entity.name] = entity.superentity }
    var kept: Set<EntityName> = []
    for name in names {
      var current: EntityName? = name
      while let entity = current, kept.insert(entity).inserted { current = superentities[entity] }
    }
    var model = self
    model.entities = entities.filter { kept.contains($0.name) }
    model.configurations = [:]
    return model
  }
}

extension EntityHierarchy {
  /// The same for what follows from the model, with the recorded hashes of these entities.
  package func restricted(to names: Set<EntityName>) throws -> EntityHierarchy {
    try EntityHierarchy(model.restricted(to: names), recordedHashes: recordedHashes)
  }

  /// As much of the model as a store of such hashes holds, with these hashes.
  package func held(under hashes: [EntityName: VersionHash]) throws -> EntityHierarchy {
    if versionHashes == hashes { return self }
    let names = Set(hashes.keys)
    return try EntityHierarchy(
      names.isSuperset(of: order) ? model : model.restricted(to: names), recordedHashes: hashes)
  }

  /// A model cached in a store as the one that wrote it, with the store's hashes; nil where another one did.
  ///
  /// A cache does not tell recorded hashes: a given model that has the store's tells, where it is described alike.
  package func own(
    under hashes: [EntityName: VersionHash], of given: [EntityHierarchy]
  ) -> EntityHierarchy? {
    if versionHashes == hashes { return self }
    let isOwn = given.contains {
      $0.versionHashes == hashes && $0.computedHashes == computedHashes
    }
    return isOwn ? try? held(under: hashes) : nil
  }
}
