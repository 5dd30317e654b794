import GodwitCommit
import GodwitDurableFiles
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// A store between two versions, open for a stage's handler. It lies in the run directory: what a
/// handler does never reaches the source.
///
/// Changes go to SQLite at once, in one transaction; which objects they concern is kept in a
/// temporary table, so that saving looks at those alone and memory stays flat.
package final class StageStore: StageStoreAccess {
  /// What a handler is run with.
  package struct Settings {
    /// Which store the references to objects name.
    package var side: ObjectReference.Store
    /// The engine for regular expressions of the model's rules.
    package var pattern: StoreSoundness.PatternCompiler?
    /// What `now()` is in predicates and derived attributes, in seconds since 2001-01-01 UTC.
    package var runDate: Double

    package init(
      side: ObjectReference.Store, pattern: StoreSoundness.PatternCompiler?, runDate: Double
    ) {
      self.side = side
      self.pattern = pattern
      self.runDate = runDate
    }
  }

  package let model: EntityHierarchy
  let layout: StoreLayout
  let files: StoreFiles
  let connection: Connection
  let settings: Settings
  package var side: ObjectReference.Store { settings.side }
  package private(set) var isOver = false
  let listEnds = ListEnds()
  /// How properties are reached, each found once.
  var places: [EntityName: [String: StagePlace]] = [:]
  /// The properties of each entity whose values may lie in files, elements of composites too.
  var externalProperties: [EntityName: [String]] = [:]
  /// Root entity → the highest key given out.
  var highestKeys: [EntityName: Int64] = [:]
  /// Table → the first of them.
  var firstNewKeys: [String: Int64] = [:]
  /// Entity → the relationships that lead to it and that a derived attribute counts.
  var countedRelationships: [EntityName: [StageRelationship]] = [:]
  /// Entity → its `INSERT`.
  var inserts: [EntityName: Statement] = [:]
  /// Table → whether it has a row of a key and an entity number.
  private var presence: [String: Statement] = [:]
  private let entitiesByNumber: [Int64: EntityName]
  /// The object that was noted last.
  private var noted: ObjectReference?
  private var noteStatement: Statement?
  /// Around a change of several statements.
  private var savepoint: (begin: Statement, end: Statement)?
  /// Names of the external files that a change of several statements has written so far.
  var newFiles: [String]?
  /// Rises with every object that is deleted.
  var deletions = 0
  /// The entities of these.
  var deleted: Set<EntityName> = []

  /// 1000 objects are looked up at a time, so that a handler may write while it walks.
  private static let batch: Int64 = 1000

  private init(path: FilePath, model: EntityHierarchy, _ settings: Settings) throws {
    files = StoreFiles(path)
    self.settings = settings
    let source = try SourceStore(
      path: path, snapshotFolder: path.removingLastComponent().appending("snapshot"))
    let binding = StoreBinding(source, model)
    self.model = binding.hierarchy
    layout = binding.layout
    try source.connection.close()
    entitiesByNumber = Dictionary(
      layout.entityNumbers.map { (Int64($1), $0) }, uniquingKeysWith: { a, _ in a })
    connection = try Connection(path: path.string, mode: .readWrite)
    // Triggers of derived attributes call Core Data's functions.
    try connection.registerFunctionStubs(CarriedTriggers.coreDataFunctions)
    try connection.registerNumber(CarriedTriggers.now, settings.runDate)
    for derivation in TextDerivation.allCases {
      try connection.registerTextFunction(derivation.sqlName, derivation.apply)
    }
  }

  /// What a handler did.
  package struct Outcome: Sendable {
    /// Names of external data files that no row refers to any more. They are removed.
    package var obsolete: [String]
    /// Objects that were changed or inserted.
    package var changed: Int64
    /// Objects of each entity; nil where none was inserted or deleted.
    package var counts: [EntityName: Int64]?
    /// Table → the first key that was given out.
    package var firstNewKeys: [String: Int64]
    /// About objects that could not be validated, and attributes that are not derived again.
    package var notes: [StoreFinding]
  }

  /// Runs a handler over a store, in one transaction, and saves.
  ///
  /// - Parameters:
  ///   - path: A store in the run directory, without a WAL.
  ///   - model: The one that the store was written under.
  /// - Throws: What the handler throws, `StagedMigrationError`, `SQLiteError`; the store's rows are
  ///   then as they were.
  @discardableResult
  package static func run(
    _ handler: CustomMigrationStage.Handler, on path: FilePath, model: EntityHierarchy,
    settings: Settings
  ) throws -> Outcome {
    do {
      return try change(path, model: model, settings: settings) { try handler(StageContext($0)) }
    } catch let error as RepeatedValue {
      throw StagedMigrationError.invalidValue(
        entity: error.entity.rawValue, property: error.property, code: 1551,
        message: "the value breaks a uniqueness constraint (Z_PK \(error.key)).")
    }
  }

  /// Changes a store, in one transaction, and saves.
  ///
  /// - Throws: What the body throws, ``RepeatedValue``, `StagedMigrationError`, `SQLiteError`.
  @discardableResult
  static func change(
    _ path: FilePath, model: EntityHierarchy, settings: Settings,
    _ body: (StageStore) throws -> Void
  ) throws -> Outcome {
    let store = try StageStore(path: path, model: model, settings)
    let connection = store.connection
    let wasWAL =
      try connection.rows("PRAGMA journal_mode").first?.first?.text?.lowercased() == "wal"
    // A rollback journal leaves one file behind, which is what the next step copies.
    _ = try connection.rows("PRAGMA journal_mode = DELETE")
    // The file is synced when it is finished, and made again after a crash.
    _ = try connection.rows("PRAGMA synchronous = OFF")
    try store.prepareChanges()
    try connection.execute("BEGIN IMMEDIATE")
    let outcome: Outcome
    do {
      let triggers = try store.takeTriggers()
      try body(store)
      let notes = try store.save()
      outcome = Outcome(
        obsolete: try store.unreferencedFiles(), changed: try store.changedCount(),
        counts: try store.counts(), firstNewKeys: store.firstNewKeys, notes: notes)
      store.forgetStatements()
      try store.putBack(triggers)
      try connection.execute("COMMIT")
    } catch {
      store.forgetStatements()
      if connection.isInTransaction { try? connection.execute("ROLLBACK") }
      try? connection.close()
      throw error
    }
    // What reads the header next takes the store's mode over.
    if wasWAL { _ = try connection.rows("PRAGMA journal_mode = WAL") }
    try connection.close()
    try DurableFile.syncFile(path)
    try ExternalDataFolder.remove(outcome.obsolete, from: store.files.externalDataFolder)
    return outcome
  }

  /// Before the connection is closed: a handler may have kept the store.
  private func forgetStatements() {
    isOver = true
    places = [:]
    countedRelationships = [:]
    inserts = [:]
    presence = [:]
    noteStatement = nil
    savepoint = nil
  }
}

