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

  private static let trigger = """
    CREATE TRIGGER Z_DA_ZWORK_Writer_workCount_PARAMETER_INSERT AFTER INSERT ON ZWORK FOR EACH ROW \
    WHEN (NEW.ZWRITER NOT NULL) BEGIN UPDATE ZWRITER SET ZWORKCOUNT = IFNULL(ZWORKCOUNT, 0) + 1 \
    WHERE Z_PK = NEW.ZWRITER; SELECT NSCoreDataDATriggerUpdatedAffectedObjectValue('ZWRITER', \
    Z_ENT, Z_PK, 'workCount', ZWORKCOUNT) FROM ZWRITER WHERE Z_PK = NEW.ZWRITER; END
    """

  private func carried(
    _ trigger: String, change: (inout ManagedObjectModel) -> Void
  ) throws -> CarriedTriggers {
    let folder = try TemporaryFolder()
    let library = try SmallStore(
      SmallStore.library(), at: folder.path.appending("a.sqlite"), rows: SmallStore.libraryRows)
    try library.execute(trigger)
    var model = library.hierarchy.model
    change(&model)
    let schema = DestinationSchema(StoreLayout(try EntityHierarchy(model)))
    return try schema.carriedTriggers(from: StoreBinding(try library.open(), library.hierarchy))
  }

  @Test func `carries a trigger that means the same`() throws {
    let same = try carried(Self.trigger) { model in
      model.entities.append(EntityDescription(name: "Added"))  // all numbers shift
    }
    #expect(same.statements == [Self.trigger])
    #expect(same.notes == [])
  }

  @Test func `leaves a trigger behind whose names mean something else`() throws {
    let renamed = try carried(Self.trigger) { model in
      guard let place = model.entities.firstIndex(where: { $0.name == "Writer" }) else { return }
      model.entities[place].name = "Author"
    }
    #expect(renamed.statements == [] && renamed.notes.count == 2)
    let gone = try carried(Self.trigger) { model in
      guard let place = model.entities.firstIndex(where: { $0.name == "Writer" }) else { return }
      model.entities[place].properties.removeAll { $0.name == "workCount" }
    }
    #expect(gone.statements == [] && gone.notes.count == 1)
  }

  /// Properties of the destination, and whether `Writer.works` still counts the pairs in `ZWORK.ZWRITER`.
  static let inverses: [(properties: [(EntityName, PropertyDescription)], isCarried: Bool)] =
    [
      ([("Work", .relationship("editor", "Writer"))], true),
      (
        [
          ("Writer", .relationship("works", "Work", inverse: "editor", isToMany: true)),
          ("Work", .relationship("editor", "Writer", inverse: "works")),
          ("Writer", .relationship("written", "Work", inverse: "writer", isToMany: true)),
          ("Work", .relationship("writer", "Writer", inverse: "written")),
        ], false
      ),
      (
        [
          ("Writer", .relationship("works", "Work", isToMany: true)),
          ("Work", .relationship("writer", "Writer")),
        ], false
      ),
    ]

  @Test(arguments: inverses.indices)
  func `leaves a trigger behind that counts what another relationship has now`(place: Int) throws {
    let (properties, isCarried) = Self.inverses[place]
    let result = try carried(Self.trigger) { model in
      for (entity, property) in properties {
        guard let place = model.entities.firstIndex(where: { $0.name == entity }) else { continue }
        model.entities[place].properties.removeAll { $0.name == property.name }
        model.entities[place].properties.append(property)
      }
    }
    #expect(result.statements == (isCarried ? [Self.trigger] : []))
    #expect(result.notes.contains { $0.contains("No trigger keeps") } == !isCarried)
  }

  // Entities and attributes may have `_` in their names.
  @Test(arguments: [
    ("ZWORK_Writer_workCount_PARAMETER_INSERT", true),
    ("ZWORK_Writer_workCount_SOURCE_INSERT", true), ("ZWORK_Writer_workCount_UPDATE", true),
    ("ZWORK_Writer_workCount_x_PARAMETER_INSERT", false),
    ("ZWORK_Writer_workCount_X_PARAMETER_INSERT", false),
    ("ZWORK_Former_Writer_workCount_PARAMETER_INSERT", false),
    ("ZOTHER_Writer_workCount_PARAMETER_INSERT", false), ("ZWORK_Writer_workCount_", false),
  ])
  func `leaves a trigger behind that keeps another attribute than a derived one`(
    name: String, isKept: Bool
  ) throws {
    let sql = Self.trigger.replacing("ZWORK_Writer_workCount_PARAMETER_INSERT", with: name)
    let result = try carried(sql) { _ in }
    #expect(result.statements == (isKept ? [sql] : []))
    #expect(result.notes.contains { $0.contains("No trigger keeps") } == !isKept)
  }

  @Test(arguments: ["WORKCOUNT", "workcount"])
  func `leaves a trigger behind whose column is another's now, in whatever case it is written`(
    name: String
  ) throws {
    let sql = "CREATE TRIGGER t AFTER UPDATE ON ZWRITER BEGIN SELECT new.z\(name); END"
    let gone = try carried(sql) { model in
      guard let place = model.entities.firstIndex(where: { $0.name == "Writer" }) else { return }
      model.entities[place].properties.removeAll { $0.name == "workCount" }
      model.entities.append(
        EntityDescription(
          name: "Zoo", superentity: "Writer", properties: [.attribute("workCount", .integer64)]))
    }
    #expect(gone.statements == [])
    #expect(try carried(sql) { _ in }.statements == [sql])
  }

  @Test(arguments: ["new.Z_ENT = 2", "EXISTS (SELECT * FROM z_primarykey WHERE Z_MAX > new.Z_PK)"])
  func `leaves a trigger behind that looks at numbers of entities where these change`(
    condition: String
  ) throws {
    let sql = "CREATE TRIGGER t AFTER INSERT ON ZWORK WHEN \(condition) BEGIN SELECT 1; END"
    let renumbered = try carried(sql) { model in
      model.entities.append(EntityDescription(name: "Added"))  // all numbers shift
    }
    #expect(renumbered.statements == [])
    #expect(renumbered.notes.contains { $0.contains("The trigger t would not mean the same") })
    #expect(try carried(sql) { _ in }.statements == [sql])
  }

  @Test(arguments: [
    ("INSERT INTO ZWORK VALUES (NULL, 1, 1)", false),
    ("INSERT INTO ZWORK SELECT * FROM ZWORK", false),
    ("INSERT INTO \"ZWORK\" (Z_PK) VALUES (7)", true),
    ("REPLACE INTO ZWORK(Z_PK) VALUES (7)", true),
    ("SELECT * FROM ZWORK", false),
    ("SELECT count(*), 2 * 3 FROM ZWORK", true), ("SELECT w.* FROM ZWORK AS w", false),
    ("SELECT Z_PK FROM ZWORK /* all: SELECT * */ -- INTO ZWORK", true),
    ("SELECT ' SELECT *'", true),
  ])
  func `leaves a trigger behind that means columns by their place, where these change`(
    statement: String, isNamed: Bool
  ) throws {
    let sql = "CREATE TRIGGER t AFTER DELETE ON ZWORK BEGIN \(statement)\n; END"
    let text = TriggerText(sql)
    #expect((text.takesAllColumns || text.filledByPlace == ["ZWORK"]) == !isNamed, "\(sql)")
    let changed = try carried(sql) { model in
      guard let place = model.entities.firstIndex(where: { $0.name == "Work" }) else { return }
      model.entities[place].properties.append(.attribute("added", .integer64))
    }
    #expect(changed.statements == (isNamed ? [sql] : []), "\(sql)")
  }

  @Test func `leaves a trigger behind that does not compile`() throws {
    let broken = try carried(
      "CREATE TRIGGER t AFTER INSERT ON ZWORK BEGIN UPDATE ZWRITER SET NOSUCH = 1; END"
    ) { _ in }
    #expect(broken.statements == [])
  }
}
