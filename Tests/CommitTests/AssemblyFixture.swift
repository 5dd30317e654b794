import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitCommit
@testable import GodwitPersistentStore
@testable import GodwitPlanning

/// A small store and a plan that has one table of each way, with the checkpoints of its units.
final class AssemblyFixture {
  let scratch: Scratch
  let source: FilePath
  let run: RunDirectory
  var plan: MigrationPlan

  /// The order of the destination's `sqlite_master`, triggers and foreign tables apart.
  static let schema = [
    "CREATE TABLE ZCARRIED ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZA INTEGER, ZB VARCHAR )",
    "CREATE TABLE Z_1NEW ( Z_1LEFT INTEGER, Z_2RIGHT INTEGER, PRIMARY KEY (Z_1LEFT, Z_2RIGHT) )",
    "CREATE TABLE ZTHING ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZKEY INTEGER, ZVALUE FLOAT, ZNAME VARCHAR, ZUNUSED BLOB )",
    "CREATE TABLE Z_3PAIR ( Z_3LEFT INTEGER, Z_3RIGHT INTEGER, Z_FOK_3LEFT INTEGER, PRIMARY KEY (Z_3LEFT, Z_3RIGHT) )",
    "CREATE TABLE ZEMPTY ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER )",
    "CREATE INDEX ZCARRIED_ZA_INDEX ON ZCARRIED (ZA)",
    "CREATE INDEX Z_Carried_byB ON ZCARRIED (ZB COLLATE BINARY ASC)",
    "CREATE INDEX Z_1NEW_Z_2RIGHT_INDEX ON Z_1NEW (Z_2RIGHT, Z_1LEFT)",
    "CREATE INDEX ZTHING_ZKEY_INDEX ON ZTHING (ZKEY)",
    "CREATE UNIQUE INDEX Z_Thing_UNIQUE_name ON ZTHING (ZNAME COLLATE BINARY ASC)",
    "CREATE INDEX Z_3PAIR_Z_3RIGHT_INDEX ON Z_3PAIR (Z_3RIGHT, Z_3LEFT)",
    "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
    "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
    "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
  ]

