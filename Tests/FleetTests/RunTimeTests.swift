import GodwitCheckpoints
import GodwitMapping
import GodwitObjectModel
import GodwitPlanning
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `The time of a mapped migration` {
  private static func plan(_ request: MigrationRequest) throws -> MigrationPlan {
    guard case .migrate(let plan) = try Planner().plan(request) else { throw CancellationError() }
    return plan
  }

  @Test func `is an earlier run's as long as its rows count, and then its own`() throws {
    let scratch = try Scratch()
    let date = AttributeDescription(traits: PropertyTraits(name: "at"), type: .date)
    let properties: [[PropertyDescription]] = [[], [.attribute(date)]]
    let models = properties.map {
      ManagedObjectModel(entities: [EntityDescription(name: "Note", properties: $0)])
    }
    let store = scratch.path.appending("a.sqlite")
    try StoreGenerator(models[0], options: StoreOptions(rows: 1)).write(to: store.string)
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - { source: Note, destination: Note, attributes: { at: now() } }
      """
    let versions = zip(["1", "2"], models).map {
      ModelVersion(name: $0, model: $1, isCurrent: $0 == "2", path: $0)
    }
    let run = StoreRun(
      MigrationRequest(
        store: store, models: versions, destination: versions[1], output: nil, snapshotFolder: "",
        mappings: [
          MappingFile(
            file: "a.yaml",
            document: try MappingDocument(bytes: Array(mapping.utf8), name: "a.yaml"))
        ]), directory: RunDirectory(scratch.path.appending("state")),
      settings: .init(pool: .init(executable: "/bin/false", workerCount: 1)))
    var attempt = StoreAttempt(run)
    let folder = RunFolder(directory: run.directory)
    try folder.take()

    var earlier = try Self.plan(run.request)
    earlier.mapped?.runDate = 100
    let first = try attempt.takeUp(earlier, folder)
    #expect(!first.isResumed)
    let again = try Self.plan(run.request)
    #expect(again.mapped?.runDate != 100)
    let resumed = try attempt.takeUp(again, folder)
    #expect(resumed.isResumed && resumed.plan.mapped?.runDate == 100)
    #expect(try PlanFile(run.directory).read() == resumed.plan)

    var changed = again
    changed.fingerprint = String(changed.fingerprint.reversed()) + "0"
    let new = try attempt.takeUp(changed, folder)
    #expect(!new.isResumed && new.plan == changed)
    #expect(try PlanFile(run.directory).read() == changed)
    #expect(attempt.result.notes.contains { $0.contains("its work is discarded") })
  }
}
