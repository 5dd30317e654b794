import GodwitDurableFiles
import GodwitSQLite
import SystemPackage

/// A private copy of a damaged store's main file, with what is committed in its WAL in place.
///
/// Unlike ``StoreSnapshot`` it judges nothing: pages are copied as they are, and sectors that the
/// disk does not give become zeros. The source is only read.
package struct StoreImage {
  package let path: FilePath
  /// Of the source, when it was copied.
  package private(set) var bytes: Int64 = 0
  /// Pages taken from the WAL.
  package private(set) var logPages = 0
  /// Bytes at the end of the WAL that no valid transaction covers, frames of the time before its
  /// last restart left out: what they say is in the main file.
  package private(set) var unusedLogBytes: Int64 = 0
  /// The format version of a WAL that cannot be read for it.
  package private(set) var unknownLogVersion: UInt32?
  /// Bytes of the main file that could not be read.
  package private(set) var unreadableBytes: Int64 = 0
  /// Bytes of the copy that neither the main file nor the WAL has, ascending.
  package private(set) var missing: [Range<Int64>] = []
  /// Whether a rollback journal was played back; nil where there is none.
  package private(set) var isJournalPlayedBack: Bool?

  /// What of that journal is missing or wrong, so that it was played back in part; nil where nothing is.
  package private(set) var journalDamage: String?

  private static let attempts = 3

  /// - Parameter folder: Belongs to the caller alone.
  /// - Throws: ``StoreError``; ``StoreError/changed(_:)`` where somebody keeps writing to the store.
  package init(of files: StoreFiles, in folder: FilePath) throws {
    try files.checkKinds()
    path = folder.appending("image.sqlite")
    for _ in 0..<Self.attempts {
      let lock = try files.readLock()
      let identity = try files.identity(hasWriter: lock.hasWriter, rescues: true)
      unknownLogVersion = try CommittedLog(files.wal).unknownVersion
      (bytes, logPages, unusedLogBytes, unreadableBytes) = (identity.size, 0, 0, 0)
      (missing, isJournalPlayedBack, journalDamage) = ([], nil, nil)
      if identity.journalSize > 0 {
        journalDamage = try RollbackJournal.damage(of: files.journal)
        isJournalPlayedBack = try playBack(files, in: folder)
      }
      unusedLogBytes = try unusedBytes(of: files.wal, from: identity.walSize)
      if isJournalPlayedBack != true {
        try copy(files.store, size: identity.size)
        try overlay(files.wal, committedBytes: identity.walSize)
      }
      if try files.identity(hasWriter: lock.hasWriter, rescues: true) == identity { return }
    }
    throw StoreError.changed(files.store)
  }

  /// Lets SQLite play back a rollback journal in a copy of its own.
  private func playBack(_ files: StoreFiles, in folder: FilePath) throws -> Bool {
    do {
      let copy = try files.clone(in: folder, rescues: true)
      try DurableFile.rename(copy.store, to: path)
      return true
    } catch let error as StoreError {
      switch error {
      case .damaged, .superJournal: return false
      default: throw error
      }
    } catch is SQLiteError {
      return false
    }
  }
}

extension StoreImage {
  private static let pieceBytes = 1 << 20
  private static let sectorBytes = 4096

