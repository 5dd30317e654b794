import Foundation
import GodwitCommit
import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

/// Free space, looked at before the first row is read.
enum DiskSpace {
  /// What a migration needs at its height: checkpoints and the assembled store together, about
  /// 2.2 times the source, and the external data once more, since the source's stays until the
  /// end; and what the commit leaves of the volume.
  ///
  /// - Parameter isInPlace: The source is kept as a copy, so that it counts once more.
  static func needed(sourceBytes: Int64, externalBytes: Int64, isInPlace: Bool) -> Int64 {
    let (store, isLarge) = sourceBytes.multipliedReportingOverflow(by: isInPlace ? 32 : 22)
    guard !isLarge else { return .max }
    return [store / 10, externalBytes, StoreSwap.spareBytes].total
  }

  /// Likewise, of a store as it was read. In place its logs are kept whole, whatever is committed in them.
  static func needed(of files: StoreFiles, _ identity: StoreIdentity, isInPlace: Bool) -> Int64 {
    let logs = isInPlace ? [size(of: files.wal), size(of: files.journal)].total : 0
    return needed(
      sourceBytes: identity.bytes,
      externalBytes: size(of: files.externalDataFolder).added(max(0, logs - identity.walSize)),
      isInPlace: isInPlace)
  }

  /// Bytes that a process without privileges may still write; nil where nobody says.
  static func free(at folder: FilePath) -> Int64? {
    (try? DurableFile.freeBytes(at: folder)).map { Int64($0) }
  }

  /// Size of a file, or of all regular files of a folder; links are not followed.
  static func size(of path: FilePath) -> Int64 {
    var status = stat()
    guard path.withPlatformString({ lstat($0, &status) }) == 0 else { return 0 }
    if status.st_mode & S_IFMT == S_IFREG { return Int64(status.st_size) }
    guard status.st_mode & S_IFMT == S_IFDIR else { return 0 }
    let walk = FileManager.default.enumerator(atPath: path.string)
    var bytes: Int64 = 0
    while let name = walk?.nextObject() as? String {
      let file = path.appending(name)
      guard file.withPlatformString({ lstat($0, &status) }) == 0,
        status.st_mode & S_IFMT == S_IFREG
      else { continue }
      bytes = bytes.added(Int64(status.st_size))
    }
    return bytes
  }

  /// - Throws: ``FleetError/notEnoughSpace(folder:neededBytes:freeBytes:)``.
  static func check(_ needed: Int64, at folder: FilePath) throws {
    guard let free = free(at: folder), free < needed else { return }
    throw FleetError.notEnoughSpace(folder: folder.string, neededBytes: needed, freeBytes: free)
  }
}
