import Glibc
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

/// What would keep a store from being replaced, or an output from being written: looked for before any work
/// is done for it.
enum StoreReplacement {
  /// - Parameters:
  ///   - uriTable: Where the table of object URIs is wanted.
  ///   - directory: Where the run works, or would work; nil where nobody has chosen that.
  /// - Throws: `CommitError/destinationExists(path:)` for what would belong to the output; ``FleetError/nameTooLong(path:limitBytes:of:)``,
  ///   ``FleetError/pathTooLong(path:limitBytes:)``, ``FleetError/uriTable(path:message:)``, ``FleetError/heldByOwner(path:user:)``; `DurabilityError`
  ///   where this user may not write to the folder of the store, or of the output.
  static func check(
    by request: MigrationRequest, uriTable: FilePath?, in directory: RunDirectory?
  ) throws {
    try NameLimits.checkReplacement(by: request, in: directory)
    if let directory { try NameLimits.check(directory) }
    try URITablePlace.checkReplacement(uriTable, by: request)
    let place = request.destinationPath.removingLastComponent()
    try Folder.checkWritable(place.isEmpty ? "." : place)
    // One that is there may be of an earlier run, see ``EarlierOutput``.
    if let output = request.output, try !DurableFile.exists(output) {
      try StoreSwap.requireNothing(at: StoreFiles(output))
    }
    guard request.output == nil, let owner = ownerWhoHolds(request.store) else { return }
    throw FleetError.heldByOwner(path: request.store.string, user: owner)
  }

  /// The user who owns a file that this user may not rename: in a folder that is sticky, only its owner
  /// and those of its files may. Source: rename(2), EPERM.
  ///
  /// - Returns: Nil where this user may, as far as that can be told.
  static func ownerWhoHolds(_ path: FilePath) -> UInt32? {
    let user = geteuid()
    let folder = path.removingLastComponent()
    var (file, place) = (stat(), stat())
    guard user != 0, path.withPlatformString({ lstat($0, &file) }) == 0,
      (folder.isEmpty ? "." : folder).withPlatformString({ stat($0, &place) }) == 0
    else { return nil }
    let isHeld = place.st_mode & S_ISVTX != 0 && place.st_uid != user && file.st_uid != user
    return isHeld ? file.st_uid : nil
  }
}
