import Foundation
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitPlanning

/// A store of one version, planned for under versions some of which have its version hashes.
private final class GivenVersions {
  enum Failure: Error { case noPlan(PlanOutcome) }

  private let folder: FilePath
  private var store: FilePath { folder.appending("source.sqlite") }

  private let isCached: Bool

  /// - Parameter isCached: Whether the store has its model; where it lacks that, the damage is accepted.
  init(storeOf version: ModelVersion, isCached: Bool = true) throws {
    self.isCached = isCached
    folder = FilePath(FileManager.default.temporaryDirectory.path)
      .appending("godwit-given-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: true)
    try StoreGenerator(version.model, options: StoreOptions(rows: 3)).write(to: store.string)
    guard !isCached else { return }
    let connection = try Connection(path: store.string, mode: .readWrite)
    try connection.execute("DROP TABLE Z_MODELCACHE")
    try connection.close()
  }

  deinit { try? FileManager.default.removeItem(atPath: folder.string) }

  private func request(_ models: [ModelVersion]) -> MigrationRequest {
    var request = MigrationRequest(
      store: store, models: models, destination: models.last,
      output: folder.appending("destination.sqlite"), snapshotFolder: folder.appending("snapshot"))
    request.acceptsDamage = !isCached
    return request
  }

  /// The last version is the destination.
  func outcome(_ models: ModelVersion...) throws -> PlanOutcome {
    try Planner().plan(request(models))
  }

  func plan(_ models: ModelVersion...) throws -> MigrationPlan {
    let outcome = try Planner().plan(request(models))
    guard case .migrate(let plan) = outcome else { throw Failure.noPlan(outcome) }
    return plan
  }

  func chain(_ models: ModelVersion...) throws -> VersionChain? {
    try VersionChain(request(models))
  }

  /// From the first version to the last one, inferred.
  ///
  /// - Parameter given: Those of them that the run is given; nil for all.
  func staged(_ models: [ModelVersion], given: [ModelVersion]? = nil) throws -> StagedPath {
    let ends = [models[0], models[models.count - 1]]
    let checksums = try ends.map { try $0.hierarchy().versionChecksum }
    return try StagedPath(
      request(given ?? models),
      StagedMigration([.lightweight(LightweightMigrationStage(checksums))]))
  }
}

private func version(_ name: String, _ properties: PropertyDescription...) -> ModelVersion {
  ModelVersion(
    name: name,
    model: ManagedObjectModel(entities: [EntityDescription(name: "P", properties: properties)]),
    isCurrent: false, path: name)
}

private func bytes(isExternal: Bool) -> PropertyDescription {
  .attribute(
    AttributeDescription(
      traits: PropertyTraits(name: "b"), type: .binary,
      allowsExternalBinaryDataStorage: isExternal, preservesValueInHistoryOnDeletion: !isExternal))
}

private func text(_ name: String, id: String? = nil) -> PropertyDescription {
  .attribute(
    AttributeDescription(
      traits: PropertyTraits(name: name, renamingIdentifier: id), type: .string))
}

@Suite struct `A store of a version whose hashes another one has` {
  private let kept = version("Kept", bytes(isExternal: false))
  private let outside = version("Outside", bytes(isExternal: true))
  private let next = version("Next", bytes(isExternal: true), text("n"))

  @Test func `is of the version that stores values as its own model does`() throws {
    let fixture = try GivenVersions(storeOf: outside)
    #expect(try fixture.plan(kept, outside, next).source.versionName == "Outside")
    #expect(try fixture.plan(outside, kept, next).source.versionName == "Outside")
    #expect(try fixture.chain(kept, outside, next)?.lines == ["Outside → Next: inferred"])
  }

  @Test func `is read by its own model where no version stores values so`() throws {
    let fixture = try GivenVersions(storeOf: outside)
    let plan = try fixture.plan(kept, next)
    #expect(plan.tables == (try fixture.plan(outside, next).tables))
    #expect(
      plan.notes.contains(
        "Kept has the store's version hashes, and other places or forms of values or other constraints than the model "
          + "cached in the store, which is used. By Kept, P.b is read as Binary in ZB and was "
          + "written as Binary with external storage in ZB."))
    #expect(try fixture.plan(outside, next).notes.allSatisfy { !$0.contains("hashes") })
  }

