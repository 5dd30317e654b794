import Foundation
import GodwitObjectModel
import GodwitPersistentStore
import SystemPackage
import Testing

/// What becomes of a store's triggers under it.
extension `A destination schema` {
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
    ("SELECT ' SELECT *'", true), ("SELECT 1 FROM ZWORK NATURAL JOIN ZWRITER", false),
    ("SELECT 1 FROM ZWORK LEFT natural OUTER JOIN ZWRITER", false),
    ("SELECT 1 FROM ZWORK JOIN ZWRITER USING (Z_PK)", true),
    ("SELECT Z_PK AS natural FROM ZWORK", true),
    ("SELECT (1, 2, 3, 4, 5, 6, 7, 8) IN ZWORK", false),
    ("SELECT old.Z_PK IN (SELECT Z_PK FROM ZWORK)", true),
  ])
  func `leaves a trigger behind that means columns by their place, where these change`(
    statement: String, isNamed: Bool
  ) throws {
    let sql = "CREATE TRIGGER t AFTER DELETE ON ZWORK BEGIN \(statement)\n; END"
    let text = TriggerText(sql)
    #expect((text.takesAllColumns || text.namedByPlace == ["ZWORK"]) == !isNamed, "\(sql)")
    let changed = try carried(sql) { model in
      guard let place = model.entities.firstIndex(where: { $0.name == "Work" }) else { return }
      model.entities[place].properties.append(.attribute("added", .integer64))
    }
    #expect(changed.statements == (isNamed ? [sql] : []), "\(sql)")
  }

  /// The entity Sub in both stores, and whether the tables of B, and of pairs with B's objects, hold what they held.
  static let moves: [(before: EntityDescription?, after: EntityDescription?, isNone: Bool)] = [
    (sub(of: "B"), sub(of: "B"), true), (sub(of: "B"), sub(of: nil), false),
    (sub(of: nil), sub(of: "B"), false), (sub(of: "B"), nil, true), (nil, sub(of: "B"), true),
    (sub(of: "B", isAbstract: true), sub(of: nil, isAbstract: true), true),
  ]

  private static func sub(
    of superentity: EntityName?, isAbstract: Bool = false
  ) -> EntityDescription {
    EntityDescription(name: "Sub", superentity: superentity, isAbstract: isAbstract)
  }

  private static func pairs(_ sub: EntityDescription?) throws -> EntityHierarchy {
    let entities = [
      EntityDescription(
        name: "A", properties: [.relationship("bs", "B", inverse: "as", isToMany: true)]),
      EntityDescription(
        name: "B", properties: [.relationship("as", "A", inverse: "bs", isToMany: true)]),
    ]
    return try EntityHierarchy(
      ManagedObjectModel(entities: entities + [sub].compactMap { $0 }))
  }

  @Test(arguments: moves.indices, ["ZB", "Z_1BS"])
  func `leaves a trigger behind on a table that an entity's objects leave or join`(
    place: Int, table: String
  ) throws {
    let move = Self.moves[place]
    let sql = "CREATE TRIGGER t AFTER DELETE ON \(table) BEGIN SELECT 1; END"
    let folder = try TemporaryFolder()
    let store = try SmallStore(
      Self.pairs(move.before), at: folder.path.appending("a.sqlite"), rows: sql)
    let result = try DestinationSchema(StoreLayout(Self.pairs(move.after)))
      .carriedTriggers(from: StoreBinding(store.open(), store.hierarchy))
    #expect(result.statements == (move.isNone ? [sql] : []))
    #expect(result.notes.count == (move.isNone ? 0 : 1))
  }

  // Readers' names are unique in the source.
  @Test(arguments: [
    ("INSERT OR IGNORE INTO ZREADER (ZNAME) VALUES ('a')", true),
    ("REPLACE INTO ZREADER (ZNAME) VALUES ('a')", true),
    ("insert or replace into \"zreader\" (zname) values ('a')", true),
    ("UPDATE OR REPLACE ZREADER SET ZNAME = 'a'", true),
    ("INSERT INTO ZREADER (ZNAME) VALUES ('a') ON CONFLICT DO NOTHING", true),
    ("INSERT OR IGNORE INTO ZREADER SELECT * FROM ZREADER", true),
    ("INSERT INTO ZREADER (ZNAME) VALUES ('a')", false),
    ("INSERT OR IGNORE INTO ZREADER (ZISMEMBER) VALUES (1)", false),
    ("INSERT OR IGNORE INTO ZNOTE (Z_PK) SELECT Z_PK FROM ZREADER WHERE ZNAME = 'a'", false),
    ("SELECT ZAGE = 1 OR replace(ZNAME, 'a', 'b') FROM ZREADER", false),
  ])
  func `leaves a trigger behind that does what constraints let it, where these change`(
    statement: String, isLeft: Bool
  ) throws {
    let sql = "CREATE TRIGGER t AFTER DELETE ON ZWORK BEGIN \(statement); END"
    for constraints in [[], [["age", "name"]]] as [[[String]]] {
      let changed = try carried(sql) { model in
        guard let place = model.entities.firstIndex(where: { $0.name == "Reader" }) else { return }
        model.entities[place].uniquenessConstraints = constraints
      }
      #expect(changed.statements == (isLeft ? [] : [sql]), "\(sql)")
      #expect(changed.notes.contains { $0.contains("The trigger t would not") } == isLeft, "\(sql)")
    }
    #expect(try carried(sql) { _ in }.statements == [sql])
  }

  @Test func `leaves a trigger behind that does not compile`() throws {
    let broken = try carried(
      "CREATE TRIGGER t AFTER INSERT ON ZWORK BEGIN UPDATE ZWRITER SET NOSUCH = 1; END"
    ) { _ in }
    #expect(broken.statements == [])
  }
}
