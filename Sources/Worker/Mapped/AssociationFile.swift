import GodwitDurableFiles
import SystemPackage

/// What the source objects of one entity mapping became: pairs of keys on disk.
///
/// A file is nothing but pairs of a source key and a destination key, eight bytes each,
/// little-endian, ascending by both: a mapping gives keys in the order of its source objects. So
/// one file answers in both directions. Memory is flat: one key of each block is kept, and some
/// blocks.
final class AssociationFile {
  /// 256 pairs. A look-up reads one block at most.
  private static let blockPairs = 256
  private static let pairBytes = 16
  /// 256 blocks of 4 KiB: a megabyte for each mapping that is asked for.
  private static let cachedBlocks = 256

  private let file: FileDescriptor
  private let path: FilePath
  let count: Int
  /// First source key and first destination key of each block.
  private var firsts: [[Int64]] = [[], []]
  private var cache: [Int: [Int64]] = [:]
  private var recent: (number: Int, block: [Int64]) = (-1, [])

  init(_ path: FilePath) throws {
    self.path = path
    do {
      file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
    } catch let errno as Errno {
      throw StageError.association(path: path.string, reason: "\(errno)")
    }
    let size = try Self.size(of: file, path)
    guard size % Self.pairBytes == 0 else {
      try? file.close()
      throw StageError.association(path: path.string, reason: "it is cut off")
    }
    count = size / Self.pairBytes
    for number in 0..<((count + Self.blockPairs - 1) / Self.blockPairs) {
      let pair = try read(pairs: 1, at: number * Self.blockPairs)
      firsts[0].append(pair[0])
      firsts[1].append(pair[1])
    }
  }

  deinit { try? file.close() }

  /// The destination key of a source key.
  func destination(of source: Int64) throws -> Int64? { try find(source, side: 0) }

  /// The source key of a destination key.
  func source(of destination: Int64) throws -> Int64? { try find(destination, side: 1) }

  /// The pair at a place, from 0.
  func pair(at place: Int) throws -> (source: Int64, destination: Int64) {
    let block = try block(place / Self.blockPairs)
    let offset = place % Self.blockPairs * 2
    return (block[offset], block[offset + 1])
  }

  private func find(_ key: Int64, side: Int) throws -> Int64? {
    let starts = firsts[side]
    var (low, high) = (0, starts.count)
    while low < high {
      let middle = (low + high) / 2
      if starts[middle] <= key { low = middle + 1 } else { high = middle }
    }
    guard low > 0 else { return nil }
    let block = try block(low - 1)
    var (first, end) = (0, block.count / 2)
    while first < end {
      let middle = (first + end) / 2
      if block[middle * 2 + side] < key { first = middle + 1 } else { end = middle }
    }
    guard first < block.count / 2, block[first * 2 + side] == key else { return nil }
    return block[first * 2 + 1 - side]
  }

  private func block(_ number: Int) throws -> [Int64] {
    if recent.number == number { return recent.block }
    let block: [Int64]
    if let known = cache[number] {
      block = known
    } else {
      let start = number * Self.blockPairs
      block = try read(pairs: min(Self.blockPairs, count - start), at: start)
      // Random look-ups over a file much larger than the cache: starting anew is as good as any.
      if cache.count >= Self.cachedBlocks { cache.removeAll(keepingCapacity: true) }
      cache[number] = block
    }
    recent = (number, block)
    return block
  }

  private func read(pairs: Int, at place: Int) throws -> [Int64] {
    var numbers = [Int64](repeating: 0, count: pairs * 2)
    try numbers.withUnsafeMutableBytes { bytes in
      var done = 0
      while done < bytes.count {
        let read = try file.read(
          fromAbsoluteOffset: Int64(place * Self.pairBytes + done),
          into: UnsafeMutableRawBufferPointer(rebasing: bytes[done...]))
        guard read > 0 else {
          throw StageError.association(path: path.string, reason: "it is cut off")
        }
        done += read
      }
    }
    return numbers.map { Int64(littleEndian: $0) }
  }

  private static func size(of file: FileDescriptor, _ path: FilePath) throws -> Int {
    do {
      return Int(try file.seek(offset: 0, from: .end))
    } catch let errno as Errno {
      throw StageError.association(path: path.string, reason: "\(errno)")
    }
  }
}

/// Writes an ``AssociationFile``, which is there when it is whole.
struct AssociationWriter: ~Copyable {
  private var file: PendingFile
  private var buffer: [Int64] = []
  private var last: (Int64, Int64)?
  private let path: FilePath

  init(_ path: FilePath) throws {
    self.path = path
    file = try PendingFile(for: path)
    buffer.reserveCapacity(8192)
  }

  mutating func append(source: Int64, destination: Int64) throws {
    if let last, last.0 >= source || last.1 >= destination {
      throw StageError.association(path: path.string, reason: "its keys do not ascend")
    }
    last = (source, destination)
    buffer.append(source.littleEndian)
    buffer.append(destination.littleEndian)
    if buffer.count >= 8192 { try flush() }
  }

  mutating func finish() throws {
    try flush()
    try file.publish()
  }

  private mutating func flush() throws {
    try buffer.withUnsafeBytes { try file.write($0) }
    buffer.removeAll(keepingCapacity: true)
  }
}
