import Foundation
import GodwitCommit
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import Testing

@testable import GodwitWorker

/// `Photo.form.data`, or deeper `Photo.form.inner.data`, with values in a file, in the row and none.
@Suite struct `External data in an element of a composite` {
  private static let file = "0A1B2C3D-0000-4000-8000-00000000000F"
  private static let content = "the photo"

  private static func hex(_ text: String) -> String {
    text.utf8.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined().uppercased()
  }

  private static let reference = "02\(hex(file))00"

  private static func form(
    _ name: String = "form", external: Bool, deep: Bool = false, hasData: Bool = true
  ) -> PropertyDescription {
    func composite(_ name: String, _ elements: [AttributeDescription]) -> AttributeDescription {
      AttributeDescription(
        traits: PropertyTraits(name: name), type: .composite, compositeElements: elements)
    }
    var elements = [AttributeDescription(traits: PropertyTraits(name: "title"), type: .string)]
    if hasData {
      let data = AttributeDescription(
        traits: PropertyTraits(name: "data"), type: .binary,
        allowsExternalBinaryDataStorage: external)
      elements.append(deep ? composite("inner", [data]) : data)
    }
    return .attribute(composite(name, elements))
  }

  private static func fixture(
    external: Bool, deep: Bool = false, to destination: [EntityDescription]
  ) throws -> MigrationFixture {
    let values = external ? [reference, "01AABB"] : [hex(content), "AABB"]
    let fixture = try MigrationFixture(
      from: [entity("Photo", form(external: external, deep: deep))], to: destination,
      rows: """
        INSERT INTO ZPHOTO (Z_PK, Z_ENT, Z_OPT, ZDATA)
        VALUES (1, 1, 1, x'\(values[0])'), (2, 1, 1, x'\(values[1])'), (3, 1, 1, NULL)
        """)
    try fixture.putExternalData(content, inFile: file)
    return fixture
  }

  private static func mapping(_ attributes: String = "{}") -> String {
    """
    mapping-model: 1
    entity-mappings:
      - { source: Photo, destination: Photo, attributes: \(attributes) }
    """
  }

  private func values(_ store: Connection, _ column: String = "ZDATA") throws -> [String] {
    try store.table("SELECT Z_PK, hex(\(column)) FROM ZPHOTO ORDER BY 1")
  }

  /// External data of the source that nothing in the destination refers to.
  private func obsolete(_ fixture: MigrationFixture) throws -> [String] {
    let latest = try #require(fixture.latest)
    return try StoreSwap.dropObsoleteExternalData(latest.plan, from: StoreFiles(latest.store))
  }

  @Test(
    arguments: [
      (before: true, after: true), (before: true, after: false), (before: false, after: true),
    ], [(deep: false, mapped: false), (true, false), (false, true), (true, true)])
  func `is what it was when the permission stays, comes or goes`(
    change: (before: Bool, after: Bool), way: (deep: Bool, mapped: Bool)
  ) throws {
    let fixture = try Self.fixture(
      external: change.before, deep: way.deep,
      to: [entity("Photo", Self.form(external: change.after, deep: way.deep), attribute("more"))])
    let store = try fixture.migrate(way.mapped ? Self.mapping() : nil, shardBytes: 1)
    let expected =
      switch change {
      case (true, true): [Self.reference, "01AABB"]
      case (true, false): [Self.hex(Self.content), "AABB"]
      default: ["01" + Self.hex(Self.content), "01AABB"]
      }
    #expect(try values(store) == ["1 \(expected[0])", "2 \(expected[1])", "3 "])
    #expect(fixture.findings == [] && fixture.destinationFindings == [])
    // Which files of its source a mapping model leaves behind is not asked.
    guard !way.mapped else { return }
    #expect(try obsolete(fixture) == (change.before && !change.after ? [Self.file] : []))
  }

  @Test(arguments: [nil, mapping()])
  func `is in a file when it is too large for a row that may have one`(mapping: String?) throws {
    let fixture = try MigrationFixture(
      from: [entity("Photo", Self.form(external: false))],
      to: [entity("Photo", Self.form(external: true))],
      rows: """
        INSERT INTO ZPHOTO (Z_PK, Z_ENT, Z_OPT, ZDATA)
        VALUES (1, 1, 1, zeroblob(100000)), (2, 1, 1, zeroblob(100001))
        """)
    let store = try fixture.migrate(mapping)
    #expect(
      try store.table("SELECT ZDATA FROM ZPHOTO ORDER BY Z_PK") == ["100001 bytes", "38 bytes"])
  }

  @Test func `goes with an element that is removed`() throws {
    let fixture = try Self.fixture(
      external: true, to: [entity("Photo", Self.form(external: true, hasData: false))])
    _ = try fixture.migrate()
    #expect(try obsolete(fixture) == [Self.file])
  }

  @Test func `is in a file of its own for each that takes it over`() throws {
    let fixture = try Self.fixture(
      external: true,
      to: [
        entity("Photo", Self.form(external: true), Self.form("copy", external: true)),
        entity("Thumb", Self.form(external: true)),
      ])
    let store = try fixture.migrate(
      Self.mapping("{ copy: $source.form }") + "\n  - { source: Photo, destination: Thumb }")
    let names = try store.rows(
      """
      SELECT substr(ZDATA, 2, 36) FROM ZPHOTO WHERE Z_PK = 1
       UNION ALL SELECT substr(ZDATA1, 2, 36) FROM ZPHOTO WHERE Z_PK = 1
       UNION ALL SELECT substr(ZDATA, 2, 36) FROM ZTHUMB WHERE Z_PK = 1
      """
    ).map { String(decoding: $0[0].blob ?? [], as: UTF8.self) }
    #expect(Set(names).count == 3 && names.contains(Self.file))
    let run = try #require(fixture.latest).run
    for name in names where name != Self.file {
      let data = FileManager.default.contents(atPath: run.external.appending(name).string)
      #expect(data == Data(Self.content.utf8))
    }
    #expect(try values(store, "ZDATA1").suffix(2) == ["2 01AABB", "3 "])
  }

  @Test func `has its marker when a policy sets it`() throws {
    let fixture = try Self.fixture(
      external: true, to: [entity("Photo", Self.form(external: true), attribute("more"))])
    fixture.policies = PolicyRegistry(["FormPolicy": FormPolicy.self])
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Photo, destination: Photo, policy: Library.FormPolicy }
      """)
    #expect(try values(store) == ["1 01050607", "2 01050607", "3 01050607"])
    #expect(fixture.findings == [])
  }

  // Not of elements alone: Core Data reads a marker before the bytes of a default value, too.
  @Test(arguments: [nil, mapping()])
  func `begins with a marker where it is a default value`(mapping: String?) throws {
    let fixture = try MigrationFixture(
      from: [entity("Photo", attribute("name"))],
      to: [
        entity(
          "Photo", attribute("name"),
          .attribute(
            AttributeDescription(
              traits: PropertyTraits(name: "data"), type: .binary, defaultValue: .blob([5, 6]),
              allowsExternalBinaryDataStorage: true)))
      ], rows: "INSERT INTO ZPHOTO (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1)")
    #expect(try values(try fixture.migrate(mapping)) == ["1 010506"])
    #expect(fixture.findings == [] && fixture.destinationFindings == [])
  }
}

/// Gives every object the same data.
private final class FormPolicy: EntityMigrationPolicy {
  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let made = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])
    for object in made { object["form.data"] = Data([5, 6, 7]) }
  }
}