// Objects.
extension StageStore {
  package func fetch(
    _ entity: EntityName, where predicate: PredicateExpression?,
    _ body: (ObjectReference) throws -> Void
  ) throws {
    guard let table = layout.table(of: entity) else {
      throw refused(entity, "", "the model has no such entity")
    }
    let condition = predicate.map { predicate in
      let evaluator = Evaluator(
        access: StageObjectAccess(self), runDate: settings.runDate, seed: 0)
      return { try evaluator.holds(predicate, in: .filter(of: $0)) }
    }
    let name = quoted(table.name)
    // Objects that the body inserts are not met, or the walk might never end.
    let last = try connection.rows("SELECT max(Z_PK) FROM \(name)").first?.first?.integer
    let query = """
      SELECT Z_PK, Z_ENT
        FROM \(name)
       WHERE Z_PK >= ?1 AND Z_PK <= ?2 AND Z_ENT IN (\(numbers(of: entity)))
       ORDER BY Z_PK
       LIMIT \(Self.batch)
      """
    var next = Int64.min
    while true {
      let rows = try connection.rows(query, [.integer(next), .integer(last ?? 0)])
      let before = deletions
      for row in rows {
        guard let key = row[0].integer, let name = row[1].integer.flatMap({ entityName($0) })
        else { continue }
        next = key == .max ? key : key + 1
        let object = ObjectReference(name, key, in: settings.side)
        // Perhaps the body deleted it.
        if deletions != before, try !exists(object) { continue }
        if let condition, try !condition(object) { continue }
        try body(object)
      }
      // The last key of all would be met again and again.
      if rows.count < Self.batch || rows.last?[0].integer == last { return }
    }
  }

  package func exists(_ object: ObjectReference) throws -> Bool {
    guard let table = layout.table(of: object.entity)?.name else { return false }
    let statement =
      try presence[table]
      ?? connection.prepare(
        "SELECT 1 FROM \(quoted(table)) WHERE Z_PK = ?1 AND Z_ENT = ?2")
    presence[table] = statement
    try statement.bind(1, object.primaryKey)
    try statement.bind(2, number(of: object.entity))
    defer { statement.reset() }
    return try statement.step()
  }

