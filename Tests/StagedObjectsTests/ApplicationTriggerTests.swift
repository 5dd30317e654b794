import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import StoreFixtures
import Testing

@testable import GodwitStagedObjects

@Suite struct `An application's trigger` {
  /// Two items with the sum of their parts' weights, which a trigger of Core Data's keeps, and tables of the
  /// application's own.
  private func store() throws -> StageFixture {
    let store = try StageFixture([
      weighedItem,
      EntityDescription(
        name: "Part",
        properties: [attribute("w", .integer32), relationship("item", "Item", inverse: "parts")]),
    ])
    try store.execute(
      """
      INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZNAME, ZSUM) VALUES (1, 1, 1, 'a', 5), (2, 1, 1, 'b', 0);
      INSERT INTO ZPART (Z_PK, Z_ENT, Z_OPT, ZITEM, ZW) VALUES (1, 2, 1, 1, 5);
      UPDATE Z_PRIMARYKEY SET Z_MAX = 2;
      CREATE TABLE seen (what);
      CREATE TABLE own (item REFERENCES ZITEM ON DELETE CASCADE);
      INSERT INTO own VALUES (2);
      """)
    return store
  }

  private let kept = """
    CREATE TRIGGER Z_DA_ZPART_Item_sum_UPDATE AFTER UPDATE OF ZW ON ZPART BEGIN \
    UPDATE ZITEM SET ZSUM = NEW.ZW WHERE Z_PK = NEW.ZITEM; END
    """

  /// By the change that it is about, and what it would do.
  @Test(arguments: [
    ("AFTER UPDATE ON ZITEM", "INSERT INTO seen VALUES (1)", "writes a row of its own"),
    ("AFTER UPDATE ON ZPART", "UPDATE ZITEM SET ZNAME = 'z'", "changes another object"),
    ("AFTER INSERT ON ZITEM", "INSERT INTO seen VALUES (1)", "sees a new object"),
    ("BEFORE DELETE ON ZITEM", "SELECT RAISE(IGNORE)", "keeps a row"),
    ("BEFORE UPDATE ON ZITEM", "SELECT RAISE(ABORT, 'no')", "ends the migration"),
    ("AFTER UPDATE ON Z_PRIMARYKEY", "SELECT absent(1)", "calls what only the application has"),
  ])
  func `does not fire for what a handler does, and stays as it was`(
    event: String, action: String, why: String
  ) throws {
    let store = try store()
    try store.execute(
      """
      CREATE TRIGGER watch \(event) BEGIN \(action); END;
      \(kept);
      CREATE TRIGGER observe AFTER UPDATE ON ZITEM BEGIN INSERT INTO seen VALUES (2); END
      """)
    let schema = "SELECT rowid, type, name, tbl_name, rootpage, sql FROM sqlite_master ORDER BY 1"
    let before = try store.rows(schema)
    try store.run { store in
      let items = try store.fetch("Item")
      try items[0].setValue("c", forKey: "name")
      try store.delete(items[1])
      try store.insert("Item").setValue("d", forKey: "name")
      try store.fetch("Part")[0].setValue(7, forKey: "w")
    }
    #expect(try store.rows("SELECT what FROM seen").isEmpty, "\(why)")
    #expect(
      try store.rows("SELECT ZNAME, ZSUM FROM ZITEM ORDER BY Z_PK")
        == [[.text("c"), .integer(7)], [.text("d"), .null]], "\(why); Core Data's own fires")
    #expect(try store.rows("SELECT item FROM own") == [[.integer(2)]])
    #expect(try store.rows(schema) == before)
    if event == "AFTER INSERT ON ZITEM" {
      try store.execute("INSERT INTO ZITEM (Z_ENT, Z_OPT) VALUES (1, 1)")
      #expect(
        try store.rows("SELECT what FROM seen") == [[.integer(1)]], "the application's next change")
    }
  }

  @Test func `is there after a handler that failed, too`() throws {
    struct Failure: Error {}
    let store = try store()
    try store.execute(
      "CREATE TRIGGER watch AFTER UPDATE ON ZITEM BEGIN INSERT INTO seen VALUES (1); END")
    #expect(throws: Failure.self) {
      try store.run { store in
        try store.fetch("Item")[0].setValue("c", forKey: "name")
        throw Failure()
      }
    }
    try store.execute("UPDATE ZITEM SET ZNAME = 'e' WHERE Z_PK = 1")
    #expect(try store.rows("SELECT what FROM seen") == [[.integer(1)]])
  }
}
