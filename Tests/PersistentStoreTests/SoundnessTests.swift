import Foundation
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage
import Testing

@Suite struct `Soundness` {
  private let folder: TemporaryFolder
  private let library: SmallStore

  init() throws {
    folder = try TemporaryFolder()
    library = try SmallStore(
      SmallStore.library(), at: folder.path.appending("library.sqlite"),
      rows: SmallStore.libraryRows)
    let join = try #require(StoreLayout(library.hierarchy).joinTables.first)
    try library.execute(
      "INSERT INTO \(join.name) (\(join.columns.joined(separator: ", "))) "
        + "VALUES (1, 1, 2048), (1, 2, 3072), (2, 1, 2048)")
  }

  @Test func `finds nothing in a sound store`() throws {
    #expect(try library.findings() == [])
  }

  /// One damage each, and all that is to be found.
  @Test(
    arguments: [
      ("UPDATE ZREADER SET ZNAME = NULL WHERE Z_PK = 2", [.required]),
      ("UPDATE ZREADER SET ZAGE = 32768 WHERE Z_PK = 1", [.type]),  // one above Integer 16
      ("UPDATE ZREADER SET ZAGE = 32767 WHERE Z_PK = 1", []),
      ("UPDATE ZREADER SET ZAGE = -32768 WHERE Z_PK = 1", []),
      ("UPDATE ZREADER SET ZAGE = 'x' WHERE Z_PK = 1", [.type]),
      ("UPDATE ZREADER SET ZISMEMBER = 2 WHERE Z_PK = 1", [.type]),
      ("UPDATE ZREADER SET ZID = x'00' WHERE Z_PK = 1", [.type]),
      ("UPDATE ZREADER SET ZNAME = x'61' WHERE Z_PK = 1", [.type]),
      ("UPDATE ZCOVER SET ZIMAGE = x'03' WHERE Z_PK = 1", [.external]),
      ("UPDATE ZCOVER SET ZIMAGE = x'' WHERE Z_PK = 1", [.external]),
      ("UPDATE ZCOVER SET ZIMAGE = x'02' || '../../etc/passwd' WHERE Z_PK = 1", [.type]),
      (
        "UPDATE ZCOVER SET ZIMAGE = CAST(x'02' || '../../etc/passwd' AS BLOB) WHERE Z_PK = 1",
        [.external]
      ),
      ("UPDATE ZWORK SET ZWRITER = 9 WHERE Z_PK = 2", [.dangling, .derived]),
      ("UPDATE ZWORK SET ZWRITER = 'x' WHERE Z_PK = 2", [.type, .dangling, .derived]),
      (
        "UPDATE ZWORK SET ZWRITER = 'x', Z_FOK_WRITER = NULL WHERE Z_PK = 2",
        [.type, .dangling, .derived]
      ),
      ("UPDATE ZWORK SET ZWRITER = 2 WHERE Z_PK = 2", [.derived]),
      ("UPDATE ZCOVER SET Z4_WORK = 6 WHERE Z_PK = 1", [.entityColumn]),
      ("UPDATE ZCOVER SET Z4_WORK = 6 WHERE Z_PK = 2", [.entityColumn]),
      ("UPDATE ZCOVER SET ZWORK = 1, Z4_WORK = 5 WHERE Z_PK = 2", [.inverse]),
      ("UPDATE ZWORK SET Z_FOK_WRITER = NULL WHERE Z_PK = 2", [.order]),
      ("UPDATE ZWORK SET Z_FOK_WRITER = 2048 WHERE Z_PK = 2", [.order]),
      ("UPDATE ZWORK SET Z_FOK_WRITER = 'abc' WHERE Z_PK = 2", [.type]),
      ("UPDATE ZWORK SET Z_FOK_WRITER = 'abc', ZWRITER = NULL WHERE Z_PK = 2", [.derived]),
      ("UPDATE Z_3WORKS SET Z_FOK_4WORKS = NULL WHERE Z_4WORKS = 2", [.order]),
      ("UPDATE Z_3WORKS SET Z_FOK_4WORKS = x'0102' WHERE Z_4WORKS = 2", [.type]),
      ("UPDATE ZWORK SET Z_ENT = 4 WHERE Z_PK = 2", [.rows]),  // abstract
      ("UPDATE ZWORK SET Z_ENT = 1 WHERE Z_PK = 2", [.rows, .targetEntity]),  // of another table
      ("UPDATE ZWORK SET Z_ENT = NULL WHERE Z_PK = 2", [.rows]),
      ("UPDATE ZWORK SET ZTITLE = 'x' WHERE Z_PK = 2", [.validation]),
      ("UPDATE ZWORK SET ZTITLE = 'seventy' WHERE Z_PK = 2", [.validation]),
      ("UPDATE ZNOTE SET Z3NOTES = 9 WHERE Z_PK = 2", [.dangling]),
      ("UPDATE ZWRITER SET ZWORKCOUNT = NULL WHERE Z_PK = 1", [.derived]),
      ("DELETE FROM ZREADER WHERE Z_PK = 2", [.dangling]),
      ("DROP INDEX Z_Reader_UNIQUE_name; UPDATE ZREADER SET ZNAME = 'a'", [.index, .unique]),
      ("DROP INDEX ZWORK_Z_ENT_INDEX", [.index]),
      ("DROP TABLE ZNOTE", [.schema]),
      ("UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_NAME = 'Reader'", [.control]),
      ("UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_NAME = 'Poem'", [.control]),
      ("UPDATE Z_PRIMARYKEY SET Z_SUPER = 0 WHERE Z_NAME = 'Poem'", [.control]),
      ("UPDATE Z_PRIMARYKEY SET Z_MAX = 'x' WHERE Z_NAME = 'Reader'", [.control]),
      ("DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Poem'", [.control]),
      ("DROP TABLE Z_PRIMARYKEY", [.control]),
      ("INSERT INTO Z_PRIMARYKEY VALUES (17005, 'Own', 0, 0), (17006, 'Own', 0, 0)", [.control]),
      // History's entity; the model's own has another row.
      ("INSERT INTO Z_PRIMARYKEY VALUES (16001, 'Reader', 0, 0)", []),
      // Two names to Core Data, which compares code units.
      ("INSERT INTO Z_PRIMARYKEY VALUES (17005, '\u{E9}', 0, 0), (17006, 'e\u{301}', 0, 0)", []),
      ("DELETE FROM Z_METADATA", [.metadata]),
      ("UPDATE Z_METADATA SET Z_PLIST = NULL", [.metadata]),
      ("UPDATE Z_METADATA SET Z_UUID = lower(Z_UUID)", [.metadata]),
      ("UPDATE Z_METADATA SET Z_PLIST = x'62706C6973743030'", [.metadata]),
    ] as [(String, Set<StoreFinding.Kind>)])
  func `finds just what is damaged`(damage: String, expected: Set<StoreFinding.Kind>) throws {
    try library.execute(damage)
    #expect(Set(try library.findings().map(\.kind)) == expected)
  }

