import GodwitObjectModel
import GodwitPersistentStore
import SystemPackage
import Testing

@testable import GodwitRepair

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

@Suite struct `The model that a store is repaired by` {
  @Test(
    arguments: [
      (["Kept", "Outside"], "Outside"), (["Outside", "Kept"], "Outside"),
      (["Kept"], "cached model"), ([], "cached model"),
    ])
  func `is that of its hashes that stores values as its own does`(given: [String], name: String)
    throws
  {
    let patient = try Patient(of: version("Outside", isExternal: true).model, rows: 3) { _ in }
    let store = try SourceStore(
      path: FilePath(patient.store), snapshotFolder: FilePath(patient.folder.path))
    let models = given.map { version($0, isExternal: $0 == "Outside") }
    guard case .found(let choice) = try ModelChoice.among(GivenModels([models]), for: store) else {
      Issue.record("no model was found")
      return
    }
    #expect(choice.version == name && choice.isProven)
    #expect(choice.hierarchy["P"]?.properties.first?.attribute?.isExternal == true)
  }

  /// The part alone would make the store, from its next migration on, one of all entities.
  @Test func `is cached whole where the store is of one configuration`() throws {
    var whole = version("1", isExternal: false).model
    let patient = try Patient(of: whole, rows: 3) { _ in }
    whole.entities.append(EntityDescription(name: "Q"))
    whole.configurations = ["Cloud": ["P"], "Local": ["Q"]]
    _ = try patient.repair(models: [whole])
    let repaired = try SourceStore(
      path: FilePath(patient.output), snapshotFolder: FilePath(patient.folder.path))
    #expect(repaired.metadata.hashedEntities == ["P"] && !repaired.hasTable("ZQ"))
    let cached = try repaired.wholeCachedHierarchy()
    #expect(cached?.order == ["P", "Q"] && cached?.model.configurations == whole.configurations)
  }
}
