import Foundation
import GodwitObjectModel
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitWorker

/// Keeps a tag, its ID and the manager beyond their stage, as policies do that Core Data has one instance of.
private final class KeepingPolicy: EntityMigrationPolicy {
  struct Kept {
    var tag: ManagedObject
    var source: ManagedObject
    var id: ManagedObjectID
    var manager: MigrationManager
  }
  /// Uses what was kept, with an object and the manager at hand.
  typealias Use = (Kept, ManagedObject, MigrationManager) throws -> Void

  nonisolated(unsafe) static var kept: Kept?
  nonisolated(unsafe) static var use: (stage: String, Use)?

  nonisolated(unsafe) static let uses: [(stage: String, what: String, Use)] = [
    ("link", "is read", { kept, _, _ in _ = kept.tag.value(forKey: "name") }),
    ("link", "is read by its type", { kept, _, _ in _ = kept.tag["name"] as String? }),
    ("link", "is followed", { kept, _, _ in _ = kept.tag.value(forKeyPath: "as.name") }),
    ("link", "is one of the source", { kept, _, _ in _ = kept.source["name"] as String? }),
    ("link", "is set", { kept, _, _ in kept.tag.setValue("late", forKey: "name") }),
    ("link", "is set by its type", { kept, _, _ in kept.tag["name"] = "late" }),
    ("link", "gives its URI", { kept, _, _ in _ = kept.tag.uriRepresentation }),
    ("link", "tells its attributes", { kept, _, _ in _ = kept.tag.attributesByName }),
    ("link", "becomes a member", { kept, a, _ in a.add(kept.tag, to: "tags") }),
    ("copy", "becomes a member early", { kept, a, _ in a.add(kept.tag, to: "tags") }),
    ("link", "is no member any more", { kept, a, _ in a.remove(kept.tag, from: "tags") }),
    ("link", "is in a list", { kept, a, _ in a.setValue([kept.tag] as [Any], forKey: "tags") }),
    ("copy", "is in a set", { kept, a, _ in a["tags"] = Set([kept.tag]) }),
    ("link", "is told to others", { kept, _, manager in manager.userInfo["tag"] = kept.tag }),
    (
      "link", "is compared",
      { kept, _, manager in
        _ = try manager.destinationInstances(forEntityMappingName: "TagToTag").contains(kept.tag)
      }
    ),
    (
      "link", "is asked for, and nobody minds",
      { kept, _, manager in
        _ = try? manager.sourceInstances(
          forEntityMappingName: "TagToTag", destinationInstances: [kept.tag])
      }
    ),
    (
      "copy", "is associated",
      { kept, _, manager in
        try manager.associate(
          sourceInstance: kept.source, withDestinationInstance: kept.tag,
          for: manager.currentEntityMapping)
      }
    ),
    (
      "link", "is linked by default",
      { kept, _, manager in
        try EntityMigrationPolicy().createRelationships(
          forDestination: kept.tag, in: manager.currentEntityMapping, manager: manager)
      }
    ),
    (
      "link", "has a manager that is asked",
      { kept, _, _ in
        _ = try kept.manager.destinationInstances(forEntityMappingName: "TagToTag")
      }
    ),
    (
      "copy", "has a manager that inserts",
      { kept, _, _ in
        _ = try kept.manager.insertNewObject(forEntityName: "Tag")
      }
    ),
    ("link", "has a manager that is told", { kept, _, _ in kept.manager.userInfo["x"] = 1 }),
    (
      "link", "has a manager that cancels",
      { kept, _, _ in
        kept.manager.cancelMigration(with: TooBad())
      }
    ),
  ]

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let made = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])[0]
    if mapping.name == "TagToTag" {
      let kept = Kept(tag: made, source: source, id: made.objectID, manager: manager)
      Self.kept = Self.kept ?? kept
    } else {
      try use(in: "copy", made, manager)
    }
  }

  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    try super.createRelationships(forDestination: destination, in: mapping, manager: manager)
    if mapping.name != "TagToTag" { try use(in: "link", destination, manager) }
  }

  private func use(in stage: String, _ object: ManagedObject, _ manager: MigrationManager) throws {
    guard let use = Self.use, use.stage == stage, let kept = Self.kept else { return }
    try use.1(kept, object, manager)
  }
}

@Suite(.serialized) struct `An object of a policy that is kept beyond its stage` {
  private static func migrate(_ stage: String, _ use: @escaping KeepingPolicy.Use) throws
    -> MigrationFixture
  {
    let tag = entity("Tag", attribute("name"), toMany("as", "A", inverse: "tags"))
    let tags = toMany("tags", "Tag", inverse: "as")
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("name"), tags), tag],
      to: [entity("A", attribute("name"), attribute("added"), tags), tag],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (7, 1, 1, 'a');
        INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (5, 2, 1, 't'), (6, 2, 1, 'u');
        """)
    fixture.policies = PolicyRegistry(["Keeping": KeepingPolicy.self])
    (KeepingPolicy.kept, KeepingPolicy.use) = (nil, (stage, use))
    _ = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Tag, destination: Tag, policy: Keeping }
        - { source: A, destination: A, policy: Keeping, relationships: { tags: { value: default } } }
      """)
    return fixture
  }

  @Test(arguments: KeepingPolicy.uses.indices)
  func `is an error of the hook that uses it, whatever it`(number: Int) throws {
    let (stage, what, use) = KeepingPolicy.uses[number]
    defer { KeepingPolicy.kept = nil }
    let failure = #expect(throws: PolicyFailure.self, "\(what)") {
      try Self.migrate(stage, use)
    }
    #expect(failure?.policy == "Keeping" && failure?.mapping == "AToA", "\(what)")
    #expect(
      failure?.hook == (stage == "copy" ? "createDestinationInstances" : "createRelationships"),
      "\(what)")
    let said = "\(failure?.error as Any)"
    #expect(said.contains("lasts as long as its stage"), "\(what)")
  }

  @Test func `keeps no file of the migration open`() throws {
    defer { KeepingPolicy.kept = nil }
    let fixture = try Self.migrate("never") { _, _, _ in }
    #expect(KeepingPolicy.kept != nil)
    let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
      try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
    }
    #expect(open.filter { $0.hasPrefix(fixture.folder.string) } == [])
  }

  @Test func `has an ID that is none of a later stage, unless it is a URI`() throws {
    defer { KeepingPolicy.kept = nil }
    var found: [Bool] = []
    _ = try Self.migrate("link") { kept, _, manager in
      let sources = try manager.sourceInstances(forEntityMappingName: "TagToTag")
      let tags = try manager.destinationInstances(forEntityMappingName: "TagToTag")
      found = [
        kept.id.isTemporaryID, tags.map(\.objectID).contains(kept.id),
        tags[0].objectID == tags[0].objectID, sources[0].objectID == sources[0].objectID,
      ]
    }
    #expect(found == [true, false, true, true])
  }
}
