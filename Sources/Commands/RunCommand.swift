import ArgumentParser
import Foundation
import GodwitFleet
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite
import SystemPackage

struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Migrates all stores of a pipeline. Run the same command again to resume.",
    discussion: """
      PIPELINE is a pipeline.yaml, or the folder that it lies in. What is finished is known from \
      state/ beside it. Stores that end well are counted; the others are reported as they come, and \
      by reason at the end. With --json there is a result line for each store, and a summary at the \
      end. `godwit control` pauses a run or changes its limits while it goes on.
      """)

  @Argument(help: "The pipeline's file, or its folder.", completion: .file())
  var pipeline: String

  @Option(
    help: ArgumentHelp(
      "Where the run keeps its state. Default: state/ beside it.", valueName: "dir"),
    completion: .directory)
  var state: String?

  @Option(
    help: "Worker processes. Default: what the pipeline says, else one a processor, at most 8.")
  var workers: Int?

  @Option(help: LossPolicy.help)
  var losses: LossPolicy?

  @Flag(
    help: ArgumentHelp(
      "Asserts that no other process has a store open, as the key stores.in-use: offline does."))
  var storeIsOffline = false

  @Option(
    help: ArgumentHelp(
      "Appends a log line for each store to a file; `journal` is systemd's journal.",
      valueName: "file"), completion: .file())
  var log: String?

  @Option(help: "The form of the lines of --log in a file: logfmt, the default, or json.")
  var logFormat: LogForm?

  @OptionGroup var selection: RunSelection

  @Flag(
    help: """
      Forgets the progress of earlier runs with the stores that are taken up. A commit that was cut \
      off is brought to its end first.
      """)
  var fresh = false

  @Option(
    help: ArgumentHelp(
      "A plan that `godwit plan --out` wrote. Where a store has changed or vanished since, or is new, "
        + "nothing is done (exit code 65).",
      valueName: "file"), completion: .file())
  var plan: String?

  @Option(
    help: """
      Where the work is done: local, slurm, or array for manifests that another scheduler runs. Default: \
      what the pipeline says, else local.
      """)
  var engine: Engine?

  @Flag(
    help: """
      Ends once the work is submitted. The cluster starts the command again when it is over; `status` \
      tells how far it is, and the same command attaches.
      """)
  var detach = false

  /// What names a start by a cluster: one that was replaced does nothing.
  @Option(help: .hidden)
  var followerToken: String?

  @Flag(help: "Reports the stores that end well, too.")
  var verbose = false

  @Flag(help: "JSON Lines on standard output; the last one is the summary.")
  var json = false

  @Flag(help: "Silent about stores that end well.")
  var quiet = false

  func validate() throws {
    if let workers, !(1...256).contains(workers) {
      throw ValidationError("--workers is a number from 1 to 256.")
    }
    if pipeline.isEmpty || state?.isEmpty == true || plan?.isEmpty == true {
      throw ValidationError("PIPELINE, --state and --plan are paths.")
    }
    if logFormat != nil, log == nil { throw ValidationError("--log-format needs --log.") }
  }

  func run() async throws {
    let pipeline = try Pipeline(file: Pipeline.requiredFile(at: pipeline))
    let engine = engine ?? pipeline.engine
    guard engine != .local || !detach else {
      throw ValidationError("--detach needs --engine slurm or array.")
    }
    let places = PipelinePlaces(pipeline, state: state.map { FilePath($0) })
    if let followerToken,
      try !ClusterFollower.isWanted(followerToken, in: places.state)
    {
      return Self.sayDismissed()
    }
    // From here on whoever waits for the run hears of it, however it ends.
    let outputs = try RunOutputs(pipeline, places)
    for note in outputs.check() { Output.say("warning: \(note)") }
    let status: ExitStatus
    do {
      status = try await run(pipeline, places, engine, outputs)
    } catch is FollowerDismissed {
      return Self.sayDismissed()
    } catch {
      for note in outputs.fail(error) { Output.say("warning: \(note)") }
      throw error
    }
    if status != .success { throw status.exit }
  }

  private func run(
    _ pipeline: Pipeline, _ places: PipelinePlaces, _ engine: Engine, _ outputs: RunOutputs
  ) async throws -> ExitStatus {
    let job = try PipelineJob(pipeline, losses: losses)
    // On a cluster the workers are those of one task.
    let workerCount = workers ?? (engine == .local ? job.workerCount : pipeline.workers ?? 1)
    try ProcessLimits.prepare(workers: workerCount)
    var request = job.request
    if storeIsOffline { request.isStoreOffline = true }
    let report = PipelineReport(
      name: pipeline.name, asJSON: json, isQuiet: quiet, isVerbose: verbose,
      losses: job.request.losses)
    var options = PipelineRun.Options()
    options.selection = try selection.selection()
    options.isFresh = fresh
    (options.engine, options.isDetached) = (engine, detach)
    options.plan = try plan.map { try PlannedStores(file: FilePath($0)) }
    let log = try log.flatMap {
      do {
        if $0 != LogSink.journal { try places.checkLog(FilePath($0)) }
        return try RunLog(path: $0, form: logFormat ?? .logfmt, pipeline: pipeline.name)
      } catch  where followerToken != nil {
        // Another machine need not have the folder, and nobody sees why the run is not brought to its end.
        Output.say("warning: \(error)")
        return nil
      }
    }
    var run = PipelineRun(
      pipeline, request,
      pool: WorkerPool.Settings(
        executable: Executable.path, workerCount: workerCount),
      state: state.map { FilePath($0) }, options: options,
      tellsEvents: json || report.isLive,
      observe: { event in
        log?.take(event)
        report.take(event)
      })
    run.context = RunContext(
      options: Array(CommandLine.arguments.dropFirst()),
      exitCode: { Int(ExitStatus($0).rawValue) })
    run.context.begins = {
      for note in outputs.begin() { Output.say("warning: \(note)") }
    }
    (run.context.follower, run.context.followerToken) = (try follower(engine), followerToken)
    if detach, engine == .slurm, run.context.follower.isEmpty {
      Output.say(
        "note: With --files-from or --plan nothing starts the command again. Run it again when the bundles "
          + "are over.")
    }
    TemporaryFiles.useFolder((state.map { FilePath($0) } ?? pipeline.stateFolder).string)
    let task = Task { [run] in try await run.run() }
    StopSignals.install(
      stop: {
        task.cancel()
        guard outputs.ended == nil else { return }
        Output.say("Stopping. A second signal stops at once. Run the same command to resume.")
      },
      end: {
        // Too late for the run's own summary; what lies on the disk is as safe as ever.
        report.endEarly()
        _exit((outputs.ended ?? .resumable).rawValue)
      })
    let ticks = Task { await report.tick() }
    let outcome = await task.result
    ticks.cancel()
    let summary = try outcome.get()
    report.end(summary)
    let status = ExitStatus(summary)
    log?.end(summary, exitCode: status.rawValue)
    guard summary.detached != true else { return status }
    let notes = outputs.end(summary, status, job)
    for note in notes + [log?.failure].compactMap({ $0 }) { Output.say("warning: \(note)") }
    return status
  }
}

