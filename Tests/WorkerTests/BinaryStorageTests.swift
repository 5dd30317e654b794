import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

@Suite struct `Binary data that may lie outside` {
  /// - Parameter value: A default, which makes it required.
  private static func model(
    _ isExternal: Bool, _ value: StoredDefault? = nil, isUnique: Bool = false
  ) -> [EntityDescription] {
    [
      EntityDescription(
        name: "Blob",
        properties: [
          .attribute(
            AttributeDescription(
              traits: PropertyTraits(name: "data", isOptional: value == nil), type: .binary,
              defaultValue: value, allowsExternalBinaryDataStorage: isExternal))
        ], uniquenessConstraints: isUnique ? [["data"]] : [])
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

  /// Whether files are allowed before and after; what two objects have, by file or without, and what NULL becomes.
  @Test(arguments: [
    (true, false, "file a", "file a", true), (true, false, "file a", "file b", false),
    (true, false, "file a", "a", true), (true, false, "a", "b", false),
    (true, false, "file a", "NULL", true), (true, false, "a", "NULL", true),
    (true, false, "b", "NULL", false), (true, true, "a", "NULL", true),
    (true, true, "file b", "NULL", false), (false, true, "a", "NULL", true),
  ])
  func `is told apart by its content where files end under a constraint`(
    before: Bool, after: Bool, one: String, other: String, isRepeated: Bool
  ) throws {
    let names = ["0A0A0A0A-0000-4000-8000-00000000000A", "0A0A0A0A-0000-4000-8000-00000000000B"]
    func sql(_ value: String, _ name: String) -> String {
      if value == "NULL" { return value }
      if value.hasPrefix("file ") { return "CAST(X'02' || '\(name)' || X'00' AS BLOB)" }
      return "CAST(\(before ? "X'01' || " : "")'\(value)' AS BLOB)"
    }
    let fixture = try MigrationFixture(
      from: Self.model(before, isUnique: true),
      to: Self.model(after, .blob([UInt8(ascii: "a")]), isUnique: true),
      rows: """
        INSERT INTO ZBLOB (Z_PK, Z_ENT, Z_OPT, ZDATA)
        VALUES (1, 1, 1, \(sql(one, names[0]))), (2, 1, 1, \(sql(other, names[1])))
        """)
    for (value, name) in zip([one, other], names) where value.hasPrefix("file ") {
      try fixture.putExternalData(String(value.dropFirst(5)), inFile: name)
    }
    guard case .refused(let code, let reasons) = try fixture.outcome() else {
      #expect(!isRepeated)
      _ = try fixture.migrate()
      return
    }
    #expect(isRepeated && code == 134_111 && reasons.map(\.primaryKeys) == [[1, 2]])
  }

  /// Files of holes take no room, and reading them would.
  @Test func `is taken from a row's files up to one bound for all of them`() throws {
    let names = ["0A0A0A0A-0000-4000-8000-00000000000A", "0A0A0A0A-0000-4000-8000-00000000000B"]
    func model(_ isExternal: Bool) -> [EntityDescription] {
      let attributes = ["a", "b"].map {
        AttributeDescription(
          traits: PropertyTraits(name: $0, isOptional: true), type: .binary,
          allowsExternalBinaryDataStorage: isExternal)
      }
      return [EntityDescription(name: "Blob", properties: attributes.map { .attribute($0) })]
    }
    let values = names.map { "CAST(X'02' || '\($0)' || X'00' AS BLOB)" }.joined(separator: ", ")
    let fixture = try MigrationFixture(
      from: model(true), to: model(false),
      rows: "INSERT INTO ZBLOB (Z_PK, Z_ENT, Z_OPT, ZA, ZB) VALUES (7, 1, 1, \(values))")
    for name in names { try fixture.putExternalData("a", inFile: name) }
    try fixture.enlargeExternalData(names[1], to: ExternalData.mostBytes)
    #expect {
      try fixture.migrate()
    } throws: { error in
      guard case StageError.externalData(let entity, let key, _) = error else { return false }
      return entity == "Blob" && key == 7
    }
  }
}