  func number(of entity: EntityName) -> Int64 { Int64(layout.entityNumbers[entity] ?? 0) }

  func entityName(_ number: Int64) -> EntityName? { entitiesByNumber[number] }

  /// `1, 2`: the numbers of what may have objects, for an SQL list; `NULL` for none.
  func numbers(of entity: EntityName) -> String {
    let numbers = model.concrete(of: entity).map { number(of: $0) }.sorted()
    return numbers.isEmpty ? "NULL" : numbers.map(String.init).joined(separator: ", ")
  }
}

// What is changed.
extension StageStore {
  private func prepareChanges() throws {
    try connection.execute(
      """
      CREATE TEMP TABLE changes (
        ent INTEGER, pk INTEGER, inserted INTEGER, PRIMARY KEY (ent, pk)
      ) WITHOUT ROWID
      """)
    try connection.execute(
      "CREATE TEMP TABLE recounts (ent INTEGER, pk INTEGER, PRIMARY KEY (ent, pk)) WITHOUT ROWID")
    try connection.execute("CREATE TEMP TABLE dropped (name TEXT PRIMARY KEY) WITHOUT ROWID")
  }

  /// Notes that an object was changed, or inserted: it is validated when the handler is done.
  func note(_ object: ObjectReference, isNew: Bool = false) throws {
    guard noted != object else { return }
    let statement =
      try noteStatement
      ?? connection.prepare("INSERT OR IGNORE INTO temp.changes VALUES (?1, ?2, ?3)")
    noteStatement = statement
    try statement.bind(1, number(of: object.entity))
    try statement.bind(2, object.primaryKey)
    try statement.bind(3, isNew ? 1 : 0)
    try statement.run()
    noted = object
  }

  /// Makes a change of several statements, or none of it: a handler may catch the error and go on.
  func whole(_ change: () throws -> Void) throws {
    let statements =
      try savepoint
      ?? (connection.prepare("SAVEPOINT change"), connection.prepare("RELEASE change"))
    savepoint = statements
    newFiles = []
    defer { newFiles = nil }
    try statements.begin.run()
    do {
      try change()
    } catch {
      // A statement that found the disk full may have taken back the whole transaction.
      if connection.isInTransaction {
        try connection.execute("ROLLBACK TO change")
        try statements.end.run()
        for name in newFiles ?? [] { try dropFile(name) }
      }
      noted = nil
      listEnds.forget()
      throw error
    }
    try statements.end.run()
  }

  private func changedCount() throws -> Int64 {
    try connection.rows("SELECT count(*) FROM temp.changes").first?.first?.integer ?? 0
  }

  private func counts() throws -> [EntityName: Int64]? {
    guard deletions > 0 || !highestKeys.isEmpty else { return nil }
    var counts: [EntityName: Int64] = [:]
    for entity in model.order where model[entity]?.isAbstract == false { counts[entity] = 0 }
    for table in layout.tables {
      for row in try connection.rows(
        "SELECT Z_ENT, count(*) FROM \(quoted(table.name)) GROUP BY Z_ENT")
      {
        guard let name = row[0].integer.flatMap({ entityName($0) }) else { continue }
        counts[name] = row[1].integer
      }
    }
    return counts
  }

  func forget(_ object: ObjectReference) throws {
    noted = nil
    _ = try connection.rows(
      "DELETE FROM temp.changes WHERE ent = ?1 AND pk = ?2",
      [.integer(number(of: object.entity)), .integer(object.primaryKey)])
  }
}

// Errors.
extension StageStore {
  func refused(
    _ entity: EntityName, _ property: String, _ message: String, code: Int = 1550
  ) -> StagedMigrationError {
    .invalidValue(
      entity: entity.rawValue, property: property, code: code, message: message + ".")
  }

  /// - Parameter message: Of one sentence, behind which the object's key is named.
  func refused(
    _ object: ObjectReference, _ property: String, _ message: String, code: Int = 1550
  ) -> StagedMigrationError {
    refused(object.entity, property, "\(message) (Z_PK \(object.primaryKey))", code: code)
  }

  func missing(_ object: ObjectReference, _ property: String) -> StagedMigrationError {
    // 133000: a fault whose row is not there.
    refused(
      object.entity, property, "there is no object with Z_PK \(object.primaryKey)", code: 133_000)
  }
}