  init() throws {
    scratch = try Scratch()
    source = scratch.path.appending("source?#%.sqlite")  // a path that a URI must escape
    run = RunDirectory(scratch.path.appending("run"))
    try run.create()
    let connection = try Connection(path: source.string, mode: .create)
    // Other names than the destination's, and no index that Z_Carried_byB could be carried from.
    try connection.execute(
      """
      CREATE TABLE ZOLD ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZX INTEGER, ZY VARCHAR );
      CREATE INDEX ZOLD_ZX_INDEX ON ZOLD (ZX);
      INSERT INTO ZOLD
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
      SELECT i * 3, 1, 1, i % 7, 'row ' || i FROM n;
      CREATE TABLE Z_1OLD ( Z_1L INTEGER, Z_2R INTEGER, PRIMARY KEY (Z_1L, Z_2R) );
      CREATE INDEX Z_1OLD_Z_2R_INDEX ON Z_1OLD (Z_2R, Z_1L);
      INSERT INTO Z_1OLD SELECT Z_PK, Z_PK % 5 FROM ZOLD;
      CREATE TABLE ANSCKTHING (Z_PK INTEGER PRIMARY KEY AUTOINCREMENT, ZENTITYID INTEGER, ZNOTE VARCHAR);
      INSERT INTO ANSCKTHING VALUES (4, 1, 'a'), (9, 2, 'b'), (20, 1, 'c');
      DELETE FROM ANSCKTHING WHERE Z_PK = 20;
      """)
    try connection.close()
    plan = try emptyPlan(
      source: source, readPath: source, destination: scratch.path.appending("new.sqlite"))
    plan.schema = try AssemblyFixture.schema.map(statement)
    plan.control.primaryKeys = [
      PrimaryKeyRow(number: 1, name: "Carried", superNumber: 0, highestKey: 900),
      PrimaryKeyRow(number: 3, name: "Thing", superNumber: 0, highestKey: 40),
    ]
    plan.tables = [
      table("ZCARRIED", "Carried", .carried, ["ZA", "ZB"], from: "ZOLD", ["ZX", "ZY"]),
      computed(),
      table("ZEMPTY", "Empty", .empty, [], from: nil, []),
      // Rows without successors have no table in the destination.
      table("ZGONE", "Gone", .removed, [], from: "ZGONE", []),
    ]
    plan.joinTables = [
      JoinTablePlan(
        name: "Z_1NEW", columns: ["Z_1LEFT", "Z_2RIGHT"], way: .carried, sourceTable: "Z_1OLD",
        carriedColumns: ["Z_1L", "Z_2R"], sql: nil, ranks: []),
      JoinTablePlan(
        name: "Z_3PAIR", columns: ["Z_3LEFT", "Z_3RIGHT", "Z_FOK_3LEFT"], way: .computed,
        sourceTable: nil, carriedColumns: [], sql: "SELECT 1, 2, 3", ranks: []),
    ]
    plan.foreignTables = [
      ForeignTablePlan(
        name: "ANSCKTHING",
        sql: "CREATE TABLE ANSCKTHING (Z_PK INTEGER PRIMARY KEY AUTOINCREMENT, "
          + "ZENTITYID INTEGER, ZNOTE VARCHAR)",
        columns: ["Z_PK", "ZENTITYID", "ZNOTE"],
        expressions: [
          quoted("Z_PK"), "CASE \"ZENTITYID\" WHEN 1 THEN 5 ELSE \"ZENTITYID\" END",
          quoted("ZNOTE"),
        ], rowIDName: "Z_PK")
    ]
    plan.foreignIndexes = ["CREATE INDEX ANSCKTHING_NOTE ON ANSCKTHING (ZNOTE)"]
    plan.triggers = [
      """
      CREATE TRIGGER Z_DA_TOUCH AFTER INSERT ON ZTHING BEGIN
        UPDATE ZTHING SET ZVALUE = NSCoreDataNow() WHERE Z_PK = NEW.Z_PK; END
      """
    ]
    // The units of ZTHING stand in the other order than their keys do.
    plan.units = [
      Shard(subject: .table(0), keys: 1...900, estimatedBytes: 1),
      Shard(subject: .table(1), keys: 21...40, estimatedBytes: 1),
      Shard(subject: .table(1), keys: 1...20, estimatedBytes: 1),
      Shard(subject: .joinTable(0), keys: 1...900, estimatedBytes: 1),
      Shard(subject: .joinTable(1), keys: 1...40, estimatedBytes: 1),
      Shard(subject: .foreignTable(0), keys: 1...20, estimatedBytes: 1),
      Shard(subject: .table(3), keys: 1...20, estimatedBytes: 1),
    ]
  }

  private func table(
    _ name: String, _ root: EntityName, _ way: TableStrategy, _ columns: [String],
    from source: String?,
    _ carried: [String]
  ) -> TablePlan {
    TablePlan(
      name: name, root: root, way: way, columns: columns, sourceTable: source,
      keptColumns: carried, copyColumns: [], copyExpressions: [], linkColumns: [],
      pairQueries: [], entities: [], elsewhere: [], expectedRows: 0, attributePlaces: [],
      relationshipPlaces: [])
  }

  private func computed() -> TablePlan {
    var thing = table(
      "ZTHING", "Thing", .computed, ["ZKEY", "ZVALUE", "ZNAME", "ZUNUSED"], from: "ZOLD", [])
    thing.attributePlaces = [1, 2]
    thing.relationshipPlaces = [0]
    // Two entities in one table; the second has no rows.
    thing.entities = [("Thing", 3), ("SubThing", 4)].map { name, number in
      EntityProgram(
        source: name, destination: name, sourceNumber: number, destinationNumber: number,
        attributes: [], relationships: [], sourceRules: RowRules([]),
        destinationRules: RowRules([]), references: [])
    }
    return thing
  }

