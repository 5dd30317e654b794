import Foundation
import GodwitKeyedArchive
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage
import Testing

@Suite struct `A binding` {
  private let folder: TemporaryFolder
  private let library: SmallStore

  init() throws {
    folder = try TemporaryFolder()
    library = try SmallStore(
      SmallStore.library(), at: folder.path.appending("library.sqlite"),
      rows: SmallStore.libraryRows)
  }

  private func bind() throws -> StoreBinding { StoreBinding(try library.open(), library.hierarchy) }

  @Test func `finds everything in a store made by the rules`() throws {
    let binding = try bind()
    #expect(binding.missing == [])
    #expect(binding.layout.joinTables == StoreLayout(library.hierarchy).joinTables)
    #expect(binding.entityColumn(of: "work", in: "Cover") == "Z4_WORK")
    #expect(binding.column(of: "title", in: "Poem") == "ZTITLE")
  }

  @Test func `takes over the store's own entity numbers and what is named after them`() throws {
    let join = try #require(StoreLayout(library.hierarchy).joinTables.first)
    try library.execute(
      """
      UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT + 100;
      ALTER TABLE ZCOVER RENAME COLUMN Z4_WORK TO Z104_WORK;
      ALTER TABLE \(join.name) RENAME COLUMN \(join.firstColumn) TO Z_103READERS;
      ALTER TABLE \(join.name) RENAME COLUMN \(join.secondColumn) TO Z_104WORKS;
      ALTER TABLE \(join.name) RENAME TO Z_103WORKS;
      """)
    let binding = try bind()
    #expect(binding.number(of: "Poem") == 106)
    #expect(binding.entityColumn(of: "work", in: "Cover") == "Z104_WORK")
    // Z3NOTES stays under the old number; the rule would have Z103NOTES.
    #expect(binding.layout.ownerColumn(of: "notes", in: "Reader") == "Z3NOTES")
    #expect(binding.join(of: "works", in: "Reader")?.table.name == "Z_103WORKS")
  }

  @Test func `finds a join table under the name of the inverse`() throws {
    let join = try #require(StoreLayout(library.hierarchy).joinTables.first)
    try library.execute("ALTER TABLE \(join.name) RENAME TO Z_4READERS")
    let binding = try bind()
    #expect(binding.missing == [])
    #expect(binding.join(of: "readers", in: "Work")?.table.name == "Z_4READERS")
    #expect(binding.join(of: "readers", in: "Poem")?.isFirst == false)
  }

  @Test func `lists what is missing and gives no column that is not there`() throws {
    try library.execute(
      "ALTER TABLE ZREADER DROP COLUMN ZAGE; DROP TABLE ZCOVER; DROP TABLE Z_3WORKS")
    let binding = try bind()
    #expect(binding.missing == ["table ZCOVER", "column ZREADER.ZAGE", "join table Z_3WORKS"])
    #expect(binding.column(of: "age", in: "Reader") == nil)
    #expect(binding.column(of: "name", in: "Reader") == "ZNAME")
    #expect(binding.join(of: "works", in: "Reader") == nil)
  }

  @Test func `fits a model to the one configuration that a store holds`() throws {
    var whole = library.hierarchy.model
    whole.entities.append(EntityDescription(name: "Log"))
    whole.configurations = ["Library": library.hierarchy.order, "Logs": ["Log"]]
    let binding = StoreBinding(try library.open(), try EntityHierarchy(whole))
    #expect(binding.hierarchy.order == library.hierarchy.order)
    #expect(binding.missing == [])
    whole.configurations = [:]
    let misfit = StoreBinding(try library.open(), try EntityHierarchy(whole))
    // Without the store's own numbers the join table has the number that Log shifts it to.
    #expect(misfit.missing == ["table ZLOG", "join table Z_4WORKS"])
  }

  @Test func `counts the rows of every entity`() throws {
    try library.execute(
      "UPDATE ZWORK SET Z_ENT = 99 WHERE Z_PK = 2; INSERT INTO ZNOTE VALUES (-5, 2, 1, NULL)")
    let census = try StoreCensus(try bind())
    #expect(
      census.rows == [
        "Cover": 2, "Note": 3, "Reader": 2, "Work": 0, "Novel": 1, "Poem": 0, "Writer": 2,
      ])
    #expect(census.entities["Note"]?.keys == -5...2)
    #expect(census.tables["ZWORK"]?.rows == 2)
    #expect(census.ownerlessRows.map(\.count) == [1])
    #expect(census.joinRows == ["Z_3WORKS": 0])
  }

  @Test func `estimates bytes within a half of what they are`() throws {
    try library.execute(
      """
      WITH RECURSIVE n(k) AS (VALUES (10) UNION ALL SELECT k + 1 FROM n WHERE k < 2009)
      INSERT INTO ZREADER (Z_PK, Z_ENT, Z_OPT, ZNAME)
      SELECT k, 3, 1, k || hex(zeroblob(50 + k % 100)) FROM n;
      INSERT INTO ZREADER (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (9223372036854775807, 3, 1, 'last');
      """)
    let bytes = try #require(try StoreCensus(try bind()).tables["ZREADER"]?.bytes)
    #expect((200_000...800_000).contains(bytes))
  }

  @Test func `looks at a table with as many columns as SQLite allows`() throws {
    let count = LayoutProblem.mostColumns - EntityTable.systemColumns.count
    let wide = try EntityHierarchy(
      EntityDescription(
        name: "Wide", properties: (1...count).map { .attribute("a\($0)", .integer64) }))
    let store = try SmallStore(
      wide, at: folder.path.appending("wide.sqlite"),
      rows: "INSERT INTO ZWIDE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1)")
    let census = try StoreCensus(StoreBinding(try store.open(), wide))
    #expect(census.tables["ZWIDE"]?.rows == 1)
  }
}