  /// To SQLite and Core Data these are two names.
  @Test(
    arguments: [
      ("RENAME COLUMN \"ZCAF\u{C9}\" TO \"ZCAFE\u{301}\"", [.schema]),
      ("ADD COLUMN \"ZCAFE\u{301}\" BLOB", []),
    ] as [(String, [StoreFinding.Kind])])
  func `tells columns apart that differ in normalisation alone`(
    change: String, expected: [StoreFinding.Kind]
  ) throws {
    let hierarchy = try EntityHierarchy(
      EntityDescription(name: "Note", properties: [.attribute("caf\u{E9}", .string)]))
    let store = try SmallStore(
      hierarchy, at: folder.path.appending("notes.sqlite"),
      rows: "INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, \"ZCAF\u{C9}\") VALUES (1, 1, 1, 'x')")
    #expect(try store.findings() == [])
    try store.execute("ALTER TABLE ZNOTE \(change)")
    #expect(try store.findings().map(\.kind) == expected)
  }

  // SQLite reads NULL for such a key, and whoever asks for keys sees no row.
  @Test(
    arguments: [
      ("Z_PK INTEGER PRIMARY KEY", [] as [StoreFinding.Kind]), ("Z_PK integer primary key", []),
      ("Z_PK INTEGER PRIMARY KEY ASC", []),
      ("Z_PK INTEGER XRIMARY KEY", [.schema]), ("Z_PK INTEGER", [.schema]),
      ("Z_PK BIGINT PRIMARY KEY", [.schema]), ("Z_PK INTEGER PRIMARY KEY DESC", [.schema]),
      ("Z_PK INTEGER UNIQUE", [.schema]),
    ])
  func `wants Z_PK to be the number of the row`(
    declaration: String, expected: [StoreFinding.Kind]
  ) throws {
    try remake("ZREADER") { $0.replacing("Z_PK INTEGER PRIMARY KEY", with: declaration) }
    #expect(try library.findings().map(\.kind) == expected)
  }

