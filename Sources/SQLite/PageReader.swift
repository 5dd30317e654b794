private import Glibc

/// A database file whose pages may be read past SQLite.
struct RawFile {
  let header: DatabaseHeader
  /// What bounds all that is read: a file may be said to be far larger than what is in it.
  let size: Int64

  /// At most 4 294 967 294, SQLite's own bound.
  ///
  /// Source: https://sqlite.org/fileformat2.html §1.2.
  var lastPage: UInt32 { UInt32(min(size / Int64(header.pageSize), Int64(UInt32.max) - 1)) }

  /// - Returns: nil when the file's header says what only SQLite should read.
  init?(descriptor: Int32) {
    var bytes = [UInt8](repeating: 0, count: DatabaseHeader.byteCount)
    var status = stat()
    guard pread(descriptor, &bytes, bytes.count, 0) == bytes.count, fstat(descriptor, &status) == 0,
      let header = DatabaseHeader(bytes), header.isRawReadable
    else { return nil }
    self.header = header
    size = SparseFile.end(of: descriptor, size: Int64(status.st_size))
  }
}

/// Pages of a database file that nobody writes to, read past SQLite.
///
/// Rows of a store that was filled in order lie in ascending pages, so pages that follow the one
/// before come many at a time: twice as many as the time before, since a tree may end at any page.
final class PageReader {
  /// A page that cannot be had raw. What is wrong with it, SQLite tells.
  struct Unreadable: Error {}

  private static let mostAhead = 64
  /// Pages between two that still count as following each other: maps, and pages of other trees.
  private static let gap: UInt32 = 8

  let pageSize: Int
  private let descriptor: Int32
  let lastPage: UInt32
  private let buffer: UnsafeMutableRawPointer
  /// The pages in the buffer. None at first, and none that the first could follow: a tree's root may be
  /// all there is of it.
  private var held: Range<UInt32> = .max ..< .max

  init(descriptor: Int32, pageSize: Int, lastPage: UInt32) {
    self.descriptor = descriptor
    self.pageSize = pageSize
    self.lastPage = lastPage
    buffer = .allocate(byteCount: Self.mostAhead * pageSize, alignment: 4096)
  }

  deinit { buffer.deallocate() }

  /// A page by its number, from 1. Valid until the next call.
  @inline(__always)
  func page(_ number: UInt32) throws -> UnsafeRawPointer {
    if !held.contains(number) { try read(number) }
    return UnsafeRawPointer(buffer + Int(number &- held.lowerBound) &* pageSize)
  }

  private func read(_ number: UInt32) throws {
    guard number >= 1, number <= lastPage else { throw Unreadable() }
    let isNext = number >= held.upperBound && number - held.upperBound < Self.gap
    let count = isNext ? min(2 * held.count, Self.mostAhead, Int(lastPage - number) + 1) : 1
    held = .max ..< .max
    var done = 0
    while done < count * pageSize {
      let offset = off_t(number - 1) * off_t(pageSize) + off_t(done)
      let got = pread(descriptor, buffer + done, count * pageSize - done, offset)
      if got < 0, errno == EINTR { continue }
      guard got > 0 else { throw Unreadable() }
      done += got
    }
    held = number..<number + UInt32(count)
  }
}
