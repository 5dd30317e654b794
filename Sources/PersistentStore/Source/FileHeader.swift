import SystemPackage

/// The first 100 bytes of an SQLite file. Integers are big-endian.
///
///     offset  size  field
///          0    16  "SQLite format 3" and a zero byte
///         16     2  page size; 1 is 65 536
///         18     1  write version: 1 rollback journal, 2 WAL
///         19     1  read version
///         20     1  bytes reserved at the end of every page
///         24     4  change counter
///         28     4  number of pages, when the change counter stands at 92, too
///         52     4  largest root page; not 0 with auto-vacuum
///         56     4  text encoding: 1 UTF-8
///         64     4  not 0 with incremental auto-vacuum
///         92     4  change counter of the time when the number of pages was written
///
/// Source: https://sqlite.org/fileformat2.html §1.3.
public struct FileHeader: Sendable, Equatable {
  public let pageSize: Int
  /// The file wants a WAL beside it.
  public let isWAL: Bool
  public let reservedBytes: Int
  /// As the header has it; nil where an old SQLite left it unset.
  public let pageCount: Int64?
  public let hasAutoVacuum: Bool

  static let magic = Array("SQLite format 3\0".utf8)

  /// Checks the header of a file of `size` bytes.
  ///
  /// - Throws: ``StoreError``.
  init(_ path: FilePath, bytes: [UInt8], size: Int64) throws {
    if size == 0 { throw StoreError.empty(path) }
    guard bytes.starts(with: Self.magic) else {
      throw StoreError.notSQLite(path, mayBeEncrypted: Self.looksEncrypted(bytes, size: size))
    }
    guard bytes.count >= 100 else {
      throw StoreError.truncated(path, expectedBytes: 512, foundBytes: size)
    }
    func number(_ offset: Int, _ count: Int) -> Int64 {
      bytes[offset..<(offset + count)].reduce(0) { $0 << 8 | Int64($1) }
    }
    let stated = Int(number(16, 2))
    let pageSize = stated == 1 ? 65_536 : stated
    guard (512...65_536).contains(pageSize), pageSize & (pageSize - 1) == 0 else {
      throw StoreError.impossibleHeader(path, reason: "its page size is \(stated)")
    }
    guard (1...2).contains(bytes[18]), (1...2).contains(bytes[19]) else {
      throw StoreError.impossibleHeader(
        path, reason: "its format versions are \(bytes[18]) and \(bytes[19])")
    }
    guard pageSize - Int(bytes[20]) >= 480 else {
      throw StoreError.impossibleHeader(path, reason: "it reserves \(bytes[20]) bytes a page")
    }
    // 0 is a database in which nothing was ever made.
    guard (0...1).contains(number(56, 4)) else {
      throw StoreError.impossibleHeader(path, reason: "its texts are not UTF-8")
    }
    self.pageSize = pageSize
    isWAL = bytes[18] == 2
    reservedBytes = Int(bytes[20])
    let pages = number(28, 4)
    pageCount = pages > 0 && number(24, 4) == number(92, 4) ? pages : nil
    hasAutoVacuum = number(52, 4) != 0
  }

  /// - Throws: ``StoreError/truncated(_:expectedBytes:foundBytes:)`` when pages are missing.
  func checkLength(_ path: FilePath, size: Int64) throws {
    let expected = max(pageCount ?? 1, 1) * Int64(pageSize)
    guard size >= expected else {
      throw StoreError.truncated(path, expectedBytes: expected, foundBytes: size)
    }
  }

  /// Noise from the first byte on, in whole pages: what SQLCipher and its like write.
  private static func looksEncrypted(_ bytes: [UInt8], size: Int64) -> Bool {
    bytes.count >= 100 && size % 512 == 0 && Set(bytes).count >= 64
  }
}