@Suite struct `Migrated metadata` {
  private let hierarchy: EntityHierarchy

  init() throws { hierarchy = try SmallStore.library() }

  @Test(arguments: [true, false])
  func `has hashes of Core Data's own entities where their tables go along`(
    keepsHistory: Bool
  ) throws {
    let key = StoreMetadata.Key.ancillaryHashes.rawValue
    let hashes = PropertyList.dictionary(["CHANGE": .data([1])])
    let bytes = StoreMetadata(uuid: nil, plist: [key: hashes])
      .bytes(migratedTo: hierarchy, keepsHistory: keepsHistory)
    #expect(try PropertyList(bytes: bytes)[key] == (keepsHistory ? hashes : nil))
  }

  private func migrated(_ plist: PropertyListDictionary) throws -> PropertyListDictionary {
    let bytes = StoreMetadata(uuid: nil, plist: plist).bytes(migratedTo: hierarchy)
    #expect(bytes.starts(with: Array("bplist00".utf8)))
    return try #require(try PropertyList(bytes: bytes).dictionary)
  }

  // Framework versions below 900 have another layout than what is written.
  @Test(
    arguments: [(nil, 1447), (754, 1447), (899, 1447), (900, 900), (1513, 1513)]
      as [(Int64?, Int64)])
  func `carries the framework version and raises old ones`(old: Int64?, new: Int64) throws {
    var plist: PropertyListDictionary = [:]
    plist["NSPersistenceFrameworkVersion"] = old.map { .integer($0) }
    #expect(try migrated(plist)["NSPersistenceFrameworkVersion"] == .integer(new))
    #expect(try migrated(plist)["NSPersistenceMaximumFrameworkVersion"] == nil)
    plist["NSPersistenceMaximumFrameworkVersion"] = .integer(1513)
    #expect(try migrated(plist)["NSPersistenceMaximumFrameworkVersion"] == .integer(1513))
  }

  @Test func `keeps what is the application's and replaces what is the model's`() throws {
    let plist = try migrated([
      "mine": .array([.data([1]), .date(5)]), "NSStoreModelVersionHashes": .dictionary([:]),
      "NSStoreModelVersionHashesDigest": .string("old"),
    ])
    #expect(plist["mine"] == .array([.data([1]), .date(5)]))
    let metadata = StoreMetadata(uuid: nil, plist: plist)
    #expect(metadata.versionHashes == hierarchy.versionHashes)
    #expect(
      plist["NSStoreModelVersionHashesDigest"]
        == .string(StoreDigest.hashesDigest(of: hierarchy.versionHashes)))
    #expect(metadata.checksum == hierarchy.versionChecksum)
    #expect(metadata.applicationKeys == ["mine"])
    #expect(plist["NSStoreType"] == .string("SQLite"))
    #expect(plist["_NSAutoVacuumLevel"] == .string("2"))
  }
}

@Suite struct `A destination schema` {
  @Test func `numbers the entities and keeps history's numbers`() throws {
    let schema = DestinationSchema(StoreLayout(try SmallStore.library()))
    let history = PrimaryKeyRow(number: 16_001, name: "CHANGE", superNumber: 0, highestKey: 9)
    let old = PrimaryKeyRow(number: 1, name: "Gone", superNumber: 0, highestKey: 9)
    let rows = schema.primaryKeys(highestKeys: ["Work": 12], carrying: [old, history])
    #expect(
      rows.map(\.name) == ["Cover", "Note", "Reader", "Work", "Novel", "Poem", "Writer", "CHANGE"])
    #expect(rows[3] == PrimaryKeyRow(number: 4, name: "Work", superNumber: 0, highestKey: 12))
    #expect(rows[4] == PrimaryKeyRow(number: 5, name: "Novel", superNumber: 4, highestKey: 0))
    #expect(rows[7] == history)
  }
}
