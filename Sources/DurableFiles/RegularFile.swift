private import CLinux
private import Glibc
package import SystemPackage

/// Opening files that somebody else may have put there.
///
/// Nothing here waits: a FIFO or a device is refused, never read. Unless links are followed, no
/// part of the path may be a symbolic link, so that a name cannot lead to another file than the one
/// that it stood for when paths were resolved, see `FilePath/resolvingFolders`.
package enum RegularFile {
  /// What becomes of symbolic links.
  package enum Links: Sendable {
    /// The path must have none.
    case refused
    /// For files that a person names and that are only read: models, mapping models, pipelines.
    case followed
  }

  /// Opens a regular file.
  ///
  /// - Parameters:
  ///   - options: `.create` makes the file if it is missing, with the permissions.
  ///   - isPrivate: The file must belong to this user and be writable by nobody else.
  ///   - isSole: For a file that is changed in place: it must have no other name, under which another
  ///     file would be changed.
  /// - Throws: ``DurabilityError/notRegular(_:_:)``, ``DurabilityError/symbolicLink(_:)``,
  ///   ``DurabilityError/notPrivate(_:reason:)``, ``DurabilityError/otherNames(_:)``.
  package static func open(
    _ path: FilePath, _ access: FileDescriptor.AccessMode = .readOnly,
    options: FileDescriptor.OpenOptions = [], permissions: FilePermissions = .ownerReadWrite,
    links: Links = .refused, isPrivate: Bool = false, isSole: Bool = false
  ) throws -> FileDescriptor {
    let flags = access.rawValue | options.rawValue
    let file = try opened(path, flags, permissions, links)
    do {
      var status = stat()
      try calling("fstat", path) { fstat(file.rawValue, &status) }
      let kind = FileKind(mode: status.st_mode)
      guard kind == .regular else { throw DurabilityError.notRegular(path, kind) }
      if isPrivate { try checkPrivate(status, path) }
      if isSole, status.st_nlink > 1 { throw DurabilityError.otherNames(path) }
      return file
    } catch {
      try? file.close()  // the first error is the one to tell
      throw error
    }
  }

  /// The bytes of a regular file.
  ///
  /// - Parameter limit: The most bytes that the file may have.
  /// - Throws: ``DurabilityError/tooLarge(_:limitBytes:)``, and what ``open(_:_:options:permissions:links:isPrivate:isSole:)``
  ///   does.
  package static func bytes(
    of path: FilePath, limit: Int, links: Links = .refused, isPrivate: Bool = false
  ) throws -> [UInt8] {
    let file = try open(path, links: links, isPrivate: isPrivate)
    defer { try? file.close() }
    var status = stat()
    try calling("fstat", path) { fstat(file.rawValue, &status) }
    guard Int64(status.st_size) <= Int64(limit) else {
      throw DurabilityError.tooLarge(path, limitBytes: limit)
    }
    // One byte more than it should have, so that a file that grows is noticed.
    let size = Int(status.st_size) + 1
    let bytes = try [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
      while filled < size {
        let rest = UnsafeMutableRawBufferPointer(
          rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
        let count = try failing("read", path) { try file.read(into: rest) }
        if count == 0 { break }
        filled += count
      }
    }
    guard bytes.count < size else { throw DurabilityError.tooLarge(path, limitBytes: size - 1) }
    return bytes
  }

  /// As many bytes as the file has, `count` at most.
  package static func firstBytes(
    of path: FilePath, count: Int, links: Links = .refused
  ) throws -> [UInt8] {
    let file = try open(path, links: links)
    defer { try? file.close() }
    return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      while filled < count {
        let rest = UnsafeMutableRawBufferPointer(
          rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
        let read = try failing("read", path) {
          try file.read(fromAbsoluteOffset: Int64(filled), into: rest)
        }
        if read == 0 { break }
        filled += read
      }
    }
  }

  /// Gives the body a file's bytes in order, in pieces of which only the last may be shorter.
  package static func forEachPiece(
    of path: FilePath, byteCount: Int, _ body: (UnsafeRawBufferPointer) -> Void
  ) throws {
    let file = try open(path)
    defer { try? file.close() }
    let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount, alignment: 4096)
    defer { piece.deallocate() }
    var filled = 0
    repeat {
      filled = 0
      while filled < byteCount {
        let rest = UnsafeMutableRawBufferPointer(rebasing: piece[filled...])
        let count = try failing("read", path) { try file.read(into: rest) }
        if count == 0 { break }
        filled += count
      }
      if filled > 0 { body(UnsafeRawBufferPointer(rebasing: piece[..<filled])) }
    } while filled == byteCount
  }

  /// The bytes of a file, or nil where there is nothing of that name.
  package static func bytesIfPresent(
    of path: FilePath, limit: Int, links: Links = .refused, isPrivate: Bool = false
  ) throws -> [UInt8]? {
    do {
      return try bytes(of: path, limit: limit, links: links, isPrivate: isPrivate)
    } catch let error as DurabilityError where error.isNotFound {
      return nil
    }
  }

  private static func opened(
    _ path: FilePath, _ flags: Int32, _ permissions: FilePermissions, _ links: Links
  ) throws -> FileDescriptor {
    do {
      return try openedWithoutWaiting(
        path, flags, permissions.rawValue, refusingLinks: links == .refused)
    } catch let error as DurabilityError {
      switch error.errno {
      // open(2): what a socket says, and a FIFO that nobody reads.
      case .noSuchAddressOrDevice?, Errno(rawValue: ENODEV)?:
        throw DurabilityError.notRegular(path, .special)
      case .isDirectory?: throw DurabilityError.notRegular(path, .folder)
      case .permissionDenied? where flags & (O_ACCMODE | O_CREAT) == O_RDONLY:
        throw DurabilityError.failed(
          call: DurabilityError.reading, path: path, .permissionDenied)
      default: throw error
      }
    }
  }
}

