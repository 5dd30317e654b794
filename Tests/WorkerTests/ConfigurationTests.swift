import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitWorker

@Suite struct `A store of one configuration` {
  private func outcome(backup: [EntityName], cloud: [EntityName]) throws -> PlanOutcome {
    let fixture = try MigrationFixture(from: [entity("E", attribute("k"))], to: [], rows: "")
    func version(
      _ name: String, _ entities: [EntityDescription], _ backup: [EntityName],
      _ cloud: [EntityName]
    ) -> ModelVersion {
      var model = ManagedObjectModel(entities: entities)
      model.configurations = ["Backup": backup, "Cloud": cloud, "Local": ["F"]]
      return ModelVersion(name: name, model: model, isCurrent: name == "B", path: name)
    }
    let destination = version(
      "B", [entity("E", attribute("k"), attribute("z")), entity("F"), entity("N")], backup, cloud)
    return try Planner().plan(
      MigrationRequest(
        store: fixture.folder.appending("source.sqlite"),
        models: [
          version("A", [entity("E", attribute("k")), entity("F")], ["E"], ["E"]), destination,
        ],
        destination: destination, output: fixture.folder.appending("b.sqlite"),
        snapshotFolder: fixture.folder.appending("snapshot")))
  }

  @Test func `that fits another, too, is refused where the two differ in the destination`() throws {
    let error = try #require(throws: PlanError.self) {
      try outcome(backup: ["E"], cloud: ["E", "N"])
    }
    #expect(error.description.contains("the configurations Backup and Cloud, which differ in B"))
  }

  @Test func `that fits another, too, is migrated where they are the same`() throws {
    guard case .migrate(let plan) = try outcome(backup: ["E", "N"], cloud: ["N", "E"]) else {
      Issue.record("no plan")
      return
    }
    #expect(plan.tables.map(\.name) == ["ZE", "ZN"])
  }
}

@Suite struct `A store of one configuration, of which not all is given` {
  private static let cloudMapping = """
    mapping-model: 1
    entity-mappings:
      - { source: E, destination: E }
      - { source: F, destination: F }
    """

  /// The model of the store and of its cache has E in Cloud and F in Local.
  ///
  /// - Parameters:
  ///   - configurations: Those of the destination, which has N beside E and F.
  ///   - isSubentity: Whether E is a sub-entity of N in the destination.
  ///   - own: What Cloud is called in the store's model.
  private func outcome(
    givesSource: Bool, _ configurations: [String: [EntityName]], _ mapping: String? = nil,
    isSubentity: Bool = false, own: String = "Cloud"
  ) throws -> PlanOutcome {
    let (fixture, request) = try request(
      givesSource: givesSource, configurations, mapping, isSubentity: isSubentity, own: own)
    return try withExtendedLifetime(fixture) { try Planner().plan(request) }
  }

  private func request(
    givesSource: Bool, _ configurations: [String: [EntityName]], _ mapping: String? = nil,
    isSubentity: Bool = false, own: String = "Cloud"
  ) throws -> (MigrationFixture, MigrationRequest) {
    let fixture = try MigrationFixture(from: [entity("E", attribute("k"))], to: [], rows: "")
    var source = ManagedObjectModel(entities: [entity("E", attribute("k")), entity("F")])
    source.configurations = [own: ["E"], "Local": ["F"]]
    let path = fixture.folder.appending("source.sqlite")
    let store = try Connection(path: path.string, mode: .readWrite)
    _ = try store.rows(
      "UPDATE Z_MODELCACHE SET Z_CONTENT = ?1", [.blob(try source.modelCacheBytes())])
    try store.close()
    var model = ManagedObjectModel(
      entities: [entity("E", attribute("k"), attribute("z")), entity("F"), entity("N")])
    model.configurations = configurations
    if isSubentity { model.entities[0].superentity = "N" }
    let destination = ModelVersion(name: "B", model: model, isCurrent: true, path: "B")
    let own = ModelVersion(name: "A", model: source, isCurrent: false, path: "A")
    var request = MigrationRequest(
      store: path, models: givesSource ? [own, destination] : [destination],
      destination: destination, output: fixture.folder.appending("b.sqlite"),
      snapshotFolder: fixture.folder.appending("snapshot"))
    if let mapping {
      let document = try MappingDocument(bytes: Array(mapping.utf8), name: "m.yaml")
      request.mappings = [MappingFile(file: "m.yaml", document: document)]
    }
    return (fixture, request)
  }

