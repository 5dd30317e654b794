import GodwitRepair
import GodwitSQLite
import Testing

/// `ALTER TABLE … ADD COLUMN … DEFAULT …` leaves the rows that are there as they are: SQLite gives the default
/// where it reads them.
@Suite struct `A store with rows from before a column was added` {
  /// Each form of a literal that SQLite takes, in the type that converts it otherwise.
  private static let columns = [
    "INTEGER DEFAULT 5", "TEXT NOT NULL DEFAULT 'it''s'", "REAL DEFAULT -0.5", "DEFAULT 7",
    // Signs, one or several, and numbers at the ends of the range.
    "DEFAULT +7", "TEXT DEFAULT +7", "DEFAULT - 7", "DEFAULT (- -7)",
    "DEFAULT -9223372036854775808",
    "DEFAULT 9223372036854775808", "DEFAULT 1e400", "DEFAULT -1e400",
    // Reals without a digit in front or behind, and in columns that convert them.
    "DEFAULT .5", "TEXT DEFAULT .5", "TEXT DEFAULT -1.5e3", "TEXT DEFAULT 1.",
    "INTEGER DEFAULT 2.0",
    "INTEGER DEFAULT 1e2", "REAL DEFAULT 3", "NUMERIC DEFAULT 1e2", "BLOB DEFAULT .5",
    // Hexadecimal integers, of which some are negative.
    "DEFAULT 0x1F", "INTEGER DEFAULT 0x1F", "TEXT DEFAULT 0x1F", "DEFAULT 0x7FFFFFFFFFFFFFFF",
    "DEFAULT 0xFFFFFFFFFFFFFFFF", "DEFAULT -0x10",
    // Bytes.
    "DEFAULT x'00ff'", "TEXT DEFAULT X'41'", "INTEGER DEFAULT x'31'", "DEFAULT x''",
    // Texts that read as numbers, in each kind of quotes, and without any.
    "DEFAULT ''", "INTEGER DEFAULT '12'", "INTEGER DEFAULT '12a'", "REAL DEFAULT '1'",
    "NUMERIC DEFAULT ' 7 '", "BLOB DEFAULT '12'", #"DEFAULT "text""#, #"DEFAULT "a ""b"" c""#,
    "DEFAULT [text]", "DEFAULT `text`", "DEFAULT word", #"INTEGER DEFAULT "12""#,
    #"DEFAULT "TRUE""#, "DEFAULT 'a, b) -- c'", "DEFAULT 'é\u{1F600}'",
    // Truth values.
    "DEFAULT TRUE", "DEFAULT false", "INTEGER DEFAULT TRUE", "REAL DEFAULT true",
    // NULL, and no default.
    "DEFAULT NULL", "TEXT",
    // What stands in parentheses, with comments.
    "DEFAULT (5)", "DEFAULT ((5)) /* ) */", "TEXT DEFAULT ('a' /* b */)", "DEFAULT (NULL)",
    // Bytes that are made a text, and the other way round.
    "DEFAULT (CAST('x' AS BLOB))", "DEFAULT (CAST(x'41' AS TEXT))",
    "DEFAULT (CAST(' 7' AS INTEGER))",
  ]

  private func expectSame(_ patient: Patient, _ query: String) throws {
    let report = try patient.repair()
    #expect(
      report.lost.isEmpty && report.rebuilt.isEmpty && report.doubtful.isEmpty, "\(report)")
    let before = try patient.read(query)
    #expect(before.count > 1)
    #expect(try patient.read(query, of: patient.output) == before)
  }

  @Test(arguments: ["", "WITHOUT ROWID"])
  func `keeps what SQLite gives for them`(option: String) throws {
    let patient = try Patient(rows: 5)
    try patient.sql(
      "CREATE TABLE own (a INTEGER, b INTEGER, PRIMARY KEY (b, a)) \(option); INSERT INTO own VALUES (1, 1), (2, 2)"
    )
    // One by one: some rows have values for columns that others have not.
    for (number, column) in Self.columns.enumerated() {
      try patient.sql(
        """
        ALTER TABLE own ADD COLUMN c\(number) \(column);
        INSERT INTO own (a, b) VALUES (\(number + 10), \(number));
        """)
    }
    let types = Self.columns.indices.map { "typeof(c\($0))" }.joined(separator: ", ")
    try expectSame(patient, "SELECT *, \(types) FROM own ORDER BY a")
  }

  /// An index has the values, and one that a constraint makes is there with the table.
  @Test(arguments: ["short", #""a""b""#, "é", "[select]"])
  func `keeps them whatever the table's name, constraints and indexes`(name: String) throws {
    let patient = try Patient(rows: 5)
    try patient.sql(
      """
      CREATE TABLE \(name) (
        id INTEGER PRIMARY KEY AUTOINCREMENT, t TEXT UNIQUE CHECK (t <> 'x'),
        u TEXT AS (t || 1), v TEXT AS (t || 2) STORED
      ) STRICT;
      INSERT INTO \(name) (t) VALUES ('a'), ('b');
      ALTER TABLE \(name) ADD COLUMN w ANY DEFAULT .5;
      ALTER TABLE \(name) ADD COLUMN "x""y" BLOB NOT NULL DEFAULT x'00ff';
      ALTER TABLE \(name) ADD COLUMN z TEXT AS (w || 1);
      CREATE INDEX ownW ON \(name) (w);
      CREATE INDEX ownXY ON \(name) ("x""y", t)
      """)
    try expectSame(patient, "SELECT *, typeof(w) FROM \(name) NOT INDEXED ORDER BY id")
  }

  /// No row lacks a column whose default has to be computed, unless somebody wrote it into `sqlite_master`.
  @Test func `computes nothing that their declaration asks for`() throws {
    let patient = try Patient(rows: 5)
    try patient.sql(
      """
      CREATE TABLE own (a);
      INSERT INTO own VALUES (1), (2);
      ALTER TABLE own ADD COLUMN b DEFAULT 'PLACE';
      PRAGMA writable_schema = ON;
      UPDATE sqlite_master
         SET sql = replace(sql, '''PLACE''', '(hex(zeroblob(900000000)))')
       WHERE name = 'own'
      """)
    try expectSame(patient, "SELECT * FROM own ORDER BY a")
  }

  /// SQLite reads an integer there, which no row can have that is written.
  @Test func `has a truth value in a column of texts as SQLite writes it`() throws {
    let patient = try Patient(rows: 5)
    try patient.sql(
      "CREATE TABLE own (a); INSERT INTO own VALUES (1), (2); ALTER TABLE own ADD COLUMN b TEXT DEFAULT TRUE"
    )
    let report = try patient.repair()
    #expect(report.lost.isEmpty)
    #expect(
      try patient.read("SELECT b FROM own", of: patient.output) == [[.text("1")], [.text("1")]])
  }

  @Test func `keeps it in a table of the model`() throws {
    let patient = try Patient(rows: 30, version: .one)
    let column = "ZTEXT"
    try patient.sql(
      "ALTER TABLE ZSTEP DROP COLUMN \(column); ALTER TABLE ZSTEP ADD COLUMN \(column) VARCHAR DEFAULT .5"
    )
    _ = try patient.repair()
    let query = "SELECT DISTINCT \(column) FROM ZSTEP"
    #expect(try patient.read(query, of: patient.output) == [[.text(".5")]])
    #expect(try patient.read(query) == [[.text(".5")]])
  }
}
