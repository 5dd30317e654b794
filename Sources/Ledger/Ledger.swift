import Foundation
import GodwitDurableFiles
import GodwitSQLite
import SystemPackage

/// The history of a pipeline's runs, open for one thread at a time. The format is in `LedgerFormat`.
///
/// Whoever runs the pipeline writes it, in groups of results; every other command reads it, or changes
/// a few rows while it holds the run's lock.
package final class Ledger {
  package let path: FilePath
  /// What happened to an earlier ledger of that name; nil where nothing did.
  package let note: String?
  /// Whether this value began it.
  package let isNew: Bool
  let connection: Connection
  private var statements: [String: Statement] = [:]
  /// A condition in SQL on `runs`: which of them are listed, see ``narrow(to:)``.
  var ownRuns = "TRUE"
  /// The files that are those of the pipeline, and that of them under which its fleet is known; nil for
  /// every pipeline by its own, see ``narrow(to:)``.
  var ownFleet: (files: [String], file: String)?
  /// What the file has of what was added to the format later.
  private(set) var additions: Set<LedgerAddition> = []

  package static let fileName = "ledger.sqlite"

  /// Opens the ledger for writing, or begins one. A file that is no database, or a ledger that is damaged, is
  /// set aside under a name of its own.
  ///
  /// - Parameters:
  ///   - now: Seconds since 1970-01-01 UTC.
  ///   - readsAll: Whether every page is looked at: whatever is damaged is found now, and not when it
  ///     is needed.
  ///   - patienceMilliseconds: How long a statement waits for whoever reads.
  /// - Throws: ``LedgerError/newerVersion(path:found:known:)``, ``LedgerError/foreign(path:)``;
  ///   `DurabilityError` for a file that belongs to another user or that others may write to; `SQLiteError` where the volume fails.
  package convenience init(
    writingAt path: FilePath, now: Double, readsAll: Bool = false,
    patienceMilliseconds: Int32 = 5_000
  ) throws {
    let path = path.resolvingFolders
    do {
      try self.init(path, note: nil, readsAll: readsAll, patienceMilliseconds)
    } catch let error as LedgerError {
      guard case .damaged(_, let message) = error else { throw error }
      let aside = try Self.setAside(path, now: now)
      try self.init(
        path,
        note: "\(path) could not be read as a ledger (\(message)) and was set aside as \(aside). "
          + "A new history begins; the run directory still tells what is done.",
        patienceMilliseconds)
    }
  }

  private init(
    _ path: FilePath, note: String?, readsAll: Bool = false, _ patienceMilliseconds: Int32
  ) throws {
    self.path = path
    self.note = note
    if try FileKind(at: path) == .none {
      try DurableFile.write([], to: path)
    } else {
      try RegularFile.open(path, isPrivate: true, isSole: true).close()
      try Self.requireOwn(path)
    }
    let connection = try Connection(
      path: path.string, mode: .readWrite, busyTimeoutMilliseconds: patienceMilliseconds)
    self.connection = connection
    isNew = try Self.asLedger(path) {
      try connection.execute(
        "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA foreign_keys = OFF")
      let isEmpty = try connection.rows("PRAGMA page_count").first?.first?.integer == 0
      if isEmpty { try Self.begin(connection) }
      try Self.check(connection, path)
      if readsAll, try connection.rows("PRAGMA quick_check(1)").first?.first?.text != "ok" {
        throw LedgerError.damaged(path: path, message: "some of its pages are damaged")
      }
      return isEmpty
    }
    try Self.asLedger(path) { try addToFormat() }
  }

  /// A copy in memory, which takes what the ledger itself cannot be told now; of none, a new one. Nothing is
  /// written to the file.
  ///
  /// - Throws: As ``init(readingAt:)``.
  package init(copying path: FilePath) throws {
    let original = try Ledger(readingAt: path)
    let connection = try Connection(path: ":memory:", mode: .create)
    self.connection = connection
    self.path = path.resolvingFolders
    note = nil
    isNew = original == nil
    try Self.asLedger(path) {
      if let original {
        try connection.copy(original.connection)
      } else {
        try Self.begin(connection)
      }
      try addToFormat()
    }
  }

  private static func begin(_ connection: Connection) throws {
    try connection.transaction {
      try connection.execute(LedgerFormat.schema)
      try connection.execute("PRAGMA application_id = \(LedgerFormat.applicationID)")
      try connection.execute("PRAGMA user_version = \(LedgerFormat.version)")
    }
  }

  /// Adds what the file does not have of the format.
  private func addToFormat() throws {
    additions = try knownAdditions()
    for addition in LedgerAddition.allCases where additions.insert(addition).inserted {
      try writing { try addition.make(in: self) }
    }
  }

  /// Opens the ledger for reading; nil where there is none, or an empty file.
  ///
  /// - Throws: ``LedgerError``; `DurabilityError` for what is no regular file.
  package init?(readingAt path: FilePath) throws {
    let path = path.resolvingFolders
    guard try FileKind(at: path) != .none else { return nil }
    if try RegularFile.firstBytes(of: path, count: 1).isEmpty { return nil }
    try Self.requireOwn(path)
    self.path = path
    note = nil
    isNew = false
    // A journal that a crash left is played back, which needs the right to write.
    connection = try Self.asLedger(path) {
      do {
        let connection = try Connection(path: path.string, mode: .readWrite)
        _ = try connection.rows("SELECT count(*) FROM sqlite_schema")
        return connection
      } catch let error as SQLiteError where !error.isCorruption {
        return try Connection(path: path.string, mode: .readOnly)
      }
    }
    try Self.asLedger(path) {
      try Self.check(connection, path)
      additions = try knownAdditions()
    }
  }

  /// A prepared statement, kept for the next time.
  func statement(_ sql: String) throws -> Statement {
    if let known = statements[sql] {
      known.reset()
      known.clearBindings()
      return known
    }
    let statement = try connection.prepare(sql)
    statements[sql] = statement
    return statement
  }

  /// Runs a statement that gives no rows.
  func perform(_ sql: String, _ arguments: [SQLiteValue]) throws {
    let statement = try statement(sql)
    for (place, argument) in arguments.enumerated() {
      try statement.bind(Int32(place + 1), argument)
    }
    try Self.asLedger(path) { try statement.run() }
  }

  /// One row at a time, each valid only in the body.
  func forEach(
    _ sql: String, _ arguments: [SQLiteValue] = [], _ body: (Statement) throws -> Void
  ) throws {
    let statement = try statement(sql)
    for (place, argument) in arguments.enumerated() {
      try statement.bind(Int32(place + 1), argument)
    }
    defer { statement.reset() }
    while try Self.asLedger(path, { try statement.step() }) { try body(statement) }
  }

  /// Makes the changes of the body together, on the disk when this returns.
  package func writing<Result>(_ body: () throws -> Result) throws -> Result {
    try Self.asLedger(path) { try connection.transaction(body) }
  }
}

