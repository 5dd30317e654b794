private import Glibc

/// A database file of which not everything need be readable: its pages, and what its pointer maps
/// and its list of free pages say of them, as far as that can be understood.
///
/// The file is a private copy that nobody else writes to. Nothing in its header is believed that its
/// pages contradict.
///
/// Source: https://sqlite.org/fileformat2.html §1.
package final class DamagedFile {
  package let pageSize: Int
  package let usableBytes: Int
  package let pageCount: UInt32
  /// What the header says wrong, in words; empty for a header that can be believed.
  package let headerProblems: [String]
  /// Nil for a file of fewer bytes.
  package let header: DatabaseHeader?
  /// Whether pointer maps tell the parent of each page, as in files with auto-vacuum.
  package let hasPointerMaps: Bool
  /// Which tree a page was read for, or was expected in; ``unclaimed`` for no tree.
  package private(set) var owners: [Int32]
  package static let unclaimed: Int32 = -1

  let tableFormat: CellFormat
  let indexFormat: CellFormat
  let pages: PageReader
  let overflowPages: PageReader
  let mapPages: PageReader
  private let descriptor: Int32
  private var listedFree: Set<UInt32> = []
  /// Which records lead to which overflow pages.
  let claims: OverflowClaims
  /// How far a pointer map is believed, by its page: of those that were asked.
  var mapStates: [UInt32: MapState] = [:]
  /// Leaves of indexes that are there twice, free pages left out.
  private(set) lazy var copiedIndexPages = findCopies(ofType: 10)
  /// The same of leaves of rows.
  private lazy var copiedRowPages = findCopies(ofType: 13)
  /// Pages that pointer maps say lead to others.
  private(set) lazy var mapParents = findMapParents()
  /// Pages of which not every byte is known: how many come before the first one that is not.
  private var partialPages: [UInt32: Int] = [:]

  /// - Parameters:
  ///   - path: Its length is rounded up to whole pages, whose further bytes are missing.
  ///   - missing: Bytes of the file that nobody could read, whatever lies in their place.
  ///   - settlement: Whose the overflow pages are that several records lead to, where an earlier reading of the
  ///     file found some.
  /// - Returns: nil when not a single page of a database is in it.
  package init?(
    privateCopy path: String, missing: [Range<Int64>] = [],
    settlement: OverflowSettlement? = nil
  ) {
    let descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { return nil }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_size >= 512 else {
      Glibc.close(descriptor)
      return nil
    }
    let size = SparseFile.end(of: descriptor, size: Int64(status.st_size))
    let guess = PageSizeGuess(descriptor: descriptor, fileSize: size)
    let count = (size + Int64(guess.pageSize) - 1) / Int64(guess.pageSize)
    guard let pageCount = UInt32(exactly: count), pageCount < .max,
      count * Int64(guess.pageSize) == Int64(status.st_size)
        || ftruncate(descriptor, off_t(count * Int64(guess.pageSize))) == 0
    else {
      Glibc.close(descriptor)
      return nil
    }
    self.descriptor = descriptor
    self.pageCount = pageCount
    pageSize = guess.pageSize
    usableBytes = guess.pageSize - guess.reservedBytes
    headerProblems = guess.problems
    header = guess.header
    tableFormat = CellFormat(.table, usable: usableBytes, fileSize: Int(size))
    indexFormat = CellFormat(.index, usable: usableBytes, fileSize: Int(size))
    func reader() -> PageReader {
      PageReader(descriptor: descriptor, pageSize: guess.pageSize, lastPage: pageCount)
    }
    (pages, overflowPages, mapPages) = (reader(), reader(), reader())
    owners = Array(repeating: Self.unclaimed, count: Int(pageCount) + 1)
    claims = OverflowClaims(pageCount: pageCount, settlement)
    // The header alone proves nothing: where it is wrong, pages of trees would count as maps.
    hasPointerMaps = Self.hasPointerMaps(
      mapPages, usable: usableBytes, pageCount: pageCount,
      isStated: guess.header.map { $0.largestRoot != 0 } ?? false)
    listFreePages(from: guess.header?.firstFreePage ?? 0)
    let end = count * Int64(guess.pageSize)
    for range in missing + [size..<end] { note(missing: range.clamped(to: 0..<end)) }
  }

  private func note(missing range: Range<Int64>) {
    var offset = range.lowerBound
    while offset < range.upperBound {
      let place = Int(offset % Int64(pageSize))
      let page = UInt32(offset / Int64(pageSize) + 1)
      partialPages[page] = min(partialPages[page] ?? place, place)
      offset += Int64(pageSize - place)
    }
  }

  /// How many of a page's bytes are there, counted from its first one; all of them as a rule.
  func knownBytes(of page: UInt32) -> Int { partialPages[page] ?? pageSize }

  /// Whether the list of free pages names the page, whatever the pointer map says.
  package func isListedFree(_ page: UInt32) -> Bool { listedFree.contains(page) }

  /// Whether that list has as many pages as the header says.
  var isFreeListWhole: Bool { header.map { Int($0.freePageCount) == listedFree.count } ?? false }

  deinit { Glibc.close(descriptor) }

  /// Whether what lies on a leaf of rows lies on another one, too.
  package func isCopied(_ page: UInt32) -> Bool { copiedRowPages.contains(page) }

  private func findCopies(ofType type: UInt8) -> Set<UInt32> {
    var (firsts, copied): ([Int: UInt32], Set<UInt32>) = ([:], [])
    for page in 1...pageCount where !isListedFree(page) {
      guard let bytes = try? overflowPages.page(page), treeType(of: page, bytes) == type else {
        continue
      }
      var hasher = Hasher()
      hasher.combine(bytes: UnsafeRawBufferPointer(start: bytes, count: usableBytes))
      let digest = hasher.finalize()
      if let first = firsts.updateValue(page, forKey: digest) { copied.formUnion([first, page]) }
    }
    return copied
  }

  func claim(_ page: UInt32, for tree: Int32) { owners[Int(page)] = tree }

  /// Whether a tree may read the page: it is there, and no other tree has read it.
  func isOpen(_ page: UInt32) -> Bool {
    page >= 1 && page <= pageCount && owners[Int(page)] == Self.unclaimed && !isPointerMap(page)
  }
}

