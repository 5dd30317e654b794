import ArgumentParser
import Foundation
import GodwitCheckpoints
import GodwitFleet
import GodwitPlanning
import GodwitSQLite
import SystemPackage

struct MigrateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate",
    abstract: "Migrates one store. Run the same command again to resume.")

  @OptionGroup var arguments: MigrationArguments

  func run() async throws {
    let report = ResultReport(arguments)
    let result: MigrationResult
    do {
      try ProcessLimits.prepare(workers: arguments.workerCount)
      result = await migrate(try arguments.request(snapshotFolder: ""), report)
    } catch {
      result = ResultReport.failure(of: arguments.store, error)
    }
    report.end(result)
    let status = ExitStatus(result.ending)
    if status != .success { throw status.exit }
  }

  private func migrate(_ request: MigrationRequest, _ report: ResultReport) async -> MigrationResult
  {
    let display = ProgressDisplay(
      store: FilePath(arguments.store).lastComponent?.string ?? arguments.store,
      isQuiet: arguments.quiet)
    let asJSON = arguments.json
    TemporaryFiles.useFolder(arguments.runDirectoryPath.string)
    let run = StoreRun(
      request, directory: RunDirectory(arguments.runDirectoryPath),
      settings: StoreRun.Settings(
        pool: WorkerPool.Settings(
          executable: Executable.path, workerCount: arguments.workerCount),
        keepsState: arguments.keepState, uriTable: arguments.uriTable.map { FilePath($0) }),
      observe: { event in
        display.show(event)
        // A line a unit or step would bury the rest; the run directory's events have them.
        switch event.event {
        case .unitFinished, .unitReused, .assembly, .commitStep: break
        default: if asJSON { Output.result(jsonLine: event.jsonLine()) }
        }
      })
    let migration = Task { await run.run() }
    let store = arguments.store
    StopSignals.install(
      stop: {
        migration.cancel()
        Output.say("Stopping. A second signal stops at once. Run the same command to resume.")
      },
      end: {
        // Too late for the run's own result; what lies on the disk is as safe as ever.
        report.end(MigrationResult(failing: store, with: CancellationError()))
        _exit(ExitStatus.resumable.rawValue)
      })
    let ticks = Task { await display.tick() }
    let result = await migration.value
    ticks.cancel()
    display.end()
    return result
  }
}
