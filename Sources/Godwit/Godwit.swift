import GodwitCommands
/// What a team with code of its own imports: models, mappings, and the same commands.
@_exported import GodwitMapping
@_exported import GodwitObjectModel
@_exported import GodwitWorker

/// The commands of `godwit`, for an executable of one's own.
public enum GodwitTool {
  /// Does what the process's arguments say, and ends the process.
  public static func main() async -> Never { await CommandLineTool.main() }
}
