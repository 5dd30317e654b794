private import CLinux
import GodwitDurableFiles
import SystemPackage

/// A store file that is made longer by pages of our own.
///
/// Data pages get ascending numbers and are written in that order, through one buffer. Pointer
/// maps stay in memory until ``finish(isWAL:)``, since a page's parent is known only when the
/// parent is full: 0.12 % of what is written.
///
/// Source: https://sqlite.org/fileformat2.html §1.3, §1.6 and §1.8.
final class PageFile {
  /// What a page is, for the pointer map.
  enum Role: UInt8 {
    /// The first page of a record's overflow chain; its parent is the b-tree page of the record.
    case firstOverflow = 3
    /// A later page of a chain; its parent is the page before it.
    case laterOverflow = 4
    /// A b-tree page that is not a root.
    case tree = 5
  }

  private static let pagesPerWrite = 256

  private let path: FilePath
  private let file: FileDescriptor
  private let numbering: PageNumbering
  private let firstMap: Int
  /// The last page of the file so far.
  private(set) var last: UInt32
  private let buffer: UnsafeMutableRawPointer
  /// The page that the buffer begins with, and how many follow without a gap.
  private var bufferStart: UInt32
  private var bufferCount = 0
  private var maps: [UnsafeMutableRawBufferPointer] = []
  private let lastOld: UInt32
  private let firstNew: UInt32

  /// Opens a file that SQLite has made and closed.
  init(_ path: FilePath, numbering: PageNumbering = PageNumbering()) throws {
    self.path = path
    self.numbering = numbering
    let file = try RegularFile.open(path, .readWrite)
    self.file = file
    do {
      let size = try failing("lseek", path) { try file.seek(offset: 0, from: .end) }
      guard size > 0, size % Int64(PageNumbering.pageSize) == 0 else {
        throw CommitError.damagedDestination(path: path, finding: "it does not end with a page")
      }
      last = UInt32(clamping: size / Int64(PageNumbering.pageSize))
    } catch {
      try? file.close()
      throw error
    }
    lastOld = last
    firstNew = numbering.successor(of: last)
    firstMap = numbering.mapNumber(of: firstNew)
    bufferStart = last + 1
    buffer = .allocate(
      byteCount: PageFile.pagesPerWrite * PageNumbering.pageSize, alignment: 4096)
  }

  deinit {
    try? file.close()
    buffer.deallocate()
    for map in maps { map.deallocate() }
  }
}

extension PageFile {
  /// Appends a page, and gives its number and the place where its bytes are to be put before the
  /// next call.
  func append() throws -> (number: UInt32, place: UnsafeMutableRawPointer) {
    let number = numbering.successor(of: last)
    guard number < UInt32.max - 2 else {
      throw CommitError.damagedDestination(path: path, finding: "it has too many pages")
    }
    // Pages between are pointer maps, written at the end, or the lock-byte page: zeros for now.
    while last + 1 < number {
      let place = try put(last + 1)
      place.initializeMemory(as: UInt8.self, repeating: 0, count: PageNumbering.pageSize)
    }
    return (number, try put(number))
  }

  /// The number that the page after this one will have.
  func successor(of page: UInt32) -> UInt32 { numbering.successor(of: page) }

  private func put(_ number: UInt32) throws -> UnsafeMutableRawPointer {
    if bufferCount == PageFile.pagesPerWrite { try flush() }
    bufferCount += 1
    last = number
    return buffer + (bufferCount - 1) * PageNumbering.pageSize
  }

  private func flush() throws {
    let bytes = UnsafeRawBufferPointer(
      start: buffer, count: bufferCount * PageNumbering.pageSize)
    try write(bytes, at: bufferStart)
    if bufferCount == PageFile.pagesPerWrite {
      // The disk is busy from now on, and the commit's fsync finds little left to write. Meanwhile the
      // file is read back out of the page cache.
      let offset = Int(bufferStart - 1) * PageNumbering.pageSize
      _ = linux_start_writing(file.rawValue, offset, bytes.count)
    }
    bufferStart += UInt32(bufferCount)
    bufferCount = 0
  }

  /// Writes a page that is in the file already.
  func write(_ bytes: UnsafeRawBufferPointer, at page: UInt32) throws {
    guard !bytes.isEmpty else { return }
    let offset = Int64(page - 1) * Int64(PageNumbering.pageSize)
    _ = try failing("pwrite", path) { try file.writeAll(toAbsoluteOffset: offset, bytes) }
  }

  private func read(_ bytes: UnsafeMutableRawBufferPointer, at page: UInt32) throws {
    let offset = Int64(page - 1) * Int64(PageNumbering.pageSize)
    var count = 0
    while count < bytes.count {
      let part = UnsafeMutableRawBufferPointer(rebasing: bytes[count...])
      let read = try failing("pread", path) {
        try file.read(fromAbsoluteOffset: offset + Int64(count), into: part)
      }
      guard read > 0 else {
        throw CommitError.damagedDestination(path: path, finding: "page \(page) is cut off")
      }
      count += read
    }
  }
}

extension PageFile {
  /// Enters a page of our own into its pointer map.
  func map(_ page: UInt32, as role: Role, parent: UInt32) throws {
    guard page >= firstNew else {
      throw CommitError.damagedDestination(path: path, finding: "page \(page) is not a new one")
    }
    let number = numbering.mapNumber(of: page)
    while maps.count <= number - firstMap { try addMap() }
    let place = PageNumbering.entrySize * Int(page - numbering.page(ofMap: number) - 1)
    let map = maps[number - firstMap]
    map[place] = role.rawValue
    map.storeBytes(of: parent.bigEndian, toByteOffset: place + 1, as: UInt32.self)
  }

  private func addMap() throws {
    let map = UnsafeMutableRawBufferPointer.allocate(
      byteCount: PageNumbering.pageSize, alignment: 16)
    map.initializeMemory(as: UInt8.self, repeating: 0)
    maps.append(map)
    // The first one may have entries of SQLite's own.
    let page = numbering.page(ofMap: firstMap + maps.count - 1)
    if page <= lastOld { try read(map, at: page) }
  }

  /// Writes what is still in memory and makes the header say how long the file is.
  ///
  /// - Parameter isWAL: Whether the file is to be opened with a write-ahead log.
  func finish(isWAL: Bool) throws {
    try flush()
    for (place, map) in maps.enumerated() {
      let page = numbering.page(ofMap: firstMap + place)
      if page < last { try write(UnsafeRawBufferPointer(map), at: page) }
    }
    let header = UnsafeMutableRawBufferPointer.allocate(byteCount: 100, alignment: 16)
    defer { header.deallocate() }
    try read(header, at: 1)
    let changes = UInt32(bigEndian: header.load(fromByteOffset: 24, as: UInt32.self)) &+ 1
    header.storeBytes(of: changes.bigEndian, toByteOffset: 24, as: UInt32.self)
    header.storeBytes(of: changes.bigEndian, toByteOffset: 92, as: UInt32.self)
    header.storeBytes(of: last.bigEndian, toByteOffset: 28, as: UInt32.self)
    if isWAL {
      header[18] = 2
      header[19] = 2
    }
    try write(UnsafeRawBufferPointer(header), at: 1)
  }
}
