public import GodwitDigests

/// What a page is, as pointer maps number it.
///
/// Source: https://sqlite.org/fileformat2.html §1.8.
public enum PageRole: UInt8, Sendable {
  case root = 1
  case free = 2
  /// The first page of a record's overflow chain; its parent is the b-tree page of the record.
  case firstOverflow = 3
  /// A later page of a chain; its parent is the page before it.
  case laterOverflow = 4
  /// A b-tree page that is not a root.
  case tree = 5
}

/// Which pages were seen, as what, and below which parents: an order-free digest, so that ledgers of
/// parts add up to that of the file.
public final class PageLedger {
  public private(set) var digest = RowSetDigest()
  private let hasPointerMaps: Bool

  init(hasPointerMaps: Bool) { self.hasPointerMaps = hasPointerMaps }

  func add(_ page: UInt32, _ role: PageRole, parent: UInt32) {
    // Pointer maps say nothing of the first page.
    if hasPointerMaps, page == 1 { return }
    var hash = RowHash(length: 5)
    hash.add(
      UInt64(page) | UInt64(hasPointerMaps ? role.rawValue : 0) &<< 32,
      hasPointerMaps ? UInt64(parent) : 0)
    digest.add(hash)
  }
}

/// All pages of a file that nobody writes to: what its header, its pointer maps, and its list of free
/// pages say of them.
public struct DatabasePages {
  private let descriptor: Int32
  private let header: DatabaseHeader
  private let lastPage: UInt32

  /// - Returns: nil when the header says what only SQLite should read, or another length than the
  ///   file has.
  public init?(descriptor: Int32) {
    guard let file = RawFile(descriptor: descriptor),
      let count = file.header.pageCount.flatMap({ UInt32(exactly: $0) }),
      Int64(count) * Int64(file.header.pageSize) == file.size
    else { return nil }
    self.descriptor = descriptor
    header = file.header
    lastPage = count
  }
}

extension DatabasePages {
  private var hasPointerMaps: Bool { header.largestRoot != 0 }

  public func ledger() -> PageLedger { PageLedger(hasPointerMaps: hasPointerMaps) }

  /// Whether a file may have these roots, all of them.
  public func holds(roots: [UInt32]) -> Bool {
    hasPointerMaps ? roots.max() ?? 1 == header.largestRoot : !header.isIncremental
  }

  /// Adds the list of free pages.
  ///
  /// - Throws: ``TreeScan/NotUnderstood``.
  public func addFreePages(to ledger: PageLedger) throws {
    let pages = reader
    var (next, count) = (header.firstFreePage, 0)
    var trunks: Set<UInt32> = []
    while next != 0 {
      guard trunks.insert(next).inserted else { throw TreeScan.NotUnderstood() }
      let page = try self.page(next, pages)
      ledger.add(next, .free, parent: 0)
      let leaves = Int(number(0, at: 4, page))
      count += 1 + leaves
      guard leaves <= header.usableBytes / 4 - 2, count <= Int(header.freePageCount) else {
        throw TreeScan.NotUnderstood()
      }
      for leaf in 0..<leaves { ledger.add(number(leaf, at: 8, page), .free, parent: 0) }
      next = number(0, at: 0, page)
    }
    guard count == Int(header.freePageCount) else { throw TreeScan.NotUnderstood() }
  }

  /// What a ledger of all trees and free pages must come to.
  ///
  /// - Throws: ``TreeScan/NotUnderstood``.
  public func expected() throws -> RowSetDigest {
    let ledger = ledger()
    let lockByte = UInt32(0x4000_0000 / header.pageSize + 1)
    let pagesPerMap = UInt32(header.usableBytes / 5 + 1)
    guard hasPointerMaps else {
      for page in 1...lastPage where page != lockByte { ledger.add(page, .root, parent: 0) }
      return ledger.digest
    }
    let pages = reader
    var first: UInt32 = 2
    while first <= lastPage {
      // Where the lock-byte page would be a map, the next page is.
      let map = first == lockByte ? first + 1 : first
      let (end, isPast) = first.addingReportingOverflow(pagesPerMap - 1)
      if map <= lastPage {
        let bytes = try page(map, pages)
        for page in map..<min(lastPage, isPast ? .max : end) where page + 1 != lockByte {
          let entry = bytes + 5 * Int(page - map)
          guard let role = PageRole(rawValue: entry.load(as: UInt8.self)) else {
            throw TreeScan.NotUnderstood()
          }
          let parent = (entry + 1).loadUnaligned(as: UInt32.self)
          ledger.add(page + 1, role, parent: UInt32(bigEndian: parent))
        }
      }
      if isPast || end == .max { break }
      first = end + 1
    }
    return ledger.digest
  }

  private var reader: PageReader {
    PageReader(descriptor: descriptor, pageSize: header.pageSize, lastPage: lastPage)
  }

  private func page(_ number: UInt32, _ pages: PageReader) throws -> UnsafeRawPointer {
    do {
      return try pages.page(number)
    } catch is PageReader.Unreadable {
      throw TreeScan.NotUnderstood()
    }
  }

  private func number(_ place: Int, at offset: Int, _ page: UnsafeRawPointer) -> UInt32 {
    UInt32(bigEndian: (page + offset + 4 * place).loadUnaligned(as: UInt32.self))
  }
}
