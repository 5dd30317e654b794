import Foundation
import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// A store between two versions, open for a stage's handler. It lies in the run directory: what a
/// handler does never reaches the source.
public final class StageStore: StageStoreAccess {
  public let model: EntityHierarchy
  private let layout: StoreLayout
  private let files: StoreFiles
  private let connection: Connection
  /// Table and column of an attribute → its statements, prepared once.
  private var readers: [Place: Statement] = [:]
  private var writers: [Place: Statement] = [:]
  /// The object whose `Z_OPT` has risen last.
  private var touched: StageObjectID?
  /// Required attributes that were set to NULL, perhaps only for a while.
  private var emptied: [Place: (entity: EntityName, attribute: String)] = [:]

  private struct Place: Hashable {
    var table: String
    var column: String
  }

  /// 1000 objects are looked up at a time, so that a handler may write while it walks.
  private static let batch: Int64 = 1000

  /// 1 GiB: more than that SQLite itself would not hold.
  private static let largestValue: Int64 = 1 << 30

  private init(path: FilePath, model: EntityHierarchy) throws {
    files = StoreFiles(path)
    self.model = model
    let source = try SourceStore(
      path: path, snapshotFolder: path.removingLastComponent().appending("snapshot"))
    layout = StoreBinding(source, model).layout
    try source.connection.close()
    connection = try Connection(path: path.string, mode: .readWrite)
    // Triggers of derived attributes call Core Data's functions.
    try connection.registerFunctionStubs(CarriedTriggers.coreDataFunctions)
  }

  /// Runs a handler over a store, in one transaction.
  ///
  /// - Parameters:
  ///   - path: A store in the run directory, without a WAL.
  ///   - model: The one that the store was written under.
  /// - Throws: What the handler throws, `StagedMigrationError`, `SQLiteError`; the store is then
  ///   as it was.
  public static func run(
    _ handler: CustomMigrationStage.Handler, on path: FilePath, model: EntityHierarchy
  ) throws {
    let store = try StageStore(path: path, model: model)
    // A rollback journal leaves one file behind, which is what the next step copies.
    _ = try store.connection.rows("PRAGMA journal_mode = DELETE")
    try store.connection.execute("BEGIN IMMEDIATE")
    do {
      try handler(store)
      try store.checkRequired()
      store.forgetStatements()
      try store.connection.execute("COMMIT")
    } catch {
      store.forgetStatements()
      try? store.connection.execute("ROLLBACK")
      try? store.connection.close()
      throw error
    }
    try store.connection.close()
  }

  private func forgetStatements() {
    readers = [:]
    writers = [:]
  }

  public func fetch(_ entity: EntityName, _ body: (StageObjectID) throws -> Void) throws {
    guard let table = layout.table(of: entity) else {
      throw refused(entity, "", "the model has no such entity")
    }
    var names: [Int64: EntityName] = [:]
    for name in model.concrete(of: entity) {
      if let number = layout.entityNumbers[name] { names[Int64(number)] = name }
    }
    let numbers = names.keys.sorted().map(String.init).joined(separator: ", ")
    let query = """
      SELECT Z_PK, Z_ENT FROM \(quoted(table.name))
       WHERE Z_PK > ? AND Z_ENT IN (\(numbers)) ORDER BY Z_PK LIMIT \(Self.batch)
      """
    var last = Int64.min
    while true {
      let rows = try connection.rows(query, [.integer(last)])
      for row in rows {
        guard let key = row[0].integer, let name = row[1].integer.flatMap({ names[$0] }) else {
          continue
        }
        try body(StageObjectID(entity: name, primaryKey: key))
        last = key
      }
      if rows.count < Self.batch { return }
    }
  }

  public func value(of attribute: String, for object: StageObjectID) throws -> SQLiteValue {
    let (description, place) = try find(attribute, of: object.entity)
    let statement =
      try readers[place]
      ?? connection.prepare(
        "SELECT \(quoted(place.column)) FROM \(quoted(place.table)) WHERE Z_PK = ? AND Z_ENT = ?")
    readers[place] = statement
    statement.reset()
    defer { statement.reset() }
    try bindKeys(of: object, to: statement, from: 1)
    guard try statement.step() else { throw missing(object, attribute) }
    let value = statement.value(0)
    guard description.allowsExternalBinaryDataStorage, let bytes = value.blob else { return value }
    return .blob(try content(bytes, object, attribute))
  }

