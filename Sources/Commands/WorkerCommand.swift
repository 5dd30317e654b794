import ArgumentParser
@preconcurrency import Foundation
import GodwitFleet
import GodwitWorker
import Synchronization
import SystemPackage

/// What the coordinator or a scheduler starts: serves tasks from standard input until it ends, or does
/// one bundle of a manifest.
struct WorkerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "worker",
    abstract: "Does one bundle of a manifest, for a scheduler of any kind.",
    discussion: """
      `godwit run --engine slurm` and `--engine array` write manifests. Any scheduler may do their \
      bundles, in any order, more than once, and on any machine that sees the same files. Exits with 0 \
      when the bundle is done, with 75 when it has to be started again, and with 78 where the manifest \
      cannot be used or the machine has another build of the executable. Without --manifest it is a \
      worker process that `godwit` starts itself.
      """)

  @Option(
    help: ArgumentHelp(
      "A file that says how much the processes of a run may read and write.", visibility: .hidden))
  var pace: String?

  @Option(help: ArgumentHelp("The manifest.jsonl of an array.", valueName: "file"))
  var manifest: String?

  @Option(help: "Which of its bundles, from 0.")
  var index: Int?

  @Option(
    help: ArgumentHelp(
      "The environment variable that says which, such as JOB_COMPLETION_INDEX.", valueName: "name"))
  var indexFrom: String?

  @Option(
    help: ArgumentHelp(
      "Looks at a shared folder, for `godwit doctor`.", valueName: "dir", visibility: .hidden))
  var probe: String?

  @Option(help: ArgumentHelp("A root of stores to look at.", valueName: "dir", visibility: .hidden))
  var root: [String] = []

  func validate() throws {
    let ways = [index != nil, indexFrom != nil].count { $0 }
    guard ways == (manifest == nil ? 0 : 1) else {
      throw ValidationError("--manifest needs one of --index and --index-from.")
    }
    if manifest?.isEmpty == true || (index ?? 0) < 0 {
      throw ValidationError("--manifest is a path, and --index a number from 0.")
    }
  }

  func run() throws {
    if let manifest { return try doBundle(of: manifest) }
    if let probe {
      return try ClusterProbe(folder: FilePath(probe), roots: root.map { FilePath($0) }).run()
    }
    if let pace { Pace.use(FilePath(pace)) }
    let (tasks, answers) = try Self.takeStreams()
    try CoordinatorWatch.install(on: tasks)
    // The limit that a `StoreHost` sets itself is not that of the policies that run here.
    ProcessLimits.limitMemory(to: nil)
    try WorkerLoop(policies: CommandLineTool.code.policies, input: tasks, output: answers).run()
  }

  /// Keeps the pipes of the coordinator for its messages. Policies and handlers read nothing from here
  /// on, and what they print goes to standard error, each line when it ends: a worker may be killed at
  /// any moment.
  static func takeStreams() throws -> (input: FileDescriptor, output: FileDescriptor) {
    let input = try FileDescriptor.standardInput.duplicate()
    let output = try FileDescriptor.standardOutput.duplicate()
    let nothing = try FileDescriptor.open("/dev/null", .readOnly)
    _ = try nothing.duplicate(as: .standardInput)
    try nothing.close()
    _ = try FileDescriptor.standardError.duplicate(as: .standardOutput)
    setvbuf(stdout, nil, _IOLBF, 0)
    // A program that a policy starts must not keep them open, or read from them.
    for pipe in [input, output] { _ = fcntl(pipe.rawValue, F_SETFD, FD_CLOEXEC) }
    return (input, output)
  }
}

// A task of a scheduler.
extension WorkerCommand {
  /// A worker that serves a coordinator keeps the main thread, so that this one only waits.
  private func doBundle(of manifest: String) throws {
    let work = try BundleWork(manifest: FilePath(manifest), index: try bundleIndex())
    try ProcessLimits.prepare(workers: work.workers)
    let outcome = Mutex<Result<BundleWork.Ending, any Error>?>(nil)
    let isOver = DispatchSemaphore(value: 0)
    let task = Task { () -> BundleWork.Ending in try await work.run { try Self.pipelineRun(work) } }
    StopSignals.install(stop: { task.cancel() }, end: { _exit(ExitStatus.resumable.rawValue) })
    Task {
      let result = await task.result
      outcome.withLock { $0 = result }
      isOver.signal()
    }
    isOver.wait()
    guard let ending = try outcome.withLock({ $0 })?.get() else { return }
    Output.say("godwit: \(work.name): \(ending.words)")
    switch ending {
    case .done, .revoked: return
    case .elsewhere, .stopped: throw ExitStatus.resumable.exit
    case .otherBuild: throw ExitStatus.configuration.exit
    }
  }

  private func bundleIndex() throws -> Int {
    if let index { return index }
    let name = indexFrom ?? ""
    let text = ProcessInfo.processInfo.environment[name]
    guard let text else {
      throw CommandError(
        .usage, "usage",
        "The environment variable \(name), which --index-from names, is not set. Give the one in which the "
          + "scheduler says the task's number, or --index.")
    }
    guard let index = Int(text), index >= 0 else {
      throw CommandError(
        .usage, "usage",
        "The environment variable \(name) says \(text), which is not the number of a bundle: they count from 0. Give "
          + "the one in which the scheduler says the task's number to --index-from, or --index.")
    }
    return index
  }

  private static func pipelineRun(_ work: BundleWork) throws -> PipelineRun {
    let job = try PipelineJob(path: work.pipeline, losses: work.losses)
    var request = job.request
    if work.isStoreOffline { request.isStoreOffline = true }
    var options = PipelineRun.Options()
    (options.handsOut, options.isFresh) = (work.handsOut, work.isFresh)
    return PipelineRun(
      job.pipeline, request,
      pool: WorkerPool.Settings(executable: Executable.path, workerCount: work.workers),
      state: work.state, options: options, tellsEvents: work.tellsEvents, observe: work.take)
  }
}

extension BundleWork.Ending {
  fileprivate var words: String {
    switch self {
    case .done: "done"
    case .revoked: "no longer wanted"
    case .elsewhere: "another attempt is at work"
    case .stopped: "stopped; another attempt goes on with it"
    case .otherBuild:
      "left alone: this executable is another build than the one that began the run, whose policies, stages or models decide "
        + "what becomes of rows. Install one build on every machine"
    }
  }
}
