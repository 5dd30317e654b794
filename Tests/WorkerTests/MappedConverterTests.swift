import Foundation
import GodwitExpressions
import GodwitKeyedArchive
import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitWorker

@Suite struct `A change of type in a mapped migration` {
  /// A source type, a value in SQL, a destination type, the attribute's expression, and what lies
  /// in the destination then.
  @Test(
    arguments: [
      (.integer32, "42", .string, "godwit.string($source.x)", "42"),
      (.integer64, "-9007199254740993", .string, "godwit.string($source.x)", "-9007199254740993"),
      (.string, "'42'", .integer16, "godwit.integer($source.x)", "42"),
      (.string, "'0.5'", .double, "godwit.double($source.x)", "0.5"),
      (.string, "'12.50'", .decimal, "godwit.decimal($source.x)", "12.5"),
      (
        .string, "'2001-01-02 00:00'", .date, #"godwit.date($source.x, "yyyy-MM-dd HH:mm")"#,
        "86400"
      ),
      (.date, "86400", .string, #"godwit.dateString($source.x, "yyyy/MM/dd")"#, "2001/01/02"),
      (.date, "86400.5", .double, "godwit.seconds($source.x)", "86400.5"),
      (.double, "1.5", .date, "godwit.date($source.x)", "1.5"),
      (
        .string, "'0a1b2c3d-0000-4000-8000-00000000000f'", .uuid, "godwit.uuid($source.x)",
        "0A1B2C3D00004000800000000000000F"
      ),
      (
        .uuid, "x'0A1B2C3D00004000800000000000000F'", .string, "godwit.string($source.x)",
        "0A1B2C3D-0000-4000-8000-00000000000F"
      ),
      (.binary, "x'68C3A9'", .string, #"godwit.text($source.x, "utf8")"#, "hé"),
      (.binary, "x'01FF'", .string, #"godwit.text($source.x, "hex")"#, "01ff"),
      (.string, "'AQI='", .binary, #"godwit.data($source.x, "base64")"#, "0102"),
      (.string, "'https://a.b/c'", .uri, "godwit.url($source.x)", "https://a.b/c"),
      (.boolean, "1", .string, #"TERNARY($source.x == YES, "on", "off")"#, "on"),
      (.integer16, "NULL", .string, "godwit.string($source.x)", "-"),
    ] as [(AttributeType, String, AttributeType, String, String)])
  func `goes all the way`(
    old: AttributeType, value: String, new: AttributeType, expression: String, expected: String
  ) throws {
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("x", old))], to: [entity("A", attribute("y", new))],
      rows: "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (7, 1, 1, \(value))")
    let store = try fixture.migrate(Self.mapping(expression))
    let shown = new == .binary || new == .uuid ? "hex(ZY)" : "ZY"
    #expect(try store.table("SELECT \(shown) FROM ZA") == [expected])
  }

  private static func mapping(_ expression: String) -> String {
    """
    mapping-model: 1
    entity-mappings:
      - { source: A, destination: A, attributes: { y: '\(expression)' } }
    """
  }

  @Test(
    arguments: [
      (.string, "'secret'", .integer16, "godwit.integer($source.x)"),
      (.string, "'99999'", .integer16, "godwit.integer($source.x)"),
      (.string, "'secret'", .date, #"godwit.date($source.x, "yyyy")"#),
      (.string, "'secret'", .uuid, "godwit.uuid($source.x)"),
      (.binary, "x'FF'", .string, #"godwit.text($source.x, "utf8")"#),
      (.string, "'sécret'", .binary, #"godwit.data($source.x, "hex")"#),
      (.binary, "x'736563726574'", .string, #"godwit.bucket($source.x, "name")"#),
    ] as [(AttributeType, String, AttributeType, String)])
  func `that a value does not allow names object, property and expression, not the value`(
    old: AttributeType, value: String, new: AttributeType, expression: String
  ) throws {
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("x", old))], to: [entity("A", attribute("y", new))],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (3, 1, 1, NULL), (7, 1, 1, \(value))
        """)
    let error = #expect(throws: EvaluationError.self) {
      try fixture.migrate(Self.mapping(expression))
    }
    #expect(error?.entity == "A")
    #expect(error?.primaryKey == 7)
    #expect(error?.property == "y")
    let text = error.map { "\($0)" } ?? ""
    #expect(text.contains(expression))
    #expect(!text.contains("secret") && !text.contains("99999"), "row data: \(text)")
  }
}

@Suite struct `A bucket in a mapped migration` {
  private static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  private static func bucket(_ pairs: [(String, PropertyList)]) -> String {
    var dictionary = PropertyListDictionary()
    for (key, value) in pairs { dictionary[key] = value }
    return "x'" + hex(PropertyList.dictionary(dictionary).binary()) + "'"
  }

  private static let xml = """
    <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>extendedName</key>\
    <string>from XML</string></dict></plist>
    """

  @Test func `is promoted to attributes, and filled from them again`() throws {
    let old = entity("Item", attribute("metadata", .binary), attribute("name"))
    let new = entity(
      "Item", attribute("extendedName"), attribute("metadata", .binary), attribute("name"),
      attribute("stars", .integer16), attribute("when", .date))
    let fixture = try MigrationFixture(
      from: [old], to: [new],
      rows: """
        INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZNAME, ZMETADATA) VALUES
          (1, 1, 1, 'a', \(Self.bucket([("extendedName", .string("Über")), ("stars", .integer(5)), ("when", .date(60))]))),
          (2, 1, 1, 'b', \(Self.bucket([("stars", .integer(0))]))),
          (3, 1, 1, 'c', NULL),
          (4, 1, 1, 'd', CAST('\(Self.xml)' AS BLOB))
        """)
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - source: Item
          destination: Item
          attributes:
            extendedName: godwit.bucket($source.metadata, "extendedName")
            stars: godwit.bucket($source.metadata, "stars")
            when: godwit.bucket($source.metadata, "when")
            metadata: godwit.bucketSetting($source.metadata, "extendedName", nil)
      """)
    #expect(
      try store.table("SELECT Z_PK, ZEXTENDEDNAME, ZSTARS, ZWHEN FROM ZITEM ORDER BY 1") == [
        "1 Über 5 60", "2 - 0 -", "3 - - -", "4 from XML - -",
      ])
    let buckets = try store.rows("SELECT ZMETADATA FROM ZITEM ORDER BY Z_PK").map(\.first)
    guard case .blob(let first)?? = buckets.first else {
      Issue.record("the first bucket is gone")
      return
    }
    let left = try PropertyList(bytes: first).dictionary
    #expect(left?["extendedName"] == nil)
    #expect(left?["stars"] == .integer(5))
    #expect(try store.table("SELECT count(*) FROM ZITEM WHERE ZMETADATA IS NULL") == ["1"])
  }

  /// A bucket in which a value is of another kind than its new attribute.
  @Test func `that holds a value of another kind is named by its row`() throws {
    let fixture = try MigrationFixture(
      from: [entity("Item", attribute("metadata", .binary))],
      to: [entity("Item", attribute("stars", .integer16))],
      rows: """
        INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZMETADATA)
        VALUES (9, 1, 1, \(Self.bucket([("stars", .string("five"))])))
        """)
    let error = #expect(throws: EvaluationError.self) {
      try fixture.migrate(
        """
        mapping-model: 1
        entity-mappings:
          - source: Item
            destination: Item
            attributes: { stars: 'godwit.bucket($source.metadata, "stars")' }
        """)
    }
    #expect(error?.primaryKey == 9)
    #expect(error?.code == 1550)
    #expect("\(error as Any)".contains("five") == false)
  }
}
