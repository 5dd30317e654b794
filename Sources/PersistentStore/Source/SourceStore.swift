import GodwitObjectModel
import GodwitSQLite
import SystemPackage

/// A store opened for reading, without anything written to it or beside it.
///
/// A store whose newest rows are in its WAL, or whose journal must be played back, is read from a
/// private clone: SQLite would write to the store's files otherwise.
package final class SourceStore {
  /// The store's own files, wherever it is read from.
  package let files: StoreFiles
  /// The state of the files when they were opened. Compare it again before the commit.
  package let identity: StoreIdentity
  /// What is read: the store itself or its private clone. Safe to open as immutable by any process.
  package let readPath: FilePath
  /// Of the file at ``readPath``.
  package let header: FileHeader
  package let connection: Connection
  /// Everything in `sqlite_master`, in its order.
  package let schemaObjects: [SchemaObject]
  package let metadata: StoreMetadata
  /// The rows of `Z_PRIMARYKEY`, those of history entities included, that can be understood.
  package let primaryKeys: [PrimaryKeyRow]
  /// What is wrong with `Z_PRIMARYKEY` as a table.
  package let primaryKeyProblems: [String]

  /// Of ``schemaObjects``: the same for stores of the same text.
  let schemaForm: SchemaForm

  private let tableColumns: [NameKey: [(name: String, type: String)]]
  private var knownLogNote: String??

  /// Opens a store.
  ///
  /// - Parameter snapshotFolder: Where a private clone is made if one is needed. A clone of the
  ///   same state of the store that is there already is used again.
  /// - Parameter alwaysClones: Reads a clone in any case: one state of the store, whoever writes to
  ///   it meanwhile.
  /// - Parameter identity: What the caller has just looked at; nil to look now.
  /// - Throws: ``StoreError`` when the file is not a store; oddities inside of it are not errors but
  ///   ``StoreMetadata/problems`` and findings of ``StoreSoundness``.
  package init(
    path: FilePath, snapshotFolder: FilePath, alwaysClones: Bool = false,
    identity known: StoreIdentity? = nil
  ) throws {
    files = StoreFiles(path)
    var identity = try known ?? files.identity()
    try files.checkExternalDataKinds()
    var readPath = path
    let head = try StoreFiles.firstBytes(of: path, count: 100)
    var header = try FileHeader(path, bytes: head, size: identity.size)
    if alwaysClones || identity.hasPendingChanges {
      (readPath, identity) = try StoreSnapshot(folder: snapshotFolder).clone(of: files)
      header = try FileHeader(
        path, bytes: try StoreFiles.firstBytes(of: readPath, count: 100),
        size: try StoreFiles.mark(readPath).size, readPath: readPath)
    }
    try header.checkLength(path, readPath: readPath)
    self.identity = identity
    self.readPath = readPath
    self.header = header
    do {
      connection = try Connection(path: readPath.string, mode: .immutable)
      schemaObjects = try SchemaObject.all(connection)
      schemaForm = try connection.schemaForm()
    } catch let error as SQLiteError where error.isDamage {
      throw StoreError.damaged(path, reason: error.message)
    }
    let names = schemaObjects.filter { $0.kind == .table }.map(\.name)
    guard names.contains("Z_METADATA") || names.contains("Z_PRIMARYKEY") else {
      throw StoreError.notCoreData(path)
    }
    var columns: [NameKey: [(name: String, type: String)]] = [:]
    for name in names {
      // A virtual table of a module that is not here has no columns for us.
      columns[NameKey(name)] =
        try connection.shape(of: name)?.columns.filter { !$0.isHidden }
        .map { (name: $0.name, type: $0.declaredType) } ?? []
    }
    tableColumns = columns
    metadata = try StoreMetadata(connection)
    (primaryKeys, primaryKeyProblems) = try PrimaryKeyRow.all(connection)
  }
}

extension SourceStore {
  /// Columns of a table with their declared types, in order; none when there is no such table.
  package func columns(of table: String) -> [(name: String, type: String)] {
    tableColumns[NameKey(table)] ?? []
  }

  package func hasTable(_ name: String) -> Bool { tableColumns[NameKey(name)] != nil }

