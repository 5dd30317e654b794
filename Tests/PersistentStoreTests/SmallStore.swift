import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// A store of a few rows, written by hand.
struct SmallStore {
  let path: FilePath
  let hierarchy: EntityHierarchy

  static let uuid = "0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0"

  /// - Parameter rows: SQL that fills the application tables.
  init(
    _ hierarchy: EntityHierarchy, at path: FilePath, rows: String, isWAL: Bool = false,
    isClosed: Bool = true
  ) throws {
    self.path = path
    self.hierarchy = hierarchy
    let schema = DestinationSchema(StoreLayout(hierarchy))
    let connection = try Connection(path: path.string, mode: .create)
    try connection.execute("PRAGMA auto_vacuum = 2")
    if isWAL { try connection.execute("PRAGMA journal_mode = WAL") }
    for statement in schema.statements { try connection.execute(statement.sql) }
    try connection.execute(rows)
    var highest: [EntityName: Int64] = [:]
    for table in schema.layout.tables {
      let row = try connection.rows("SELECT max(Z_PK) FROM \(quoted(table.name))").first
      highest[table.root] = row?.first?.integer ?? 0
    }
    for row in schema.primaryKeys(highestKeys: highest) {
      _ = try connection.rows(
        "INSERT INTO Z_PRIMARYKEY VALUES (?, ?, ?, ?)",
        [
          .integer(row.number), .text(row.name), .integer(row.superNumber),
          .integer(row.highestKey),
        ])
    }
    let metadata = StoreMetadata(uuid: Self.uuid, plist: ["author": .string("kept")])
    _ = try connection.rows(
      "INSERT INTO Z_METADATA VALUES (1, ?, ?)",
      [.text(Self.uuid), .blob(metadata.bytes(migratedTo: hierarchy))])
    try connection.close()
  }

  func execute(_ sql: String) throws {
    let connection = try Connection(path: path.string, mode: .readWrite)
    try connection.execute(sql)
    try connection.close()
  }

  func open(snapshots: FilePath? = nil) throws -> SourceStore {
    try SourceStore(
      path: path, snapshotFolder: snapshots ?? path.removingLastComponent().appending("snapshot"))
  }

  /// Findings without those of the model cache, which a small store does not have.
  func findings() throws -> [StoreFinding] {
    try StoreSoundness.check(StoreBinding(try open(), hierarchy)).filter {
      $0.kind != .modelcache && $0.kind != .note
    }
  }

  /// Writers with works in order, readers of many works, a cover for each work, sub-entities.
  static func library() throws -> EntityHierarchy {
    try EntityHierarchy(
      EntityDescription(
        name: "Cover",
        properties: [
          .attribute("image", .binary, isExternal: true),
          .relationship("work", "Work", inverse: "cover"),
        ]),
      EntityDescription(
        name: "Reader",
        properties: [
          .attribute("name", .string, isOptional: false), .attribute("age", .integer16),
          .attribute("id", .uuid), .attribute("isMember", .boolean),
          .relationship("works", "Work", inverse: "readers", isToMany: true, isOrdered: true),
          .relationship("notes", "Note", isToMany: true),
        ],
        uniquenessConstraints: [["name"]]),
      EntityDescription(name: "Note"),
      EntityDescription(
        name: "Work", isAbstract: true,
        properties: [
          .attribute("title", .string, validation: [.minimumLength(2), .maximumLength(6)]),
          .relationship("cover", "Cover", inverse: "work"),
          .relationship("readers", "Reader", inverse: "works", isToMany: true),
          .relationship("writer", "Writer", inverse: "works"),
        ]),
      EntityDescription(name: "Poem", superentity: "Work"),
      EntityDescription(
        name: "Novel", superentity: "Work", properties: [.attribute("pages", .integer32)]),
      EntityDescription(
        name: "Writer",
        properties: [
          .attribute("workCount", .integer64, derivation: "count:(works)"),
          .relationship("works", "Work", inverse: "writer", isToMany: true, isOrdered: true),
        ]))
  }

  /// Numbers: Cover 1, Note 2, Reader 3, Work 4 with Novel 5 and Poem 6, Writer 7.
  static let libraryRows = """
    INSERT INTO ZWRITER (Z_PK, Z_ENT, Z_OPT, ZWORKCOUNT) VALUES (1, 7, 1, 2), (2, 7, 1, 0);
    INSERT INTO ZWORK (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZPAGES, ZCOVER, ZWRITER, Z_FOK_WRITER)
      VALUES (1, 5, 1, 'Emma', 400, 1, 1, 2048), (2, 6, 1, 'Ode', NULL, NULL, 1, 3072);
    INSERT INTO ZCOVER (Z_PK, Z_ENT, Z_OPT, ZWORK, Z4_WORK, ZIMAGE)
      VALUES (1, 1, 1, 1, 5, x'01FF'), (2, 1, 1, NULL, NULL, NULL);
    INSERT INTO ZREADER (Z_PK, Z_ENT, Z_OPT, ZNAME, ZAGE, ZID, ZISMEMBER)
      VALUES (1, 3, 1, 'a', 7, x'00112233445566778899AABBCCDDEEFF', 1), (2, 3, 1, 'b', NULL, NULL, 0);
    INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, Z3NOTES) VALUES (1, 2, 1, 1), (2, 2, 1, NULL);
    """
}
