private import Glibc
package import SystemPackage

extension DurableFile {
  /// Gives a file one more name; copies it to another volume, and where the file system has no hard
  /// links.
  ///
  /// - Parameter syncingFolder: Whether the new name is on the disk when the call returns. Who
  ///   makes many names in one folder syncs it once, at the end.
  /// - Throws: ``DurabilityError/alreadyExists(_:)`` when there is something of the new name.
  package static func link(
    _ source: FilePath, to destination: FilePath, syncingFolder: Bool = true
  ) throws {
    do {
      try withNames(source, destination) { folder, name, newFolder, newName in
        try calling("link", source) { linkat(folder, name, newFolder, newName, 0) }
      }
    } catch let error as DurabilityError where error.errno == .fileExists {
      throw DurabilityError.alreadyExists(destination)
    } catch let error as DurabilityError where haveNoLinks.contains(error.errno ?? .ioError) {
      try copy(source, to: destination)
      return
    }
    try DurableSteps.passed(.renamed, destination)
    if syncingFolder { try syncFolder(destination.folder) }
  }

  /// Gives a file another name on the same volume that nothing has yet.
  ///
  /// - Throws: ``DurabilityError/alreadyExists(_:)`` when something has it.
  package static func renameNew(_ source: FilePath, to destination: FilePath) throws {
    let code = try GodwitDurableFiles.renameNew(source, to: destination)
    if code == EEXIST { throw DurabilityError.alreadyExists(destination) }
    if code != 0 {
      throw DurabilityError.failed(call: "rename", path: source, Errno(rawValue: code))
    }
    try DurableSteps.passed(.renamed, destination)
    try syncFolder(destination.folder)
    if source.folder != destination.folder { try syncFolder(source.folder) }
  }
}

/// What link(2) says on a file system, or for a file, that cannot have another name there.
private let haveNoLinks: [Errno] = [
  .notPermitted, .notSupported, .tooManyLinks, .noFunction, .improperLink,
]
