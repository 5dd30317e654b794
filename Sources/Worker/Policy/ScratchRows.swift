import GodwitCheckpoints
import GodwitDurableFiles
import GodwitSQLite
import Synchronization
import SystemPackage

/// Runs of bytes, appended one after the other and read again by their place: what a shard's
/// policy works on, in flat memory whatever the shard's size.
///
/// What does not fit the buffer goes to a file without a name, which is gone with the process.
final class ScratchRows {
  /// 4 MiB in memory. A shard of usual size hardly ever needs the file.
  fileprivate static let bufferBytes = 4 << 20
  /// Rows are mostly read in the order in which they were written.
  private static let readBytes = 256 << 10

  private let folder: FilePath
  private let memory = ScratchMemory.take()
  /// Bytes in the file: where the tail begins.
  @exclusivity(unchecked) private var filed = 0
  @exclusivity(unchecked) private var file: FileDescriptor?
  @exclusivity(unchecked) private var window = RawBuffer(capacity: 16)
  @exclusivity(unchecked) private var windowStart = 0

  /// - Parameter folder: Where the file goes, on the volume that is meant for the run.
  init(in folder: FilePath) { self.folder = folder }

  deinit {
    memory.giveBack()
    try? file?.close()
  }

  var count: Int { filed + memory.tail.count }

  /// Appends the bytes.
  ///
  /// - Returns: Their place.
  func append(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    if memory.tail.count + bytes.count > Self.bufferBytes, memory.tail.count > 0 { try spill() }
    let place = filed + memory.tail.count
    // All at once: to double it again and again would move everything as often.
    if memory.tail.count + bytes.count > memory.tail.capacity {
      memory.tail.reserve(max(bytes.count, Self.bufferBytes - memory.tail.count))
    }
    memory.tail.append(bytes)
    return place
  }

  /// Calls the body with `count` bytes at a place; they are valid until it returns.
  func read<Result>(
    _ place: Int, count: Int, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    if place >= filed {
      let start = place - filed
      return try body(UnsafeRawBufferPointer(rebasing: memory.tail.bytes[start..<(start + count)]))
    }
    if place < windowStart || place + count > windowStart + window.count {
      try load(place, atLeast: count)
    }
    let start = place - windowStart
    return try body(UnsafeRawBufferPointer(rebasing: window.bytes[start..<(start + count)]))
  }

  private func spill() throws {
    let file = try self.file ?? Self.nameless(in: folder)
    self.file = file
    do {
      var done = 0
      while done < memory.tail.count {
        done += try file.write(
          toAbsoluteOffset: Int64(filed + done),
          UnsafeRawBufferPointer(rebasing: memory.tail.bytes[done...]))
      }
    } catch let errno as Errno {
      throw DurabilityError.failed(call: "write", path: folder, errno)
    }
    filed += memory.tail.count
    memory.tail.removeAll()
  }

  private func load(_ place: Int, atLeast count: Int) throws {
    guard let file else { return }
    let wanted = min(max(count, Self.readBytes), filed - place)
    window.removeAll()
    let room = UnsafeMutableRawBufferPointer(
      start: window.appendUninitialized(wanted), count: wanted)
    windowStart = place
    var done = 0
    while done < wanted {
      let read: Int
      do {
        read = try file.read(
          fromAbsoluteOffset: Int64(place + done),
          into: UnsafeMutableRawBufferPointer(rebasing: room[done...]))
      } catch let errno as Errno {
        throw DurabilityError.failed(call: "read", path: folder, errno)
      }
      guard read > 0 else {
        throw DurabilityError.failed(call: "read", path: folder, .ioError)
      }
      done += read
    }
  }

  /// An unpublished file loses its name with the value that made it; what is open stays open.
  private static func nameless(in folder: FilePath) throws -> FileDescriptor {
    let pending = try PendingFile(for: folder.appending("scratch"))
    do {
      return try pending.descriptor.duplicate()
    } catch let errno as Errno {
      throw DurabilityError.failed(call: "dup", path: folder, errno)
    }
  }
}

/// Memory of scratch rows, kept for the next ones: fresh pages cost more than what is written into them.
private final class ScratchMemory: @unchecked Sendable {
  /// Of the rows that have taken it, and nobody's else.
  @exclusivity(unchecked) var tail = RawBuffer(capacity: 64 << 10)

  /// Those of two shards at a time: objects and associations.
  private static let mostSpare = 4
  private static let spare = Mutex<[ScratchMemory]>([])

  static func take() -> ScratchMemory { spare.withLock { $0.popLast() } ?? ScratchMemory() }

  func giveBack() {
    tail.removeAll()
    // One that a large row has grown is not kept for good.
    guard tail.capacity >= ScratchRows.bufferBytes, tail.capacity <= 2 * ScratchRows.bufferBytes
    else { return }
    Self.spare.withLock { if $0.count < Self.mostSpare { $0.append(self) } }
  }
}
