import GodwitObjectModel
import Testing

@testable import GodwitPlanning

private func light(_ checksums: String...) -> MigrationStage {
  .lightweight(LightweightMigrationStage(checksums))
}

private func custom(_ source: String, _ destination: String) -> MigrationStage {
  .custom(
    CustomMigrationStage(
      from: ModelReference(name: source, versionChecksum: source),
      to: ModelReference(name: destination, versionChecksum: destination)))
}

private typealias Step = StagedMigration.Step

@Suite struct `A staged migration` {
  @Test func `infers once from the oldest to the newest where no stage is custom`() throws {
    let stages = try StagedMigration([light("1"), light("2", "3"), light("4")])
    #expect(stages.order == ["1", "2", "3", "4"])
    #expect(try stages.steps(from: "1") == [.inferred(source: "1", destination: "4")])
    #expect(try stages.steps(from: "3") == [.inferred(source: "3", destination: "4")])
  }

  @Test func `treats several checksums of a stage like a stage each`() throws {
    let one = try StagedMigration([light("1", "2", "3")])
    let each = try StagedMigration([light("1"), light("2"), light("3")])
    #expect(try one.steps(from: "1") == each.steps(from: "1"))
  }

  @Test func `breaks the way at a custom stage`() throws {
    let stages = try StagedMigration([light("1"), custom("2", "3"), light("4", "5")])
    #expect(
      try stages.steps(from: "1") == [
        .inferred(source: "1", destination: "2"),
        .custom(stage: 1, source: "2", destination: "3"),
        .inferred(source: "3", destination: "5"),
      ])
    #expect(
      try stages.steps(from: "2") == [
        .custom(stage: 1, source: "2", destination: "3"),
        .inferred(source: "3", destination: "5"),
      ])
    #expect(try stages.steps(from: "3") == [.inferred(source: "3", destination: "5")])
    #expect(try stages.steps(from: "5") == [])
  }

  @Test func `runs custom stages one after the other`() throws {
    let stages = try StagedMigration([custom("1", "2"), custom("2", "3")])
    #expect(stages.order == ["1", "2", "3"])
    #expect(
      try stages.steps(from: "1") == [
        .custom(stage: 0, source: "1", destination: "2"),
        .custom(stage: 1, source: "2", destination: "3"),
      ])
  }

  @Test func `ends at the destination that is asked for`() throws {
    let stages = try StagedMigration([light("1"), custom("2", "3"), light("4")])
    #expect(
      try stages.steps(from: "1", to: "2") == [.inferred(source: "1", destination: "2")])
    #expect(try stages.steps(from: "1", to: "3").count == 2)
  }

  @Test func `never goes backwards`() throws {
    let stages = try StagedMigration([light("1", "2"), custom("3", "4")])
    let error = StagedMigrationError.backwardMigration(store: "3", destination: "2")
    #expect(throws: error) { try stages.steps(from: "3", to: "2") }
    #expect(error.code == 134_506)
    #expect(
      error.description.contains(
        "A store file cannot be migrated backwards with staged migration."))
  }

  @Test func `refuses a version that no stage names`() throws {
    let stages = try StagedMigration([light("1", "2")])
    let error = StagedMigrationError.unknownVersion(checksum: "0")
    #expect(throws: error) { try stages.steps(from: "0") }
    #expect(throws: error) { try stages.steps(from: "1", to: "0") }
    #expect(throws: StagedMigrationError.unknownVersion(checksum: "1")) {
      try StagedMigration([]).steps(from: "1")
    }
    #expect(
      error.description.contains(
        "Cannot use staged migration with an unknown model version."))
  }

  @Test func `refuses a store that records no checksum`() throws {
    let error = StagedMigrationError.frameworkVersionMismatch
    #expect(throws: error) { try StagedMigration([light("1")]).steps(from: nil) }
    #expect(error.code == 134_505)
  }

  @Test(arguments: [
    [light("1"), light("1")], [light("1", "1")], [light("1", "2"), light("2")],
    [light("1"), custom("2", "1")], [custom("1", "1")], [custom("1", "2"), custom("1", "2")],
    [custom("1", "2"), light("3", "2")],
  ])
  func `refuses a checksum twice`(stages: [MigrationStage]) {
    let error = #expect(throws: StagedMigrationError.self) { try StagedMigration(stages) }
    #expect(error?.description.contains("Duplicate version checksums") == true)
  }

  @Test func `may begin a custom stage where the stage before ended`() throws {
    #expect(try StagedMigration([light("1", "2"), custom("2", "3")]).order == ["1", "2", "3"])
    #expect(try StagedMigration([custom("1", "2"), light("2", "3")]).order == ["1", "2", "3"])
  }
}

@Suite struct `A model reference` {
  private let version = ModelVersion(
    name: "Shop", model: ManagedObjectModel(entities: [EntityDescription(name: "Item")]),
    isCurrent: true, path: "Shop")

  @Test func `finds the model of its checksum`() throws {
    let checksum = try EntityHierarchy(version.model).versionChecksum
    let reference = ModelReference(name: "any name", versionChecksum: checksum)
    #expect(try reference.resolved(among: [version]).name == "Shop")
  }

  @Test func `takes no model of another checksum, whatever its name`() {
    let error = StagedMigrationError.modelReferenceNotFound(name: "Shop", checksum: "x")
    #expect(throws: error) {
      try ModelReference(name: "Shop", versionChecksum: "x").resolved(among: [version])
    }
    #expect(error.code == 134_504)
  }
}
