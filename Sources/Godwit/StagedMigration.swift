import GodwitCommands
import GodwitPlanning

// Staged migration, for an executable that registers stages of its own. The types are those of the
// targets below: a team's package has to import `Godwit` alone.

/// See ``GodwitTool/main(stages:)``.
public typealias StagedMigration = GodwitPlanning.StagedMigration
public typealias MigrationStage = GodwitPlanning.MigrationStage
public typealias LightweightMigrationStage = GodwitPlanning.LightweightMigrationStage
public typealias CustomMigrationStage = GodwitPlanning.CustomMigrationStage
public typealias ModelReference = GodwitPlanning.ModelReference
public typealias StagedMigrationError = GodwitPlanning.StagedMigrationError
public typealias StageContext = GodwitPlanning.StageContext
public typealias StageObject = GodwitPlanning.StageObject
public typealias StageValue = GodwitPlanning.StageValue

extension GodwitTool {
  /// Does what the process's arguments say, and ends the process, with stages of a team's own.
  ///
  /// `plan`, `migrate` and `run` take every store through the stages, as Core Data does where a
  /// store is opened with `NSPersistentStoreStagedMigrationManagerOptionKey`; `--chain direct`,
  /// or `chain: direct` in a pipeline, goes without.
  ///
  /// - Parameter policies: Entity migration policies, for stores that go without.
  nonisolated(nonsending) public static func main(
    stages: StagedMigration, policies: [String: EntityMigrationPolicy.Type] = [:]
  ) async -> Never {
    await CommandLineTool.main(Customizations(policies: PolicyRegistry(policies), stages: stages))
  }
}
