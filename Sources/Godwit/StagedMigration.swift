import GodwitCommands
// Staged migration, for an executable that registers stages of its own, see
// ``GodwitTool/main(stages:policies:)``.
@_exported import GodwitPlanning

extension GodwitTool {
  /// Does what the process's arguments say, and ends the process, with stages of a team's own.
  ///
  /// `plan`, `migrate` and `run` take every store through the stages, as Core Data does where a
  /// store is opened with `NSPersistentStoreStagedMigrationManagerOptionKey`; `--chain direct`,
  /// or `chain: direct` in a pipeline, goes without.
  ///
  /// - Parameters:
  ///   - stages: The stages, in the order of the versions.
  ///   - policies: Entity migration policies by the names that mapping models give them, for stores
  ///     that go without stages.
  nonisolated(nonsending) public static func main(
    stages: StagedMigration, policies: [String: EntityMigrationPolicy.Type] = [:]
  ) async -> Never {
    await CommandLineTool.main(Customizations(policies: PolicyRegistry(policies), stages: stages))
  }
}
