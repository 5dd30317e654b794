import Foundation
import GodwitSQLite

/// A pipeline over stores of one order each.
extension PipelineFolder {
  static func orders(_ stores: [String] = ["a", "b"], _ keys: String = "") throws -> PipelineFolder
  {
    let folder = try PipelineFolder("total-cost")
    for name in stores { try folder.writeOrder(name) }
    try folder.set(keys)
    return folder
  }

  /// Writes `stores/NAME.sqlite`.
  func writeOrder(_ name: String) throws {
    let folder = URL(fileURLWithPath: path("stores/\(name).sqlite")).deletingLastPathComponent()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try write(
      "stores/\(name).sqlite", "Orders.xcdatamodeld/Orders",
      "INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) VALUES (1, 1, 1, 'A', 5)")
  }

  /// Writes the pipeline's file with further keys.
  func set(_ keys: String, stores: String = "{ roots: stores }") throws {
    try """
    stores: \(stores)
    models: Orders.xcdatamodeld
    mappings: orders.mapping.yaml
    \(keys)
    """.write(toFile: path("pipeline.yaml"), atomically: true, encoding: .utf8)
  }

  /// A window that this minute is not in, nor one that a test could take to come.
  static var closedWindow: String {
    var parts = tm()
    var now = time(nil) + 12 * 3_600
    localtime_r(&now, &parts)
    let hour = parts.tm_hour < 10 ? "0\(parts.tm_hour)" : "\(parts.tm_hour)"
    return "limits: { window: \"\(hour):00-\(hour):59\" }"
  }

  /// What is no store, where one should be.
  func writeBad(_ name: String) throws {
    try Data("no store".utf8).write(to: URL(fileURLWithPath: path("stores/\(name).sqlite")))
  }

  /// A shell script of that name.
  ///
  /// - Returns: Its folder.
  func program(_ name: String, _ script: String) throws -> String {
    let bin = path("bin")
    try FileManager.default.createDirectory(atPath: bin, withIntermediateDirectories: true)
    try "#!/bin/sh\n\(script)\n"
      .write(toFile: "\(bin)/\(name)", atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: "\(bin)/\(name)")
    return bin
  }

  /// Makes the metadata of a store a view that computes without end and gives no row.
  func makeMetadataEndless(_ store: String) throws {
    let connection = try Connection(path: path(store), mode: .readWrite)
    try connection.execute(
      """
      DROP TABLE Z_METADATA;
      CREATE VIEW Z_METADATA AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
      SELECT i AS Z_UUID, i AS Z_PLIST, i AS rowid FROM n WHERE i < 0
      """)
    try connection.close()
  }

  /// Another application's connection to a store, in a read transaction.
  func reader(of name: String) throws -> Connection {
    let connection = try Connection(path: path("stores/\(name).sqlite"), mode: .readWrite)
    try connection.execute("PRAGMA journal_mode = WAL")
    try connection.execute("BEGIN")
    _ = try connection.rows("SELECT count(*) FROM ZORDER")
    return connection
  }
}

extension Godwit.Run {
  /// The reason of a store that did not end well.
  func reason(of store: String) -> String? {
    let result = results.first { $0.key.hasSuffix("/\(store).sqlite") }?.value
    return (result?["reasons"] as? [[String: Any]])?.first?["reason"] as? String
  }

  func lines(_ event: String) -> [[String: Any]] {
    lines.filter { $0["event"] as? String == event }
  }
}
