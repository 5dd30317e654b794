private import CLinux
private import Glibc
package import SystemPackage

/// What can be done to files so that it survives a power cut: the only code that calls fsync and rename.
///
/// When a call returns, its effect is on the disk, unless it was asked to survive less. When it throws, every file is as it was before
/// or as it would be after, and never torn.
package enum DurableFile {
  /// Writes a file whole, in the place of one of that name.
  ///
  /// - Parameter check: Throws where the file must not get its name. It is asked once the file is there under
  ///   its temporary one: who takes work over from a process that stands still, and then removes such files,
  ///   sees all that the process has written before, and it writes nothing more.
  package static func write(
    _ bytes: [UInt8], to path: FilePath, permissions: FilePermissions = .ownerReadWrite,
    surviving durability: Durability = .powerCut, check: () throws -> Void = {}
  ) throws {
    try bytes.withUnsafeBytes {
      try write($0, to: path, permissions: permissions, surviving: durability, check: check)
    }
  }

  /// Writes a file whole, in the place of one of that name.
  package static func write(
    _ bytes: UnsafeRawBufferPointer, to path: FilePath,
    permissions: FilePermissions = .ownerReadWrite, surviving durability: Durability = .powerCut,
    check: () throws -> Void = {}
  ) throws {
    var file = try PendingFile(for: path, permissions: permissions)
    try file.write(bytes)
    try check()
    try file.publish(surviving: durability)
  }

  /// Writes a file that must be new.
  ///
  /// - Throws: ``DurabilityError/alreadyExists(_:)`` when it is not.
  package static func create(
    _ bytes: [UInt8], at path: FilePath, permissions: FilePermissions = .ownerReadWrite
  ) throws {
    var file = try PendingFile(for: path, permissions: permissions)
    try bytes.withUnsafeBytes { try file.write($0) }
    try file.publish(replacing: false)
  }

  /// Gives a file or folder another name on the same volume, in the place of a file of that name.
  package static func rename(_ source: FilePath, to destination: FilePath) throws {
    try withNames(source, destination) { folder, name, newFolder, newName in
      try calling("rename", source) { renameat(folder, name, newFolder, newName) }
    }
    try DurableSteps.passed(.renamed, destination)
    try syncFolders(destination, source)
  }

  /// Lets two files or folders of one volume change names with each other, in one step.
  ///
  /// - Parameter flushingBoth: False where only the second name must be on the disk. After a power cut
  ///   the first may then stand for either of the two.
  /// - Throws: An error with `EINVAL` or `ENOSYS` on a file system that cannot.
  package static func exchange(
    _ a: FilePath, with b: FilePath, flushingBoth: Bool = true
  ) throws {
    try withNames(a, b) { aFolder, aName, bFolder, bName in
      try calling("renameat2", a) { linux_exchange_at(aFolder, aName, bFolder, bName) }
    }
    try DurableSteps.passed(.exchanged, a)
    if flushingBoth { try syncFolders(a, b) } else { try syncFolder(b.folder) }
  }

  /// Removes a file.
  ///
  /// - Throws: An error whose `isNotFound` is true when there is none.
  package static func remove(_ path: FilePath, surviving durability: Durability = .powerCut) throws
  {
    do {
      try withName(path) { folder, name in
        try calling("unlink", path) { unlinkat(folder, name, 0) }
      }
    } catch let error as DurabilityError where error.errno == .isDirectory {
      throw DurabilityError.notRegular(path, .folder)
    }
    try DurableSteps.passed(.removed, path)
    if durability == .powerCut { try syncFolder(path.folder) }
  }

  /// Removes a file if it is there, and says whether it was.
  @discardableResult
  package static func removeIfPresent(
    _ path: FilePath, surviving durability: Durability = .powerCut
  ) throws -> Bool {
    // Most are not there, and a look costs less than the attempt.
    guard try exists(path) else { return false }
    do {
      try remove(path, surviving: durability)
      return true
    } catch let error as DurabilityError where error.isNotFound {
      return false
    }
  }

  /// The most bytes that a name in a folder may have; where its file system does not say, 255 as of ext4, XFS,
  /// Btrfs and tmpfs.
  package static func longestName(in folder: FilePath) -> Int {
    let known = folder.withPlatformString { pathconf($0, Int32(_PC_NAME_MAX)) }
    return known > 0 ? known : 255
  }

  /// Removes what crashed processes left of files and folders that were to get these names. For whoever alone
  /// makes these: their temporary names are then taken one after the other.
  package static func removeUnfinished(_ paths: [FilePath]) throws {
    for path in paths {
      for number in 0... {
        guard let name = PendingFile.temporaryPath(of: path, number), try exists(name) else {
          break
        }
        try removeTree(name)
      }
    }
  }

  private static func syncFolders(_ first: FilePath, _ second: FilePath) throws {
    try syncFolder(first.folder)
    if second.folder != first.folder { try syncFolder(second.folder) }
  }
}