  private mutating func copy(_ source: FilePath, size: Int64) throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Self.pieceBytes, alignment: 4096)
    defer { buffer.deallocate() }
    do {
      let input = try RegularFile.open(source)
      defer { try? input.close() }
      let output = try FileDescriptor.open(
        path, .writeOnly, options: [.create, .truncate, .closeOnExec, .noFollow],
        permissions: .ownerReadWrite)
      defer { try? output.close() }
      let size = SparseFile.end(of: input.rawValue, size: size)
      var offset: Int64 = 0
      while offset < size {
        let wanted = Int(min(size - offset, Int64(buffer.count)))
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
        guard try fill(part, from: input, at: offset) else { break }
        try output.writeAll(toAbsoluteOffset: offset, UnsafeRawBufferPointer(part))
        offset += Int64(wanted)
      }
    } catch let error as Errno {
      throw StoreError.cannotCopy(source, to: path, errno: error.rawValue)
    }
  }

  /// Reads a piece; sector by sector where the disk does not give all of it.
  ///
  /// - Returns: false at the end of the file.
  private mutating func fill(
    _ part: UnsafeMutableRawBufferPointer, from input: FileDescriptor, at offset: Int64
  ) throws -> Bool {
    var filled = 0
    while filled < part.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: part[filled...])
      do {
        let read = try input.read(fromAbsoluteOffset: offset + Int64(filled), into: rest)
        if read == 0 {
          rest.initializeMemory(as: UInt8.self, repeating: 0)
          return filled > 0
        }
        filled += read
      } catch Errno.ioError {
        let sector = min(rest.count, Self.sectorBytes)
        let bytes = UnsafeMutableRawBufferPointer(rebasing: rest[..<sector])
        let read =
          (try? input.read(fromAbsoluteOffset: offset + Int64(filled), into: bytes)) ?? 0
        if read < sector {
          UnsafeMutableRawBufferPointer(rebasing: bytes[read...])
            .initializeMemory(as: UInt8.self, repeating: 0)
          unreadableBytes += Int64(sector - read)
          let start = offset + Int64(filled)
          missing.append(start + Int64(read)..<start + Int64(sector))
        }
        filled += sector
      }
    }
    return true
  }

  /// Puts the pages of committed transactions over those of the main file, as a WAL checkpoint does.
  ///
  /// Source: https://sqlite.org/fileformat2.html §4.
  private mutating func overlay(_ wal: FilePath, committedBytes: Int64) throws {
    guard committedBytes > Int64(CommittedLog.headerSize) else { return }
    do {
      let input = try RegularFile.open(wal)
      defer { try? input.close() }
      let output = try FileDescriptor.open(path, .writeOnly, options: [.closeOnExec, .noFollow])
      defer { try? output.close() }
      var head = [UInt8](repeating: 0, count: CommittedLog.headerSize)
      _ = try head.withUnsafeMutableBytes { try input.read(fromAbsoluteOffset: 0, into: $0) }
      let pageSize = Int(head[8...11].reduce(0) { $0 << 8 | UInt32($1) })
      var frame = [UInt8](repeating: 0, count: CommittedLog.frameHeaderSize + pageSize)
      var (offset, lastPage) = (Int64(CommittedLog.headerSize), UInt32(0))
      // What is not in the main file is in a frame: more pages than that there cannot be.
      let mostPages =
        bytes / Int64(pageSize) + 1 + committedBytes / Int64(frame.count)
      var written: Set<UInt32> = []
      while offset + Int64(frame.count) <= committedBytes {
        let read = try frame.withUnsafeMutableBytes {
          try input.read(fromAbsoluteOffset: offset, into: $0)
        }
        guard read == frame.count else { break }
        let page = frame[0...3].reduce(0) { $0 << 8 | UInt32($1) }
        let pages = frame[4...7].reduce(0) { $0 << 8 | UInt32($1) }
        if pages > 0 { lastPage = UInt32(clamping: min(Int64(pages), mostPages)) }
        offset += Int64(frame.count)
        guard page > 0, Int64(page) <= mostPages else {
          unusedLogBytes += Int64(frame.count)
          continue
        }
        try frame.withUnsafeBytes { bytes in
          _ = try output.writeAll(
            toAbsoluteOffset: Int64(page - 1) * Int64(pageSize),
            UnsafeRawBufferPointer(rebasing: bytes[CommittedLog.frameHeaderSize...]))
        }
        written.insert(page)
        logPages += 1
      }
      if lastPage > 0 {
        let end = Int64(lastPage) * Int64(pageSize)
        try output.resize(to: end)
        if bytes < end { missing.append(bytes..<end) }
      }
      missing = missing.flatMap { Self.pieces(of: $0, without: written, pageSize) }
    } catch let error as Errno {
      throw StoreError.cannotCopy(wal, to: path, errno: error.rawValue)
    }
  }

  /// What is left of a range without the pages that the WAL has.
  private static func pieces(
    of range: Range<Int64>, without written: Set<UInt32>, _ pageSize: Int
  ) -> [Range<Int64>] {
    var (pieces, offset): ([Range<Int64>], Int64) = ([], range.lowerBound)
    while offset < range.upperBound {
      let page = offset / Int64(pageSize)
      let end = min(range.upperBound, (page + 1) * Int64(pageSize))
      if !written.contains(UInt32(page + 1)) {
        if pieces.last?.upperBound == offset {
          pieces[pieces.count - 1] = pieces[pieces.count - 1].lowerBound..<end
        } else {
          pieces.append(offset..<end)
        }
      }
      offset = end
    }
    return pieces
  }

  private func unusedBytes(of wal: FilePath, from committedBytes: Int64) throws -> Int64 {
    guard let size = try StoreFiles.markIfThere(wal)?.size else { return 0 }
    return try StoreFiles.reading(wal) {
      let log = try RegularFile.open(wal)
      return try log.closeAfter {
        try Self.unusedBytes(of: log, from: committedBytes, size: size)
      }
    }
  }

  /// Bytes behind the committed frames that belong to the WAL's present use.
  ///
  /// When a WAL is restarted its first salt grows by one, and everything before it has been copied to
  /// the main file. Frames of that time stay until others are written over them; a header of which
  /// not every bit is right makes no frame one of these.
  private static func unusedBytes(
    of log: FileDescriptor, from committedBytes: Int64, size: Int64
  ) throws -> Int64 {
    let rest = max(0, size - committedBytes)
    var head = [UInt8](repeating: 0, count: CommittedLog.headerSize)
    guard rest > 0,
      try head.withUnsafeMutableBytes({ try log.read(fromAbsoluteOffset: 0, into: $0) })
        == head.count
    else { return rest }
    func number(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
      bytes[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }
    let pageSize = number(head, 8)
    guard (512...65_536).contains(pageSize) else { return rest }
    let frameSize = Int64(CommittedLog.frameHeaderSize) + Int64(pageSize)
    let (restarts, salts) = (number(head, 12), (number(head, 16), number(head, 20)))
    var offset = max(committedBytes, Int64(CommittedLog.headerSize))
    var unused: Int64 = 0
    while offset < size {
      let length = min(frameSize, size - offset)
      var start = [UInt8](repeating: 0, count: CommittedLog.frameHeaderSize)
      let read = try start.withUnsafeMutableBytes {
        try log.read(fromAbsoluteOffset: offset, into: $0)
      }
      var next = offset + length
      if number(start, 0) == 0 {
        next = log.nextData(from: next, size: size, step: frameSize)
      }
      let age = salts.0 &- number(start, 8)
      let isOld =
        read == start.count && age >= 1 && age <= restarts && number(start, 12) != salts.1
        && number(start, 0) > 0
      // A hole is nothing that could be lost.
      if !isOld { unused += length }
      offset = next
    }
    return unused
  }
}