  @Test func `wants pairs to lie in a table with row ids`() throws {
    let join = try #require(
      try StoreBinding(library.open(), library.hierarchy).joinTables.first)
    try remake(join.name) { $0 + " WITHOUT ROWID" }
    let findings = try library.findings()
    #expect(findings.map(\.kind) == [.schema])
    #expect(findings.first?.message.contains("\(join.name) is a table WITHOUT ROWID") == true)
  }

  /// Makes a table anew by another text, with its rows and indexes.
  private func remake(_ table: String, by change: (String) -> String) throws {
    let own = try Connection(path: library.path.string, mode: .readWrite)
    let sql = try #require(
      try own.rows("SELECT sql FROM sqlite_master WHERE name = ?1", [.text(table)]).first?[0].text)
    let indexes = try own.rows(
      "SELECT name, sql FROM sqlite_master WHERE tbl_name = ?1 AND type = 'index' AND sql IS NOT NULL",
      [.text(table)])
    for index in indexes { try own.execute("DROP INDEX \(quoted(index[0].text ?? ""))") }
    try own.execute("ALTER TABLE \(quoted(table)) RENAME TO before")
    try own.execute(change(sql))
    try own.execute("INSERT INTO \(quoted(table)) SELECT * FROM before; DROP TABLE before")
    for index in indexes { try own.execute(index[1].text ?? "") }
    try own.close()
  }

  @Test func `sees rows without a key where a byte of the schema is damaged`() throws {
    try library.execute(
      "PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = replace(sql, 'PRIMARY', 'XRIMARY') "
        + "WHERE name = 'ZREADER'")
    let binding = StoreBinding(try library.open(), library.hierarchy)
    #expect(try StoreSoundness.schema(binding).map(\.kind) == [.schema])
    #expect(try StoreCensus(binding).ownerlessRows.map(\.count) == [2])
  }

  @Test func `names rows and never tells what is in them`() throws {
    try library.execute("UPDATE ZREADER SET ZAGE = 'secret' WHERE Z_PK = 2")
    let finding = try #require(try library.findings().first)
    #expect(finding.examples == [2] && finding.count == 1)
    #expect(finding.entity == "Reader" && finding.property == "age")
    #expect(!finding.description.contains("secret"))
  }

  @Test func `comes in jobs that are independent of model and order`() throws {
    try library.execute(
      "DROP INDEX Z_Reader_UNIQUE_name; UPDATE ZREADER SET ZNAME = 'a'; "
        + "UPDATE ZWORK SET Z_FOK_WRITER = 2048")
    let binding = StoreBinding(try library.open(), library.hierarchy)
    let jobs = StoreSoundness.jobs(binding)
    #expect(jobs == StoreSoundness.jobs(binding))
    let data = try JSONEncoder().encode(jobs)
    let decoded = try JSONDecoder().decode([StoreSoundness.Job].self, from: data)
    let other = try Connection(path: library.path.string, mode: .immutable)
    let findings = try decoded.reversed().flatMap { try StoreSoundness.run($0, on: other) }
    #expect(Set(findings.map(\.kind)) == [.unique, .order])
    let numbers = jobs.map { "\($0.aspect) \($0.index)" }
    #expect(Set(numbers).count == numbers.count)
  }
}

@Suite struct `Row rules` {
  private func failures(
    _ property: PropertyDescription, _ value: SQLiteValue, named name: String = "x"
  ) throws -> [StoreFinding.Kind] {
    let hierarchy = try EntityHierarchy(EntityDescription(name: "A", properties: [property]))
    let rules = RowRules(of: "A", in: StoreLayout(hierarchy), columns: ["ZOTHER", "ZX"])
    // Through SQLite, as rows come.
    let connection = try Connection(path: ":memory:", mode: .create)
    let statement = try connection.prepare("SELECT NULL, ?1")
    try statement.bind(1, value)
    try statement.step()
    var failures = RowFailures()
    withUnsafeTemporaryAllocation(of: RawValue.self, capacity: 2) { row in
      guard let start = row.baseAddress else { return }
      statement.read(into: start, from: 0, count: 2)
      rules.check(start, key: 42, into: &failures)
    }
    let findings = failures.findings(rules)
    #expect(findings.allSatisfy { $0.examples == [42] && $0.property == name })
    return findings.map(\.kind)
  }

