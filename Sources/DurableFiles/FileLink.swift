private import CLinux
private import Glibc
public import SystemPackage

extension DurableFile {
  /// Gives a file one more name on the same volume; copies it where the file system has no hard
  /// links.
  ///
  /// - Parameter syncingFolder: Whether the new name is on the disk when the call returns. Who
  ///   makes many names in one folder syncs it once, at the end.
  /// - Throws: ``DurabilityError/alreadyExists(_:)`` when there is something of the new name.
  public static func link(
    _ source: FilePath, to destination: FilePath, syncingFolder: Bool = true
  ) throws {
    do {
      try calling("link", source) {
        source.withPlatformString { from in
          destination.withPlatformString { Glibc.link(from, $0) }
        }
      }
    } catch let error as DurabilityError where error.errno == .fileExists {
      throw DurabilityError.alreadyExists(destination)
    } catch let error as DurabilityError where haveNoLinks.contains(error.errno ?? .ioError) {
      return try copy(source, to: destination)
    }
    try DurableSteps.passed(.renamed, destination)
    if syncingFolder { try syncFolder(destination.folder) }
  }

  /// Gives a file another name on the same volume that nothing has yet.
  ///
  /// - Throws: ``DurabilityError/alreadyExists(_:)`` when something has it.
  public static func renameNew(_ source: FilePath, to destination: FilePath) throws {
    let code = source.withPlatformString { from in
      destination.withPlatformString { to -> Int32 in
        if linux_rename_new(from, to) == 0 { return 0 }
        guard errno == EINVAL || errno == ENOSYS else { return errno }
        // A file system without that call: a second name, which must be new, then one less.
        return Glibc.link(from, to) == 0 && unlink(from) == 0 ? 0 : errno
      }
    }
    if code == EEXIST { throw DurabilityError.alreadyExists(destination) }
    if code != 0 {
      throw DurabilityError.failed(call: "rename", path: source, Errno(rawValue: code))
    }
    try DurableSteps.passed(.renamed, destination)
    try syncFolder(destination.folder)
    if source.folder != destination.folder { try syncFolder(source.folder) }
  }
}

/// What link(2) says on a file system, or for a file, that cannot have another name.
private let haveNoLinks: [Errno] = [.notPermitted, .notSupported, .tooManyLinks, .noFunction]
