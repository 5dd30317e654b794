extension ManagedObjectModel {
  /// The model of several bundles, as `NSManagedObjectModel.init(byMerging:)` makes it: all their
  /// entities, configurations, fetch requests and version identifiers. An entity that several of
  /// them have alike is there once.
  ///
  /// Entities are alike when their version hashes are equal, and what no hash covers and yet reaches a store.
  ///
  /// - Parameters:
  ///   - models: With the name of each, for messages.
  ///   - isRead: The merger is of a store that is there: what counts beside hashes is the form of its values.
  /// - Throws: ``ModelError/invalid(path:problems:)`` with every entity that two of them define
  ///   differently.
  package init(
    merging models: [(name: String, model: ManagedObjectModel)], isRead: Bool = false
  ) throws {
    let path = models.map(\.name).joined(separator: " + ")
    var owners: [EntityName: Int] = [:]
    let trees = try models.map { try EntityHierarchy($0.model) }
    var entities: [EntityDescription] = []
    var merged = ManagedObjectModel(entities: [])
    var problems: [ModelProblem] = []
    var identifiers: Set<NameKey> = []
    for (place, (name, model)) in models.enumerated() {
      var differences: [Int: ModelDifference] = [:]
      for entity in model.entities {
        guard let other = owners[entity.name] else {
          owners[entity.name] = place
          entities.append(entity)
          continue
        }
        let difference =
          differences[other] ?? ModelDifference(source: trees[other], destination: trees[place])
        differences[other] = difference
        let isHashed =
          trees[other].versionHashes[entity.name] != trees[place].versionHashes[entity.name]
        let unhashed = difference.unhashed(entity, isRead: isRead)
        guard isHashed || !unhashed.isEmpty else { continue }
        let aspects = unhashed.isEmpty ? "" : " (\(unhashed.joined(separator: "; ")))"
        problems.append(
          ModelProblem(
            entity: entity.name, property: nil,
            message:
              "The models \(models[other].name) and \(name) define the entity \(entity.name) "
              + "differently\(aspects), so they cannot be merged. Give versions that agree."))
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

extension ModelDifference {
  /// What no hash covers, and what the form of values in a store depends on.
  private static let storage: Set<Aspect> = [.externalStorage, .derivation, .composite]
  /// Likewise, what becomes of a store that is migrated to the model.
  private static let results: Set<Aspect> = storage.union([
    .uniquenessConstraints, .fetchIndexes, .indexed, .defaultValue, .validation,
  ])

  /// What two models say otherwise of an entity that both have, and of which no hash tells.
  fileprivate func unhashed(_ entity: EntityDescription, isRead: Bool) -> [String] {
    let aspects = isRead ? Self.storage : Self.results
    let found = entities.filter { $0.source == entity.name || $0.destination == entity.name }
    var said = found.flatMap(\.changes).map(\.aspect).filter(aspects.contains).map(\.rawValue)
    // What has another renaming identifier is no pair.
    if !isRead, found.contains(where: { $0.source != $0.destination }) {
      said.append("renaming identifier")
    }
    for property in found.filter({ $0.kind == .changed }).flatMap(\.properties) {
      let name = property.destination ?? property.source ?? ""
      let differing = property.changes.map(\.aspect).filter(aspects.contains).map(\.rawValue)
      said += differing.map { "\(name): \($0)" }
      let isStored = entity.properties.contains { $0.name.isSameName(as: name) && $0.isStored }
      if !isRead, property.kind != .changed, isStored {
        said.append("\(name): renaming identifier")
      }
    }
    return Set(said).sorted { $0.precedesInBytes($1) }
  }
}

extension ModelVersion {
  /// The merger of several versions, named by theirs: `Notes 2 + Labels`.
  ///
  /// - Parameter isRead: As in ``ManagedObjectModel/init(merging:isRead:)``, which says what is thrown, too.
  package static func merging(_ versions: [ModelVersion], isRead: Bool = false) throws
    -> ModelVersion
  {
    if versions.count == 1 { return versions[0] }
    let hashes = try versions.reduce(into: [EntityName: VersionHash]()) { all, version in
      all.merge(try version.hierarchy().versionHashes) { own, _ in own }
    }
    return ModelVersion(
      name: versions.map(\.name).joined(separator: " + "),
      model: try ManagedObjectModel(
        merging: versions.map { ($0.name, $0.model) }, isRead: isRead),
      isCurrent: false, recordedHashes: hashes, path: versions.map(\.path).joined(separator: " + ")
    ).merged(of: versions)
  }
}
