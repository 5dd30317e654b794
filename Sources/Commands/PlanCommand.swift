import ArgumentParser
import GodwitFleet
import SystemPackage

struct PlanCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan",
    abstract: "Says what `migrate` would do, and changes nothing.",
    discussion: """
      Takes the words of `migrate` and ends with the same verdict and exit code, `migrated` for a
      store that would be. Rows are counted, not read: damage in them shows when they move.
      """)

  @OptionGroup var arguments: MigrationArguments

  func run() async throws {
    let report = ResultReport(arguments, isPlan: true)
    let result: MigrationResult
    do {
      result = await StoreRehearsal(try arguments.request(snapshotFolder: "")).run()
    } catch {
      result = ResultReport.failure(of: arguments.store, error)
    }
    report.end(result)
    let status = ExitStatus(result.ending)
    if status != .success { throw status.exit }
  }
}