  @Test func `is read by its own model where no version has its uniqueness constraints`() throws {
    func unique(_ name: String, _ constraints: [[String]], _ more: PropertyDescription...)
      -> ModelVersion
    {
      let properties = [text("a"), text("ab"), text("b")] + more
      let entity = EntityDescription(
        name: "P", properties: properties, uniquenessConstraints: constraints)
      return ModelVersion(
        name: name, model: ManagedObjectModel(entities: [entity]), isCurrent: false, path: name)
    }
    let (own, given) = (unique("Own", [["a"], ["b"]]), unique("Given", [["ab"]]))
    let next = unique("Next", [["a"], ["b"]], text("n"))
    let fixture = try GivenVersions(storeOf: own)
    let plan = try fixture.plan(given, next)
    #expect(plan.source.versionName == "Given")
    #expect(plan.notes.contains { $0.contains("P.ab is under a uniqueness constraint that") })
    #expect(try fixture.plan(given, own, next).source.versionName == "Own")
  }

  @Test func `is of the first version where nothing tells, which is said`() throws {
    let fixture = try GivenVersions(storeOf: outside, isCached: false)
    let plan = try fixture.plan(kept, outside, next)
    #expect(plan.source.versionName == "Kept")
    let said = plan.notes.filter {
      $0.hasPrefix("Kept and Outside have the store's version hashes")
    }
    #expect(said.count == 1 && said[0].contains("P.b is read as"), "\(plan.notes)")
  }

  @Test func `goes by stages to the version that is asked for, not to its twin`() throws {
    func rank(_ name: String, _ value: Int64) -> ModelVersion {
      let traits = PropertyTraits(name: "rank", isOptional: false)
      return version(
        name, text("x"),
        .attribute(
          AttributeDescription(traits: traits, type: .integer16, defaultValue: .integer(value))))
    }
    let plain = version("Plain", text("x"))
    let path = try GivenVersions(storeOf: plain).staged([plain, rank("Seven", 7), rank("Nine", 9)])
    #expect(path.lines == ["Plain → Nine: inferred"])
    #expect(path.destination.name == "Nine" && !path.isOfUnknownVersion)
  }

  @Test func `is of an unknown version for stages, too`() throws {
    let (plain, last) = (version("Plain", text("x")), version("Last", text("y")))
    #expect(
      try GivenVersions(storeOf: plain).staged([plain, last], given: [last]).isOfUnknownVersion)
  }

  @Test func `is of the version that has its own renaming identifiers`() throws {
    let (plain, renamed) = (version("Plain", text("x")), version("Renamed", text("x", id: "old")))
    let last = version("Last", text("z", id: "x"))
    let fixture = try GivenVersions(storeOf: plain)
    for models in [[plain, renamed], [renamed, plain]] {
      let plan = try fixture.plan(models[0], models[1], last)
      #expect(plan.source.versionName == "Plain")
      #expect(plan.losses == [])
    }
  }

  @Test func `is said to be read wrongly where it opens without a migration`() throws {
    let fixture = try GivenVersions(storeOf: outside)
    func notes(_ models: ModelVersion...) throws -> [String]? {
      let outcome =
        try models.count == 1 ? fixture.outcome(models[0]) : fixture.outcome(models[0], models[1])
      if case .sameModel(let notes) = outcome { return notes } else { return nil }
    }
    #expect(try notes(outside) == [])
    #expect(try notes(kept, outside) == [])
    let wrong = try #require(try notes(outside, kept))
    #expect(wrong.count == 1 && wrong[0].contains("P.b is read as Binary in ZB and was written"))
  }

  @Test func `is said not to be renamed where only renaming identifiers say so`() throws {
    let plain = version("Plain", text("p"), text("q"))
    let fixture = try GivenVersions(storeOf: plain)
    func notes(_ model: ModelVersion) throws -> [String]? {
      if case .sameModel(let notes) = try fixture.outcome(plain, model) { notes } else { nil }
    }
    let swapped = version("Swapped", text("p", id: "q"), text("q", id: "p"))
    let said = try #require(try notes(swapped))
    #expect(
      said.count == 1 && said[0].contains("P.q becomes P.p; P.p becomes P.q. A hash modifier"))
    // An identifier that names nothing of the store's model renames nothing.
    #expect(try notes(version("Same", text("p", id: "first"), text("q"))) == [])
  }
}
