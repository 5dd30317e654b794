import Foundation
import GodwitExpressions
import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitWorker

/// Writes down what a policy can ask, and takes members out of to-many relationships.
private final class CuriousPolicy: EntityMigrationPolicy {
  nonisolated(unsafe) static var said: [String] = []
  private var notes: [ManagedObjectID: String] = [:]

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let made = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])[0]
    if notes.isEmpty {
      Self.said = [
        "\(mapping.mappingType) \(mapping.entityMigrationPolicyClassName ?? "-")",
        mapping.attributeMappings
          .map { "\($0.name) = \($0.valueExpression ?? "-") \($0.userInfo["unit"] ?? "-")" }
          .joined(separator: ", "),
        mapping.relationshipMappings.map(\.name).joined(separator: ", "),
        mapping.sourceExpression ?? "-",
        "\(manager.sourceModel.entities.count) \(manager.destinationModel.entities.count)",
        manager.sourceEntity(for: mapping)?.properties.map(\.name).joined(separator: ", ") ?? "-",
        manager.destinationEntity(for: mapping)?.properties.map(\.name).joined(separator: ", ")
          ?? "-",
        "\(source.entity.name) \(made.entity.name)",
        "\(source.objectID.isTemporaryID) \(made.objectID.isTemporaryID)",
        source.objectID.uriRepresentation()?.lastPathComponent ?? "-",
      ]
      #expect(mapping.sourceEntityVersionHash == hash("Note", manager.sourceModel))
      #expect(mapping.destinationEntityVersionHash == hash("Note", manager.destinationModel))
    }
    #expect(notes[source.objectID] == nil)
    notes[source.objectID] = source["title"]
    // Two tags, one of which goes again, and one that never was there.
    let tags = try ["kept", "gone", "other"].map { name in
      let tag = try manager.insertNewObject(forEntityName: "Tag")
      tag["name"] = name
      return tag
    }
    made.add(tags[0], to: "tags")
    made.add(tags[1], to: "tags")
    made.remove(tags[1], from: "tags")
    made.remove(tags[2], from: "tags")
    #expect((made.value(forKey: "tags") as? Set<ManagedObject>) == [tags[0]])
  }

  private func hash(_ name: EntityName, _ model: ManagedObjectModel) -> VersionHash? {
    try? EntityHierarchy(model).versionHashes[name]
  }
}

/// Takes something out of what is no to-many relationship.
private final class ClumsyPolicy: EntityMigrationPolicy {
  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    let tag = try manager.insertNewObject(forEntityName: "Tag")
    tag.remove(tag, from: "name")
  }
}

/// Asks what became of objects of the wrong store, and associates what is associated already.
private final class MuddlingPolicy: EntityMigrationPolicy {
  nonisolated(unsafe) static var said: [String] = []
  override func endInstanceCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try ask("copy", mapping, manager)
    for source in try manager.sourceInstances(forEntityMappingName: mapping.name) {
      let made = try manager.destinationInstances(
        forEntityMappingName: mapping.name, sourceInstances: [source])
      for _ in 0..<2 {
        try manager.associate(
          sourceInstance: source, withDestinationInstance: made[0], for: mapping)
      }
    }
    try ask("copy", mapping, manager)
  }

  override func endRelationshipCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try ask("link", mapping, manager)
    _ = try manager.destinationInstances(
      forSourceRelationshipNamed: "tags", sourceInstances: [])
  }

  private func ask(_ stage: String, _ mapping: CurrentEntityMapping, _ manager: MigrationManager)
    throws
  {
    let name = mapping.name
    let sources = try manager.sourceInstances(forEntityMappingName: name)
    let made = try manager.destinationInstances(forEntityMappingName: name)
    func destinations(_ objects: [ManagedObject]) throws -> Int {
      try manager.destinationInstances(forEntityMappingName: name, sourceInstances: objects).count
    }
    func origins(_ objects: [ManagedObject]) throws -> Int {
      try manager.sourceInstances(forEntityMappingName: name, destinationInstances: objects).count
    }
    let counts = [
      sources.count, made.count, try destinations(sources), try origins(made),
      try destinations(sources + sources), try origins(made + made),
      try destinations(made), try origins(sources),
    ]
    Self.said.append("\(stage) \(counts)")
  }
}

@Suite(.serialized) struct `What a policy can ask of Core Data's own` {
  private static func fixture() throws -> MigrationFixture {
    let fixture = try MigrationFixture(
      from: [entity("Note", attribute("title"))],
      to: [
        entity("Note", attribute("title"), toMany("tags", "Tag", inverse: "notes")),
        entity("Tag", attribute("name"), toMany("notes", "Note", inverse: "tags")),
      ],
      rows: """
        INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTITLE) VALUES (3, 1, 1, 'a'), (4, 1, 1, 'b')
        """)
    fixture.policies = PolicyRegistry([
      "CuriousPolicy": CuriousPolicy.self, "ClumsyPolicy": ClumsyPolicy.self,
      "MuddlingPolicy": MuddlingPolicy.self,
    ])
    return fixture
  }

  private func mapping(_ policy: String) -> String {
    """
    mapping-model: 1
    entity-mappings:
      - source: Note
        destination: Note
        policy: \(policy)
        filter: title != 'c'
        attributes: { title: { value: $source.title, user-info: { unit: kg } } }
    """
  }

