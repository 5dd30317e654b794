import Foundation
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Testing

@testable import GodwitRepair

/// The authors' columns in the order of a store that was migrated in place.
private let turned =
  "Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZSTARS INTEGER, ZFOLLOWERS INTEGER, "
  + "ZBORN TIMESTAMP, ZRESTAURANT VARCHAR, ZWEBSITE VARCHAR, ZNAME VARCHAR"

/// Damage of the texts that say where values lie.
@Suite struct `A store whose CREATE TABLE texts are damaged` {
  private static let authors = "SELECT Z_PK, ZNAME, ZWEBSITE, ZSTARS FROM ZAUTHOR ORDER BY Z_PK"

  /// Changes one byte of a table's text.
  private func damage(
    _ patient: Patient, _ table: String, _ word: String, at offset: Int = 0, to byte: UInt8
  ) throws {
    var bytes = patient.bytes
    let text = Array("CREATE TABLE \(table) ".utf8)
    let start = try #require(bytes.indices.first { bytes[$0...].starts(with: text) })
    let place = try #require(
      bytes[start...].indices.first { bytes[$0...].starts(with: Array(word.utf8)) })
    bytes[place + offset] = byte
    patient.bytes = bytes
  }

  /// Gives the authors' table other columns, and the values that it had.
  private func rebuild(
    _ patient: Patient, _ columns: String, end: String = ""
  ) throws {
    let names = try patient.read("SELECT name FROM pragma_table_info('ZAUTHOR')")
      .compactMap { $0[0].text }.joined(separator: ", ")
    try patient.sql(
      """
      CREATE TABLE n AS SELECT * FROM ZAUTHOR; DROP TABLE ZAUTHOR;
      CREATE TABLE ZAUTHOR (\(columns))\(end);
      INSERT INTO ZAUTHOR (\(names)) SELECT \(names) FROM n; DROP TABLE n;
      VACUUM
      """)
  }

  /// The row of the only entity's table in `sqlite_master`, and the key of the version hashes.
  @Test(arguments: [(true, false), (false, true), (true, true)])
  func `keep every object where the table's row and the metadata are damaged as well`(
    row: Bool, metadata: Bool
  ) throws {
    let patient = try Patient.ofOneEntity()
    let keys = try patient.keys(of: "ZX")
    var bytes = patient.bytes
    func place(of words: [UInt8]) throws -> Int {
      try #require(bytes.indices.first { bytes[$0...].starts(with: words) })
    }
    // The record's header: seven bytes, and the types of three texts.
    if row { bytes[try place(of: [7, 0x17, 0x11, 0x11])] = 5 }
    if metadata {
      // A text of 25 bytes in a binary property list.
      bytes[try place(of: [0x10, 25] + Array("NSStoreModelVersionHashes".utf8)) + 14] ^= 1
    }
    patient.bytes = bytes
    let report = try patient.repair()
    #expect(try patient.keys(of: "ZX", in: patient.output) == keys, "\(report.lost)")
  }

  @Test(arguments: [
    ("ZAUTHOR", "INTEGER", UInt8(ascii: "A")), ("ZAUTHOR", "PRIMARY", UInt8(ascii: "X")),
    ("ZRECIPE", "INTEGER", UInt8(ascii: "A")), ("ZRECIPE", "PRIMARY", UInt8(ascii: "X")),
  ])
  func `keep every object's Z_PK where the text no longer says that it is the row id`(
    table: String, word: String, byte: UInt8
  ) throws {
    let patient = try Patient { $0.deletedFraction = 0.3 }
    let before = try patient.allKeys()
    let query = "SELECT Z_PK, ZNAME, Z_ENT FROM \(table) ORDER BY Z_PK"
    let rows = try patient.read(query)
    try damage(patient, table, word, to: byte)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(report.lost.isEmpty && report.doubtful.isEmpty, "\(report.lost) \(report.doubtful)")
    #expect(report.rebuilt.contains { $0.message.contains("\(table).Z_PK is the row id again") })
    #expect(try patient.read(query, of: patient.output) == rows)
    for (table, keys) in before {
      #expect(try patient.keys(of: table, in: patient.output) == keys)
    }
  }

  @Test(arguments: ["ZAUTHOR", "ZRECIPE"], [0x1F, 0x5E, 0x60, 0x57] as [UInt8])
  func `keep every object's Z_PK where one bit of its name is wrong`(
    table: String, byte: UInt8
  ) throws {
    let patient = try Patient { $0.deletedFraction = 0.3 }
    let query = "SELECT * FROM \(table) ORDER BY Z_PK"
    let rows = try patient.read(query)
    try damage(patient, table, "Z_PK", at: 1, to: byte)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(report.lost.isEmpty, "\(report.lost)")
    #expect(try patient.read(query, of: patient.output) == rows)
  }

  /// A byte of a name that one wrong bit makes no letter, or what divides words.
  @Test(
    arguments: zip(
      [0x1F, 0x5E, 0x5D, 0x40, 0x0F, 0x7F, 0x09, 0x0A, 0x0C, 0x0D, 0x20] as [UInt8], 0..<11))
  func `keep the values and pairs of columns one bit of whose names is wrong`(
    byte: UInt8, number: Int
  ) throws {
    let patient = try Patient()
    let joins = try patient.read(
      "SELECT m.name, p.name FROM sqlite_master AS m, pragma_table_info(m.name) AS p "
        + "WHERE m.type = 'table' AND m.name GLOB 'Z_[0-9]*' GROUP BY m.name")
    let columns =
      [("ZINGREDIENT", "ZRECIPE"), ("ZRECIPE", "ZAUTHOR")]
      + joins.compactMap { row in row[0].text.flatMap { table in row[1].text.map { (table, $0) } } }
    #expect(columns.count > 3)
    let (table, column) = columns[number % columns.count]
    let rows = try patient.read("SELECT count(\(column)), count(*) FROM \(table)")
    try damage(patient, table, column, at: 2, to: byte)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty, "\(table).\(column)")
    let found = try patient.read(
      "SELECT count(\(column)), count(*) FROM \(table)", of: patient.output)
    #expect(found == rows, "\(table).\(column): \(report.lost)")
  }

  @Test(
    arguments: ["ZRECIPE", "ZAUTHOR", "Z_8TAGS", "Z_METADATA", "Z_PRIMARYKEY", "Z_MODELCACHE"],
    ["type", "name", "tbl_name"])
  func `are whole where one bit of what stands beside the text is wrong`(
    table: String, column: String
  ) throws {
    let patient = try Patient()
    let names = Patient.entityTables + ["Z_8TAGS", "Z_PRIMARYKEY"]
    let before = try names.map { try patient.read("SELECT * FROM \($0) ORDER BY 1, 2") }
    let whole = patient.bytes
    let row = Array("table\(table)\(table)".utf8)
    let start = try #require(whole.indices.first { whole[$0...].starts(with: row) })
    let size = table.utf8.count
    let offset = column == "type" ? 4 : column == "name" ? 4 + size : 4 + 2 * size
    for bit in [0x01, 0x20, 0x80] as [UInt8] {
      var bytes = whole
      bytes[start + offset] ^= bit
      patient.bytes = bytes
      let report = try patient.repair()
      #expect(try patient.failures().isEmpty)
      #expect(report.lost.isEmpty && report.doubtful.isEmpty, "\(report.lost) \(report.doubtful)")
      for (name, rows) in zip(names, before) {
        #expect(
          try patient.read("SELECT * FROM \(name) ORDER BY 1, 2", of: patient.output) == rows)
      }
    }
  }

  @Test(arguments: ["ZRECIPE", "ZTAG", "Z_8TAGS"], [-5, 0, 1, 4_000_000])
  func `have their rows found where the number of the root page is none`(
    table: String, root: Int
  ) throws {
    let patient = try Patient()
    let query = "SELECT * FROM \(table) ORDER BY 1, 2"
    let (before, keys) = (try patient.read(query), try patient.allKeys())
    try patient.sql(
      "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = \(root) "
        + "WHERE type = 'table' AND name = '\(table)'")
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try patient.unaccounted(keys, report).isEmpty)
    #expect(try patient.read(query, of: patient.output) == before)
  }

  @Test(arguments: [0x09, 0x20, 0x4B, 0xD2] as [UInt8])
  func `keep places in ordered pairs where the name of their column is damaged`(
    byte: UInt8
  ) throws {
    let patient = try Patient()
    let query = "SELECT * FROM Z_5RECIPES ORDER BY 1, 2"
    let before = try patient.read(query)
    try damage(patient, "Z_5RECIPES", "Z_FOK_8RECIPES", at: 9, to: byte)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(report.lost.isEmpty, "\(report.lost)")
    #expect(try patient.read(query, of: patient.output) == before)
  }

  /// In a row of a short name, damage of a few bytes takes both of the names beside the text.
  @Test(
    arguments: ["ZRECIPE", "ZAUTHOR", "Z_8TAGS", "Z_PRIMARYKEY", "ZSTEP_ZRECIPE_INDEX"],
    [("FFFFFFFF", "FF98FF42"), ("FFFFFFFF", "FFFFFFFF")])
  func `are whole where neither name beside the text is one any more`(
    object: String, bytes: (name: String, table: String)
  ) throws {
    let patient = try Patient()
    let before = try patient.allKeys()
    #expect(
      try patient.read("SELECT 1 FROM sqlite_master WHERE name = '\(object)'").count == 1)
    try patient.sql(
      "PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = CAST(x'\(bytes.name)' AS TEXT), "
        + "tbl_name = CAST(x'\(bytes.table)' AS TEXT) WHERE name = '\(object)'")
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(report.lost.isEmpty && report.doubtful.isEmpty, "\(report.lost) \(report.doubtful)")
    for (table, keys) in before {
      #expect(try patient.keys(of: table, in: patient.output) == keys)
    }
  }

  @Test(arguments: ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"])
  func `are whole where the name of a control table has another case`(table: String) throws {
    let patient = try Patient()
    let before = try patient.allKeys()
    try patient.sql(
      "PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = 'z' || substr(name, 2) "
        + "WHERE name = '\(table)'")
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(report.lost.isEmpty, "\(report.lost)")
    for (table, keys) in before {
      #expect(try patient.keys(of: table, in: patient.output) == keys)
    }
  }

  @Test func `keep entity numbers where Z_PRIMARYKEY no longer says that they are the row ids`()
    throws
  {
    let patient = try Patient()
    let query = "SELECT Z_ENT, Z_NAME FROM Z_PRIMARYKEY ORDER BY 1"
    let before = try patient.read(query)
    try damage(patient, "Z_PRIMARYKEY", "INTEGER", to: UInt8(ascii: "A"))
    let report = try patient.repair()
    #expect(report.lost.isEmpty)
    #expect(try patient.read(query, of: patient.output) == before)
  }

  /// Every byte of the text in turn would do; these are the kinds of places.
  @Test(arguments: [
    ("CREATE", 0, "K"), ("TABLE", 5, "("), ("ZAUTHOR (", 3, "X"), ("(Z_PK", 0, "$"),
    ("Z_PK", 4, "("), ("Z_ENT", 4, "X"), ("Z_ENT", 5, "("), ("INTEGER,", 7, "$"),
    ("ZSTARS", 6, "X"), ("ZSTARS", 3, ","), ("ZBORN", 4, "("), ("TIMESTAMP", 9, "."),
    ("VARCHAR", 4, ","), ("ZNAME", 0, "\""),
  ])
  func `have values read by the names that are left, not by the model's order`(
    word: String, offset: Int, byte: String
  ) throws {
    let patient = try Patient()
    try rebuild(patient, turned)
    let before = try patient.read(Self.authors)
    try damage(patient, "ZAUTHOR", word, at: offset, to: try #require(byte.utf8.first))
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try patient.read(Self.authors, of: patient.output) == before)
    #expect(report.lost.isEmpty && report.doubtful.isEmpty, "\(report.lost) \(report.doubtful)")
  }

  @Test func `are doubted where the model's order alone says where values lie`() throws {
    let patient = try Patient()
    let before = try patient.read(Self.authors)
    try patient.sql(
      "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE ZAUTHOR ( "
        + "Z_PK INTEGER PRIMARY KEY, Z_EN' WHERE name = 'ZAUTHOR'")
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try patient.read(Self.authors, of: patient.output) == before)
    let item = try #require(report.doubtful.first)
    #expect(item.subject == .schema && item.entity == "Author")
    #expect(item.message.contains("columns taken in the model's order"))
    #expect(!report.rebuilt.contains { $0.message.contains("missing table") })
  }

  @Test(
    arguments: [
      (turned + ", ZKEY VARCHAR AS (lower(ZNAME)) VIRTUAL", "", "ZKEY"),
      ("ZKEY INTEGER AS (Z_PK * 7) STORED, " + turned, "", "ZKEY"),
      (turned + ", ZMORE TEXT DEFAULT 'x', ZKEY TEXT AS (ZNAME) VIRTUAL", "", "ZMORE"),
      (turned.replacingOccurrences(of: "KEY", with: "KEY DESC"), "", nil),
      (turned, " WITHOUT ROWID", nil),
    ] as [(String, String, String?)])
  func `keep every object of a table that Core Data would not make`(
    columns: String, end: String, lost: String?
  ) throws {
    let patient = try Patient { $0.deletedFraction = 0.3 }
    try rebuild(patient, columns, end: end)
    let before = try patient.read(Self.authors)
    let keys = try patient.allKeys()
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try patient.read(Self.authors, of: patient.output) == before)
    for (table, keys) in keys {
      #expect(try patient.keys(of: table, in: patient.output) == keys)
    }
    #expect(report.doubtful.isEmpty, "\(report.doubtful)")
    #expect(!report.lost.contains { $0.subject != .schema }, "\(report.lost)")
    #expect(lost == nil || report.lost.contains { $0.property == lost }, "\(report.lost)")
  }
}