  var assembly: StoreAssembly { StoreAssembly(plan: plan, run: run) }
  var destination: FilePath { scratch.path.appending("assembled.sqlite") }

  /// The finished rows of one unit of ZTHING.
  func writeThings(
    _ keys: ClosedRange<Int64>, unit: Int, name: (Int64) -> String = { "thing \($0)" }
  ) throws {
    try writeCheckpoint(
      .rows, unit,
      rows: keys.map { key in
        let reference: SQLiteValue = key % 2 == 0 ? .null : .integer(key * 3)
        // SQLite keeps whole numbers of real columns as integers.
        return (
          key,
          [.null, .integer(3), .integer(1), reference, .integer(key), .text(name(key)), .null]
        )
      })
  }

  /// What an undisturbed run of the workers leaves before the assembly.
  func writeCheckpoints() throws {
    try writeThings(1...20, unit: 2)
    try writeThings(21...40, unit: 1)
    try writeCheckpoint(
      .rows, 4,
      rows: (1...40).map { ($0, [.integer(($0 + 3) / 4), .integer($0), .integer(2048)]) })
  }

  func writeCheckpoint(
    _ stage: Stage, _ unit: Int, rows: [(key: Int64, values: [SQLiteValue])],
    summary: ShardSummary = ShardSummary()
  ) throws {
    let writer = try run.writer(
      stage, unit, fingerprint: try #require(Hexadecimal.bytes(of: plan.fingerprint)))
    for row in rows {
      try record(row.values).withUnsafeBytes { try writer.append(channel: 0, key: row.key, $0) }
    }
    try writer.finish(summary: [UInt8](try JSONEncoder().encode(summary)))
  }

  func assembled() throws -> Connection {
    try assembly.assemble(at: destination)
    return try Connection(path: destination.string, mode: .readOnly)
  }
}

/// A row as SQLite's record.
func record(_ values: [SQLiteValue]) -> [UInt8] {
  var buffer = RawBuffer()
  var kept: [[UInt8]] = []
  let raw = values.map { value -> (RawValue, Int?) in
    switch value {
    case .null: return (.null, nil)
    case .integer(let integer): return (.integer(integer), nil)
    case .real(let number): return (.real(number), nil)
    case .text(let text):
      kept.append(Array(text.utf8))
      return (.text(nil, count: text.utf8.count), kept.count - 1)
    case .blob(let bytes):
      kept.append(bytes)
      return (.blob(nil, count: bytes.count), kept.count - 1)
    }
  }
  // One block keeps all texts and blobs where the raw values point.
  let block = UnsafeMutableRawPointer.allocate(
    byteCount: kept.reduce(1) { $0 + $1.count }, alignment: 1)
  defer { block.deallocate() }
  var place = block
  var places: [UnsafeMutableRawPointer] = []
  for bytes in kept {
    places.append(place)
    bytes.withUnsafeBytes {
      place.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(block), byteCount: $0.count)
    }
    place += bytes.count
  }
  let pointed = raw.map { value, index -> RawValue in
    var value = value
    if let index { value.bytes = UnsafeRawPointer(places[index]) }
    return value
  }
  pointed.withUnsafeBufferPointer {
    if let start = $0.baseAddress { _ = RecordFormat.encode(start, count: $0.count, into: &buffer) }
  }
  return Array(buffer.bytes)
}

/// A statement of the schema, as a plan file has it.
func statement(_ sql: String) throws -> SchemaStatement {
  let words = sql.split(separator: " ")
  let isTable = words[1] == "TABLE"
  let name = String(words[words[1] == "UNIQUE" ? 3 : 2])
  let table = isTable ? name : String(words[words.firstIndex(of: "ON").map { $0 + 1 } ?? 0])
  let json: [String: Any] = [
    "name": name, "sql": sql, "kind": isTable ? "table" : "index", "table": table,
    "indexedColumns": [], "isUnique": words[1] == "UNIQUE", "goesByName": true,
  ]
  return try JSONDecoder().decode(
    SchemaStatement.self, from: try JSONSerialization.data(withJSONObject: json))
}
