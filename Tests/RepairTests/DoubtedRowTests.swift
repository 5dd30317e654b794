import GodwitObjectModel
import GodwitRepair
import GodwitSQLite
import Testing

/// A cell pointer of a page leads to another row's cell: that row is there twice, once in its place and once, out
/// of order, in another one's.
@Suite struct `A row that is there twice` {
  private static func attribute(_ name: String, isOptional: Bool = true) -> PropertyDescription {
    .attribute(
      AttributeDescription(
        traits: PropertyTraits(name: name, isOptional: isOptional), type: .integer64))
  }

  /// - Returns: The keys of the third row, and of the eighth, which stands in the third's place, too.
  private func patient(isOptional: Bool) throws -> (Patient, third: Int64, eighth: Int64) {
    let model = ManagedObjectModel(entities: [
      EntityDescription(
        name: "X", properties: [Self.attribute("code", isOptional: isOptional)],
        uniquenessConstraints: [["code"]])
    ])
    let patient = try Patient(of: model, rows: 20) { _ in }
    try patient.sql(
      """
      PRAGMA journal_mode = DELETE;
      UPDATE ZX SET ZCODE = 7000000 + Z_PK;
      CREATE TABLE own (a INTEGER UNIQUE, t TEXT);
      INSERT INTO own (rowid, a, t) SELECT Z_PK, ZCODE, 'text ' || Z_PK FROM ZX;
      CREATE TABLE keyed (id INTEGER PRIMARY KEY, a UNIQUE);
      INSERT INTO keyed SELECT Z_PK, ZCODE FROM ZX
      """)
    let keys = try patient.read("SELECT id FROM keyed ORDER BY id").compactMap { $0[0].integer }
    var bytes = patient.bytes
    for table in ["ZX", "own", "keyed"] {
      // Rows lie in the order of their keys, some of which are left out.
      let pointers = try (patient.root(of: table) - 1) * 4096 + 8
      let eighth = Array(bytes[pointers + 2 * 7..<pointers + 2 * 8])
      bytes.replaceSubrange(pointers + 2 * 2..<pointers + 2 * 3, with: eighth)
    }
    patient.bytes = bytes
    return (patient, keys[2], keys[7])
  }

  @Test(arguments: [true, false])
  func `keeps its value of a uniqueness constraint`(isOptional: Bool) throws {
    let (patient, third, eighth) = try patient(isOptional: isOptional)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    let codes = try patient.read(
      "SELECT ZCODE FROM ZX WHERE Z_PK IN (\(third), \(eighth)) ORDER BY Z_PK",
      of: patient.output)
    try #require(codes.count == 2, "\(codes) \(report.lost) \(report.doubtful)")
    #expect(codes[1] == [.integer(7_000_000 + eighth)])
    #expect(isOptional ? codes[0] == [.null] : codes[0] != codes[1])
    #expect(
      report.lost.contains { $0.property == "code" && $0.primaryKeys == KeyRanges([third]) },
      "\(report.lost)")
  }

  @Test(arguments: ["own", "keyed"])
  func `stays in an application's table, and its copy is named by its row id`(table: String) throws
  {
    let (patient, third, eighth) = try patient(isOptional: true)
    let report = try patient.repair()
    let query = "SELECT rowid, a FROM \(table) WHERE a = 7000000 + \(eighth)"
    #expect(
      try patient.read(query, of: patient.output) == [
        [.integer(eighth), .integer(7_000_000 + eighth)]
      ])
    let refused = report.lost.filter { $0.names == [table] }
    #expect(refused.map(\.primaryKeys) == [KeyRanges([third])], "\(report.lost)")
    #expect(!report.doubtful.contains { $0.names == [table] || $0.entity == table })
  }
}

/// SQLite makes numbers of texts that read as such, where it writes them to a column of numbers.
@Suite struct `A value of another storage class than its column's` {
  @Test(
    arguments: [
      ("'12'", .integer(12), true), ("' -7e3 '", .integer(-7000), true),
      ("'1234567890123456789.5'", nil, true), ("'.5'", .real(0.5), true),
      ("5.0", .integer(5), true),
      ("'x'", .text("x"), false), ("'1e'", .text("1e"), false), ("'0x10'", .text("0x10"), false),
      ("''", .text(""), false), ("0.5", .real(0.5), false), ("12", .integer(12), false),
      ("NULL", .null, false),
    ] as [(String, SQLiteValue?, Bool)])
  func `is named where it is kept as a number`(
    value: String, expected: SQLiteValue?, isNamed: Bool
  ) throws {
    let patient = try Patient.ofOneEntity()
    try patient.sql(
      """
      PRAGMA journal_mode = DELETE;
      CREATE TABLE own (n); INSERT INTO own VALUES (\(value));
      PRAGMA writable_schema = ON;
      UPDATE sqlite_master SET sql = 'CREATE TABLE own (n INTEGER)' WHERE name = 'own';
      UPDATE sqlite_master SET sql = replace(sql, 'ZN INTEGER', 'ZN') WHERE name = 'ZX'
      """)
    try patient.sql(
      """
      UPDATE ZX SET ZN = \(value) WHERE Z_PK = 3;
      PRAGMA writable_schema = ON;
      UPDATE sqlite_master SET sql = replace(sql, 'ZN', 'ZN INTEGER') WHERE name = 'ZX'
      """)
    let before = try patient.read("SELECT typeof(ZN) FROM ZX WHERE Z_PK = 3")[0][0]
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    let own = try patient.read("SELECT n FROM own", of: patient.output)[0][0]
    if let expected { #expect(own == expected) }
    let after = try patient.read("SELECT typeof(ZN) FROM ZX WHERE Z_PK = 3", of: patient.output)[0][
      0]
    let said = (report.doubtful + report.lost).filter {
      $0.property == "n" && $0.entity == "X" && $0.primaryKeys == KeyRanges([3])
    }
    #expect(before == after || !said.isEmpty, "\(report)")
    let named = report.doubtful.filter { $0.message.contains("storage class") }
    // What no value of the attribute's type can be is lost there.
    let isKept = !report.lost.contains { $0.property == "n" }
    #expect(
      named.map(\.entity) == (isNamed ? (isKept ? ["X", "own"] : ["own"]) : []),
      "\(report.doubtful)")
  }
}