extension RunCommand {
  private static func sayDismissed() {
    Output.say("Nothing is to be done: somebody else has taken the run up since.")
  }

  /// The command by which a cluster resumes the run; none where that would be another one.
  ///
  /// Options that hold for one start are left out, and --fresh, which the run's state has.
  private func follower(_ engine: Engine) throws -> [String] {
    guard detach, engine == .slurm, !selection.isFromFile, plan == nil else { return [] }
    let file = try Pipeline.file(at: pipeline) ?? FilePath(pipeline)
    var words = [
      Executable.path.string, "run", file.absolute.string, "--engine=" + engine.rawValue,
      "--detach",
    ]
    // One word each: a value may begin with a dash.
    if let state { words.append("--state=" + FilePath(state).absolute.string) }
    if let workers { words.append("--workers=\(workers)") }
    if let losses { words.append("--losses=" + losses.rawValue) }
    if let log {
      words.append("--log=" + (log == LogSink.journal ? log : FilePath(log).absolute.string))
    }
    if let logFormat { words.append("--log-format=" + logFormat.rawValue) }
    if storeIsOffline { words.append("--store-is-offline") }
    words += selection.only.map { "--only=" + $0 }
    return words
  }
}

extension Engine: ExpressibleByArgument {}

/// What `run` and `plan` make of a pipeline's file before a store is looked for.
struct PipelineJob {
  let pipeline: Pipeline
  /// What every store is to become; its paths are filled in later.
  let request: MigrationRequest

