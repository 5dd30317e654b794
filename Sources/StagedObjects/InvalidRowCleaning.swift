import GodwitCommit
import GodwitDurableFiles
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// Brings an assembled destination to its validation rules: gives attributes their default values, or
/// takes rows out and notes them in a store of rejects.
///
/// A row that is taken out takes no other along: references to it are nullified, whatever the model's
/// delete rules say, since rows that are sound are to stay. A row that needs the reference breaks a
/// rule by that, and is taken out next. Rows are looked at until none breaks a rule.
///
/// The store of rejects is SQLite:
///
///     ZREJECT  entity TEXT   of the destination
///              Z_PK INTEGER  in the destination
///              code INTEGER  Core Data's code of the rule
///              rule TEXT     what is wrong, in words
///              property TEXT
///              value         as it was
///              sourceEntity TEXT, sourceZ_PK INTEGER  the object that it was made of, the first of
///                            several; NULL where it was made of none
///
/// A row that breaks several rules has a line for each.
package struct InvalidRowCleaning: Sendable {
  /// What was done.
  package struct Outcome: Codable, Sendable, Equatable {
    /// Objects taken out, by entity.
    package var setAside: [String: Int64] = [:]
    /// References to these that others lose, by `Entity.relationship`.
    package var cleared: [String: Int64] = [:]
    /// Values given, by `Entity.attribute`.
    package var defaulted: [String: Int64] = [:]
    /// `Z_PK` of the first objects, by the same names.
    package var examples: [String: [Int64]] = [:]

    mutating func add(_ key: Int64, to name: String) {
      var keys = examples[name, default: []]
      keys.insert(key, at: keys.firstIndex { $0 > key } ?? keys.endIndex)
      examples[name] = Array(keys.prefix(Reason.mostPrimaryKeys))
    }
  }

  /// How many references of each relationship an object has lost.
  private typealias Cleared = [ObjectReference: [String: Int64]]

  let policy: InvalidPolicy
  let rejects: FilePath

  /// - Parameter rejects: A new file, made where rows are set aside.
  package init(_ policy: InvalidPolicy, rejects: FilePath) {
    (self.policy, self.rejects) = (policy, rejects)
  }

  /// - Parameters:
  ///   - path: The assembled file, to which nobody else has a connection.
  ///   - settings: As for a handler: how patterns are read.
  ///   - origins: Gives entity and key of each source object, and of an object that was made of it.
  /// - Throws: ``StagedMigrationError/invalidObjects(_:)`` where rows break rules all the same,
  ///   `CommitError.givenValue` where values that they are given, or that derive from these, are not unique.
  package func clean(
    _ path: FilePath, model: EntityHierarchy, settings: StageStore.Settings,
    origins: ((EntityName, Int64, EntityName, Int64) throws -> Void) throws -> Void = { _ in }
  ) throws -> Outcome {
    var outcome = Outcome()
    var cleared: Cleared = [:]
    let rejects = policy == .setAside ? try RejectStore(rejects) : nil
    do {
      try StageStore.change(path, model: model, settings: settings) { store in
        var isFirst = true
        while true {
          var handled = 0
          for entity in store.model.order {
            handled += try handle(
              entity, in: store, onlyChanged: !isFirst, rejects, &outcome, &cleared)
          }
          isFirst = false
          // Default values are given once: what they do not cure, saving reports.
          if handled == 0 || policy != .setAside { return }
        }
      }
    } catch let error as RepeatedValue {
      var rows = RowTally()
      rows.add(error.key)
      let names = error.constraints(in: model).map { $0.joined(separator: ", ") }
      throw CommitError.givenValue(
        entity: error.entity.rawValue, property: error.property,
        constraint: names.isEmpty ? error.property : names.joined(separator: " or "), rows: rows,
        isDefault: policy == .default)
    }
    try rejects?.finish(origins)
    for (object, properties) in cleared {
      for (property, count) in properties {
        let name = "\(object.entity.rawValue).\(property)"
        outcome.cleared[name, default: 0] += count
        outcome.add(object.primaryKey, to: name)
      }
    }
    return outcome
  }

  /// As much of what was done as a store of rejects tells: the objects that were taken out.
  package static func outcome(notedIn rejects: FilePath) throws -> Outcome {
    var outcome = Outcome()
    let connection = try Connection(path: rejects.string, mode: .immutable)
    let statement = try connection.prepare(
      "SELECT DISTINCT entity, Z_PK FROM ZREJECT ORDER BY entity, Z_PK")
    while try statement.step() {
      guard let entity = statement.value(0).text else { continue }
      outcome.setAside[entity, default: 0] += 1
      if outcome.examples[entity, default: []].count < Reason.mostPrimaryKeys {
        outcome.examples[entity, default: []].append(statement.int64(1))
      }
    }
    return outcome
  }

  /// Whether two stores of rejects note the same of the same objects.
  ///
  /// - Throws: `SQLiteError`, where one of them is none, too.
  package static func note(sameIn one: FilePath, _ other: FilePath) throws -> Bool {
    let statements = try [one, other].map {
      try Connection(path: $0.string, mode: .immutable).prepare(
        "SELECT entity, Z_PK, code, rule, property, value, sourceEntity, sourceZ_PK "
          + "FROM ZREJECT ORDER BY rowid")
    }
    while true {
      let (hasOne, hasOther) = (try statements[0].step(), try statements[1].step())
      guard hasOne, hasOther else { return hasOne == hasOther }
      for column in Int32(0)..<8
      where statements[0].value(column) != statements[1].value(column) { return false }
    }
  }

  /// - Returns: How many rows were taken out or changed.
  private func handle(
    _ entity: EntityName, in store: StageStore, onlyChanged: Bool, _ rejects: RejectStore?,
    _ outcome: inout Outcome, _ cleared: inout Cleared
  ) throws -> Int {
    var (handled, last) = (0, nil as Int64?)
    while true {
      let rows = try store.brokenRules(of: entity, after: last, onlyChanged: onlyChanged)
      guard let next = rows.last?.key else { return handled }
      last = next
      for row in rows {
        let object = ObjectReference(entity, row.key, in: store.settings.side)
        if policy == .setAside {
          for broken in row.broken {
            try rejects?.add(
              entity: entity.rawValue, key: row.key, code: broken.code, rule: broken.message,
              property: broken.property,
              value: try store.storedValue(broken.property, of: object))
          }
          try store.takeOut(object) { cleared[$0, default: [:]][$1, default: 0] += 1 }
          // Between two objects that are both taken out nothing is lost but these.
          cleared[object] = nil
          outcome.setAside[entity.rawValue, default: 0] += 1
          outcome.add(row.key, to: entity.rawValue)
          handled += 1
        } else {
          for property in Set(row.broken.map(\.property)).sorted()
          where try store.setDefault(property, of: object) {
            let name = "\(entity.rawValue).\(property)"
            outcome.defaulted[name, default: 0] += 1
            outcome.add(row.key, to: name)
            handled += 1
          }
          // So that saving looks at it.
          try store.note(object)
        }
      }
    }
  }
}

