import GodwitPersistentStore
import Testing

@Suite struct `Rows of history in Z_PRIMARYKEY` {
  private let folder: TemporaryFolder
  private let library: SmallStore

  /// The highest keys are 5, 2 and none.
  init() throws {
    folder = try TemporaryFolder()
    library = try SmallStore(
      SmallStore.library(), at: folder.path.appending("library.sqlite"), rows: "")
    try library.execute(
      """
      CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER);
      CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER);
      CREATE TABLE ATRANSACTIONSTRING (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER);
      INSERT INTO ACHANGE VALUES (1, 16001), (5, 16001);
      INSERT INTO ATRANSACTION VALUES (2, 16002);
      INSERT INTO Z_PRIMARYKEY VALUES
        (16001, 'CHANGE', 0, 5), (16002, 'TRANSACTION', 0, 9), (16003, 'TRANSACTIONSTRING', 0, 0);
      """)
  }

  /// What is changed, of whom something is said, and the numbers and highest keys that are right.
  @Test(
    arguments: [
      ("SELECT 1", [], ["16001 5", "16002 9", "16003 0"]),
      (
        "UPDATE Z_PRIMARYKEY SET Z_MAX = 4 WHERE Z_ENT = 16001", ["CHANGE"],
        ["16001 5", "16002 9", "16003 0"]
      ),
      (
        "UPDATE Z_PRIMARYKEY SET Z_NAME = 'CHANGF', Z_MAX = 4 WHERE Z_ENT = 16001", ["CHANGE"],
        ["16001 5", "16002 9", "16003 0"]
      ),
      (
        "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT > 16000",
        ["CHANGE", "TRANSACTION", "TRANSACTIONSTRING"], ["16001 5", "16002 2", "16003 0"]
      ),
      (
        "UPDATE Z_PRIMARYKEY SET Z_ENT = 99 WHERE Z_ENT = 16002", ["TRANSACTION"],
        ["16001 5", "16002 9", "16003 0"]
      ),
      // Stores of older frameworks have no such table.
      (
        "DROP TABLE ATRANSACTIONSTRING; DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 16003", [],
        ["16001 5", "16002 9"]
      ),
      ("DROP TABLE ACHANGE", [], ["16001 5", "16002 9", "16003 0"]),
      // An application's own table, or a view, of the name.
      (
        "DROP TABLE ACHANGE; CREATE TABLE ACHANGE (Z_PK); INSERT INTO ACHANGE VALUES (50)", [],
        ["16001 5", "16002 9", "16003 0"]
      ),
      (
        "DROP TABLE ACHANGE; CREATE VIEW ACHANGE AS SELECT 50 AS Z_PK, 1 AS Z_ENT", [],
        ["16001 5", "16002 9", "16003 0"]
      ),
      (
        """
        CREATE TABLE ANSCKEVENT (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER);
        INSERT INTO ANSCKEVENT VALUES (3, 17007);
        INSERT INTO Z_PRIMARYKEY VALUES (17007, 'NSCKEvent', 0, 2);
        """, ["NSCKEvent"], ["16001 5", "16002 9", "16003 0", "17007 3"]
      ),
    ] as [(String, [String], [String])])
  func `have a highest key that no row of their table exceeds, or it is noted`(
    sql: String, named: [String], expected: [String]
  ) throws {
    try library.execute(sql)
    let store = try library.open()
    let keys = try store.soundHistoryKeys()
    #expect(keys.rows.map { "\($0.number) \($0.highestKey)" } == expected)
    #expect(keys.faults.map(\.entity) == named)
    let notes = try StoreSoundness.control(StoreBinding(store, library.hierarchy))
      .filter { $0.kind == .note }
    #expect(notes.compactMap(\.entity) == named)
  }

  @Test(arguments: ["NULL", "'many'"])
  func `are damaged where the highest key is no number`(highest: String) throws {
    try library.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = \(highest) WHERE Z_ENT = 16001")
    let findings = try StoreSoundness.control(StoreBinding(library.open(), library.hierarchy))
    #expect(findings.map(\.kind) == [.control, .note])
  }
}
