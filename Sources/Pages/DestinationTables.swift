import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite
import Synchronization

/// The tables of one destination schema as SQLite sees them: the same for every store of a pair of
/// models, so that SQLite parses the schema once in a process.
package final class DestinationTables: Sendable {
  private struct State {
    /// An empty database of the schema, made with the first question.
    var schema: Connection?
    var tables: [Question: CoveredTable?] = [:]
  }

  private struct Question: Hashable {
    var name: NameKey
    var key: NameKey?
    var columns: [NameKey]
  }

  private let statements: [String]
  private let state = Mutex(State())
  /// An empty file of the schema, see ``fillBlank(reading:_:)``.
  private let blank = Mutex<Connection?>(nil)
  private static let known = Mutex<[[NameKey]: DestinationTables]>([:])
  /// A run over a fleet meets a few pairs of models; whoever meets more asks again.
  private static let mostSchemas = 16

  /// - Parameter plan: Whose schema it is.
  package static func of(_ plan: MigrationPlan) -> DestinationTables {
    let statements = plan.schema.map(\.sql)
    return known.withLock { known in
      let key = statements.map(NameKey.init)
      if let tables = known[key] { return tables }
      if known.count >= mostSchemas { known.removeAll() }
      let tables = DestinationTables(statements)
      known[key] = tables
      return tables
    }
  }

  private init(_ statements: [String]) { self.statements = statements }

  /// Lets the body fill an empty file of the schema, held in memory, and takes back what it did.
  ///
  /// - Parameters:
  ///   - source: A file that the body reads as `src`; nil where it needs none.
  ///   - body: Runs in a transaction.
  package func fillBlank(
    reading source: String?, _ body: (Connection) throws -> Void
  ) throws {
    try blank.withLock { blank in
      let file = try blank ?? makeBlank()
      // After an error it is made anew.
      blank = nil
      if let source { try file.attachImmutable(source, as: "src") }
      try file.execute("BEGIN")
      try body(file)
      try file.execute("ROLLBACK")
      if source != nil { try file.execute("DETACH src") }
      file.setCancelCheck(nil)
      blank = file
    }
  }

  private func makeBlank() throws -> Connection {
    let file = try Connection(path: ":memory:", mode: .create)
    try file.execute(DestinationTables.form)
    try file.execute("BEGIN")
    for statement in statements { try file.execute(statement) }
    try file.execute("COMMIT")
    return file
  }

  /// Page size and auto_vacuum are fixed by the first table: format reference §1.
  package static let form = "PRAGMA page_size = 4096; PRAGMA auto_vacuum = 2"

  /// The table of an entity and of those below it; nil where it takes SQLite to write it.
  package func covered(_ table: TablePlan) throws -> CoveredTable? {
    try covered(table.name, key: "Z_PK", columns: ["Z_ENT", "Z_OPT"] + table.columns)
  }

  /// Likewise for any table, see ``CoveredTable/init(_:key:columns:in:)``.
  package func covered(
    _ name: String, key: String?, columns: [String]
  ) throws -> CoveredTable? {
    let question = Question(
      name: NameKey(name), key: key.map(NameKey.init), columns: columns.map(NameKey.init))
    return try state.withLock { state in
      if let known = state.tables[question] { return known }
      if state.schema == nil {
        let schema = try Connection(path: ":memory:", mode: .create)
        for statement in statements { try schema.execute(statement) }
        // Every table asks, and a schema of a thousand tables takes milliseconds to read.
        try schema.keepSchema()
        state.schema = schema
      }
      guard let schema = state.schema else { return nil }
      let table = try CoveredTable(name, key: key, columns: columns, in: schema)
      state.tables[question] = .some(table)
      return table
    }
  }
}
