import Glibc
import GodwitDigests
import GodwitDurableFiles
import SystemPackage

/// What is committed in a WAL: the frames up to the last one that ends a transaction and whose
/// checksums hold.
///
///     header of 32 bytes                      header of a frame, 24 bytes
///     offset  size  field                     offset  size  field
///          0     4  magic, 0x377f0682 or 3         0     4  page number
///          4     4  format version, 3007000        4     4  pages of the database after the
///          8     4  page size                               transaction, 0 inside of one
///         12     4  number of the checkpoint       8     8  the header's two salts
///         16     8  two salts                     16     8  two checksums
///         24     8  two checksums
///
/// Each pair of checksums continues the one before, so the last one stands for all the frames. SQLite
/// reads a WAL in the same way. Integers are big-endian; the magic's last bit says in which order
/// the checksums take bytes.
///
/// Source: https://sqlite.org/fileformat2.html §4.
package struct CommittedLog: Equatable {
  /// Bytes of the header and the committed frames; 0 where nothing is committed.
  package private(set) var size: Int64 = 0
  /// Both salts and the checksums of the last committed frame, in hexadecimal; empty without one.
  package private(set) var seal = ""
  /// The format version of a WAL that is none of ours: SQLite does not open a store that has one.
  package private(set) var unknownVersion: UInt32?
  /// Something is behind a header that is damaged, so that SQLite ignores all of it.
  package private(set) var isIgnored = false

  static let headerSize = 32
  static let frameHeaderSize = 24

  /// - Parameter path: A WAL; one that does not exist holds nothing.
  /// - Throws: ``StoreError``.
  package init(_ path: FilePath) throws {
    let file: FileDescriptor
    do {
      file = try RegularFile.open(path)
    } catch let error as DurabilityError where error.isNotFound {
      return
    } catch let error as DurabilityError {
      guard let errno = error.errno else { throw error }
      throw error.isLeased ? StoreError.inUse(path) : .cannotRead(path, errno: errno.rawValue)
    }
    do {
      try file.closeAfter { try scan(file) }
    } catch let error as Errno {
      throw StoreError.cannotRead(path, errno: error.rawValue)
    }
  }

  private mutating func scan(_ file: FileDescriptor) throws {
    // SQLite does not look at a header with nothing behind it.
    var head = [UInt8](repeating: 0, count: Self.headerSize + 1)
    guard try head.withUnsafeMutableBytes({ try fill($0, from: file, at: 0) }) == head.count else {
      return
    }
    guard let start = Chain(header: head) else {
      isIgnored = true
      return
    }
    guard start.version == Chain.knownVersion else {
      unknownVersion = start.version
      return
    }
    var chain = start
    let frameSize = chain.pageSize + Self.frameHeaderSize
    // Frames are read in pieces of about 1 MiB.
    let count = max(1, (1 << 20) / frameSize)
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: count * frameSize, alignment: 8)
    defer { buffer.deallocate() }
    var offset = Int64(Self.headerSize)
    while true {
      let filled = try fill(buffer, from: file, at: offset)
      for place in 0..<(filled / frameSize) {
        let frame = UnsafeRawBufferPointer(
          rebasing: buffer[(place * frameSize)..<((place + 1) * frameSize)])
        guard chain.take(frame) else { return }
        offset += Int64(frameSize)
        if frame.bigEndian(at: 4) != 0 {
          size = offset
          seal = Hexadecimal.text(of: Array(frame[8..<24]))
        }
      }
      if filled < buffer.count { return }
    }
  }

  private func fill(
    _ buffer: UnsafeMutableRawBufferPointer, from file: FileDescriptor, at offset: Int64
  ) throws -> Int {
    var filled = 0
    while filled < buffer.count {
      let read = try file.read(
        fromAbsoluteOffset: offset + Int64(filled),
        into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
      if read == 0 { break }
      filled += read
    }
    return filled
  }
}

