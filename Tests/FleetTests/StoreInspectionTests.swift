import Foundation
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import StoreFixtures
import Testing

@testable import GodwitFleet

/// One binary attribute: with external storage, or preserved on deletion, which version hashes do not
/// tell apart.
private func version(_ name: String, isExternal: Bool) -> ModelVersion {
  let attribute = AttributeDescription(
    traits: PropertyTraits(name: "b"), type: .binary, allowsExternalBinaryDataStorage: isExternal,
    preservesValueInHistoryOnDeletion: !isExternal)
  return ModelVersion(
    name: name,
    model: ManagedObjectModel(entities: [
      EntityDescription(name: "P", properties: [.attribute(attribute)])
    ]), isCurrent: false, path: name)
}

@Suite struct `A look at a store of a version whose hashes another one has` {
  @Test(
    arguments: [
      (["Kept", "Outside"], "Outside", 0), (["Outside", "Kept"], "Outside", 0),
      (["Outside"], "Outside", 0), (["Kept"], "Kept", 1), ([], "cached model", 0),
    ])
  func `judges it by the version that it was written under`(
    given: [String], name: String, notes: Int
  ) throws {
    let scratch = try Scratch()
    let store = scratch.path.appending("store.sqlite")
    try StoreGenerator(
      version("Outside", isExternal: true).model, options: StoreOptions(seed: 1, rows: 5)
    ).write(to: store.string)
    let inspection = try StoreInspection(
      store, models: GivenModels([given.map { version($0, isExternal: $0 == "Outside") }]),
      snapshotFolder: scratch.path.appending("snapshot"), readsRows: true)
    #expect(inspection.version == name)
    #expect(inspection.isSound && inspection.differing.isEmpty)
    #expect(
      inspection.findings.count { $0.message.contains("would not read the store as the model") }
        == notes)
  }

  /// The model cached in the store does not tell the hash.
  @Test(
    arguments: [
      (["Kept", "Outside"], "Outside", 0), (["Outside"], "Outside", 0), (["Kept"], "Kept", 1),
    ])
  func `does so where the hash is a recorded one, too`(
    given: [String], name: String, notes: Int
  ) throws {
    let scratch = try Scratch()
    let store = scratch.path.appending("store.sqlite")
    let recorded = try #require(VersionHash(bytes: Array(repeating: 0x5A, count: 32)))
    func known(_ name: String) -> ModelVersion {
      var model = version(name, isExternal: name == "Outside").model
      // Of a modifier beside a constraint it is not known how it enters a hash.
      model.entities[0].versionHashModifier = "m"
      model.entities[0].uniquenessConstraints = [["k"]]
      model.entities[0].properties.append(
        .attribute(AttributeDescription(traits: PropertyTraits(name: "k"), type: .string)))
      return ModelVersion(
        name: name, model: model, isCurrent: false, recordedHashes: ["P": recorded], path: name)
    }
    let model = known("Outside").model
    try StoreGenerator(model, options: StoreOptions(seed: 1, rows: 5)).write(to: store.string)
    let connection = try Connection(path: store.string, mode: .readWrite)
    let hierarchy = try EntityHierarchy(model, recordedHashes: ["P": recorded])
    _ = try connection.rows(
      "UPDATE Z_METADATA SET Z_PLIST = ?1",
      [.blob(try StoreMetadata(connection).bytes(migratedTo: hierarchy))])
    try connection.close()
    let inspection = try StoreInspection(
      store, models: GivenModels([given.map(known)]),
      snapshotFolder: scratch.path.appending("snapshot"), readsRows: true)
    #expect(inspection.version == name)
    #expect(inspection.isSound && inspection.differing.isEmpty, "\(inspection.findings)")
    #expect(
      inspection.findings.count { $0.message.contains("would not read the store as the model") }
        == notes)
  }
}