  /// - Parameter losses: What the command line says; nil for what the pipeline's file says.
  /// - Throws: ``PipelineError``, ``ModelError``, `MappingError`; `CommandError` for a version that
  ///   none of the models has.
  init(path: String, losses: LossPolicy? = nil) throws {
    try self.init(Pipeline(file: Pipeline.requiredFile(at: path)), losses: losses)
  }

  /// - Throws: Likewise, but for what is wrong with the file.
  init(_ pipeline: Pipeline, losses: LossPolicy? = nil) throws {
    self.pipeline = pipeline
    let catalog = try ModelCatalog(pipeline.models)
    var named: [ModelVersion] = []
    if let name = pipeline.destination {
      named = catalog.versions.filter { $0.name.isSameName(as: name) }
      if named.isEmpty {
        named = try catalog.destinations(
          named: pipeline.resolve(name), as: name,
          advice: "Correct the key destination or models in \(pipeline.file).")
      }
    }
    var request = catalog.request(for: "", named: named)
    guard request.destination != nil else {
      throw CommandError(
        .badInput, "model",
        "\(pipeline.file) does not say which version is the destination: "
          + "\(try ModelVersion.lacks(ofCurrent: catalog.versions).joined(separator: "; ")). "
          + "Add the key destination.")
    }
    request.infersMapping = pipeline.infersMapping
    request.migrates = pipeline.migrates
    request.shardBytes = pipeline.shardBytes
    request.mappings = try MappingFile.read(pipeline.mappings)
    request.sharesMappings = true
    do throws(ChainObstacle) {
      request.chain = try CommandLineTool.code.chain(
        pipeline.chain, mappings: pipeline.mappings.count)
    } catch {
      throw CommandError(.configuration, "pipeline", "\(pipeline.file): \(error.ofPipeline)")
    }
    request.losses = losses ?? pipeline.losses ?? .warn
    request.guardsUnknownVersions = (losses ?? pipeline.losses) == nil
    request.invalid = pipeline.invalid
    request.isStoreOffline = pipeline.stores.inUse == .offline
    CommandLineTool.code.bring(to: &request)
    self.request = request
  }

  var workerCount: Int { pipeline.workers ?? Executable.suggestedWorkers }
}

/// The running program itself.
enum Executable {
  /// What workers are started as, so that coordinator and workers can never be of two versions.
  static var path: FilePath {
    let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    return FilePath(own ?? CommandLine.arguments.first ?? "godwit")
  }

  /// 8 at most: more workers than that wait for the disk.
  static var suggestedWorkers: Int {
    min(8, max(1, ProcessInfo.processInfo.activeProcessorCount))
  }
}

extension ExitStatus {
  init(_ summary: PipelineSummary) {
    self =
      if summary.detached == true {
        .success
      } else if summary.lacksWorkers == true {
        .engineUnavailable
      } else if summary.stopped == "failure-budget" {
        .failureBudget
      } else if summary.stopped == "lease" {
        .locked
      } else if summary.pending > 0 {
        .resumable
      } else {
        summary.notDone > 0 || summary.unknown != nil ? .someFailed : .success
      }
  }
}
