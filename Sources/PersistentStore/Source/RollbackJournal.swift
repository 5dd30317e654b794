import GodwitDurableFiles
import GodwitSQLite
import SystemPackage

/// Whether a rollback journal has all that its headers count.
///
/// SQLite plays a journal back up to the first record that is missing or wrong, deletes it, and says
/// nothing: what it did not come to stays in the database, a part of a transaction that was never
/// committed. The journal of a process that was killed is whole, since its records are written before the
/// header that counts them, and that before any page of the database. Behind the last header that counts
/// lies what was not needed yet.
///
///     header, as long as a sector          record
///     offset  size  field                  offset  size  field
///          0     8  magic number                0     4  page number
///          8     4  records, or −1              4     n  the page as it was
///         12     4  nonce                     4+n     4  nonce + every 200th byte of the page
///         16     4  pages of the database
///         20     4  sector size
///         24     4  page size
///
/// Each header begins at a multiple of the sector size. −1 is for journals that are not synced: records go
/// on to the end of the file, or to those of an earlier transaction, which have another nonce.
///
/// Source: https://sqlite.org/fileformat2.html §3.
package enum RollbackJournal {
  /// What is missing or wrong; nil where there is nothing, or no journal.
  ///
  /// - Parameter path: A journal that is to be played back.
  /// - Throws: ``StoreError/cannotRead(_:errno:)``.
  package static func damage(of path: FilePath) throws -> String? {
    guard let size = try StoreFiles.markIfThere(path)?.size, size > 0 else { return nil }
    return try StoreFiles.reading(path) {
      let file = try RegularFile.open(path)
      return try file.closeAfter {
        let database = try RegularFile.open(FilePath(path.string.before(suffix) ?? path.string))
        return try database.closeAfter {
          try JournalScan(file: file, size: size, database: database).damage()
        }
      }
    }
  }

  private static let suffix = "-journal"
}

private struct JournalScan {
  let file: FileDescriptor
  let size: Int64
  let database: FileDescriptor

  func damage() throws -> String? {
    guard let first = try header(at: 0), first.isMagic else { return "it has no header" }
    var (header, offset) = (first, Int64(0))
    while header.isMagic {
      let cut = "the header at byte \(offset) is cut off"
      guard header.isWhole else { return cut }
      guard first.isUsable else { return "its header is damaged" }
      let records = offset + Int64(first.sectorSize)
      // Where nothing is counted yet, the process ended while it began the segment.
      guard records <= size else { return header.countsNothing ? nil : cut }
      guard let pageSize = try pageSize(by: first) else { return "its header has no page size" }
      if offset == 0, try lacksPages(first, pageSize) {
        return
          "its header counts \(first.pages) pages of the store, and it and the store have fewer"
      }
      let segment = Segment(
        nonce: header.nonce, pageSize: pageSize, pages: first.pages, start: records)
      if header.count == Header.uncounted { return try gap(in: segment, first) }
      if let damage = try damage(of: segment, count: Int64(header.count)) { return damage }
      if try isMoreNeeded(of: segment, behind: Int64(header.count)) {
        return "the header at byte \(offset) counts fewer records than there are"
      }
      offset = first.headerPlace(from: records + Int64(header.count) * segment.recordSize)
      guard let next = try self.header(at: offset) else { return nil }
      if !next.isMagic, try isLost(next, of: segment, at: offset + Int64(first.sectorSize)) {
        return "the header at byte \(offset) is damaged"
      }
      header = next
    }
    return nil
  }

  /// SQLite gives the database the size that it had before the transaction. Each of its pages lies there or in the
  /// journal: none is cut off before the journal is gone. Of the last one the database may have a part.
  private func lacksPages(_ first: Header, _ pageSize: Int) throws -> Bool {
    let databaseSize = try database.seek(offset: 0, from: .end)
    let held =
      SparseFile.end(of: database.rawValue, size: databaseSize)
      + SparseFile.end(of: file.rawValue, size: size)
    return Int64(first.pages) * Int64(pageSize) > held + Int64(pageSize)
  }

  /// Frameworks of long ago wrote no page size. SQLite takes the database's then.
  private func pageSize(by first: Header) throws -> Int? {
    if first.pageSize > 0 { return Int(first.pageSize) }
    var bytes = [UInt8](repeating: 0, count: DatabaseHeader.byteCount)
    _ = try read(into: &bytes, at: 0, of: database)
    return DatabaseHeader(bytes).flatMap { $0.hasPossiblePageSize ? $0.pageSize : nil }
  }

  /// Whether a header without the magic number had one: it has most of it, or the records behind it are needed.
  private func isLost(_ header: Header, of segment: Segment, at start: Int64) throws -> Bool {
    if header.isGivenUp { return false }
    if header.isAlmostMagic { return true }
    guard header.isWhole else { return false }
    var lost = segment
    (lost.nonce, lost.start) = (header.nonce, start)
    if lost.nonce == 0 {
      // Nothing of the header is left. Two records of one nonce are no chance.
      var record = [UInt8](repeating: 0, count: Int(lost.recordSize))
      guard try read(into: &record, at: start) == record.count else { return false }
      lost.nonce = Header.number(record, 4 + lost.pageSize) &- Self.sum(of: record, lost.pageSize)
      guard try isWhole(lost, at: start + lost.recordSize, &record) else { return false }
    }
    return try isMoreNeeded(of: lost, behind: 0)
  }

