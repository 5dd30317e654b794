import GodwitObjectModel
import SystemPackage
import Testing

@testable import GodwitCommit
@testable import GodwitPersistentStore
@testable import GodwitPlanning
@testable import GodwitStagedObjects

private func version(_ name: String, _ properties: PropertyDescription...) -> ModelVersion {
  ModelVersion(
    name: name,
    model: ManagedObjectModel(
      entities: [EntityDescription(name: "Item", properties: properties)]),
    isCurrent: false, path: name)
}

private func reference(_ version: ModelVersion) throws -> ModelReference {
  ModelReference(
    name: version.name, versionChecksum: try EntityHierarchy(version.model).versionChecksum)
}

private func light(_ versions: ModelVersion...) throws -> MigrationStage {
  .lightweight(LightweightMigrationStage(try versions.map { try reference($0).versionChecksum }))
}

private func custom(
  _ source: ModelVersion, _ destination: ModelVersion, label: String? = nil,
  will: CustomMigrationStage.Handler? = nil, did: CustomMigrationStage.Handler? = nil
) throws -> MigrationStage {
  .custom(
    CustomMigrationStage(
      from: try reference(source), to: try reference(destination), label: label,
      willMigrate: will, didMigrate: did))
}

@Suite struct `The way of a store through stages` {
  private let one = version("1", attribute("name", .string))
  private let two = version("2", attribute("name", .string), attribute("title", .string))
  private let three = version("3", attribute("title", .string, required: true))
  private let other = version("4", attribute("title", .date))
  private let nothing: CustomMigrationStage.Handler = { _ in }

  /// The way of a store of version 1.
  ///
  /// - Parameter records: Whether it records its version's checksum.
  private func path(
    _ stages: [MigrationStage], models: [ModelVersion], to destination: ModelVersion? = nil,
    of store: ModelVersion? = nil, infers: Bool = true, records: Bool = true
  ) throws -> StagedPath {
    let fixture = try StageFixture((store ?? one).model.entities)
    if !records { try fixture.dropChecksum() }
    let request = MigrationRequest(
      store: fixture.path, models: models, destination: destination, infersMapping: infers,
      output: nil, snapshotFolder: fixture.scratch.path)
    return try StagedPath(request, try StagedMigration(stages))
  }

  @Test func `calls handlers before and after the migration between them`() throws {
    let stages = [
      try custom(one, two, label: "fill", will: nothing, did: nothing), try light(two, three),
    ]
    let models = [one, two, three]
    let path = try path(stages, models: models)
    #expect(
      path.lines == [
        "1: willMigrate of fill", "1 → 2: inferred", "2: didMigrate of fill", "2 → 3: inferred",
      ])
    #expect(path.destination.name == "3")
    #expect(try self.path(stages, models: models, to: two).lines.count == 3)
    #expect(try self.path(stages, models: models, to: one).steps.isEmpty)
    #expect(try self.path(stages, models: models, of: two).lines == ["2 → 3: inferred"])
  }

  @Test func `has no step for a handler that is not there`() throws {
    let path = try path([try custom(one, two, did: nothing)], models: [one, two])
    #expect(path.lines == ["1 → 2: inferred", "2: didMigrate of 1 → 2"])
  }

  @Test func `takes the store's own model for its version`() throws {
    let path = try path([try custom(one, two, will: nothing)], models: [two])
    #expect(path.steps.count == 2)
  }

  @Test func `says what cannot be inferred before a handler is called`() throws {
    let stages = [try custom(one, two, will: nothing), try light(other)]
    let error = #expect(throws: StagedMigrationError.self) {
      try path(stages, models: [one, two, other])
    }
    #expect(error?.code == 134_140)
    let forbidden = #expect(throws: StagedMigrationError.self) {
      try path([try light(one, two)], models: [one, two], infers: false)
    }
    #expect(forbidden?.code == 134_140)
  }

  @Test func `refuses what Core Data refuses`() throws {
    let stages = [try light(one, two)]
    let checksum = try reference(three).versionChecksum
    #expect(throws: StagedMigrationError.unknownVersion(checksum: checksum)) {
      try path(stages, models: [one, two, three], to: three)
    }
    #expect(throws: StagedMigrationError.unknownVersion(checksum: checksum)) {
      try path(stages, models: [one, two, three], of: three)
    }
    let backwards = #expect(throws: StagedMigrationError.self) {
      try path(stages, models: [one, two], to: one, of: two)
    }
    #expect(backwards?.code == 134_506)
    let missing = #expect(throws: StagedMigrationError.self) { try path(stages, models: [one]) }
    #expect(missing?.code == 134_504)
  }

  /// As in Core Data, a store that the model opens is not migrated at all.
  @Test func `has no steps where the destination opens the store as it is`() throws {
    let stages = [try light(one, two)]
    #expect(try path(stages, models: [three], to: three, of: three).steps.isEmpty)
    #expect(try path(stages, models: [two], to: two, of: two, records: false).steps.isEmpty)
    #expect(throws: StagedMigrationError.frameworkVersionMismatch) {
      try path(stages, models: [one, two], to: two, records: false)
    }
  }

  /// Stages name versions by the checksums of whole models; the store records that of its entities.
  @Test func `leads a store of one configuration by the whole versions`() throws {
    let whole = [one, two].map { version in
      var model = version.model
      model.entities.append(EntityDescription(name: "Other"))
      model.configurations = ["Cloud": ["Item"], "Local": ["Other"]]
      return ModelVersion(name: version.name, model: model, isCurrent: false, path: version.name)
    }
    let stages = [try light(whole[0], whole[1])]
    #expect(try path(stages, models: whole, to: whole[1]).lines == ["1 → 2: inferred"])
    #expect(try path(stages, models: whole, to: whole[1], of: two).steps.isEmpty)
    let backwards = #expect(throws: StagedMigrationError.self) {
      try path(stages, models: whole, to: whole[0], of: two)
    }
    #expect(backwards?.code == 134_506)
  }

  @Test func `finds a model that a reference brings along`() throws {
    let own = ModelReference(
      name: "two", model: two.model, versionChecksum: try reference(two).versionChecksum)
    let stage = MigrationStage.custom(
      CustomMigrationStage(from: try reference(one), to: own, didMigrate: nothing))
    #expect(try path([stage], models: []).lines.last == "two: didMigrate of 1 → two")
    let wrong = ModelReference(
      name: "two", model: one.model, versionChecksum: try reference(two).versionChecksum)
    #expect(throws: StagedMigrationError.self) { try wrong.resolved(among: [two]) }
  }
}