  private func tables(_ outcome: PlanOutcome) -> [String] {
    guard case .migrate(let plan) = outcome else { return [] }
    return plan.tables.map(\.name)
  }

  @Test(arguments: [true, false])
  func `stays one, also where only its cache has the version`(givesSource: Bool) throws {
    let found = try outcome(givesSource: givesSource, ["Cloud": ["E"], "Local": ["F", "N"]])
    #expect(tables(found) == ["ZE"])
  }

  @Test func `goes to the configuration that has the successors of its entities`() throws {
    let found = try outcome(givesSource: true, ["iCloud": ["E", "N"], "Local": ["F"]])
    #expect(tables(found) == ["ZE", "ZN"])
    guard case .migrate(let plan) = found else { return }
    #expect(plan.notes.contains { $0.contains("Cloud is taken for iCloud in B") })
  }

  @Test func `does not go to one whose name differs in Unicode normalisation`() throws {
    let found = try outcome(
      givesSource: true, ["all": ["E", "N"], "cafe\u{301}": ["F"]], own: "caf\u{E9}")
    #expect(tables(found) == ["ZE", "ZN"])
  }

  @Test func `is refused where no configuration has become its own`() throws {
    let error = try #require(throws: PlanError.self) {
      try outcome(givesSource: true, ["All": ["E", "F"], "Local": ["F"]])
    }
    #expect(error.description.contains("the entities of the configuration Cloud, and no"))
  }

  @Test(arguments: ["Cloud", "iCloud"])
  func `is refused where its configuration lacks a superentity`(name: String) throws {
    let error = try #require(throws: PlanError.self) {
      try outcome(givesSource: true, [name: ["E"], "Local": ["F"]], isSubentity: true)
    }
    #expect(error.description.contains("\(name) of B has E and not its superentity N"))
    let whole = try outcome(
      givesSource: true, [name: ["N", "E"], "Local": ["F"]], isSubentity: true)
    #expect(tables(whole) == ["ZN"])
  }

  @Test func `gets all entities of a version without configurations, which is said`() throws {
    guard case .migrate(let plan) = try outcome(givesSource: true, [:]) else {
      Issue.record("no plan")
      return
    }
    #expect(plan.notes.contains { $0.contains("B has no configurations") })
  }

  @Test(arguments: [true, false])
  func `takes a mapping model of the whole models`(givesSource: Bool) throws {
    let found = try outcome(
      givesSource: givesSource, ["Cloud": ["E"], "Local": ["F", "N"]], Self.cloudMapping)
    #expect(tables(found) == ["ZE"])
  }

  /// Its next migration may have the version from there alone.
  @Test(arguments: [nil, Self.cloudMapping])
  func `caches the whole model, and is made of its part`(mapping: String?) throws {
    let configurations: [String: [EntityName]] = ["Cloud": ["E"], "Local": ["F", "N"]]
    guard case .migrate(let plan) = try outcome(givesSource: true, configurations, mapping) else {
      Issue.record("no plan")
      return
    }
    let cached = try EntityHierarchy(modelCache: plan.control.modelCache)
    #expect(cached.order == ["E", "F", "N"] && cached.model.configurations == configurations)
    let part = try plan.control.hierarchy()
    #expect(part.order == ["E"] && part.versionHashes["E"] == cached.versionHashes["E"])
    #expect(plan.destination.checksum == part.versionChecksum)
  }

  @Test(arguments: [true, false])
  func `stays one in each step of a chain`(givesSource: Bool) throws {
    let (fixture, request) = try request(
      givesSource: givesSource, ["Cloud": ["E"], "Local": ["F", "N"]])
    try withExtendedLifetime(fixture) {
      let chain = try #require(try VersionChain(request))
      let step = request.leg(chain.leg(0), store: request.store, output: request.output)
      let outcome = try Planner().plan(step)
      #expect(chain.path.steps.count == 1 && tables(outcome) == ["ZE"])
    }
  }
}

@Suite struct `A version with another version hash than the computed one` {
  private let recorded = VersionHash(bytes: Array(repeating: 0x5A, count: 32))
  private let fixture: MigrationFixture
  private let old = ManagedObjectModel(entities: [Self.unsettled(entity("E", attribute("k")))])
  private let new = ManagedObjectModel(
    entities: [Self.unsettled(entity("E", attribute("k"), attribute("z"))), entity("F")])

  /// Of a modifier beside a constraint it is not known how it enters a hash.
  private static func unsettled(_ entity: EntityDescription) -> EntityDescription {
    var entity = entity
    entity.versionHashModifier = "m"
    entity.uniquenessConstraints = [["k"]]
    return entity
  }

