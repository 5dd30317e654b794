private import Glibc
package import SystemPackage

/// A right to work in a folder, which lasts while its holder renews it.
///
/// It is a lock, see ``FileLock``, on a file that holds a number: the epoch, one more for each
/// holder. The kernel drops the lock when the process dies. A process that is stopped by a signal
/// keeps it: once the lease has not been renewed for its length, somebody else may take it over, by
/// putting a new file in the place of the old one. Whoever held it before finds out by ``isCurrent``,
/// and must not publish what it has made.
///
/// The times of files are compared with the clock. One that is set forward may take a lease from a
/// holder that is alive: that costs its work, and nothing else.
package final class Lease: Sendable {
  private let file: FileDescriptor
  private let path: FilePath
  /// What a commit is asked for, in whichever process it happens.
  package let token: LeaseToken

  /// Takes the lease, or fails. The file is made if it does not exist.
  ///
  /// - Parameters:
  ///   - seconds: How long it lasts without being renewed.
  ///   - patienceSeconds: How long to wait for a holder that is alive.
  /// - Throws: ``DurabilityError/locked(_:)`` when another process has it.
  package init(acquiring path: FilePath, seconds: Double, patienceSeconds: Double = 0) throws {
    var isTaken = false
    let file = try FileLock.lockedFile(path, patienceSeconds) { old in
      let taken = try Self.takeOver(old, path, seconds)
      isTaken = taken != nil
      return taken
    }
    (self.file, self.path) = (file, path)
    // Who takes a lease over writes its epoch before the file has its name.
    do {
      let epoch = try Self.epoch(in: file, path) + (isTaken ? 0 : 1)
      if !isTaken { try Self.write(epoch, to: file, path) }
      token = try LeaseToken(file, path, epoch)
    } catch {
      try? file.close()
      throw error
    }
  }

  deinit { try? file.close() }

  /// Lets it last for its length again, from now on.
  package func renew() { _ = futimens(file.rawValue, nil) }

  /// Whether somebody holds the lease of a file and renews it: until it has run out nobody can take it
  /// over.
  ///
  /// - Throws: ``DurabilityError`` where that cannot be told.
  package static func isHeld(at path: FilePath, seconds: Double) throws -> Bool {
    guard try FileLock.isHeld(at: path) else { return false }
    do {
      let file = try RegularFile.open(path)
      defer { try? file.close() }
      return !hasRunOut(file, seconds)
    } catch let error as DurabilityError where error.isNotFound {
      return false
    }
  }

  /// Whether nobody has taken it over.
  ///
  /// - Throws: ``DurabilityError`` where that cannot be told.
  package var isCurrent: Bool {
    get throws { try isFile(file, at: path) }
  }
}

extension Lease {
  /// More than there are ever holders: a file that says so was damaged.
  private static let highestEpoch: UInt64 = 1 << 62

  /// Puts a new file in the place of one whose holder does not renew it.
  ///
  /// - Returns: Nil where the lease still lasts, or somebody else takes it over.
  private static func takeOver(
    _ old: FileDescriptor, _ path: FilePath, _ seconds: Double
  ) throws -> FileDescriptor? {
    guard hasRunOut(old, seconds) else { return nil }
    let name = path.lastComponent?.string ?? "lock"
    let guardPath = path.folder.appending(".\(name)-takeover")
    // Two that take it over at the same time would both believe that they have it.
    let entry = try RegularFile.open(guardPath, .readWrite, options: .create, isSole: true)
    defer { try? entry.close() }
    guard flock(entry.rawValue, LOCK_EX | LOCK_NB) == 0, try isFile(entry, at: guardPath),
      try isFile(old, at: path), hasRunOut(old, seconds)
    else { return nil }
    defer { _ = guardPath.withPlatformString { unlink($0) } }
    let newPath = path.folder.appending(".\(name)-next")
    // What somebody left who was cut off here.
    _ = newPath.withPlatformString { unlink($0) }
    let file = try RegularFile.open(newPath, .readWrite, options: [.create, .exclusiveCreate])
    do {
      guard flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 else {
        throw DurabilityError.failed(call: "flock", path: newPath, Errno(rawValue: errno))
      }
      try write(epoch(in: old, path) + 1, to: file, newPath)
      try calling("rename", newPath) {
        newPath.withPlatformString { from in path.withPlatformString { rename(from, $0) } }
      }
    } catch {
      try? file.close()
      throw error
    }
    return file
  }

  private static func hasRunOut(_ file: FileDescriptor, _ seconds: Double) -> Bool {
    var status = stat()
    var now = timespec()
    guard fstat(file.rawValue, &status) == 0, clock_gettime(CLOCK_REALTIME, &now) == 0 else {
      return false
    }
    let age =
      Double(now.tv_sec) - Double(status.st_mtim.tv_sec)
      + Double(now.tv_nsec - status.st_mtim.tv_nsec) / 1e9
    return age > seconds
  }

  /// 0 for a file that holds no epoch yet, or something else: whoever has its lock writes one.
  static func epoch(in file: FileDescriptor, _ path: FilePath) throws -> UInt64 {
    let bytes = try [UInt8](unsafeUninitializedCapacity: 20) { buffer, count in
      count = try failing("read", path) {
        try file.read(fromAbsoluteOffset: 0, into: UnsafeMutableRawBufferPointer(buffer))
      }
    }
    let epoch = UInt64(String(decoding: bytes, as: UTF8.self)) ?? 0
    return epoch > highestEpoch ? 0 : epoch
  }

  private static func write(_ epoch: UInt64, to file: FileDescriptor, _ path: FilePath) throws {
    let text = Array(String(epoch).utf8)
    do {
      try file.writeAll(toAbsoluteOffset: 0, text)
      // What was no number may have been longer.
      try calling("ftruncate", path) { ftruncate(file.rawValue, off_t(text.count)) }
    } catch let errno as Errno {
      throw DurabilityError.failed(call: "write", path: path, errno)
    }
  }
}

extension LeaseToken {
  /// Whether no file has the lease's name any more: whoever takes it over puts another there.
  package var isGone: Bool {
    switch FilePresence(of: FilePath(path)) {
    case .absent, .noFolder: true
    case .there, .unreachable: false
    }
  }
}

/// Which holder of a ``Lease`` somebody is, or works for.
package struct LeaseToken: Codable, Sendable, Equatable {
  package var path: String
  package var epoch: UInt64
  var device: UInt64
  var inode: UInt64

  fileprivate init(_ file: FileDescriptor, _ path: FilePath, _ epoch: UInt64) throws {
    var status = stat()
    try calling("fstat", path) { fstat(file.rawValue, &status) }
    self.path = path.string
    self.epoch = epoch
    (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
  }

  /// Whether the holder has the lease still: the file of that name is its own and holds its epoch.
  ///
  /// - Throws: ``DurabilityError`` where that cannot be told: then nothing may be published, and
  ///   nobody is known to have taken it over.
  package var isCurrent: Bool {
    get throws {
      let path = FilePath(path)
      do {
        let file = try RegularFile.open(path)
        defer { try? file.close() }
        var status = stat()
        try calling("fstat", path) { fstat(file.rawValue, &status) }
        return try UInt64(status.st_dev) == device && UInt64(status.st_ino) == inode
          && Lease.epoch(in: file, path) == epoch
      } catch let error as DurabilityError where error.isNotFound {
        return false
      }
    }
  }
}
