import ArgumentParser
import Foundation
import GodwitFleet
import SystemPackage

struct PlanCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan",
    abstract: "Shows what `migrate` would do. Changes nothing.",
    discussion: """
      Takes the options of `migrate` and ends with the same verdict and exit code, `migrated` for a
      store that would be. Rows are counted, not read: damage in them shows when they move. Of a
      chain's later steps it says only what they ask of rows. That a store is in use, or too little
      room on its volume, is a note: that may have passed when the migration is run.

      STORE may be a pipeline. Then its stores are counted by version, those that would not be \
      migrated by reason, and what would be lost by entity and property; a few stores are migrated \
      privately for a forecast of time and space. The other options are then --verbose, --out, \
      --samples, --losses, --json, --quiet and --state, the folder that `run --state` was or will be \
      given; and the exit code is 0, 3 where stores would not be migrated, or 75 where it was stopped.
      """)

  @OptionGroup var arguments: MigrationArguments

  @Flag(help: "Of a pipeline: reports every store.")
  var verbose = false

  @Option(
    help: ArgumentHelp(
      "Of a pipeline: writes the stores and their states here, for `godwit run --plan`. Replaces "
        + "an earlier plan, and no other file.",
      valueName: "file"), completion: .file())
  var out: String?

  private static let defaultSamples = 6

  @Option(
    help: ArgumentHelp(
      "Of a pipeline: how many stores are migrated privately for the forecast. Default: "
        + "\(defaultSamples)."))
  var samples: Int?

  func validate() throws {
    guard (0...1_000).contains(samples ?? Self.defaultSamples) else {
      throw ValidationError("--samples is a number from 0 to 1000.")
    }
    if out?.isEmpty == true { throw ValidationError("--out is the path of a file.") }
  }

  func run() async throws {
    if let file = try Pipeline.file(at: arguments.store) { return try await plan(file.string) }
    guard out == nil, !verbose, samples == nil else {
      throw try PipelineArguments.noPipeline(
        at: arguments.store, "--out, --samples and --verbose are for a pipeline.")
    }
    let report = ResultReport(arguments, isPlan: true)
    let result: MigrationResult
    do {
      result = await DryRun(
        try arguments.request(snapshotFolder: ""), directory: arguments.runDirectoryPath,
        uriTable: arguments.uriTable.map { FilePath($0) }
      ).run()
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
        "With a pipeline, the only other options are --verbose, --out, --samples, --losses, --state, "
          + "--json and --quiet.")
    }
    let file = try out.map { try OutputFile($0, .plan) }
    let job = try PipelineJob(path: path, losses: arguments.losses)
    let report = PipelineReport(
      name: job.pipeline.name, asJSON: arguments.json, isQuiet: arguments.quiet,
      isVerbose: verbose, isPlan: true, losses: job.request.losses)
    let run = PipelineRun(
      job.pipeline, job.request,
      pool: WorkerPool.Settings(executable: Executable.path, workerCount: job.workerCount),
      state: arguments.state.map { FilePath($0) }, observe: report.take)
    let ticks = Task { await report.tick() }
    let task = Task { [samples] in try await run.plan(samples: samples ?? Self.defaultSamples) }
    StopSignals.install(
      stop: {
        task.cancel()
        Output.say("Stopping. A second signal stops at once. Run the same command to begin again.")
      },
      end: {
        // Too late for the plan's own summary.
        report.endEarly()
        _exit(ExitStatus.resumable.rawValue)
      })
    let outcome = await task.result
    ticks.cancel()
    let found = try outcome.get()
    if let stores = found.stores { try file?.write(stores.text, isPrivate: true) }
    report.end(found)
    if found.stores != nil, found.samplesLeft > 0 {
      Output.say(
        "Stopped before the whole sample was migrated. Run the same command for a better forecast.")
    }
    // A signal after the last store changes nothing.
    if found.isStopped { throw ExitStatus.resumable.exit }
    let status = ExitStatus(planned: found.summary)
    if status != .success { throw status.exit }
    // The plan of a store looks at no value; a sample that fails shows that a run would.
    if found.plan.trial?.fails == true { throw ExitStatus.someFailed.exit }
  }
}

extension ExitStatus {
  /// How a plan of a pipeline ends.
  init(planned summary: PipelineSummary) {
    self =
      summary.lacksWorkers == true
      ? .engineUnavailable : summary.done == summary.found ? .success : .someFailed
  }
}
