import ArgumentParser
import GodwitFleet
import SystemPackage

struct PlanCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan",
    abstract: "Shows what `migrate` would do. Changes nothing.",
    discussion: """
      Takes the words of `migrate` and ends with the same verdict and exit code, `migrated` for a
      store that would be. Rows are counted, not read: damage in them shows when they move.

      STORE may be a pipeline; then the only other options are --losses, --json and --quiet.
      """)

  @OptionGroup var arguments: MigrationArguments

  func run() async throws {
    if let file = Pipeline.file(at: arguments.store) { return try await plan(file.string) }
    let report = ResultReport(arguments, isPlan: true)
    let result: MigrationResult
    do {
      result = await DryRun(try arguments.request(snapshotFolder: "")).run()
    } catch {
      result = ResultReport.failure(of: arguments.store, error)
    }
    report.end(result)
    let status = ExitStatus(result.ending)
    if status != .success { throw status.exit }
  }

  private func plan(_ path: String) async throws {
    guard !arguments.isMoreThanAStore else {
      throw ValidationError(
        "With a pipeline, the only other options are --losses, --json and --quiet.")
    }
    let job = try PipelineJob(path: path, losses: arguments.losses)
    let report = PipelineReport(
      name: job.pipeline.name, asJSON: arguments.json, isQuiet: arguments.quiet, isPlan: true,
      losses: job.request.losses)
    let summary = try await PipelineRun(
      job.pipeline, job.request,
      pool: WorkerPool.Settings(executable: Executable.path, workerCount: job.workerCount),
      observe: report.take
    ).plan()
    report.end(summary)
    let status = ExitStatus(summary)
    if status != .success { throw status.exit }
  }
}