/// The file that rows which were taken out are noted in.
private final class RejectStore {
  private let connection: Connection
  /// Nil once the file is finished.
  private var insert: Statement?
  private let path: FilePath

  init(_ path: FilePath) throws {
    self.path = path
    try DurableFile.removeIfPresent(path)
    // Values of rows are in it: nobody else may read it.
    try DurableFile.create([], at: path)
    connection = try Connection(path: path.string, mode: .readWrite)
    try connection.execute("PRAGMA journal_mode = OFF")
    try connection.execute(
      """
      CREATE TABLE ZREJECT (
        entity TEXT NOT NULL, Z_PK INTEGER NOT NULL, code INTEGER NOT NULL, rule TEXT NOT NULL,
        property TEXT NOT NULL, value, sourceEntity TEXT, sourceZ_PK INTEGER
      )
      """)
    try connection.execute("BEGIN")
    insert = try connection.prepare(
      "INSERT INTO ZREJECT VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL, NULL)")
  }

  func add(
    entity: String, key: Int64, code: Int, rule: String, property: String, value: SQLiteValue
  ) throws {
    let values: [SQLiteValue] = [
      .text(entity), .integer(key), .integer(Int64(code)), .text(rule), .text(property), value,
    ]
    for (place, value) in values.enumerated() { try insert?.bind(Int32(place + 1), value) }
    try insert?.run()
  }

  func finish(
    _ origins: ((EntityName, Int64, EntityName, Int64) throws -> Void) throws -> Void
  ) throws {
    insert = nil
    try connection.execute("CREATE INDEX object ON ZREJECT (entity, Z_PK)")
    do {
      let update = try connection.prepare(
        """
        UPDATE ZREJECT SET sourceEntity = ?1, sourceZ_PK = ?2
         WHERE entity = ?3 AND Z_PK = ?4 AND sourceEntity IS NULL
        """)
      try origins { source, sourceKey, entity, key in
        try update.bind(1, SQLiteValue.text(source.rawValue))
        try update.bind(2, sourceKey)
        try update.bind(3, SQLiteValue.text(entity.rawValue))
        try update.bind(4, key)
        try update.run()
      }
    }
    try connection.execute("DROP INDEX object")
    try connection.execute("COMMIT")
    try connection.close()
    try DurableFile.syncFile(path)
  }
}
