import Foundation
import GodwitCheckpoints
import GodwitObjectModel
import GodwitPlanning
import StoreFixtures
import Testing

@testable import GodwitWorker

@Suite struct `The plan in a run directory` {
  private func plan(_ fixture: MigrationFixture) throws -> MigrationPlan {
    try fixture.plan(
      """
      mapping-model: 1
      entity-mappings:
        - { source: A, destination: A }
      """)
  }

  private func fixture() throws -> MigrationFixture {
    try MigrationFixture(
      from: [entity("A", attribute("old"))], to: [entity("A", attribute("new"))],
      rows: "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1)")
  }

  @Test func `is what was written`() throws {
    let plan = try plan(fixture())
    #expect(try MigrationPlan(stored: plan.stored()) == plan)
    #expect(try JSONSerialization.jsonObject(with: Data(plan.stored())) is [String: Any])
  }

  @Test func `is no plan where a byte of it is another, or is missing`() throws {
    let stored = try plan(fixture()).stored()
    var count = 0
    for place in stride(from: 0, to: stored.count, by: 7) {
      var damaged = stored
      damaged[place] ^= 1 << (place % 8)
      #expect(throws: SealedJSONError.altered) { try MigrationPlan(stored: damaged) }
      count += 1
    }
    #expect(count > 100)
    for end in [0, 1, 77, 78, stored.count - 1] {
      #expect(throws: SealedJSONError.altered) {
        try MigrationPlan(stored: Array(stored.prefix(end)))
      }
    }
  }

  /// No version hash has them. A run that keeps no checkpoints may be cut off in its commit, too.
  @Test(arguments: [true, false])
  func `has another fingerprint for other default values and renaming identifiers`(keeps: Bool)
    throws
  {
    let fixture = try fixture()
    func fingerprint(
      _ property: PropertyDescription, from old: PropertyDescription = attribute("old")
    ) throws -> String {
      let versions = [("1", old), ("2", property)].map { name, property in
        ModelVersion(
          name: name, model: ManagedObjectModel(entities: [entity("A", property)]),
          isCurrent: name == "2", path: name)
      }
      var request = MigrationRequest(
        store: fixture.folder.appending("source.sqlite"), models: versions,
        destination: versions[1], output: fixture.folder.appending("destination.sqlite"),
        snapshotFolder: fixture.folder.appending("snapshot"))
      request.keepsCheckpoints = keeps
      guard case .migrate(let plan) = try Planner().plan(request) else { return "no plan" }
      return plan.fingerprint
    }
    func renamed(_ name: String, _ identifier: String) -> PropertyDescription {
      .attribute(
        AttributeDescription(
          traits: PropertyTraits(name: name, renamingIdentifier: identifier), type: .string))
    }
    let found = try [
      fingerprint(attribute("new")), fingerprint(attribute("new", default: .text("a"))),
      fingerprint(attribute("new", default: .text("b"))), fingerprint(renamed("new", "old")),
      fingerprint(attribute("new"), from: renamed("old", "new")),
    ]
    #expect(Set(found).count == found.count && !found.contains("no plan"), "\(found)")
    #expect(try fingerprint(attribute("new")) == found[0])
  }

  /// A number of an entity mapping, as JSON as good as any: whoever looks it up ends with a trap.
  @Test func `is not followed by a worker where a number is out of range`() throws {
    let fixture = try fixture()
    let plan = try plan(fixture)
    let run = RunDirectory(try Scratch().path.appending("run"))
    try FileManager.default.createDirectory(
      atPath: run.path.string, withIntermediateDirectories: true)
    try run.create()
    let text = String(decoding: try plan.stored(), as: UTF8.self)
    let damaged = text.replacing(#""mapping":{"_0":0}"#, with: #""mapping":{"_0":9}"#)
    try #require(damaged != text)
    try Data(damaged.utf8).write(to: URL(filePath: run.plan.string))
    #expect {
      _ = try ShardContext(run: run)
    } throws: { error in
      if case StageError.unreadablePlan = error { true } else { false }
    }
  }
}
