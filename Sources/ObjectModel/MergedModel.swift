extension ManagedObjectModel {
  /// The model of several bundles, as `NSManagedObjectModel.init(byMerging:)` makes it: all their
  /// entities, configurations, fetch requests and version identifiers. An entity that several of
  /// them have alike is there once.
  ///
  /// Entities are alike when their version hashes are equal: nothing else of them reaches a store.
  ///
  /// - Parameter models: With the name of each, for messages.
  /// - Throws: ``ModelError/invalid(path:problems:)`` with every entity that two of them define
  ///   differently.
  package init(merging models: [(name: String, model: ManagedObjectModel)]) throws {
    let path = models.map(\.name).joined(separator: " + ")
    var owners: [EntityName: (name: String, hash: VersionHash?)] = [:]
    var entities: [EntityDescription] = []
    var merged = ManagedObjectModel(entities: [])
    var problems: [ModelProblem] = []
    var identifiers: Set<NameKey> = []
    for (name, model) in models {
      let hashes = try EntityHierarchy(model).versionHashes
      for entity in model.entities {
        guard let other = owners[entity.name] else {
          owners[entity.name] = (name, hashes[entity.name])
          entities.append(entity)
          continue
        }
        guard other.hash != hashes[entity.name] else { continue }
        problems.append(
          ModelProblem(
            entity: entity.name, property: nil,
            message: "The models \(other.name) and \(name) define the entity \(entity.name) "
              + "differently, so they cannot be merged. Give versions that agree."))
      }
      for (configuration, members) in model.configurations {
        let known = merged.configurations[configuration] ?? []
        merged.configurations[configuration] = known + members.filter { !known.contains($0) }
      }
      for template in model.fetchRequestTemplates
      where !merged.fetchRequestTemplates.contains(where: {
        $0.name.isSameName(as: template.name)
      }) {
        merged.fetchRequestTemplates.append(template)
      }
      identifiers.formUnion(model.versionIdentifiers.map { NameKey($0) })
    }
    guard problems.isEmpty else { throw ModelError.invalid(path: path, problems: problems) }
    self.init(
      versionIdentifiers: identifiers.map(\.name), entities: entities,
      configurations: merged.configurations,
      fetchRequestTemplates: merged.fetchRequestTemplates)
    try ModelRules.require(self, path: path)
  }
}

extension ModelVersion {
  /// The merger of several versions, named by theirs: `Notes 2 + Labels`.
  ///
  /// - Throws: As ``ManagedObjectModel/init(merging:)``.
  package static func merging(_ versions: [ModelVersion]) throws -> ModelVersion {
    if versions.count == 1 { return versions[0] }
    let hashes = try versions.reduce(into: [EntityName: VersionHash]()) { all, version in
      all.merge(try version.hierarchy().versionHashes) { own, _ in own }
    }
    return ModelVersion(
      name: versions.map(\.name).joined(separator: " + "),
      model: try ManagedObjectModel(merging: versions.map { ($0.name, $0.model) }),
      isCurrent: false, recordedHashes: hashes, path: versions.map(\.path).joined(separator: " + ")
    ).merged(of: versions)
  }
}