extension DamagedFile {
  private func listFreePages(from first: UInt32) {
    var next = first
    while next > 1, next <= pageCount, let page = try? pages.page(next),
      treeType(of: next, page) == nil, listedFree.insert(next).inserted
    {
      func number(_ offset: Int) -> UInt32 {
        UInt32(bigEndian: (page + offset).loadUnaligned(as: UInt32.self))
      }
      let leaves = Int(number(4))
      guard leaves <= usableBytes / 4 - 2 else { return }
      for leaf in 0..<leaves { listedFree.insert(number(8 + 4 * leaf)) }
      next = number(0)
    }
  }
}

// MARK: - The size of pages

/// The page size by which a file's pages make sense: the header's, unless another one does better.
private struct PageSizeGuess {
  private(set) var pageSize = 4096
  private(set) var reservedBytes = 0
  private(set) var header: DatabaseHeader?
  private(set) var problems: [String] = []

  private static let mostSamples: Int64 = 200

  init(descriptor: Int32, fileSize: Int64) {
    var bytes = [UInt8](repeating: 0, count: DatabaseHeader.byteCount)
    guard pread(descriptor, &bytes, bytes.count, 0) == bytes.count else { return }
    if !DatabaseHeader.isMagic(bytes) {
      problems.append("the file does not begin as an SQLite file")
      bytes.replaceSubrange(0..<16, with: Array("SQLite format 3\0".utf8))
    }
    header = DatabaseHeader(bytes)
    var candidates: [(size: Int, reserved: Int)] = []
    if let header, header.hasPossiblePageSize {
      if header.hasPossibleUsableBytes {
        candidates.append((header.pageSize, header.reservedBytes))
      }
      candidates.append((header.pageSize, 0))
    }
    candidates += [4096, 1024, 2048, 8192, 16_384, 32_768, 65_536, 512].map { ($0, 0) }
    var best = -1.0
    for candidate in candidates where Int64(candidate.size) <= fileSize || best < 0 {
      let score = Self.score(descriptor, fileSize, candidate.size, candidate.reserved)
      // Equal is not better: the header's own comes first.
      if score > best {
        (best, pageSize, reservedBytes) = (score, candidate.size, candidate.reserved)
      }
      if best > 0.2 { break }
    }
    judge()
  }

  private mutating func judge() {
    guard let header else { return }
    if header.pageSize != pageSize {
      problems.append("its page size is \(header.pageSize), and its pages have \(pageSize) bytes")
    } else if header.reservedBytes != reservedBytes {
      problems.append("it reserves \(header.reservedBytes) bytes a page, and its pages do not")
    }
    if !(1...2).contains(header.writeVersion) || !(1...2).contains(header.readVersion) {
      problems.append(
        "its format versions are \(header.writeVersion) and \(header.readVersion)")
    }
    if header.textEncoding > 1 { problems.append("it says that texts are not UTF-8") }
  }

  /// The share of pages whose last cell ends where the page does, as the first one put there does.
  private static func score(
    _ descriptor: Int32, _ fileSize: Int64, _ size: Int, _ reserved: Int
  ) -> Double {
    let count = fileSize / Int64(size)
    let step = max(1, count / mostSamples)
    var bytes = [UInt8](repeating: 0, count: size)
    var (seen, good) = (0, 0)
    var page: Int64 = 0
    while page < count {
      if pread(descriptor, &bytes, size, off_t(page * Int64(size))) == size {
        seen += 1
        let isGood = bytes.withUnsafeBytes {
          endsItsPage($0, head: page == 0 ? DatabaseHeader.byteCount : 0, usable: size - reserved)
        }
        if isGood { good += 1 }
      }
      page += step
    }
    return seen == 0 ? 0 : Double(good) / Double(seen)
  }

  private static func endsItsPage(
    _ page: UnsafeRawBufferPointer, head: Int, usable: Int
  ) -> Bool {
    guard let start = page.baseAddress, usable > head + 12 else { return false }
    func number(_ offset: Int) -> Int {
      Int(UInt16(bigEndian: (start + offset).loadUnaligned(as: UInt16.self)))
    }
    let type = page[head]
    let isLeaf = type == 0x0D || type == 0x0A
    guard isLeaf || type == 0x05 || type == 0x02 else { return false }
    let pointers = head + (isLeaf ? 8 : 12)
    let count = number(head + 3)
    guard count > 0, pointers + 2 * count <= usable else { return false }
    let last = (0..<count).map { number(pointers + 2 * $0) }.max() ?? 0
    guard last >= pointers + 2 * count, last + 4 <= usable else { return false }
    let format = CellFormat(
      type == 0x0D || type == 0x05 ? .table : .index, usable: usable, fileSize: .max)
    let size: Int? =
      switch type {
      case 0x0D: try? format.row(of: start, at: last).size
      case 0x0A: try? format.entry(of: start, at: last).size
      case 0x05: try? format.dividerKey(of: start, at: last).size
      default: try? format.entry(of: start, at: last + 4).size + 4
      }
    return size.map { last + $0 == usable } ?? false
  }
}
