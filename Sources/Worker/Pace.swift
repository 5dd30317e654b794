import Glibc
import GodwitDurableFiles
import Synchronization
import SystemPackage

/// How much the processes of a run may read and write together, whether the volume or the page cache
/// answers.
///
/// They share a small file, written by the coordinator when the limit changes:
///
///     0   8   bytes a second, little-endian; -1 for no limit, 0 for standing still
///     8   8   when the bytes so far are paid for, in nanoseconds of the monotonic clock
///
/// Each process adds what it has read and written since the last time, as the kernel counts it
/// (`rchar` and `wchar` of `/proc/self/io`), and waits until that is paid for. It does so before a
/// task, and now and then while it assembles, so that at most a shard for each process is ahead. An
/// error never ends anything: a limit that cannot be kept is not kept.
package final class Pace: Sendable {
  /// How much may be ahead of the limit, in nanoseconds.
  private static let slack: Int64 = 100_000_000
  /// A time farther ahead is of another boot or of a clock that was wrong.
  private static let farthest: Int64 = 3_600_000_000_000
  /// 20 ms between two looks: asking is cheap where little happens.
  private static let interval: Int64 = 20_000_000
  private static let noLimit: Int64 = -1

  private static let shared = Mutex<Pace?>(nil)

  private let file: FileDescriptor
  private let state = Mutex(State())

  private struct State {
    var lastLook: Int64 = 0
    var lastBytes: Int64 = 0
  }

  init(_ path: FilePath) throws {
    file = try FileDescriptor.open(path, .readWrite, options: [.noFollow, .closeOnExec])
    state.withLock { $0.lastBytes = Self.bytesMoved }
  }

  deinit { try? file.close() }
}

extension Pace {
  /// Sets the limit, for every process that uses the file. It is made if it does not exist. What was
  /// done under the old limit is paid for: who waits because of it goes on.
  ///
  /// - Parameter bytesPerSecond: Nil for no limit; 0 lets everybody stand still.
  package static func set(_ bytesPerSecond: Int64?, in path: FilePath) throws {
    let file = try RegularFile.open(path, .readWrite, options: .create, isSole: true)
    defer { try? file.close() }
    let count = withUnsafeBytes(of: ((bytesPerSecond ?? noLimit).littleEndian, Int64(0))) {
      pwrite(file.rawValue, $0.baseAddress, 16, 0)
    }
    guard count == 16 else {
      // Of a write that is cut off the kernel says no more: no room is left.
      let error = count < 0 ? Errno(rawValue: errno) : .noSpace
      throw DurabilityError.failed(call: "write", path: path, error)
    }
  }

  /// Keeps to the limit of a file from here on; without one where it cannot be opened.
  package static func use(_ path: FilePath) {
    let pace = try? Pace(path)
    shared.withLock { $0 = pace }
  }

  /// Waits until this process may go on.
  ///
  /// - Parameter isStopped: Ends the wait.
  package static func keep(until isStopped: () -> Bool = { false }) {
    guard let pace = shared.withLock({ $0 }) else { return }
    pace.keep(until: isStopped)
  }
}

extension Pace {
  func keep(until isStopped: () -> Bool) {
    let now = Self.now
    let moved: Int64? = state.withLock { state in
      guard now - state.lastLook >= Self.interval else { return nil }
      state.lastLook = now
      let bytes = Self.bytesMoved
      defer { state.lastBytes = bytes }
      return max(0, bytes - state.lastBytes)
    }
    guard let moved, var paid = add(moved) else { return }
    while paid > Self.now + Self.slack, !isStopped() {
      _ = poll(nil, 0, 20)
      // The limit may be another by now.
      guard let next = add(0) else { return }
      paid = next
    }
  }

  /// Adds bytes to what is to be paid for.
  ///
  /// - Returns: When all is paid for; nil where there is no limit.
  private func add(_ bytes: Int64) -> Int64? {
    // Who holds the lock may be stopped by a signal: then nobody waits for it.
    var tries = 0
    while flock(file.rawValue, LOCK_EX | LOCK_NB) != 0 {
      tries += 1
      guard errno == EWOULDBLOCK || errno == EINTR, tries < 50 else { return nil }
      _ = poll(nil, 0, 1)
    }
    defer { flock(file.rawValue, LOCK_UN) }
    var words: (Int64, Int64) = (0, 0)
    let count = withUnsafeMutableBytes(of: &words) {
      pread(file.rawValue, $0.baseAddress, 16, 0)
    }
    guard count >= 8 else { return nil }
    let (rate, now) = (Int64(littleEndian: words.0), Self.now)
    if rate == 0 { return .max }
    guard rate > 0 else { return nil }
    var paid = max(now, count == 16 ? Int64(littleEndian: words.1) : 0)
    if paid > now + Self.farthest { paid = now }
    let cost = Double(bytes) / Double(rate) * 1e9
    paid += Int64(min(cost, Double(Self.farthest) / 2))
    withUnsafeBytes(of: paid.littleEndian) { _ = pwrite(file.rawValue, $0.baseAddress, 8, 8) }
    return paid
  }

  private static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// Bytes that this process has read and written so far; 0 where the kernel does not count them.
  private static var bytesMoved: Int64 {
    guard let file = try? FileDescriptor.open("/proc/self/io", .readOnly, options: .closeOnExec)
    else { return 0 }
    defer { try? file.close() }
    let bytes = try? [UInt8](unsafeUninitializedCapacity: 512) { buffer, count in
      count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
    }
    return (bytes ?? []).split(separator: UInt8(ascii: "\n")).prefix(2).reduce(0) { sum, line in
      sum
        + (line.split(separator: UInt8(ascii: " ")).last.flatMap {
          Int64(String(decoding: $0, as: UTF8.self))
        } ?? 0)
    }
  }
}
