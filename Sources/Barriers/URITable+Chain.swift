import GodwitDurableFiles
import GodwitSQLite
import GodwitWorker
import SystemPackage

extension URITable {
  /// Strings two tables together: what the second made of what the first made of the source.
  ///
  /// The order is the first's, then the second's. A name of the result is both names with ` → `
  /// between. SQLite does the joining, on disk, in flat memory.
  ///
  /// - Parameters:
  ///   - destination: Where the result goes, durably, in the place of an earlier one.
  ///   - scratch: The name of a private file for the time of the call.
  /// - Returns: The number of pairs.
  /// - Throws: ``StageError/association(path:reason:)`` for a file that is not a table.
  package static func join(
    _ first: FilePath, _ second: FilePath, to destination: FilePath, scratch: FilePath
  ) throws -> Int64 {
    try DurableFile.removeIfPresent(scratch)
    let count = try join(first, second, to: destination, in: scratch)
    try DurableFile.removeIfPresent(scratch)
    return count
  }

  private static func join(
    _ first: FilePath, _ second: FilePath, to destination: FilePath, in scratch: FilePath
  ) throws -> Int64 {
    let store = try Connection(path: scratch.string, mode: .create)
    try store.execute(
      """
      PRAGMA journal_mode = OFF;
      PRAGMA synchronous = OFF;
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA cache_size = -16384;
      BEGIN;
      CREATE TABLE a (seq INTEGER PRIMARY KEY, mapping TEXT, source TEXT, destination TEXT);
      CREATE TABLE b (seq INTEGER PRIMARY KEY, mapping TEXT, source TEXT, destination TEXT);
      """)
    for (table, path) in [("a", first), ("b", second)] {
      let insert = try store.prepare(
        "INSERT INTO \(table) (mapping, source, destination) VALUES (?1, ?2, ?3)")
      try forEachLine(of: path) { fields in
        for place in 0..<3 { try insert.bind(Int32(place + 1), fields[place]) }
        try insert.run()
      }
    }
    try store.execute("CREATE INDEX bySource ON b (source)")
    let joined = try store.prepare(
      """
      SELECT a.mapping || ' → ' || b.mapping, a.source, b.destination
        FROM a CROSS JOIN b ON b.source = a.destination
       ORDER BY a.seq, b.seq
      """)
    var file = try PendingFile(
      for: destination, permissions: [.ownerReadWrite, .groupRead, .otherRead])
    var lines = RawBuffer(capacity: bufferBytes + 4096)
    lines.append(Array((header + "\n").utf8))
    var count: Int64 = 0
    let row = RowValues(count: 3)
    while try joined.step() {
      joined.read(into: row.values, from: 0, count: 3)
      for place in 0..<3 {
        lines.append(row.values[place].buffer)
        lines.append(UInt8(ascii: place == 2 ? "\n" : "\t"))
      }
      count += 1
      if lines.count >= bufferBytes {
        try file.write(lines.bytes)
        lines.removeAll()
      }
    }
    try file.write(lines.bytes)
    try file.publish()
    return count
  }

  /// Puts a finished table somewhere else, durably, in the place of an earlier one there.
  package static func copy(_ table: FilePath, to destination: FilePath) throws {
    try DurableFile.removeUnfinished([destination])
    var file = try PendingFile(
      for: destination, permissions: [.ownerReadWrite, .groupRead, .otherRead])
    try forEachPiece(of: table) { try file.write($0) }
    try file.publish()
  }

  /// Gives the three fields of every line but the first. They are valid until the body returns.
  private static func forEachLine(
    of path: FilePath, _ body: (UnsafePointer<RawValue>) throws -> Void
  ) throws {
    let fields = RowValues(count: 3)
    var rest = RawBuffer(capacity: bufferBytes * 2)
    var isFirst = true
    try forEachPiece(of: path) { piece in
      rest.append(piece)
      let bytes = rest.bytes
      var start = 0
      while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { start = end + 1 }
        if isFirst {
          isFirst = false
          continue
        }
        var field = 0
        var begin = start
        for place in start...end
        where bytes[place] == UInt8(ascii: "\t") || place == end {
          guard field < 3, let base = bytes.baseAddress else { throw malformed(path) }
          fields.values[field] = .text(base + begin, count: place - begin)
          field += 1
          begin = place + 1
        }
        guard field == 3 else { throw malformed(path) }
        try body(fields.values)
      }
      let left = Array(bytes[start...])
      rest.removeAll()
      rest.append(left)
    }
    guard rest.isEmpty, !isFirst else { throw malformed(path) }
  }

  private static func malformed(_ path: FilePath) -> StageError {
    .association(path: path.string, reason: "it is not a table of object URIs")
  }

  private static func forEachPiece(
    of path: FilePath, _ body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    let file: FileDescriptor
    do {
      file = try RegularFile.open(path, isPrivate: true)
    } catch let error as DurabilityError {
      throw StageError.association(path: path.string, reason: "\(error)")
    }
    try file.closeAfter {
      let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferBytes, alignment: 1)
      defer { piece.deallocate() }
      while case let count = try file.read(into: piece), count > 0 {
        try body(UnsafeRawBufferPointer(rebasing: piece[..<count]))
      }
    }
  }
}
