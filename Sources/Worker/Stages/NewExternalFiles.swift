import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

/// Files of external binary data that the destination gets in addition to the source's.
///
/// They lie in the run directory until the commit adds them to the destination's folder. A file's
/// name follows from the plan, the row and the value, see `ExternalFileName`.
struct NewExternalFiles {
  let folder: FilePath
  /// The plan's.
  let fingerprint: [UInt8]
  /// The number of the entity mapping: several may make values of one source object.
  var mapping: Int?

  /// Core Data keeps larger values in files; the largest inline value seen has 99 813 bytes.
  /// Source: `core-data-sqlite-format.md` §5.1.
  static let mostInlineBytes = 100_000

  /// Writes a value to a file of its own.
  ///
  /// - Returns: The file's name: a UUID in capitals.
  func write(
    _ value: UnsafeRawBufferPointer, entity: String, primaryKey: Int64, place: Int
  ) throws -> String {
    let name = ExternalFileName.name(of: subject(entity, primaryKey, place), value)
    try DurableFile.makeFolder(folder)
    try DurableFile.write(value, to: folder.appending(name))
    return name
  }

  /// Copies a file under a name of its own, unless an earlier attempt did.
  ///
  /// - Returns: The new name.
  /// - Throws: ``StageError/externalData(entity:primaryKey:reason:)`` when the file is not there.
  func copy(_ path: String, entity: String, primaryKey: Int64, place: Int) throws -> String {
    try DurableFile.makeFolder(folder)
    do {
      let name = try ExternalFileName.name(
        of: subject(entity, primaryKey, place), copying: FilePath(path))
      let copy = folder.appending(name)
      if try FileMark(copy) != nil {
        if try ExternalFileName.fits(copy) { return name }
        try DurableFile.removeIfPresent(copy)
      }
      try DurableFile.copy(FilePath(path), to: copy)
      return name
    } catch let error as DurabilityError {
      guard let reason = ExternalData.reason(error) else { throw error }
      throw StageError.externalData(entity: entity, primaryKey: primaryKey, reason: reason)
    }
  }

  /// What no other value of the destination has.
  private func subject(_ entity: String, _ primaryKey: Int64, _ place: Int) -> [UInt8] {
    let maker = mapping.map { "\($0) " } ?? ""
    return fingerprint + Array("\(maker)\(entity) \(primaryKey) \(place)".utf8)
  }
}
