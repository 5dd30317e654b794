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
  /// `..STEM_SUPPORT.partial-0`, while the folder of an output's external data is made.
  private static let longestFolder = ".._SUPPORT.partial-0".utf8.count
  /// `.STEM.godwit-rejects-20261121T010203-004.sqlite.partial-0`, of objects that are set aside.
  private static let longestRejects =
    "..godwit-rejects-".utf8.count + RunFolder.timestamp(0).utf8.count
    + ".sqlite.partial-0".utf8.count
  /// `..NAME.godwit-20261121T010203-004.partial-0`, while an output is assembled beside its place.
  private static let longestAssembly =
    "..".utf8.count + ".godwit-".utf8.count + RunFolder.timestamp(0).utf8.count
    + ".partial-0".utf8.count

  /// Looks at the store and at an output that is a file of its own.
  ///
  /// - Throws: ``FleetError/nameTooLong(path:limitBytes:of:)``,
  ///   ``FleetError/pathTooLong(path:limitBytes:)``.
  static func check(_ request: MigrationRequest) throws {
    for path in request.stores {
      try check(path, limit: pathBytes)
      try check(path, spare: suffixBytes, of: path == request.output ? .output : .store)
    }
  }

  /// Looks at the name of a run directory that may have to be made.
  ///
  /// - Throws: ``FleetError/nameTooLong(path:limitBytes:of:)``.
  static func checkName(of directory: RunDirectory) throws {
    try check(directory.path, spare: 0, of: .runDirectory)
  }

  /// Looks at the path of the directory of a run that begins.
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

  /// Looks at a store that is to be replaced, and at an output that is to be made: before that is known, nothing
  /// longer is needed.
  ///
  /// - Throws: ``FleetError/nameTooLong(path:limitBytes:of:)``; `DurabilityError`.
  static func checkReplacement(
    by request: MigrationRequest, in directory: RunDirectory?
  ) throws {
    guard let output = request.output else {
      return try check(request.store, spare: longestCompanion, of: .replacedStore)
    }
    guard try !DurableFile.exists(output) else { return }
    // Their names have none of the output's extension.
    let longest = request.invalid == .setAside ? longestRejects : longestFolder
    try check(output, spare: longest - extensionBytes(of: output), of: .output)
    guard var place = directory?.path else { return }
    // A plan makes no directory.
    while try !DurableFile.exists(place) { place = place.folder }
    if try !DurableFile.areOnOneVolume(place, output.folder) {
      try check(output, spare: longestAssembly, of: .output)
    }
  }

  /// The dot counts.
  private static func extensionBytes(of path: FilePath) -> Int {
    nameBytes(of: path) - (path.stem?.utf8.count ?? 0)
  }

  private static func nameBytes(of path: FilePath) -> Int {
    path.lastComponent?.string.utf8.count ?? 0
  }

  private static func check(_ path: FilePath, spare: Int, of file: FleetError.NamedFile) throws {
    let limit = DurableFile.longestName(in: path.folder) - spare
    guard nameBytes(of: path) <= limit else {
      throw FleetError.nameTooLong(path: path.string, limitBytes: limit, of: file)
    }
  }
}
