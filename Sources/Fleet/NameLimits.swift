import Glibc
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

/// How long the names and paths of stores may be, so that the files beside them can be named.
enum NameLimits {
  /// 504. SQLite opens paths of 512 bytes at most, that of a rollback journal included.
  static let pathBytes = 504
  /// What SQLite opens in a run directory.
  private static let longestRunFile = "/assembled.sqlite".utf8.count
  /// `-wal`, `-shm`.
  private static let suffixBytes = 4
  /// What a rollback keeps has the longest name of all, while it is written:
  /// `.NAME.godwit-rolled-back-20261121T010203-004.sqlite-journal.partial-0`.
  private static let longestCompanion =
    ".".utf8.count + ".godwit-rolled-back-".utf8.count + RunFolder.timestamp(0).utf8.count
    + ".sqlite-journal.partial-0".utf8.count
  /// `..NAME.godwit-20261121T010203-004.partial-0`, while an output is assembled beside its place.
  private static let longestAssembly =
    "..".utf8.count + ".godwit-".utf8.count + RunFolder.timestamp(0).utf8.count
    + ".partial-0".utf8.count

  /// Looks at the store and at an output that is a file of its own.
  ///
  /// - Throws: ``FleetError/nameTooLong(path:limitBytes:isReplaced:)``,
  ///   ``FleetError/pathTooLong(path:limitBytes:)``.
  static func check(_ request: MigrationRequest) throws {
    for path in request.stores {
      try check(path, limit: pathBytes)
      try check(path, spare: suffixBytes, isReplaced: false)
    }
  }

  /// Looks at the directory of a run that begins.
  ///
  /// - Throws: ``FleetError/pathTooLong(path:limitBytes:)``.
  static func check(_ directory: RunDirectory) throws {
    try check(directory.path, limit: pathBytes - longestRunFile)
  }

  private static func check(_ path: FilePath, limit: Int) throws {
    let whole = path.isAbsolute ? path : (FilePath(".").resolved ?? "/").pushing(path)
    guard whole.string.utf8.count <= limit else {
      throw FleetError.pathTooLong(path: path.string, limitBytes: limit)
    }
  }

  /// Looks at a store that is to be replaced, and at an output on another volume than the run directory: before
  /// that is known, nothing longer is needed.
  ///
  /// - Throws: ``FleetError/nameTooLong(path:limitBytes:isReplaced:)``; `DurabilityError`.
  static func checkReplacement(
    by request: MigrationRequest, in directory: RunDirectory?
  ) throws {
    guard let output = request.output else {
      return try check(request.store, spare: longestCompanion, isReplaced: true)
    }
    guard var place = directory?.path, try !DurableFile.exists(output) else { return }
    // A plan makes no directory.
    while try !DurableFile.exists(place) { place = place.folder }
    if try !DurableFile.areOnOneVolume(place, output.folder) {
      try check(output, spare: longestAssembly, isReplaced: false)
    }
  }

  private static func check(_ path: FilePath, spare: Int, isReplaced: Bool) throws {
    let folder = path.removingLastComponent()
    let known = (folder.isEmpty ? "." : folder).withPlatformString {
      pathconf($0, Int32(_PC_NAME_MAX))
    }
    // 255 bytes: ext4, XFS, Btrfs, tmpfs.
    let limit = (known > 0 ? known : 255) - spare
    guard (path.lastComponent?.string.utf8.count ?? 0) <= limit else {
      throw FleetError.nameTooLong(path: path.string, limitBytes: limit, isReplaced: isReplaced)
    }
  }
}