  /// Rows of `Z_PRIMARYKEY` below those of Core Data's own history and CloudKit entities.
  package var entityKeys: [PrimaryKeyRow] {
    primaryKeys.filter { $0.number < PrimaryKeyRow.firstHistoryNumber }
  }

  package var historyKeys: [PrimaryKeyRow] {
    primaryKeys.filter { $0.number >= PrimaryKeyRow.firstHistoryNumber }
  }

  /// Whether its model has no entities: its metadata lists no version hash then, and nothing else in it is of an
  /// entity, as it is where the hashes were lost.
  package var isWithoutEntities: Bool {
    metadata.hashedEntities.isEmpty && !metadata.plist.isEmpty && entityKeys.isEmpty
      && !schemaObjects.contains { object in
        object.kind == .table && SchemaObject.isApplicationTable(object.name)
          && !LayoutProblem.controlTables.contains(object.name)
      }
  }

  /// The model that the store carries in `Z_MODELCACHE`: as much of it as the store holds.
  ///
  /// nil where there is none: stores of frameworks before about 637 have no such table.
  /// - Throws: `ModelError` when what is there is no model.
  package func cachedModel() throws -> ManagedObjectModel? {
    guard let content = try cacheContent() else { return nil }
    let model = try ManagedObjectModel(modelCache: content)
    return part(of: model).map { model.restricted(to: $0) } ?? model
  }

  /// The model in `Z_MODELCACHE` with what follows from it, uncut: a store of one configuration may
  /// cache the whole model, which alone says what the configuration is called.
  package func wholeCachedHierarchy() throws -> EntityHierarchy? {
    try cacheContent().map { try EntityHierarchy(modelCache: $0) }
  }

  /// As much of it as the store holds.
  package func cachedHierarchy() throws -> EntityHierarchy? {
    guard let hierarchy = try wholeCachedHierarchy() else { return nil }
    return try part(of: hierarchy.model).map { try hierarchy.restricted(to: $0) } ?? hierarchy
  }

  /// Whether it carries one; false where that cannot be read.
  package func hasCachedModel() throws -> Bool {
    try SQLiteError.nilByContent { try cacheContent() } != nil
  }

  private func cacheContent() throws -> [UInt8]? {
    guard columns(of: "Z_MODELCACHE").contains(where: { $0.name == "Z_CONTENT" }) else {
      return nil
    }
    return try connection.rows("SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1").first?[0].blob
  }

  /// A store of one configuration may cache the whole model.
  private func part(of model: ManagedObjectModel) -> Set<EntityName>? {
    let names = Set(metadata.hashedEntities)
    let isPart = !names.isEmpty && names.isStrictSubset(of: Set(model.entities.map(\.name)))
    return isPart ? names : nil
  }

  /// Likewise, and nil, too, where what is there is no model.
  ///
  /// - Throws: `SQLiteError` where it is not what the store holds that keeps it from being read.
  package func readableModel() throws -> ManagedObjectModel? {
    try SQLiteError.nilByContent { try cachedModel() }
  }

  /// The store says WAL in its header.
  package var isWAL: Bool { header.isWAL }

  /// What of the WAL SQLite does not read, though it ends transactions; nil where there is nothing.
  ///
  /// - Complexity: O(*n*) in the frames behind the last commit, once.
  package func logNote() throws -> String? {
    if let knownLogNote { return knownLogNote }
    var note: String?
    let count = try CommittedLog.unreadTransactions(in: files.wal, behind: identity.walSize)
    if try identity.walSize == 0 && CommittedLog(files.wal).isIgnored {
      note =
        "The header of the WAL is damaged, so that SQLite reads nothing of it. What only the WAL says is not "
        + "in the store."
    } else if count > 0 {
      // What somebody has committed since is no part of what was opened.
      let log = try CommittedLog(files.wal)
      if log.size == identity.walSize, log.seal == identity.walSeal {
        note =
          "The WAL has \(count == 1 ? "a transaction" : "\(count) transactions") behind its last whole "
          + "one, which SQLite does not read since a checksum or a salt before the end is wrong: it was damaged, "
          + "or cut off while it was written. What only that part says is not in the store."
      }
    }
    knownLogNote = .some(note)
    return note
  }