extension Ledger {
  /// What SQLite calls damage is a damaged ledger.
  private static func asLedger<Result>(_ path: FilePath, _ body: () throws -> Result) throws
    -> Result
  {
    do {
      return try body()
    } catch let error as SQLiteError where error.isCorruption {
      throw LedgerError.damaged(path: path, message: "it is not a sound SQLite database")
    }
  }

  /// Looks at the file's own bytes: SQLite, once it opens a database, may change it, and take its log away.
  private static func requireOwn(_ path: FilePath) throws {
    let bytes = try RegularFile.firstBytes(of: path, count: DatabaseHeader.byteCount)
    guard let header = DatabaseHeader(bytes) else { return }
    guard Int64(header.applicationID) == LedgerFormat.applicationID else {
      throw LedgerError.foreign(path: path)
    }
  }

  private static func check(_ connection: Connection, _ path: FilePath) throws {
    func number(_ pragma: String) throws -> Int64 {
      try connection.rows("PRAGMA \(pragma)").first?.first?.integer ?? 0
    }
    let version = try number("user_version")
    guard version <= LedgerFormat.version else {
      throw LedgerError.newerVersion(path: path, found: version, known: LedgerFormat.version)
    }
    guard version == LedgerFormat.version else {
      throw LedgerError.damaged(path: path, message: "it has format version \(version)")
    }
    // Whatever such a thing computes, it would be computed by every command.
    let foreign = try connection.rows(
      "SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'view') OR rootpage = 0 LIMIT 1")
    guard foreign.isEmpty else {
      throw LedgerError.damaged(path: path, message: "it has triggers, views or virtual tables")
    }
    // One page of each table: more would cost time on every start.
    for table in ["runs", "stores", "attempts", "backups", "quarantine"] {
      do {
        _ = try connection.rows("SELECT 1 FROM \(table) LIMIT 1")
      } catch let error as SQLiteError where error.isOfContent {
        throw LedgerError.damaged(path: path, message: "its table \(table) cannot be read")
      }
    }
  }

  /// Gives a damaged ledger another name.
  static func setAside(_ path: FilePath, now: Double) throws -> FilePath {
    let folder = path.removingLastComponent()
    for number in 0..<1_000 {
      let suffix = number == 0 ? "" : "-\(number)"
      let name = "\(path.lastComponent?.string ?? fileName).damaged-\(Int64(now))\(suffix)"
      do {
        let aside = folder.appending(name)
        try DurableFile.renameNew(path, to: aside)
        let journal = FilePath(path.string + "-journal")
        if try FileKind(at: journal) != .none {
          try DurableFile.renameNew(journal, to: FilePath(aside.string + "-journal"))
        }
        return aside
      } catch DurabilityError.alreadyExists {
        continue
      }
    }
    throw DurabilityError.alreadyExists(path)
  }
}

/// JSON of the ledger's columns.
enum LedgerJSON {
  static func text(_ value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    guard let data = try? encoder.encode(value) else { return "null" }
    return String(decoding: data, as: UTF8.self)
  }

  static func value<Value: Decodable>(_ type: Value.Type, _ text: String?) -> Value? {
    guard let text else { return nil }
    return try? JSONDecoder().decode(type, from: Data(text.utf8))
  }
}

extension SQLiteValue {
  /// Seconds since 1970 of a time that a calendar has; whatever else a damaged ledger says is none.
  var time: Double? { number.flatMap { abs($0) < 1e11 ? $0 : nil } }

  /// A number of things, so that sums of them are numbers, too.
  var amount: Int64 { min(max(integer ?? 0, 0), 1 << 48) }

  static func optional(_ text: String?) -> SQLiteValue { text.map { .text($0) } ?? .null }
  static func optional(_ number: Int?) -> SQLiteValue {
    number.map { .integer(Int64($0)) } ?? .null
  }
  static func optional(_ number: Int64?) -> SQLiteValue { number.map { .integer($0) } ?? .null }
  static func optional(_ number: Double?) -> SQLiteValue { number.map { .real($0) } ?? .null }
}
