import Foundation
import GodwitCommit
import GodwitDurableFiles
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

// Binary values that may lie in files of their own. Source: `core-data-sqlite-format.md` §5.1.
extension StageStore {
  /// Core Data keeps larger values in files; the largest inline value seen has 99 813 bytes.
  private static let mostInlineBytes = 100_000

  /// 512 MiB: a file larger than this is not taken into memory.
  private static let largestFile = 1 << 29

  /// What stands behind a value: 0x01 and the bytes, or 0x02, a file's name and a zero byte.
  func content(
    _ bytes: [UInt8], _ object: ObjectReference, _ key: String
  ) throws -> [UInt8] {
    switch bytes.first {
    case 1: return Array(bytes.dropFirst())
    case 2:
      let name = String(decoding: bytes.dropFirst().dropLast(), as: UTF8.self)
      guard ExternalDataFolder.isSound(name) else {
        throw refused(object, key, "the name of its external data is damaged")
      }
      let path = files.externalDataFolder.appending(name)
      guard
        let bytes = try RegularFile.bytesIfPresent(of: path, limit: Self.largestFile)
      else { throw refused(object, key, "its external data is missing") }
      return bytes
    default: return bytes
    }
  }

  /// What stands in the column for a value; a large one is written to a file.
  func externalForm(
    _ bytes: [UInt8], _ object: ObjectReference, _ key: String
  ) throws -> [UInt8] {
    guard bytes.count > Self.mostInlineBytes else { return [1] + bytes }
    // The name follows from the row and the value, so that a handler that runs again writes the
    // same files.
    let subject = Array("\(object.entity) \(object.primaryKey) \(key)".utf8)
    let name = bytes.withUnsafeBytes { ExternalFileName.name(of: subject, $0) }
    let path = files.externalDataFolder.appending(name)
    if try FileMark(path)?.size != Int64(bytes.count) {
      try DurableFile.makeFolder(files.externalDataFolder)
      try DurableFile.write(bytes, to: path)
    }
    newFiles?.append(name)
    return [2] + Array(name.utf8) + [0]
  }

  /// Notes the file of a value that is replaced or goes with its object.
  func drop(_ stored: SQLiteValue) throws {
    guard let bytes = stored.blob, bytes.first == 2, bytes.count == 38 else { return }
    try dropFile(String(decoding: bytes[1..<37], as: UTF8.self))
  }

  /// Notes a file that no row may refer to any more.
  func dropFile(_ name: String) throws {
    _ = try connection.rows("INSERT OR IGNORE INTO temp.dropped VALUES (?1)", [.text(name)])
  }

  /// The files that rows referred to before the handler, and that none does now.
  func unreferencedFiles() throws -> [String] {
    guard try !connection.rows("SELECT 1 FROM temp.dropped LIMIT 1").isEmpty else { return [] }
    for (table, column) in externalColumns {
      let column = quoted(column)
      try connection.execute(
        """
        DELETE FROM temp.dropped
         WHERE name IN (
               SELECT CAST(substr(\(column), 2, 36) AS TEXT)
                 FROM \(quoted(table))
                WHERE typeof(\(column)) = 'blob' AND length(\(column)) = 38
                  AND substr(\(column), 1, 1) = x'02')
        """)
    }
    return try connection.rows("SELECT name FROM temp.dropped ORDER BY name")
      .compactMap { $0[0].text }.filter(ExternalDataFolder.isSound)
  }

  /// Every column whose values begin with a storage marker.
  private var externalColumns: [(table: String, column: String)] {
    layout.tables.flatMap { table in
      Set(table.entities.flatMap { layout.externalColumns(of: $0).map(\.column) }).sorted()
        .map { (table.name, $0) }
    }
  }
}
