import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

@Suite struct `Binary data that may lie outside` {
  /// - Parameter value: A default, which makes it required.
  private static func model(
    _ isExternal: Bool, _ value: StoredDefault? = nil
  ) -> [EntityDescription] {
    [
      EntityDescription(
        name: "Blob",
        properties: [
          .attribute(
            AttributeDescription(
              traits: PropertyTraits(name: "data", isOptional: value == nil), type: .binary,
              defaultValue: value, allowsExternalBinaryDataStorage: isExternal))
        ])
    ]
  }

  @Test(arguments: [
    (bytes: 0, stored: 1), (bytes: 1, stored: 2), (bytes: 100_000, stored: 100_001),
    (bytes: 100_001, stored: 38),
  ])
  func `is marked where it may from now on`(bytes: Int, stored: Int) throws {
    let fixture = try MigrationFixture(
      from: Self.model(false), to: Self.model(true),
      rows: "INSERT INTO ZBLOB (Z_PK, Z_ENT, Z_OPT, ZDATA) VALUES (1, 1, 1, zeroblob(\(bytes)))")
    let store = try fixture.migrate()
    #expect(try store.table("SELECT ZDATA FROM ZBLOB") == ["\(stored) bytes"])
    #expect(fixture.findings == [])
  }

  /// Whether files are allowed before and after; the bytes of the default with its marker.
  @Test(arguments: [
    (false, false, "7 bytes"), (false, true, "8 bytes"), (true, false, "7 bytes"),
    (true, true, "8 bytes"),
  ])
  func `is filled in, whether it may or not`(
    before: Bool, after: Bool, filled: String
  ) throws {
    let fixture = try MigrationFixture(
      from: Self.model(before), to: Self.model(after, .blob(Array("DEFAULT".utf8))),
      rows: """
        INSERT INTO ZBLOB (Z_PK, Z_ENT, Z_OPT, ZDATA)
        VALUES (1, 1, 1, NULL), (2, 1, 1, \(before ? "X'0161'" : "X'61'"))
        """)
    let store = try fixture.migrate()
    #expect(
      try store.table("SELECT ZDATA FROM ZBLOB ORDER BY Z_PK") == [
        filled, after ? "2 bytes" : "1 bytes",
      ])
    #expect(fixture.findings == [] && fixture.destinationFindings == [])
  }
}