@Suite struct `A damaged CREATE TABLE text` {
  private static let wanted: [TableText.Wanted] = [
    ("Z_PK", "INTEGER"), ("ZA", "INTEGER"), ("ZB", "VARCHAR"), ("ZC", "VARCHAR"),
  ]

  @Test(
    arguments: [
      // Whole, in another order.
      (
        "CREATE TABLE ZT ( Z_PK INTEGER PRIMARY KEY, ZC VARCHAR, ZB VARCHAR, ZA INTEGER )", 4,
        "Z_PK ZC ZB ZA", false
      ),
      // Nothing, or not enough.
      (nil, 4, "Z_PK ZA ZB ZC", true),
      ("CREATE TABLE ZT ( Z_PK INTEGER PRIMARY KEY, ZC VARCHAR, ", 4, "Z_PK ZC ZA ZB", true),
      // One name is missing, and one place is free.
      (
        "CREATE TABLE ZT ( Z_PK INTEGER PRIMARY KEY, ZC VARCHAR, ZB VARCHAR, ", 4, "Z_PK ZC ZB ZA",
        false
      ),
      // An application's own column stays where it is.
      (
        "CREATE TABLE ZT( Z_PK INTEGER, OWN BLOB, ZC VARCHAR, ZB VARCHAR, ZA INTEGER", 5,
        "Z_PK OWN ZC ZB ZA", false
      ),
      // A comma that is none.
      (
        "CREATE TABLE ZT ( Z_PK INTEGER PRIMARY KEY, ZC VARC,AR, ZB VARCHAR, ZA INTEGER )", 4,
        "Z_PK ZC ZB ZA", false
      ),
      // A comma that is lost.
      (
        "CREATE TABLE ZT ( Z_PK INTEGER PRIMARY KEY$ ZC VARCHAR, ZB VARCHAR, ZA INTEGER )", 4,
        "Z_PK ZC ZB ZA", false
      ),
      // A table constraint names columns, too.
      (
        "CREATE TABLE ZT ( ZA INTEGER, Z_PK INTEGER, ZC VARCHAR, ZB VARCHAR, PRIMARY KEY (ZA, ZB)",
        4,
        "ZA Z_PK ZC ZB", false
      ),
    ] as [(String?, Int, String, Bool)])
  func `gives the places of the names that are left in it`(
    text: String?, fields: Int, names: String, isGuessed: Bool
  ) {
    let read = TableText(text, table: "ZT", wanted: Self.wanted, fields: fields)
    #expect(read.columns.map(\.name).joined(separator: " ") == names)
    #expect(read.isGuessed == isGuessed)
  }
}