  init() throws { fixture = try MigrationFixture(from: old.entities, to: [], rows: "") }

  /// - Parameters:
  ///   - source: The hash that is recorded for E of the older version; nil for the computed one.
  ///   - destination: The same for the newer version.
  ///   - isBack: The older version is the destination.
  ///   - old: How the older version given is described; nil as that of the store.
  private func plan(
    from source: VersionHash? = nil, to destination: VersionHash? = nil, isBack: Bool = false,
    describing old: ManagedObjectModel? = nil
  ) throws -> PlanOutcome {
    func version(_ name: String, _ model: ManagedObjectModel, _ hash: VersionHash?) throws
      -> ModelVersion
    {
      var hashes = try EntityHierarchy(model).versionHashes
      if let hash { hashes["E"] = hash }
      return ModelVersion(
        name: name, model: model, isCurrent: false, recordedHashes: hashes, path: name)
    }
    let versions = [
      try version("A", old ?? self.old, source), try version("B", new, destination),
    ]
    return try Planner().plan(
      MigrationRequest(
        store: fixture.folder.appending("source.sqlite"), models: versions,
        destination: versions[isBack ? 0 : 1], output: fixture.folder.appending("b.sqlite"),
        snapshotFolder: fixture.folder.appending("snapshot")))
  }

  @Test func `gives a store the recorded one, and says so`() throws {
    guard case .migrate(let plan) = try plan(to: recorded) else {
      Issue.record("no plan")
      return
    }
    let hashes = try plan.control.hierarchy().versionHashes
    let computed = try EntityHierarchy(new).versionHashes
    #expect(hashes["E"] == recorded && hashes["F"] == computed["F"])
    #expect(plan.destination.checksum == StoreDigest.versionChecksum(of: hashes))
    let note = "For E, VersionInfo.plist records another version hash in B than the computed one."
    #expect(plan.notes.contains { $0.hasPrefix(note) })
  }

  @Test func `is the computed one where that is certain`() throws {
    var certain = new
    certain.entities[0].versionHashModifier = nil
    let hashes = try EntityHierarchy(certain).versionHashes
    let version = ModelVersion(
      name: "B", model: certain, isCurrent: false,
      recordedHashes: hashes.merging(["E": try #require(recorded)]) { $1 }, path: "B")
    #expect(try version.hierarchy().versionHashes == hashes)
  }

  @Test func `needs no word where the two are the same`() throws {
    guard case .migrate(let plan) = try plan() else {
      Issue.record("no plan")
      return
    }
    #expect(!plan.notes.contains { $0.contains("VersionInfo.plist") })
  }

  /// Gives the store the hash that is recorded for E of the older version.
  private func record(_ recorded: VersionHash) throws -> EntityHierarchy {
    let path = fixture.folder.appending("source.sqlite").string
    let store = try Connection(path: path, mode: .readWrite)
    let hierarchy = try EntityHierarchy(old, recordedHashes: ["E": recorded])
    _ = try store.rows(
      "UPDATE Z_METADATA SET Z_PLIST = ?1",
      [.blob(try StoreMetadata(store).bytes(migratedTo: hierarchy))])
    try store.close()
    return hierarchy
  }

  /// The model cached in the store says by no hash that it is the store's own.
  @Test(arguments: [true, false])
  func `is compared with the model cached in the store, whose hashes do not tell`(isSame: Bool)
    throws
  {
    let recorded = try #require(self.recorded)
    _ = try record(recorded)
    let given = ManagedObjectModel(
      entities: [
        Self.unsettled(entity("E", attribute("k", default: isSame ? nil : .text("new"))))
      ])
    guard case .migrate(let plan) = try plan(from: recorded, describing: given) else {
      Issue.record("no plan")
      return
    }
    #expect(plan.source.versionName == "A")
    #expect(plan.notes.contains { $0.contains("have different default values") } == !isSame)
  }

  @Test func `is that of a store which has the recorded one`() throws {
    let recorded = try #require(self.recorded)
    let hierarchy = try record(recorded)
    guard case .sameModel = try plan(from: recorded, isBack: true) else {
      Issue.record("its own version is another")
      return
    }
    guard case .migrate(let plan) = try plan(from: recorded) else {
      Issue.record("no plan")
      return
    }
    #expect(plan.source.versionName == "A" && plan.source.checksum == hierarchy.versionChecksum)
    #expect(throws: PlanError.self) { try self.plan() }
  }
}
