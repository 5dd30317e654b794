private import CLinux
private import Glibc
package import SystemPackage

// Whether anybody else has a database open, and keeping it so for a moment.
extension StoreLock {
  /// What is known of other processes.
  package enum Openers: Sendable, Equatable {
    /// Nobody else has the file open, and who opens it waits until ``giveLeaseBack()``.
    case none
    /// Another process has the file open, locked or not.
    case some
    /// The volume has no leases, or none that tell of everybody, or this user may not take one.
    case unknown
  }

  /// Takes a write lease on the file: it is only given while nobody else has the file open.
  ///
  /// Who opens the file then waits in open(2), for `/proc/sys/fs/lease-break-time` seconds at most
  /// (45 unless set otherwise), and ``isAwaited`` says so. Hold it for moments only. On a volume where others may
  /// open the file unseen it is held, too, and keeps out whoever comes by this mount.
  ///
  /// - Parameter waitingMilliseconds: How long to wait for others to close the file: a child process
  ///   of our own that has just been started has its files open, too, until it runs its program.
  /// - Throws: ``DurabilityError/failed(call:path:_:)``.
  ///
  /// Source: fcntl(2), "Leases".
  package mutating func takeLease(waitingMilliseconds: Int = 500) throws -> Openers {
    // The signal of a lease that is being broken ends a process unless it is another than SIGIO.
    // SIGURG is ignored unless somebody handles it.
    _ = fcntl(descriptor.rawValue, setSignal, SIGURG)
    let clock = ContinuousClock()
    let end = clock.now + .milliseconds(waitingMilliseconds)
    while !hasLease, fcntl(descriptor.rawValue, setLease, Int32(F_WRLCK)) < 0 {
      switch errno {
      case EINTR: continue
      case EAGAIN, EBUSY:
        guard clock.now < end else { return .some }
        usleep(5_000)
      case EINVAL, EACCES, EPERM, ENOLCK, ENOSYS, EOPNOTSUPP: return .unknown
      default: throw DurabilityError.failed(call: "fcntl", path: path, Errno(rawValue: errno))
      }
    }
    hasLease = true
    return Self.seesEverybody(onVolumeOfType: linux_volume_type(descriptor.rawValue))
      ? .none : .unknown
  }

  /// Whether a file of such a volume is opened and locked by nobody but through this kernel, or its locks and leases
  /// are asked of whoever else there is.
  ///
  /// What a FUSE file system shows lies elsewhere and is opened there, too: sshfs, virtiofs and other shared folders
  /// of virtual machines, bindfs, but also ntfs-3g, which looks the same. So it is with 9p and VirtualBox's folders.
  /// Cluster file systems have leases of one machine, if any. An NFS or SMB client has those of its server.
  /// Overlayfs is as the volume below: to open what it lies on by another path is not allowed.
  ///
  /// Source: statfs(2), `f_type`; linux/magic.h; the list of coreutils' stat(1); https://docs.kernel.org/filesystems/overlayfs.html, "Changes to
  /// underlying filesystems".
  package static func seesEverybody(onVolumeOfType type: UInt32) -> Bool {
    switch type {
    case 0,  // unknown
      0x6573_5546,  // FUSE
      0x0102_1997,  // 9p
      0x786F_4256,  // VirtualBox
      0xBACB_ACBC,  // VMware
      0x7C7C_6673,  // Parallels
      0x00C3_6400,  // Ceph
      0x0BD0_0BD0,  // Lustre
      0x7461_636F,  // OCFS2
      0x0116_1970,  // GFS2
      0x4750_4653,  // GPFS
      0x1983_0326,  // BeeGFS
      0xAAD7_AAEA,  // PanFS
      0x2003_0528,  // OrangeFS
      0x7375_7245,  // Coda
      0x5346_414F, 0x6B41_4653:  // AFS
      false
    default: true
    }
  }

  /// Whether somebody waits to open the file that the lease is on, or no longer waits: the kernel
  /// takes a lease away from who keeps it too long.
  package var isAwaited: Bool {
    hasLease && fcntl(descriptor.rawValue, getLease) != Int32(F_WRLCK)
  }

  /// Lets others open the file again. Without a lease nothing happens.
  package mutating func giveLeaseBack() {
    guard hasLease else { return }
    hasLease = false
    releaseLease(of: descriptor)
  }

  /// Whether the file can be made useless once it has lost its name: it has no other, and may be written.
  package borrowing func canBeInvalidated() throws -> Bool {
    try isWritable && status().st_nlink <= 1
  }

  /// Makes a database useless that has no name any more, so that a process that opened it at the last
  /// moment is told that it is not a database, and writes nothing beside the file that has the name
  /// now. A file that still has a name is left alone.
  ///
  /// - Parameter evenNamed: Whether it is made so whatever other names it has.
  package borrowing func invalidateUnnamed(evenNamed: Bool = false) throws {
    let status = try status()
    guard isWritable, status.st_nlink == 0 || evenNamed, status.st_size > 0 else { return }
    // The 100 bytes of https://sqlite.org/fileformat2.html §1.3.
    let text = Array("This store was replaced. Open it again by its path.".utf8)
    let header = text + Array(repeating: 0, count: 100 - text.count)
    try header.withUnsafeBytes { bytes in
      _ = try failing("pwrite", path) { try descriptor.writeAll(toAbsoluteOffset: 0, bytes) }
    }
    // The first page may be read from a log that lies beside the other file. The rest is zeros then, which is
    // damage. The size stays: of an empty file SQLite removes the log.
    let size = off_t(header.count)
    guard status.st_size > size else { return }
    try calling("ftruncate", path) { ftruncate(descriptor.rawValue, size) }
    try calling("ftruncate", path) { ftruncate(descriptor.rawValue, status.st_size) }
  }

  private borrowing func status() throws -> stat {
    var status = stat()
    try calling("fstat", path) { fstat(descriptor.rawValue, &status) }
    return status
  }
}

extension StoreLock {
  /// Whether `/proc` shows a process that has one of the files open. Processes of other users are
  /// only seen by a privileged one, so that false proves nothing.
  ///
  /// - Parameter paths: Files of the store; those that do not exist are left out.
  package borrowing func areOpenElsewhere(_ paths: [FilePath]) throws -> Bool {
    let wanted = try paths.compactMap { try FileMark($0) }
    guard !wanted.isEmpty else { return false }
    let own = getpid()
    for name in (try? DurableFile.names(in: "/proc")) ?? [] {
      guard let process = pid_t(name) else { continue }
      let folder = FilePath("/proc").appending(name).appending("fd")
      for number in (try? DurableFile.names(in: folder)) ?? [] {
        if process == own, Int32(number) == descriptor.rawValue { continue }
        var status = stat()
        guard folder.appending(number).withPlatformString({ stat($0, &status) }) == 0 else {
          continue
        }
        let (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
        if wanted.contains(where: { $0.device == device && $0.inode == inode }) { return true }
      }
    }
    return false
  }
}

func releaseLease(of file: FileDescriptor) {
  _ = fcntl(file.rawValue, setLease, Int32(F_UNLCK))
}

// fcntl(2); glibc declares them for _GNU_SOURCE only.
private let setSignal: Int32 = 10
private let setLease: Int32 = 1024
private let getLease: Int32 = 1025
