import GodwitDurableFiles
import GodwitSQLite
import SystemPackage

/// What the header of a store's file says, checked; see `DatabaseHeader`.
package struct FileHeader: Sendable, Equatable {
  package let pageSize: Int
  /// The file wants a WAL beside it.
  package let isWAL: Bool
  package let reservedBytes: Int
  /// As the header has it; nil where an old SQLite left it unset.
  package let pageCount: Int64?
  package let hasAutoVacuum: Bool

  /// Checks the header of a file of `size` bytes.
  ///
  /// - Parameter readPath: The file itself, where it is a copy of the store.
  /// - Throws: ``StoreError``.
  init(_ path: FilePath, bytes: [UInt8], size: Int64, readPath: FilePath? = nil) throws {
    if size == 0 { throw StoreError.empty(path) }
    guard DatabaseHeader.isMagic(bytes) else {
      throw StoreError.notSQLite(path, mayBeEncrypted: Self.looksEncrypted(bytes, size: size))
    }
    guard let header = DatabaseHeader(bytes) else {
      throw StoreError.truncated(path, expectedBytes: 512, foundBytes: size)
    }
    guard header.hasPossiblePageSize else {
      throw StoreError.impossibleHeader(path, reason: "its page size is \(header.statedPageSize)")
    }
    guard (1...2).contains(header.writeVersion), (1...2).contains(header.readVersion) else {
      throw StoreError.impossibleHeader(
        path, reason: "its format versions are \(header.writeVersion) and \(header.readVersion)")
    }
    guard header.hasPossibleUsableBytes else {
      throw StoreError.impossibleHeader(
        path, reason: "it reserves \(header.reservedBytes) bytes a page")
    }
    guard header.schemaFormat <= 4 else {
      throw StoreError.impossibleHeader(path, reason: "its schema format is \(header.schemaFormat)")
    }
    try Self.requireNoUTF16(path, header, at: readPath ?? path)
    // 0 is a database in which nothing was ever made.
    guard header.textEncoding <= 1 else {
      throw StoreError.impossibleHeader(path, reason: "its texts are not UTF-8")
    }
    pageSize = header.pageSize
    isWAL = header.writeVersion == 2
    reservedBytes = header.reservedBytes
    pageCount = header.pageCount
    hasAutoVacuum = header.largestRoot != 0
  }

  /// Tells a sound database in UTF-16 from one whose header has a wrong bit: in the first SQLite reads
  /// a schema.
  ///
  /// - Throws: ``StoreError/utf16(_:)``.
  package static func requireNoUTF16(
    _ store: FilePath, _ header: DatabaseHeader, at readPath: FilePath
  ) throws {
    guard (2...3).contains(header.textEncoding) else { return }
    let isReadable = try SQLiteError.nilByContent {
      try Connection(path: readPath.string, mode: .immutable)
        .rows("SELECT 1 FROM sqlite_master WHERE type = 'table' LIMIT 1").first
    }
    if isReadable != nil { throw StoreError.utf16(store) }
  }

  /// - Throws: ``StoreError/truncated(_:expectedBytes:foundBytes:)`` when pages are missing, or would lie in a
  ///   hole that SQLite leaves in no file.
  func checkLength(_ path: FilePath, readPath: FilePath) throws {
    let (size, end) = try StoreFiles.reading(path) {
      let file = try RegularFile.open(readPath)
      return try file.closeAfter {
        let size = try file.seek(offset: 0, from: .end)
        return (size, SparseFile.end(of: file.rawValue, size: size))
      }
    }
    let expected = max(pageCount ?? size / Int64(pageSize), 1) * Int64(pageSize)
    guard end >= expected else {
      throw StoreError.truncated(path, expectedBytes: expected, foundBytes: end)
    }
  }

  /// Noise from the first byte on, in whole pages: what SQLCipher and its like write.
  private static func looksEncrypted(_ bytes: [UInt8], size: Int64) -> Bool {
    bytes.count >= 100 && size % 512 == 0 && Set(bytes).count >= 64
  }
}