  private func damage(of segment: Segment, count: Int64) throws -> String? {
    var page = [UInt8](repeating: 0, count: Int(segment.recordSize))
    for number in 0..<count {
      let offset = segment.start + number * segment.recordSize
      guard offset + segment.recordSize <= size else {
        return "\(count - number) of the \(count) records behind byte \(segment.start) are cut off"
      }
      guard try isWhole(segment, at: offset, &page) else {
        return "the record at byte \(offset) is damaged"
      }
    }
    return nil
  }

  /// Whether a record that is not counted holds a page as it no longer is. Before the database is written
  /// to, what is written has been counted.
  private func isMoreNeeded(of segment: Segment, behind count: Int64) throws -> Bool {
    var record = [UInt8](repeating: 0, count: Int(segment.recordSize))
    var page = [UInt8](repeating: 0, count: segment.pageSize)
    var offset = segment.start + count * segment.recordSize
    while offset + segment.recordSize <= size, try isWhole(segment, at: offset, &record) {
      let place = Int64(Header.number(record, 0) - 1) * Int64(segment.pageSize)
      guard try read(into: &page, at: place, of: database) == page.count,
        page[...] == record[4..<4 + segment.pageSize]
      else { return true }
      offset += segment.recordSize
    }
    return false
  }

  /// A wrong record that is followed by one of the same transaction, or records that are followed by a
  /// header: a journal that counts none has one header.
  private func gap(in segment: Segment, _ first: Header) throws -> String? {
    var page = [UInt8](repeating: 0, count: Int(segment.recordSize))
    var wrong: Int64?
    var offset = segment.start
    while offset <= size - segment.recordSize {
      let isWhole = try isWhole(segment, at: offset, &page)
      if isWhole, let wrong { return "the record at byte \(wrong) is damaged" }
      if !isWhole { wrong = wrong ?? offset }
      offset += segment.recordSize
      if !isWhole { offset = file.nextData(from: offset, size: size, step: segment.recordSize) }
    }
    let place = first.headerPlace(from: wrong ?? offset)
    guard let next = try header(at: place), next.isMagic, next.isWhole,
      next.pages == segment.pages, next.pageSize == first.pageSize
    else { return nil }
    let following = Segment(
      nonce: next.nonce, pageSize: segment.pageSize, pages: segment.pages,
      start: place + Int64(first.sectorSize))
    return try isWhole(following, at: following.start, &page)
      ? "its header counts no records, and that at byte \(place) does" : nil
  }

  private func isWhole(
    _ segment: Segment, at offset: Int64, _ record: inout [UInt8]
  ) throws -> Bool {
    guard try read(into: &record, at: offset) == record.count else { return false }
    let number = Header.number(record, 0)
    guard number > 0, number <= segment.pages else { return false }
    return segment.nonce &+ Self.sum(of: record, segment.pageSize)
      == Header.number(record, 4 + segment.pageSize)
  }

  private static func sum(of record: [UInt8], _ pageSize: Int) -> UInt32 {
    stride(from: pageSize - 200, to: 0, by: -200).reduce(0) { $0 &+ UInt32(record[4 + $1]) }
  }

  private func header(at offset: Int64) throws -> Header? {
    var bytes = [UInt8](repeating: 0, count: Header.size)
    let read = try read(into: &bytes, at: offset)
    return read < 8 ? nil : Header(bytes: bytes, isWhole: read == bytes.count)
  }

  private func read(
    into bytes: inout [UInt8], at offset: Int64, of other: FileDescriptor? = nil
  ) throws -> Int {
    let file = other ?? file
    return try bytes.withUnsafeMutableBytes { buffer in
      var filled = 0
      while filled < buffer.count {
        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
        let read = try file.read(fromAbsoluteOffset: offset + Int64(filled), into: rest)
        if read == 0 { break }
        filled += read
      }
      return filled
    }
  }
}

extension JournalScan {
  /// The records behind one header.
  private struct Segment {
    var nonce: UInt32
    var pageSize: Int
    /// Of the database before the transaction: no other page is in a journal.
    var pages: UInt32
    var start: Int64

    var recordSize: Int64 { Int64(pageSize) + 8 }
  }

  private struct Header {
    static let size = 28
    static let uncounted = UInt32.max
    private static let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]

    var bytes: [UInt8]
    var isWhole: Bool

    var isMagic: Bool { bytes.starts(with: Self.magic) }
    /// SQLite overwrites the first byte of a header that counts no longer, and no other one.
    var isGivenUp: Bool {
      bytes[0] == 0 && bytes[1..<Self.magic.count] == Self.magic[1...]
    }
    var isAlmostMagic: Bool {
      zip(bytes, Self.magic).count(where: { $0 == $1 }) >= Self.magic.count / 2
    }
    var count: UInt32 { Self.number(bytes, 8) }
    var nonce: UInt32 { Self.number(bytes, 12) }
    var pages: UInt32 { Self.number(bytes, 16) }
    var sectorSize: UInt32 { Self.number(bytes, 20) }
    var pageSize: UInt32 { Self.number(bytes, 24) }
    /// Where the next header can begin.
    func headerPlace(from offset: Int64) -> Int64 {
      let sector = Int64(sectorSize)
      return (offset + sector - 1) / sector * sector
    }
    var countsNothing: Bool { count == 0 || count == Self.uncounted }
    var isUsable: Bool {
      func isPower(_ number: UInt32, from least: UInt32) -> Bool {
        number >= least && number <= 65_536 && number & (number - 1) == 0
      }
      return isPower(sectorSize, from: 32)
        && (pageSize == 0 || isPower(pageSize, from: 512))
    }

    static func number(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
      bytes[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }
  }
}