extension DurableFile {
  /// Flushes a file's bytes to the disk. Never tried a second time.
  package static func syncFile(_ path: FilePath) throws {
    let file = try RegularFile.open(path)
    defer { try? file.close() }
    try syncFile(file, path)
  }

  /// Flushes an open file's bytes to the disk. Never tried a second time.
  ///
  /// - Parameter path: The file's name, for the error.
  package static func syncFile(_ file: FileDescriptor, _ path: FilePath) throws {
    try sync(file, path)
    try DurableSteps.passed(.fileSynced, path)
  }

  /// Flushes a folder's names to the disk. Never tried a second time.
  package static func syncFolder(_ path: FilePath) throws {
    let folder = try Folder(path)
    do {
      try folder.withDescriptor { try sync($0, path) }
    } catch let error as DurabilityError where error.errno == .invalidArgument {
      // fsync(2): a file system that has nothing to flush for a folder says so with EINVAL.
    }
    try DurableSteps.passed(.folderSynced, path)
  }
}

extension DurableFile {
  /// Makes a folder, and those above it that are missing. One that is there stays as it is.
  ///
  /// - Parameter base: A folder above it that is not made, nor those above that: where it is missing, its volume may
  ///   be away, and nothing belongs on the mount point. Nil for none.
  package static func makeFolder(
    _ path: FilePath, below base: FilePath? = nil,
    permissions: FilePermissions = .ownerReadWriteExecute,
    surviving durability: Durability = .powerCut
  ) throws {
    let base = base?.lexicallyNormalized()
    var missing: [FilePath] = []
    var next = path.lexicallyNormalized()
    while try !next.isEmpty && next != base && !isFolder(next) {
      missing.append(next)
      let folder = next.folder
      if folder == next { break }
      next = folder
    }
    for folder in missing.reversed() {
      do {
        try TemporaryFolders.making(folder) {
          try withName(folder) { parent, name in
            try calling("mkdir", folder) { mkdirat(parent, name, permissions.rawValue) }
          }
        }
      } catch let error as DurabilityError where error.errno == .fileExists {
        guard try isFolder(folder) else {
          throw DurabilityError.notFolder(folder, try FileKind(at: folder))
        }
        continue  // another process was faster
      }
      try DurableSteps.passed(.folderMade, folder)
      if durability == .powerCut { try syncFolder(folder.folder) }
    }
  }

  /// What ``makeFolder(_:below:permissions:surviving:)`` would say of what stands in the folder's place, or in that
  /// of one on the way to it. Changes nothing.
  ///
  /// - Throws: ``DurabilityError/notFolder(_:_:)``.
  package static func checkFolderPlace(_ path: FilePath) throws {
    var next = path.lexicallyNormalized()
    while try !next.isEmpty && !isFolder(next) {
      let kind = try FileKind(at: next)
      guard kind == .none else { throw DurabilityError.notFolder(next, kind) }
      let folder = next.folder
      if folder == next { break }
      next = folder
    }
  }