  private static let fileName = Array("0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0".utf8)

  @Test(
    arguments: [
      (.integer16, .integer(32_767), []),
      (.integer16, .integer(32_768), [.type]),
      (.integer32, .integer(-2_147_483_648), []),
      (.integer32, .integer(-2_147_483_649), [.type]),
      (.integer64, .integer(.min), []),
      (.boolean, .integer(1), []),
      (.boolean, .integer(-1), [.type]),
      (.integer64, .real(1), [.type]),
      (.double, .real(.infinity), []),
      (.double, .integer(1), [.type]),
      (.date, .integer(1), []),
      (.date, .text("1"), [.type]),
      (.decimal, .real(1.5), []),
      (.string, .text(""), []),
      (.string, .blob([]), [.type]),
      (.uri, .integer(1), [.type]),
      (.uuid, .blob([UInt8](repeating: 0, count: 16)), []),
      (.uuid, .blob([UInt8](repeating: 0, count: 15)), [.type]),
      (.uuid, .blob([UInt8](repeating: 0, count: 17)), [.type]),
      (.binary, .blob([1]), []),
      (.binary, .blob([1, 9, 9]), []),
      (.binary, .blob([]), [.external]),
      (.binary, .blob([0]), [.external]),
      (.binary, .blob([2]), [.external]),
      (.binary, .blob([2] + fileName + [0]), []),
      (.binary, .blob([2] + fileName), [.external]),  // the zero byte is missing
      (.binary, .blob([2] + fileName + [1]), [.external]),
      (.binary, .blob([2] + fileName.reversed() + [0]), [.external]),
      (
        .binary, .blob([2] + Array("../../../../../../../../../etc/passwd".utf8) + [0]), [.external]
      ),
      (.binary, .text("x"), [.type]),
      (.string, .null, [.required]),
      (.uuid, .null, [.required]),
    ] as [(AttributeType, SQLiteValue, [StoreFinding.Kind])])
  func `judge a value`(type: AttributeType, value: SQLiteValue, expected: [StoreFinding.Kind])
    throws
  {
    let required = PropertyDescription.attribute(
      "x", type, isOptional: false, isExternal: type == .binary)
    #expect(try failures(required, value) == expected)
    let optional = PropertyDescription.attribute("x", type, isExternal: type == .binary)
    #expect(try failures(optional, value) == expected.filter { $0 != .required })
  }

  // Elements are never required: the composite may be absent.
  @Test(
    arguments: [
      (.null, []), (.blob([1, 9]), []), (.blob([9]), [.external]), (.blob([]), [.external]),
      (.blob([2] + fileName + [0]), []), (.blob([2] + fileName), [.external]),
      (.text("x"), [.type]),
    ] as [(SQLiteValue, [StoreFinding.Kind])])
  func `judge an element of a composite like an attribute`(
    value: SQLiteValue, expected: [StoreFinding.Kind]
  ) throws {
    var element = AttributeDescription(
      traits: PropertyTraits(name: "x", isOptional: false), type: .binary,
      allowsExternalBinaryDataStorage: true)
    for name in ["inner", "outer"] {
      element = AttributeDescription(
        traits: PropertyTraits(name: name, isOptional: false), type: .composite,
        compositeElements: [element])
    }
    #expect(try failures(.attribute(element), value, named: "outer.inner.x") == expected)
  }

  @Test func `let a derived attribute be NULL`() throws {
    let derived = PropertyDescription.attribute(
      "x", .integer64, isOptional: false, derivation: "count:(y)")
    #expect(try failures(derived, .null) == [])
  }

  @Test func `survive being written as JSON`() throws {
    let library = try SmallStore.library()
    let layout = StoreLayout(library)
    for table in layout.tables {
      for entity in table.entities {
        let rules = RowRules(of: entity, in: layout, columns: table.columns.map(\.name))
        let data = try JSONEncoder().encode(rules)
        #expect(try JSONDecoder().decode(RowRules.self, from: data) == rules)
      }
    }
  }
}
