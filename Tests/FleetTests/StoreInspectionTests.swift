import Foundation
import GodwitObjectModel
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
}