  /// True when the store's own files are still what they were when this was opened.
  package func isUnchanged() throws -> Bool { try files.identity() == identity }
}

/// One row of `sqlite_master`.
package struct SchemaObject: Sendable, Equatable {
  package enum Kind: String, Sendable {
    case table, index, trigger, view
  }

  package let kind: Kind
  package let name: String
  /// The table that an index or a trigger belongs to; the name itself for tables and views.
  package let table: String
  /// 0 for what has no b-tree.
  package let rootPage: Int64
  /// nil for the automatic indexes of constraints.
  package let sql: String?

  static func all(_ connection: Connection) throws -> [SchemaObject] {
    try connection.schemaRows().compactMap { row in
      Kind(rawValue: row.type).map { kind in
        SchemaObject(
          kind: kind, name: row.name, table: row.table, rootPage: row.rootPage, sql: row.sql)
      }
    }
  }

  /// A table of the model or of Core Data itself. Everything else is carried, never rewritten.
  /// Source: `core-data-sqlite-format.md` §11.
  package static func isApplicationTable(_ name: String) -> Bool { name.utf8.first == 0x5A }
}

/// One row of `Z_PRIMARYKEY`. Source: `core-data-sqlite-format.md` §2.
package struct PrimaryKeyRow: Codable, Sendable, Hashable {
  /// `Z_ENT`.
  package var number: Int64
  package var name: String
  /// `Z_SUPER`; 0 for a root.
  package var superNumber: Int64
  /// `Z_MAX`: the highest `Z_PK` ever given out; 0 below a root.
  package var highestKey: Int64

  /// Numbers from here on are Core Data's own: history has 16001 to 16003.
  package static let firstHistoryNumber: Int64 = 16_000

  /// What the history's entities are called, whatever a damaged row says.
  package static let historyNames: [Int64: String] = [
    16_001: "CHANGE", 16_002: "TRANSACTION", 16_003: "TRANSACTIONSTRING",
  ]

  /// No model has so many entities; a hostile table may.
  private static let mostRows = 100_000

  package init(number: Int64, name: String, superNumber: Int64, highestKey: Int64) {
    self.number = number
    self.name = name
    self.superNumber = superNumber
    self.highestKey = highestKey
  }

  /// Rows that can be understood, in the order of their numbers, and what is wrong with others.
  static func all(_ connection: Connection) throws -> ([PrimaryKeyRow], [String]) {
    do {
      guard try connection.holds(["Z_ENT", "Z_NAME", "Z_SUPER", "Z_MAX"], in: "Z_PRIMARYKEY") else {
        return ([], ["Z_PRIMARYKEY or a column of it is missing"])
      }
      let rows = try connection.rows(
        """
        SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX
          FROM Z_PRIMARYKEY
         ORDER BY Z_ENT
         LIMIT \(mostRows)
        """)
      var odd = 0
      let found = rows.compactMap { row -> PrimaryKeyRow? in
        guard let number = row[0].integer, let name = row[1].text ?? historyNames[number] else {
          odd += 1
          return nil
        }
        if row[1].text == nil || row[2].integer == nil || row[3].integer == nil { odd += 1 }
        return PrimaryKeyRow(
          number: number, name: name, superNumber: row[2].integer ?? 0,
          highestKey: row[3].integer ?? 0)
      }
      return (found, odd == 0 ? [] : ["Z_PRIMARYKEY has \(odd) rows with values of a wrong type"])
    } catch let error as SQLiteError where error.isOfContent {
      return ([], ["Z_PRIMARYKEY cannot be read: \(error.message)"])
    }
  }
}

extension Connection {
  /// Whether a table with these columns is there, to be asked before anything of it is: a view or a generated
  /// column of its name could compute anything, without end.
  package func holds(_ columns: [String], in table: String) throws -> Bool {
    let found = try shape(of: table)?.columns.filter { !$0.isHidden }.map(\.name) ?? []
    return columns.allSatisfy(found.contains)
  }
}

extension SQLiteError {
  /// The file is damaged, or a statement in `sqlite_master` cannot be parsed: SQLite gives the
  /// latter the general error code where it is no damage of pages.
  package var isDamage: Bool {
    isCorruption || (primaryCode == 1 && message.contains("malformed"))
  }
}
