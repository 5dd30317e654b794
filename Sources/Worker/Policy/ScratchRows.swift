import GodwitCheckpoints
import GodwitDurableFiles
import GodwitSQLite
import SystemPackage

/// Runs of bytes, appended one after the other and read again by their place: what a shard's
/// policy works on, in flat memory whatever the shard's size.
///
/// What does not fit the buffer goes to a file without a name, which is gone with the process.
final class ScratchRows {
  /// 4 MiB in memory. A shard of usual size hardly ever needs the file.
  private static let bufferBytes = 4 << 20
  /// Rows are mostly read in the order in which they were written.
  private static let readBytes = 256 << 10

  private let folder: FilePath
  @exclusivity(unchecked) private var tail = RawBuffer(capacity: 64 << 10)
  /// Bytes in the file: where the tail begins.
  @exclusivity(unchecked) private var filed = 0
  @exclusivity(unchecked) private var file: FileDescriptor?
  @exclusivity(unchecked) private var window = RawBuffer(capacity: 16)
  @exclusivity(unchecked) private var windowStart = 0

  /// - Parameter folder: Where the file goes, on the volume that is meant for the run.
  init(in folder: FilePath) { self.folder = folder }

  deinit { try? file?.close() }

  var count: Int { filed + tail.count }

  /// Appends the bytes.
  ///
  /// - Returns: Their place.
  func append(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    if tail.count + bytes.count > Self.bufferBytes, tail.count > 0 { try spill() }
    let place = filed + tail.count
    // All at once: to double it again and again would move everything as often.
    if tail.count + bytes.count > tail.capacity {
      tail.reserve(max(bytes.count, Self.bufferBytes - tail.count))
    }
    tail.append(bytes)
    return place
  }

  /// Calls the body with `count` bytes at a place; they are valid until it returns.
  func read<Result>(
    _ place: Int, count: Int, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    if place >= filed {
      let start = place - filed
      return try body(UnsafeRawBufferPointer(rebasing: tail.bytes[start..<(start + count)]))
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
      while done < tail.count {
        done += try file.write(
          toAbsoluteOffset: Int64(filed + done),
          UnsafeRawBufferPointer(rebasing: tail.bytes[done...]))
      }
    } catch let errno as Errno {
      throw DurabilityError.failed(call: "write", path: folder, errno)
    }
    filed += tail.count
    tail.removeAll()
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
