internal import CLinux
internal import Glibc
package import SystemPackage

/// Which file a name stands for, and in which state.
///
/// Survives renames and further hard links of the file; changes with every write.
package struct FileMark: Codable, Sendable, Equatable {
  package var device: UInt64
  package var inode: UInt64
  package var size: Int64
  package var modificationSeconds: Int64
  package var modificationNanoseconds: Int64

  /// The file at the path; nil when there is none, or something that is not a regular file.
  /// Symbolic links are not followed.
  ///
  /// - Throws: ``DurabilityError/failed(call:path:_:)`` where that cannot be told.
  package init?(_ path: FilePath) throws {
    guard let status = try FileKind.status(of: path) else { return nil }
    self.init(status)
  }

  /// Nil for what is not a regular file.
  init?(_ status: stat) {
    guard status.st_mode & S_IFMT == S_IFREG else { return nil }
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
    size = Int64(status.st_size)
    modificationSeconds = Int64(status.st_mtim.tv_sec)
    modificationNanoseconds = Int64(status.st_mtim.tv_nsec)
  }

  /// The same file, whatever was written to it since.
  package func isSameFile(as other: FileMark?) -> Bool {
    device == other?.device && inode == other?.inode
  }
}

extension DurableFile {
  /// Whether two files or folders lie on one volume, so that a rename can go from one to the other.
  ///
  /// Two mounts of one file system count as two: no rename goes from one to the other (`EXDEV`).
  /// Source: rename(2).
  package static func areOnOneVolume(_ a: FilePath, _ b: FilePath) throws -> Bool {
    var first = stat()
    var second = stat()
    try calling("stat", a) { a.withPlatformString { stat($0, &first) } }
    try calling("stat", b) { b.withPlatformString { stat($0, &second) } }
    return first.st_dev == second.st_dev && mount(of: a) == mount(of: b)
  }

  /// Whether the file itself is a mount, so that no rename can put another in its place (`EBUSY`).
  ///
  /// Device numbers do not tell: on overlayfs a file's may be another than its folder's.
  package static func isMountPoint(_ path: FilePath) -> Bool {
    mount(of: path) != mount(of: path.folder)
  }

  /// Whether a file was made before another of its volume; false where the volume does not tell.
  package static func isOlder(_ path: FilePath, than other: FilePath) -> Bool {
    guard let own = birth(of: path), let others = birth(of: other) else { return false }
    return (own.tv_sec, own.tv_nsec) < (others.tv_sec, others.tv_nsec)
  }

  private static func birth(of path: FilePath) -> timespec? {
    var time = timespec()
    return path.withPlatformString { linux_birth_of($0, &time) } == 0 ? time : nil
  }

  /// 0 where it is not known: old kernels, and sandboxes, do not tell.
  private static func mount(of path: FilePath) -> UInt64 {
    var mount: UInt64 = 0
    return path.withPlatformString { linux_mount_of($0, &mount) } == 0 ? mount : 0
  }
}
