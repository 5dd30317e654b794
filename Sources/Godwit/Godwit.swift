import GodwitCommands
/// What a team with code of its own imports: models, mappings, and the same commands.
@_exported import GodwitExpressions
@_exported import GodwitMapping
@_exported import GodwitObjectModel
@_exported import GodwitWorker

/// The commands of `godwit`, for an executable of one's own.
public enum GodwitTool {
  /// Does what the process's arguments say, and ends the process.
  nonisolated(nonsending) public static func main() async -> Never { await CommandLineTool.main() }

  /// The same, with entity migration policies at hand.
  ///
  /// All of a team's executable, which its coordinator starts again as worker:
  ///
  ///     import Godwit
  ///
  ///     await GodwitTool.main(policies: [
  ///       "MyApp.BookPolicy": BookPolicy.self
  ///     ])
  ///
  /// - Parameter policies: Classes by the names that mapping models give them.
  nonisolated(nonsending) public static func main(policies: [String: EntityMigrationPolicy.Type])
    async -> Never
  {
    await CommandLineTool.main(Customizations(policies: PolicyRegistry(policies)))
  }
}