extension CommittedLog {
  /// Frames of the WAL's present use that end a transaction, and that SQLite does not read.
  ///
  /// Frames of which both salts are others are of the time before the WAL was last begun anew; those that end
  /// no transaction were given up, or were being written when the process ended.
  ///
  /// - Parameter size: ``size`` of the log.
  package static func unreadTransactions(in path: FilePath, behind size: Int64) throws -> Int {
    guard let end = try StoreFiles.markIfThere(path)?.size, end > max(size, Int64(headerSize))
    else { return 0 }
    return try StoreFiles.reading(path) {
      let file = try RegularFile.open(path)
      return try file.closeAfter {
        var head = [UInt8](repeating: 0, count: headerSize)
        guard
          try head.withUnsafeMutableBytes({ try file.read(fromAbsoluteOffset: 0, into: $0) })
            == headerSize
        else { return 0 }
        let (pageSize, salts) = head.withUnsafeBytes {
          ($0.bigEndian(at: 8), ($0.bigEndian(at: 16), $0.bigEndian(at: 20)))
        }
        guard (512...65_536).contains(pageSize), pageSize & (pageSize - 1) == 0 else { return 0 }
        var (count, offset) = (0, max(size, Int64(headerSize)))
        var frame = [UInt8](repeating: 0, count: frameHeaderSize)
        let frameSize = Int64(frameHeaderSize) + Int64(pageSize)
        while offset <= end - frameSize {
          let read = try frame.withUnsafeMutableBytes { bytes in
            try file.read(fromAbsoluteOffset: offset, into: bytes)
          }
          guard read == frameHeaderSize else { break }
          let (page, pages, first, second) = frame.withUnsafeBytes {
            (
              $0.bigEndian(at: 0), $0.bigEndian(at: 4), $0.bigEndian(at: 8), $0.bigEndian(at: 12)
            )
          }
          if pages != 0, first == salts.0 || second == salts.1 { count += 1 }
          offset += frameSize
          if page == 0 { offset = file.nextData(from: offset, size: end, step: frameSize) }
        }
        return count
      }
    }
  }
}

/// The running checksums of a WAL.
private struct Chain {
  static let knownVersion: UInt32 = 3_007_000

  let version: UInt32
  let pageSize: Int
  private let salts: (UInt32, UInt32)
  private let isBigEndian: Bool
  private var sums: (UInt32, UInt32) = (0, 0)

  /// nil where SQLite would ignore the whole WAL.
  init?(header: [UInt8]) {
    let parts: (magic: UInt32, version: UInt32, pageSize: UInt32, salts: (UInt32, UInt32)) =
      header.withUnsafeBytes {
        (
          $0.bigEndian(at: 0), $0.bigEndian(at: 4), $0.bigEndian(at: 8),
          ($0.bigEndian(at: 16), $0.bigEndian(at: 20))
        )
      }
    guard parts.magic | 1 == 0x377f_0683,
      (512...65_536).contains(parts.pageSize), parts.pageSize & (parts.pageSize - 1) == 0
    else { return nil }
    version = parts.version
    pageSize = Int(parts.pageSize)
    salts = parts.salts
    isBigEndian = parts.magic & 1 == 1
    let isWhole = header.withUnsafeBytes { bytes in
      add(UnsafeRawBufferPointer(rebasing: bytes[..<24]))
      return sums == (bytes.bigEndian(at: 24), bytes.bigEndian(at: 28))
    }
    guard isWhole else { return nil }
  }

  /// Whether a frame continues the chain.
  mutating func take(_ frame: UnsafeRawBufferPointer) -> Bool {
    guard frame.bigEndian(at: 0) != 0,
      (frame.bigEndian(at: 8), frame.bigEndian(at: 12)) == salts
    else { return false }
    add(UnsafeRawBufferPointer(rebasing: frame[..<8]))
    add(UnsafeRawBufferPointer(rebasing: frame[CommittedLog.frameHeaderSize...]))
    return sums == (frame.bigEndian(at: 16), frame.bigEndian(at: 20))
  }

  private mutating func add(_ bytes: UnsafeRawBufferPointer) {
    var (first, second) = sums
    var offset = 0
    while offset < bytes.count {
      var one = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
      var two = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
      if isBigEndian { (one, two) = (one.bigEndian, two.bigEndian) }
      first = first &+ one &+ second
      second = second &+ two &+ first
      offset += 8
    }
    sums = (first, second)
  }
}

extension UnsafeRawBufferPointer {
  func bigEndian(at offset: Int) -> UInt32 {
    loadUnaligned(fromByteOffset: offset, as: UInt32.self).bigEndian
  }
}
