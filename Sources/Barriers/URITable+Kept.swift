import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import GodwitWorker
import SystemPackage

extension URITable {
  /// Writes the table of a step that leaves objects their keys, as a stage's handler does: every
  /// object that was there before has a line, and became itself. Those that are new, or gone,
  /// have none.
  ///
  /// - Parameters:
  ///   - store: As the step has left it, without a WAL.
  ///   - firstNewKeys: Table → the first key that the step gave out.
  ///   - step: What stands in the field of the mapping.
  /// - Returns: The number of pairs.
  @discardableResult
  package static func write(
    keptIn store: FilePath, model: EntityHierarchy, firstNewKeys: [String: Int64], step: String,
    to path: FilePath
  ) throws -> Int64 {
    let source = try SourceStore(path: store, snapshotFolder: store.removingLastComponent())
    let layout = StoreBinding(source, model).layout
    try DurableFile.removeUnfinished([path])
    var file = try PendingFile(for: path, permissions: [.ownerReadWrite, .groupRead, .otherRead])
    var lines = Array((header + "\n").utf8)
    var count: Int64 = 0
    for table in layout.tables where source.hasTable(table.name) {
      for entity in table.entities {
        let rows = try source.connection.prepare(
          """
          SELECT Z_PK
            FROM \(quoted(table.name))
           WHERE Z_ENT = ?1 AND Z_PK < ?2
           ORDER BY Z_PK
          """)
        try rows.bind(1, Int64(layout.entityNumbers[entity] ?? 0))
        try rows.bind(2, firstNewKeys[table.name] ?? Int64.max)
        let prefix = ObjectURI.prefix(
          store: source.metadata.uuid ?? "", entity: entity.rawValue)
        let name = field(step)
        while try rows.step() {
          let object = prefix + String(rows.int64(0))
          lines.append(contentsOf: "\(name)\t\(object)\t\(object)\n".utf8)
          count += 1
          if lines.count >= bufferBytes {
            try lines.withUnsafeBytes { try file.write($0) }
            lines.removeAll(keepingCapacity: true)
          }
        }
      }
    }
    try lines.withUnsafeBytes { try file.write($0) }
    try file.publish()
    try source.connection.close()
    return count
  }
}