  @Test func `is answered, and members can be removed`() throws {
    let fixture = try Self.fixture()
    let store = try fixture.migrate(mapping("CuriousPolicy"))
    #expect(
      CuriousPolicy.said == [
        "custom CuriousPolicy", "title = $source.title kg", "tags", "title != \"c\"", "1 2",
        "title",
        "tags, title", "Note Note", "false true", "p3",
      ], "\(CuriousPolicy.said)")
    #expect(
      try store.table(
        """
        SELECT n.ZTITLE, t.ZNAME FROM Z_1TAGS AS j
          JOIN ZNOTE AS n ON n.Z_PK = j.Z_1NOTES JOIN ZTAG AS t ON t.Z_PK = j.Z_2TAGS
         ORDER BY 1
        """) == ["a kept", "b kept"])
    #expect(fixture.findings.isEmpty)
  }

  @Test func `is the same in every stage, whatever was associated again, and of the right store`()
    throws
  {
    let fixture = try Self.fixture()
    MuddlingPolicy.said = []
    let error = #expect(throws: PolicyFailure.self) {
      try fixture.migrate(mapping("MuddlingPolicy"))
    }
    let counts = "[2, 2, 2, 2, 2, 2, 0, 0]"
    #expect(MuddlingPolicy.said == ["copy \(counts)", "copy \(counts)", "link \(counts)"])
    // It asks for a relationship that the source does not have.
    #expect(
      (error?.error as? PolicyError)?.description
        == "Note has no key tags. Check the spelling")
    #expect((error?.error as? PolicyError)?.errorUserInfo["primaryKey"] == nil)
  }

  @Test func `is a number where Foundation has one, of whatever width`() throws {
    func value(_ native: Any) throws -> ExpressionValue { try ExpressionValue(native: native) }
    #expect(try value(NSNumber(value: Int8(5))) == .integer(5))
    #expect(try value(NSNumber(value: Int8(-1))) == .integer(-1))
    #expect(try value(NSNumber(value: true)) == .boolean(true))
    #expect(try value(NSNumber(value: UInt64(7))) == .integer(7))
    #expect(throws: PolicyError.self) { try value(NSNumber(value: UInt64.max)) }
  }

  @Test func `that is no number empties no attribute`() {
    #expect(throws: EvaluationProblem.self) {
      try Decimal.nan.expressionValue.assigned(to: .decimal)
    }
    #expect(throws: EvaluationProblem.self) {
      try Double.infinity.expressionValue.assigned(to: .double)
    }
  }

  @Test func `is an error where there is no such relationship`() throws {
    let fixture = try Self.fixture()
    let error = #expect(throws: (any Error).self) {
      try fixture.migrate(mapping("ClumsyPolicy"))
    }
    #expect("\(error as Any)".contains("not a to-many relationship"))
  }

  @Test func `copies all attributes by name, inherited ones among them`() throws {
    let parent = entity("Animal", attribute("name"))
    let fixture = try MigrationFixture(
      from: [
        parent, entity("Cat", attribute("lives", .integer16), attribute("gone"), parent: "Animal"),
      ],
      to: [
        parent,
        entity("Cat", attribute("lives", .integer16), attribute("new"), parent: "Animal"),
      ],
      rows: """
        INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT, ZNAME, ZLIVES, ZGONE) VALUES (4, 2, 1, 'Tom', 9, 'x')
        """)
    fixture.policies = PolicyRegistry(["CopyingPolicy": CopyingPolicy.self])
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Cat, destination: Cat, policy: CopyingPolicy }
      """)
    #expect(try store.table("SELECT ZNAME, ZLIVES, ZNEW FROM ZANIMAL") == ["Tom 9 -"])
  }
}

@Suite struct `An error of a policy's interface` {
  @Test func `reads as Foundation's errors do`() {
    let error = PolicyError.unacceptable(
      entity: "Note", primaryKey: 3, key: "title", reason: "a text is needed")
    let bridged = error as NSError
    #expect(bridged.domain == "GodwitPolicyErrorDomain" && bridged.code == 3)
    #expect(bridged.localizedDescription == error.description)
    #expect(bridged.userInfo["entity"] as? String == "Note")
    #expect(bridged.userInfo["primaryKey"] as? Int64 == 3)
    #expect(bridged.userInfo["key"] as? String == "title")
  }

  private struct Own: LocalizedError {
    var errorDescription: String? { "A name is blank." }
    var recoverySuggestion: String? { "Correct it in the application." }
  }

  private enum Plain: Error { case broken }

  @Test func `says what it says of itself, and nothing is made up`() {
    let texts = [
      Own().ownDescription, Plain.broken.ownDescription,
      NSError(domain: "Shop", code: 7).ownDescription,
      NSError(
        domain: "Shop", code: 7,
        userInfo: [
          NSLocalizedDescriptionKey: "No shelf.", NSLocalizedFailureReasonErrorKey: "It fell.",
        ]
      ).ownDescription,
    ]
    #expect(
      texts == [
        "A name is blank. Correct it in the application.", "broken", "Shop 7", "No shelf. It fell.",
      ])
    // It has to fit into the messages of workers.
    let long = NSError(
      domain: "Shop", code: 7,
      userInfo: [NSLocalizedDescriptionKey: String(repeating: "x", count: 3_000_000)])
    #expect(long.ownDescription.hasSuffix("x… (2983616 bytes more)"))
  }
}
