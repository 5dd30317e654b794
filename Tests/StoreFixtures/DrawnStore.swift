import Foundation
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// A store with the very rows that a test writes down.
package struct DrawnStore {
  private let model: ManagedObjectModel
  private let seed: UInt64

  /// - Parameter seed: Gives the store its UUID.
  package init(_ model: ManagedObjectModel, seed: UInt64 = 1) {
    self.model = model
    self.seed = seed
  }

  /// Writes the store and the folders on the way to it.
  ///
  /// - Parameters:
  ///   - path: The file must not exist.
  ///   - fill: Puts the rows in. Highest keys are counted afterwards.
  package func write(to path: String, _ fill: (Connection) throws -> Void) throws {
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let generator = try StoreGenerator(model, options: StoreOptions(seed: seed, rows: 0))
    try generator.write(to: path)
    let store = try Connection(path: path, mode: .readWrite)
    try store.execute("PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; BEGIN")
    try fill(store)
    for table in generator.layout.tables {
      try store.execute(
        """
        UPDATE Z_PRIMARYKEY
           SET Z_MAX = (SELECT coalesce(max(Z_PK), 0) FROM \(StoreLayout.identifier(table.name)))
         WHERE Z_ENT = \(generator.layout.entityNumbers[table.root] ?? 0)
        """)
    }
    try store.execute("COMMIT; PRAGMA journal_mode = WAL")
    try store.close()
  }

  /// Writes a store whose rows are SQL.
  package func write(to path: String, rows: String) throws {
    try write(to: path) { try $0.execute(rows) }
  }
}

extension Connection {
  /// Rows as a small text table: values by spaces, rows by line.
  package func drawn(_ sql: String) throws -> [String] {
    try rows(sql).map { row in
      row.map { value in
        switch value {
        case .null: "-"
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .text(let text): text
        case .blob(let bytes): "\(bytes.count) bytes"
        }
      }.joined(separator: " ")
    }
  }
}