/// A folder that is held open, and no part of whose path is a symbolic link.
///
/// Names in it are looked up from the open folder, so that no other folder can take its place.
package struct Folder: ~Copyable {
  package let path: FilePath
  package let descriptor: FileDescriptor

  /// - Throws: ``DurabilityError/symbolicLink(_:)`` when a link is on the way.
  package init(_ path: FilePath) throws {
    try self.init(path, O_RDONLY)
  }

  /// For looking up names only, which needs no right to read the folder.
  init(forNamesIn path: FilePath) throws {
    try self.init(path, linux_path_only)
  }

  private init(_ path: FilePath, _ access: Int32) throws {
    self.path = path
    descriptor = try openedWithoutWaiting(path, access | O_DIRECTORY, 0, refusingLinks: true)
  }

  /// Whether a folder is there, and no link on the way to it.
  static func isThere(_ path: FilePath) -> Bool {
    do {
      _ = try Folder(forNamesIn: path)
      return true
    } catch {
      return false
    }
  }

  deinit { try? descriptor.close() }

  /// Keeps the folder open while the body runs: a value's life may end with its last use, and the
  /// number of a descriptor is not a use of it.
  package borrowing func withDescriptor<Result>(
    _ body: (FileDescriptor) throws -> Result
  ) rethrows -> Result {
    try body(descriptor)
  }

  /// Keeps out whoever else asks for a folder in this way while the body runs. Where the volume has no such locks,
  /// or somebody has one for longer than one waits, nobody is kept out. See `flock(2)`.
  ///
  /// - Parameter patienceSeconds: How long to wait for another process to let go.
  /// - Throws: ``DurabilityError/failed(call:path:_:)`` where the folder is not there, or no longer.
  package static func locking<Result>(
    _ path: FilePath, patienceSeconds: Double, _ body: () throws -> Result
  ) throws -> Result {
    let folder = try Folder(path)
    var patience = patienceSeconds
    return try folder.withDescriptor { descriptor in
      while flock(descriptor.rawValue, LOCK_EX | LOCK_NB) != 0 {
        let code = Errno(rawValue: errno)
        if code == .interrupted { continue }
        guard code == .wouldBlock, patience > 0 else { break }
        patience -= 0.05
        _ = poll(nil, 0, 50)
      }
      // Who had it until now may have removed it.
      guard try isFile(descriptor, at: path) else {
        throw DurabilityError.failed(call: "open", path: path, .noSuchFileOrDirectory)
      }
      return try body()
    }
  }

  /// Whether this user, as which the program writes whatever started it, can make files in a folder.
  ///
  /// - Throws: ``DurabilityError/failed(call:path:_:)`` with what making one would fail with.
  package static func checkWritable(_ path: FilePath) throws {
    try calling("write", path) {
      path.withPlatformString { faccessat(AT_FDCWD, $0, W_OK | X_OK, AT_EACCESS) }
    }
  }

  /// - Throws: ``DurabilityError/notPrivate(_:reason:)`` unless the folder belongs to this user and
  ///   is writable by nobody else.
  package func checkPrivate() throws {
    var status = stat()
    try calling("fstat", path) { fstat(descriptor.rawValue, &status) }
    try GodwitDurableFiles.checkPrivate(status, path)
  }
}

private func checkPrivate(_ status: stat, _ path: FilePath) throws {
  guard status.st_uid == geteuid() else {
    throw DurabilityError.notPrivate(
      path, reason: "it belongs to user \(status.st_uid), and this run is user \(geteuid())")
  }
  guard status.st_mode & 0o022 == 0 else {
    throw DurabilityError.notPrivate(path, reason: "others than its owner may write to it")
  }
}

/// `open(2)` that never waits for the other end of a FIFO or a device.
private func openedWithoutWaiting(
  _ path: FilePath, _ flags: Int32, _ mode: mode_t, refusingLinks: Bool
) throws -> FileDescriptor {
  // openat2(2) takes no other flags together with O_PATH.
  let flags =
    flags | O_CLOEXEC | (flags & linux_path_only == 0 ? O_NONBLOCK | O_NOCTTY : 0)
  while true {
    let file = path.withPlatformString { name -> Int32 in
      guard refusingLinks else { return linux_open_at(AT_FDCWD, name, flags, mode) }
      let file = linux_open_without_links(AT_FDCWD, name, flags, flags & O_CREAT == 0 ? 0 : mode)
      // A kernel before 5.6, or a container that does not know the call.
      guard file < 0, errno == ENOSYS || errno == EPERM else { return file }
      guard firstLink(on: path) == nil else {
        errno = ELOOP
        return -1
      }
      return linux_open_at(AT_FDCWD, name, flags | O_NOFOLLOW, mode)
    }
    if file >= 0 { return FileDescriptor(rawValue: file) }
    switch errno {
    case EINTR: continue
    case ELOOP where refusingLinks:
      throw DurabilityError.symbolicLink(firstLink(on: path) ?? path)
    case ENOTDIR where refusingLinks && flags & O_DIRECTORY != 0:
      if try FileKind(at: path) == .symbolicLink { throw DurabilityError.symbolicLink(path) }
      throw DurabilityError.failed(call: "open", path: path, .notDirectory)
    default: throw DurabilityError.failed(call: "open", path: path, Errno(rawValue: errno))
    }
  }
}

/// The first component of a path that is a symbolic link.
private func firstLink(on path: FilePath) -> FilePath? {
  var part = FilePath(root: path.root, [])
  for component in path.components {
    part.append(component)
    if (try? FileKind(at: part)) == .symbolicLink { return part }
  }
  return nil
}