  /// Whether something is there: a file, a folder, or a symbolic link to anything or nothing.
  ///
  /// - Throws: As ``FileKind/init(at:)``.
  package static func exists(_ path: FilePath) throws -> Bool { try FileKind(at: path) != .none }

  /// Whether the error of a look says that nothing is there, or nothing that can be reached.
  static func meansAbsent(_ errno: Int32) -> Bool {
    [ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, EACCES].contains(errno)
  }

  /// Whether a folder is there, or a symbolic link to one.
  ///
  /// - Throws: As ``FileKind/init(at:)``.
  package static func isFolder(_ path: FilePath) throws -> Bool {
    try FileKind(following: path) == .folder
  }

  /// The names in a folder, in byte order, without `.` and `..`. Names that are not UTF-8 are left
  /// out: we make none.
  package static func names(in folder: FilePath) throws -> [String] {
    try names(in: try Folder(folder))
  }

  static func names(in folder: borrowing Folder) throws -> [String] {
    try byteNames(in: folder).compactMap { String(validating: $0, as: UTF8.self) }
  }

  /// The names in a folder that are not UTF-8, in byte order.
  package static func namesOutOfText(in folder: FilePath) throws -> [FilePath] {
    try allNames(in: folder).filter { String(validating: $0) == nil }
  }

  /// All names in a folder, in byte order, without `.` and `..`.
  package static func allNames(in folder: FilePath) throws -> [FilePath] {
    try byteNames(in: try Folder(folder)).map { bytes in
      (bytes.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer {
        $0.baseAddress.map { FilePath(platformString: $0) } ?? ""
      }
    }
  }

  private static func byteNames(in folder: borrowing Folder) throws -> [[UInt8]] {
    // A descriptor of its own: closedir(3) closes it.
    let copy = try failing("dup", folder.path) { try folder.descriptor.duplicate() }
    guard let stream = fdopendir(copy.rawValue) else {
      try? copy.close()
      throw DurabilityError.failed(call: "opendir", path: folder.path, Errno(rawValue: errno))
    }
    defer { closedir(stream) }
    rewinddir(stream)
    let links = [Array(".".utf8), Array("..".utf8)]
    var names: [[UInt8]] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else { break }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      if !links.contains(name) { names.append(name) }
    }
    guard errno == 0 else {
      throw DurabilityError.failed(call: "readdir", path: folder.path, Errno(rawValue: errno))
    }
    return names.sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// Removes a folder and all that is in it. Symbolic links are removed, never followed.
  ///
  /// Not one step: after a crash a part may be left, and the call can be made again.
  package static func removeTree(
    _ path: FilePath, surviving durability: Durability = .powerCut
  ) throws {
    guard try exists(path) else { return }
    var waiting = [path]
    var folders: [FilePath] = []
    while let next = waiting.popLast() {
      if try FileKind(at: next) == .folder {
        folders.append(next)
        waiting += try names(in: next).map { next.appending($0) }
      } else {
        try withName(next) { folder, name in
          try calling("unlink", next) { unlinkat(folder, name, 0) }
        }
      }
    }
    // A folder stands before those in it.
    for next in folders.reversed() {
      try withName(next) { folder, name in
        try calling("rmdir", next) { unlinkat(folder, name, AT_REMOVEDIR) }
      }
    }
    try DurableSteps.passed(.removed, path)
    if durability == .powerCut { try syncFolder(path.folder) }
  }

  /// Bytes that this user may still write to the volume of a file or folder; nil where the volume does not say:
  /// some FUSE file systems, and a tmpfs without a limit, have no blocks at all.
  package static func freeBytes(at path: FilePath) throws -> Int? {
    var volume = statvfs()
    try calling("statvfs", path) { path.withPlatformString { statvfs($0, &volume) } }
    guard volume.f_blocks > 0 else { return nil }
    let (bytes, isTooMany) = UInt(volume.f_bavail)
      .multipliedReportingOverflow(by: UInt(volume.f_frsize))
    return isTooMany ? .max : Int(clamping: bytes)
  }
}