  public func setValue(
    _ value: SQLiteValue, of attribute: String, for object: StageObjectID
  ) throws {
    let (description, place) = try find(attribute, of: object.entity)
    if let (code, message) = StageValueRules.problem(value, description) {
      throw StagedMigrationError.invalidValue(
        entity: object.entity.rawValue, property: attribute, code: code, message: message)
    }
    if value.isNull, !description.traits.isOptional {
      emptied[place] = (object.entity, attribute)
    }
    let statement =
      try writers[place]
      ?? connection.prepare(
        """
        UPDATE \(quoted(place.table)) SET \(quoted(place.column)) = ?, Z_OPT = Z_OPT + ?
         WHERE Z_PK = ? AND Z_ENT = ? RETURNING Z_PK
        """)
    writers[place] = statement
    statement.reset()
    defer { statement.reset() }
    var stored = value
    if description.allowsExternalBinaryDataStorage, let bytes = value.blob {
      // 0x01 says that the bytes are in the row. Format reference §5.1.
      stored = .blob([1] + bytes)
    }
    try statement.bind(1, stored)
    try statement.bind(2, touched == object ? 0 : 1)
    try bindKeys(of: object, to: statement, from: 3)
    do {
      guard try statement.step() else { throw missing(object, attribute) }
      while try statement.step() {}
    } catch let error as SQLiteError where error.isConstraintUnique {
      throw StagedMigrationError.invalidValue(
        entity: object.entity.rawValue, property: attribute, code: 1551,
        message: "the value breaks a uniqueness constraint (Z_PK \(object.primaryKey)).")
    }
    touched = object
  }
}

extension StageStore {
  private func bindKeys(
    of object: StageObjectID, to statement: Statement, from place: Int32
  ) throws {
    try statement.bind(place, object.primaryKey)
    try statement.bind(place + 1, Int64(layout.entityNumbers[object.entity] ?? 0))
  }

  private func find(
    _ attribute: String, of entity: EntityName
  ) throws -> (AttributeDescription, Place) {
    guard let property = model.property(attribute, of: entity)?.property,
      let description = property.attribute, property.isStored,
      let table = layout.table(of: entity), let column = layout.column(of: attribute, in: entity)
    else { throw refused(entity, attribute, "there is no such stored attribute") }
    return (description, Place(table: table.name, column: column))
  }

  private func refused(
    _ entity: EntityName, _ attribute: String, _ message: String
  ) -> StagedMigrationError {
    .invalidValue(
      entity: entity.rawValue, property: attribute, code: 1550, message: message + ".")
  }

  private func missing(_ object: StageObjectID, _ attribute: String) -> StagedMigrationError {
    // 133000: a fault whose row is not there.
    .invalidValue(
      entity: object.entity.rawValue, property: attribute, code: 133_000,
      message: "there is no object with Z_PK \(object.primaryKey).")
  }

  /// Required attributes have a value when a handler is done, as when Core Data saves.
  private func checkRequired() throws {
    for (place, what) in emptied {
      let numbers = model.concrete(of: what.entity).compactMap { layout.entityNumbers[$0] }
        .sorted().map(String.init).joined(separator: ", ")
      let rows = try connection.rows(
        """
        SELECT Z_PK FROM \(quoted(place.table))
         WHERE \(quoted(place.column)) IS NULL AND Z_ENT IN (\(numbers)) LIMIT 1
        """)
      guard let key = rows.first?.first?.integer else { continue }
      throw StagedMigrationError.invalidValue(
        entity: what.entity.rawValue, property: what.attribute, code: 1570,
        message: "the attribute is required and has no value (Z_PK \(key)).")
    }
  }

  /// What stands behind a value that may be in a file of its own. Format reference §5.1.
  private func content(
    _ bytes: [UInt8], _ object: StageObjectID, _ attribute: String
  ) throws -> [UInt8] {
    switch bytes.first {
    case 1: return Array(bytes.dropFirst())
    case 2:
      let name = String(decoding: bytes.dropFirst().dropLast(), as: UTF8.self)
      guard ExternalData.isSound(name) else {
        throw refused(object.entity, attribute, "the name of its external data is damaged")
      }
      let path = files.externalDataFolder.appending(name)
      guard let size = FileMark(path)?.size, size <= Self.largestValue,
        let data = FileManager.default.contents(atPath: path.string)
      else {
        throw refused(object.entity, attribute, "its external data is missing, or too large")
      }
      return [UInt8](data)
    default: return bytes
    }
  }
}
