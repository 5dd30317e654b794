import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

/// A in the configuration One refers to B in Two, and the store is of One.
@Suite struct `A store of one configuration, of which a relationship leads out` {
  private func version(
    _ name: String, _ attributes: [String], _ configurations: [String: [EntityName]]
  ) -> ModelVersion {
    var model = ManagedObjectModel(entities: [
      EntityDescription(
        name: "A",
        properties: [toOne("b", "B", inverse: "a"), toMany("parts", "B", inverse: "whole")]
          + attributes.map { attribute($0) }),
      entity(
        "B", attribute("k"), toOne("a", "A", inverse: "b"), toOne("whole", "A", inverse: "parts")),
      entity("C"),
    ])
    model.configurations = configurations
    return ModelVersion(name: name, model: model, isCurrent: name == "2", path: name)
  }

  private func outcome(
    _ mapping: String? = nil, reference: Int? = nil,
    from before: [String: [EntityName]] = ["One": ["A"], "Two": ["B", "C"]],
    to after: [String: [EntityName]] = ["One": ["A"], "Two": ["B", "C"]]
  ) throws -> PlanOutcome {
    let (old, new) = (version("1", ["x"], before), version("2", ["n", "x"], after))
    let fixture = try MigrationFixture(
      from: old.model.entities, to: [],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZB, ZX)
        VALUES (1, 1, 1, \(reference.map(String.init) ?? "NULL"), 'x')
        """)
    let path = fixture.folder.appending("source.sqlite")
    let store = try Connection(path: path.string, mode: .readWrite)
    let names = try #require(before["One"])
    let part = try EntityHierarchy(old.model.restricted(to: Set(names)))
    _ = try store.rows(
      "UPDATE Z_METADATA SET Z_PLIST = ?1",
      [.blob(try StoreMetadata(store).bytes(migratedTo: part))])
    _ = try store.rows(
      "UPDATE Z_MODELCACHE SET Z_CONTENT = ?1", [.blob(try old.model.modelCacheBytes())])
    for name in ["B", "C"] where !names.contains(EntityName(name)) {
      try store.execute("DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = '\(name)'")
      try store.execute("DROP TABLE Z\(name)")
    }
    try store.close()
    var request = MigrationRequest(
      store: path, models: [old, new], destination: new,
      output: fixture.folder.appending("b.sqlite"),
      snapshotFolder: fixture.folder.appending("snapshot"))
    if let mapping {
      let document = try MappingDocument(bytes: Array(mapping.utf8), name: "m.yaml")
      request.mappings = [MappingFile(file: "m.yaml", document: document)]
    }
    return try withExtendedLifetime(fixture) { try Planner().plan(request) }
  }

  private func plan(_ outcome: PlanOutcome) throws -> MigrationPlan {
    guard case .migrate(let plan) = outcome else { throw MigrationFixture.Failure.noPlan(outcome) }
    return plan
  }

  @Test func `is migrated, and loses nothing`() throws {
    let plan = try plan(outcome())
    #expect(plan.tables.map(\.name) == ["ZA"])
    #expect(plan.losses == [])
  }

  /// Core Data writes none.
  @Test func `has a reference there counted`() throws {
    let losses = try plan(outcome(reference: 7)).losses
    #expect(losses.map(\.kind) == [.reference] && losses.map(\.property) == ["b"])
  }

  @Test func `may get what the relationship leads to, and lose it`() throws {
    let both: [String: [EntityName]] = ["One": ["A", "B"], "Two": ["C"]]
    #expect(try plan(outcome(to: both)).tables.map(\.name) == ["ZA", "ZB"])
    #expect(try plan(outcome(from: both)).tables.map(\.name) == ["ZA"])
  }

  @Test(arguments: [
    "b: default", "parts: { along: parts }",
    "b: FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"BToB\", $source.b)",
    "b: FUNCTION($manager, \"destinationInstancesForSourceRelationshipNamed:sourceInstances:\", \"b\", $source.b)",
  ])
  func `takes a mapping model that says something of it`(row: String) throws {
    let found = try outcome(
      """
      mapping-model: 1
      entity-mappings:
        - source: A
          destination: A
          relationships:
            \(row)
        - { source: B, destination: B }
      """)
    #expect(try plan(found).tables.map(\.name) == ["ZA"])
  }

  @Test func `takes a mapping model that asks for the other objects`() throws {
    let found = try outcome(
      """
      mapping-model: 1
      entity-mappings:
        - source: A
          destination: A
          attributes:
            n: FETCH(FUNCTION($manager, "fetchRequestForSourceEntityNamed:predicateString:", "B", "k != nil"), FUNCTION($manager, "sourceContext"), NO)[FIRST].k
            x: $source.b.k
        - { source: B, destination: B }
      """)
    #expect(try plan(found).tables.map(\.name) == ["ZA"])
  }

  @Test func `is refused where its configuration has no entities`() throws {
    let error = try #require(throws: PlanError.self) {
      try outcome(to: ["One": [], "Two": ["A", "B", "C"]])
    }
    #expect(error.description.contains("The configuration One of 2"))
  }
}
