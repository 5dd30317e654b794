import GodwitDurableFiles
import SystemPackage

/// A file of lines of as many numbers each, read in blocks.
final class NumberFile {
  /// A look-up reads a few blocks at most.
  static let blockLines = 256
  /// A megabyte or two for each file that is asked for.
  private static let cachedBlocks = 256

  private let file: FileDescriptor
  private let path: FilePath
  private let width: Int
  /// Lines.
  let count: Int
  private var cache: [Int: [Int64]] = [:]
  private var recent: (number: Int, block: [Int64]) = (-1, [])

  init(_ path: FilePath, width: Int) throws {
    self.path = path
    self.width = width
    do {
      file = try RegularFile.open(path, isPrivate: true)
      let size = Int(try file.seek(offset: 0, from: .end))
      guard size % (width * 8) == 0 else {
        try? file.close()
        throw StageError.association(path: path.string, reason: "it is cut off")
      }
      count = size / (width * 8)
    } catch let error as DurabilityError {
      throw StageError.association(path: path.string, reason: "\(error)")
    } catch let errno as Errno {
      throw StageError.association(path: path.string, reason: "\(errno)")
    }
  }

  deinit { try? file.close() }

  /// Calls the body with the numbers of a line, from 0.
  func withLine<Result>(
    _ place: Int, _ body: (UnsafeBufferPointer<Int64>) throws -> Result
  ) throws -> Result {
    let start = place % Self.blockLines * width
    return try block(place / Self.blockLines).withUnsafeBufferPointer {
      try body(UnsafeBufferPointer(rebasing: $0[start..<(start + width)]))
    }
  }

  func block(_ number: Int) throws -> [Int64] {
    if recent.number == number { return recent.block }
    let block: [Int64]
    if let known = cache[number] {
      block = known
    } else {
      let start = number * Self.blockLines
      block = try read(lines: min(Self.blockLines, count - start), at: start)
      // Random look-ups over a file much larger than the cache: starting again is as good as any.
      if cache.count >= Self.cachedBlocks { cache.removeAll(keepingCapacity: true) }
      cache[number] = block
    }
    recent = (number, block)
    return block
  }

  func read(lines: Int, at place: Int) throws -> [Int64] {
    var numbers = [Int64](repeating: 0, count: lines * width)
    try numbers.withUnsafeMutableBytes { bytes in
      var done = 0
      while done < bytes.count {
        let read = try file.read(
          fromAbsoluteOffset: Int64(place * width * 8 + done),
          into: UnsafeMutableRawBufferPointer(rebasing: bytes[done...]))
        guard read > 0 else {
          throw StageError.association(path: path.string, reason: "it is cut off")
        }
        done += read
      }
    }
    return numbers.map { Int64(littleEndian: $0) }
  }
}

/// Writes a ``NumberFile``, which is there when it is whole.
struct NumberWriter: ~Copyable {
  private var file: PendingFile
  private var buffer: [Int64] = []

  init(_ path: FilePath) throws {
    file = try PendingFile(for: path)
    buffer.reserveCapacity(8192)
  }

  mutating func append(_ first: Int64, _ second: Int64) throws {
    buffer.append(first.littleEndian)
    buffer.append(second.littleEndian)
    if buffer.count >= 8192 { try flush() }
  }

  mutating func append(_ numbers: [Int64]) throws {
    for number in numbers { buffer.append(number.littleEndian) }
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
