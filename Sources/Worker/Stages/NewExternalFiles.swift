import GodwitDigests
import GodwitDurableFiles
import SystemPackage

/// Files of external binary data that the destination gets in addition to the source's.
///
/// They lie in the run directory until the commit adds them to the destination's folder. A file's
/// name follows from the plan and the row, so that a shard run twice gives the same files.
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
    let name = name(entity, primaryKey, place)
    try DurableFile.makeFolder(folder)
    try DurableFile.write(value, to: folder.appending(name))
    return name
  }

  /// Copies a file under a name of its own. One of that name is the same: copies appear whole.
  ///
  /// - Returns: The new name.
  /// - Throws: ``StageError/externalData(entity:primaryKey:reason:)`` when the file is not there.
  func copy(_ path: String, entity: String, primaryKey: Int64, place: Int) throws -> String {
    let name = name(entity, primaryKey, place)
    try DurableFile.makeFolder(folder)
    do {
      try DurableFile.copy(FilePath(path), to: folder.appending(name))
    } catch DurabilityError.alreadyExists {
      return name
    } catch let error as DurabilityError {
      guard let reason = ExternalData.reason(error) else { throw error }
      throw StageError.externalData(entity: entity, primaryKey: primaryKey, reason: reason)
    }
    return name
  }

  private func name(_ entity: String, _ primaryKey: Int64, _ place: Int) -> String {
    let maker = mapping.map { "\($0) " } ?? ""
    let row = Array("\(maker)\(entity) \(primaryKey) \(place)".utf8)
    let digits = Hexadecimal.text(of: SHA256.digest(of: fingerprint + row).prefix(16))
    var name = ""
    for (index, digit) in digits.uppercased().enumerated() {
      if [8, 12, 16, 20].contains(index) { name.append("-") }
      name.append(digit)
    }
    return name
  }
}
