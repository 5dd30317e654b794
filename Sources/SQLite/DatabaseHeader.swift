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
///         32     4  first page of the list of free pages
///         36     4  number of free pages
///         44     4  schema format, from 1 to 4; 0 where nothing was ever made
///         52     4  largest root page; not 0 with auto-vacuum
///         56     4  text encoding: 1 UTF-8; 0 where nothing was ever made
///         60     4  the application's own number for its version, with a sign
///         64     4  not 0 with incremental auto-vacuum
///         68     4  the application's own number for its kind of file
///         72    20  zeros
///         92     4  change counter of the time when the number of pages was written
///
/// Source: https://sqlite.org/fileformat2.html §1.3.
public struct DatabaseHeader: Sendable, Equatable {
  public static let byteCount = 100

  /// As the header has it.
  public let statedPageSize: Int
  public let writeVersion: Int
  public let readVersion: Int
  public let reservedBytes: Int
  /// Nil where an old SQLite left it unset.
  public let pageCount: Int64?
  public let firstFreePage: UInt32
  public let freePageCount: UInt32
  public let schemaFormat: UInt32
  public let largestRoot: UInt32
  public let textEncoding: UInt32
  public let userVersion: Int32
  public let isIncremental: Bool
  public let applicationID: UInt32
  /// Whether the room for what later versions of the format add is empty, as all do so far.
  public let hasEmptyReserve: Bool

  public static func isMagic(_ bytes: [UInt8]) -> Bool {
    bytes.starts(with: Array("SQLite format 3\0".utf8))
  }

  /// - Parameter bytes: From the start of the file.
  /// - Returns: nil for what is not an SQLite file, or is cut off.
  public init?(_ bytes: [UInt8]) {
    guard bytes.count >= Self.byteCount, Self.isMagic(bytes) else { return nil }
    func number(_ offset: Int, _ count: Int) -> UInt32 {
      bytes[offset..<(offset + count)].reduce(0) { $0 << 8 | UInt32($1) }
    }
    statedPageSize = Int(number(16, 2))
    writeVersion = Int(bytes[18])
    readVersion = Int(bytes[19])
    reservedBytes = Int(bytes[20])
    let pages = Int64(number(28, 4))
    pageCount = pages > 0 && number(24, 4) == number(92, 4) ? pages : nil
    firstFreePage = number(32, 4)
    freePageCount = number(36, 4)
    schemaFormat = number(44, 4)
    largestRoot = number(52, 4)
    textEncoding = number(56, 4)
    userVersion = Int32(bitPattern: number(60, 4))
    isIncremental = number(64, 4) != 0
    applicationID = number(68, 4)
    hasEmptyReserve = bytes[72..<92].allSatisfy { $0 == 0 }
  }
}

extension DatabaseHeader {
  public var pageSize: Int { statedPageSize == 1 ? 65_536 : statedPageSize }

  /// A power of two that SQLite uses.
  public var hasPossiblePageSize: Bool {
    (512...65_536).contains(pageSize) && pageSize & (pageSize - 1) == 0
  }

  /// Bytes of each page that SQLite uses.
  public var usableBytes: Int { pageSize - reservedBytes }

  /// The least that SQLite works with. Source: https://sqlite.org/fileformat2.html §1.3.4.
  public var hasPossibleUsableBytes: Bool { usableBytes >= 480 }

  /// Whether pages may be read past SQLite.
  var isRawReadable: Bool {
    hasPossiblePageSize && hasPossibleUsableBytes && textEncoding == 1 && reservedBytes <= 32
  }
}
