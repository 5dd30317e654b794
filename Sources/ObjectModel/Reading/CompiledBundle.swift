import GodwitDurableFiles
import GodwitKeyedArchive

/// Reads a `.momd` folder: compiled versions and the hashes that Xcode recorded for them.
///
/// The key of a version in `VersionInfo.plist` is normally the name of its `.mom`, but not
/// always: one shipped bundle has the key `zmessaging` for `WireSyncEngine.mom`. A version that is
/// left over is matched by its hashes, and a sole one with the sole file whose hashes may be these.
/// Source: `core-data-models.md` §3.
enum CompiledBundle {
  struct Record {
    var hashes: [EntityName: VersionHash]
    var checksum: String?
  }

  static func read(_ path: String, files: [String]) throws -> [ModelVersion] {
    let (records, currentName) = try versionInfo(path)
    let models = try files.map { file in
      let full = path + "/" + file
      return (
        name: file.before(".mom") ?? file, path: full,
        model: try ManagedObjectModel(archive: ModelBytes.read(full), path: full)
      )
    }
    let names = Set(models.map { NameKey($0.name) })
    var spare = records.filter { !names.contains($0.key) }
    let unmatched = models.filter { records[NameKey($0.name)] == nil }.count
    let hierarchies = try models.map { try EntityHierarchy($0.model) }
    let computed = hierarchies.map(\.versionHashes)
    return models.indices.map { place in
      let (name, path, model) = models[place]
      var key = records[NameKey(name)] == nil ? nil : NameKey(name)
      if key == nil {
        let hashes = computed[place]
        key =
          spare.keys.sorted { $0.name.precedesInBytes($1.name) }.first {
            spare[$0]?.hashes == hashes
          }
          ?? (unmatched == 1 && spare.count == 1
            ? spare.first { hierarchies[place].mayHave($0.value.hashes) }?.key : nil)
        if let key { spare[key] = nil }
      }
      let record = key.flatMap { records[$0] }
      return ModelVersion(
        name: name, model: model,
        isCurrent: currentName.map { NameKey($0) == NameKey(name) || NameKey($0) == key }
          ?? (models.count == 1),
        recordedHashes: record?.hashes, recordedChecksum: record?.checksum,
        isRecordItsOwn: key == NameKey(name)
          && !models.indices.contains { $0 != place && computed[$0] == record?.hashes }
          && !records.contains { $0.key != key && $0.value.hashes == record?.hashes }, path: path)
    }
  }

  /// Whether `VersionInfo.plist` names a version that no file of the bundle is.
  static func lacksFile(
    of name: String, in path: String, _ versions: [ModelVersion]
  ) throws -> Bool {
    guard let record = try versionInfo(path).0[NameKey(name)] else { return false }
    // A file of another name may be the version's.
    return !versions.contains { $0.recordedHashes == record.hashes }
  }

  static func versionInfo(_ path: String) throws -> ([NameKey: Record], current: String?) {
    let file = path + "/VersionInfo.plist"
    guard try ModelBytes.exists(file) else { return ([:], nil) }
    let list: PropertyList
    do {
      list = try PropertyList(bytes: ModelBytes.read(file))
    } catch let error as ArchiveError {
      throw ModelError.unreadable(path: file, reason: error.reason)
    }
    var records: [NameKey: Record] = [:]
    let checksums = list["NSManagedObjectModel_VersionChecksums"]
    for (version, entities) in list["NSManagedObjectModel_VersionHashes"]?.dictionary ?? [:] {
      var hashes: [EntityName: VersionHash] = [:]
      for (entity, data) in entities.dictionary ?? [:] {
        guard let hash = data.data.flatMap({ VersionHash(bytes: $0) }) else {
          throw ModelError.unreadable(
            path: file, reason: "the version hash of \(version).\(entity) is not 32 bytes")
        }
        hashes[EntityName(entity)] = hash
      }
      records[NameKey(version)] = Record(hashes: hashes, checksum: checksums?[version]?.string)
    }
    return (records, list["NSManagedObjectModel_CurrentVersionName"]?.string)
  }
}
