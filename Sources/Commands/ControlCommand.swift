import ArgumentParser
import GodwitDurableFiles
import GodwitFleet
import SystemPackage

struct ControlCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "control",
    abstract: "Pauses a pipeline's run, or changes its limits.",
    discussion: """
      A change holds until the next one, or until the run ends. A run that is paused \
      begins no store, and those under way wait before their next shard.

          godwit control PIPELINE pause
          godwit control PIPELINE resume
          godwit control PIPELINE limit io=20MiB/s workers=1 load=4
          godwit control PIPELINE limit io=none workers=default
          godwit control PIPELINE status

      Ends with 69 where no run is going on.
      """)

  enum Action: String, CaseIterable, ExpressibleByArgument { case pause, resume, limit, status }

  @Argument(help: "The pipeline's file, or its folder.", completion: .file())
  var pipeline: String

  @Argument(help: "pause, resume, limit or status.")
  var action: Action

  @Argument(
    help: ArgumentHelp(
      "With limit: io=RATE, workers=N or load=N. none lifts a limit, default gives back the "
        + "pipeline's. On a cluster workers=N is refused with 64.",
      valueName: "key=value"))
  var limits: [String] = []

  @Option(
    help: ArgumentHelp(
      "The folder of the run's state. Default: state/ beside it.", valueName: "dir"),
    completion: .directory)
  var state: String?

  @Flag(help: "JSON Lines on standard output.")
  var json = false

  func validate() throws {
    if action == .limit, limits.isEmpty {
      throw ValidationError("limit needs at least one of io=RATE, workers=N and load=N.")
    }
    if action != .limit, let extra = limits.first {
      throw ValidationError("\(action.rawValue) takes no \(extra).")
    }
    var control = RunControl()
    for limit in limits { try Self.apply(limit, to: &control) }
  }

  func run() throws {
    let file = try Pipeline.requiredFile(at: pipeline)
    let pipeline = try Pipeline(file: file)
    try PipelinePlaces(pipeline, state: state.map { FilePath($0) }).checkState()
    let place = state.map { FilePath($0) } ?? pipeline.stateFolder
    guard let state = place.resolved, try isUnderWay(pipeline, state, place) else {
      throw CommandError(
        .engineUnavailable, "no-run",
        "No run of \(pipeline.name) is going on in \(place). Nothing was changed. Only a run can be "
          + "controlled, no rollback and no other command.")
    }
    let places = PipelinePlaces(pipeline, state: state)
    var control = try RunControl.read(in: state)
    switch action {
    case .pause: control.isPaused = true
    case .resume: control.isPaused = false
    case .limit:
      for limit in limits { try Self.apply(limit, to: &control) }
      if control.workers != nil, limits.contains(where: { $0.hasPrefix("workers=") }),
        try RunProgress.read(in: state)?.cluster != nil || ClusterStatus(of: places) != nil
      {
        throw CommandError(
          .usage, "usage",
          "The run of \(pipeline.name) is on a cluster, whose tasks have as many workers as the pipeline or "
            + "`run --workers` said when they were submitted. Nothing was changed. Change the key workers and run "
            + "the same command again: what is left is submitted again.")
      }
    case .status:
      let others = try places.isInUse ? nil : PipelineStatus(pipeline, places).cluster
      return show(
        RunProgress.read(in: state) ?? .starting(pipeline.name, in: state), leftTo: others)
    }
    try control.write(in: state)
    if json {
      Output.result(json: ControlRecord(pipeline: pipeline.name, control))
    } else {
      Output.result("\(pipeline.name): \(Self.text(control))")
    }
  }

  /// - Throws: `CommandError` where it is a run of another pipeline that shares the state folder.
  private func isUnderWay(
    _ pipeline: Pipeline, _ state: FilePath, _ place: FilePath
  ) throws -> Bool {
    switch try RunState(of: PipelinePlaces(pipeline, state: place).owner, in: state) {
    case .idle: return false
    case .underWay: return true
    case .underWayElsewhere(let other):
      throw CommandError(
        .engineUnavailable, "no-run",
        "The run that is going on in \(place) is of \(other), which shares that state folder, and not of "
          + "\(pipeline.name). Nothing was changed. Give `godwit control` that file to control its run."
      )
    }
  }

  private static func apply(_ text: String, to control: inout RunControl) throws {
    let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
    guard parts.count == 2 else { throw ValidationError("\(text) is not KEY=VALUE.") }
    let value = parts[1]
    switch parts[0] {
    case "io":
      guard value != "none", value != "default" else {
        control.ioBytesPerSecond = value == "none" ? 0 : nil
        return
      }
      guard let rate = ByteSize(rate: value) else {
        throw ValidationError("\(value) is not a number of bytes a second, such as io=20MiB/s.")
      }
      control.ioBytesPerSecond = rate.bytes
    case "workers":
      if value == "default" { return control.workers = nil }
      guard let count = Int(value), RunControl.workerCounts.contains(count) else {
        throw ValidationError("workers is a number from 1 to 256.")
      }
      control.workers = count
    case "load":
      guard value != "none", value != "default" else {
        control.load = value == "none" ? 0 : nil
        return
      }
      guard let load = Double(value), load > 0, load <= 10_000 else {
        throw ValidationError("\(value) is not a load average, such as load=4.")
      }
      control.load = load
    default: throw ValidationError("\(parts[0]) is none of io, workers, load.")
    }
  }

  private static func text(_ control: RunControl) -> String {
    var parts = [control.isPaused ? "paused" : "running"]
    if let io = control.ioBytesPerSecond {
      parts.append(io == 0 ? "no I/O limit" : "\(ByteSize.text(io))/s of I/O")
    }
    if let workers = control.workers {
      parts.append(workers == 1 ? "1 worker" : "\(workers) workers")
    }
    if let load = control.load { parts.append(load == 0 ? "no load limit" : "load below \(load)") }
    return parts.joined(separator: ", ")
  }

  /// - Parameter others: What the tasks have done by now of a run that is left to them: its own counts are those
  ///   of when it was left.
  private func show(_ progress: RunProgress, leftTo others: ClusterStatus?) {
    if json { return Output.result(json: others.map(progress.leftTo) ?? progress) }
    guard let run = progress.run else {
      let held = progress.isPaused ? ", paused" : ""
      return Output.result("\(progress.pipeline): the run is starting\(held)")
    }
    let wave = progress.wave.map { ", wave \($0) of \(progress.waves ?? $0)" } ?? ""
    let held = progress.held.map { $0 == "load" ? ", held by the load" : ", \($0)" } ?? ""
    let process = progress.process.map { ", process \($0)" } ?? ""
    Output.result("\(progress.pipeline): run \(run)\(process)\(wave)\(held)")
    Output.result(
      "  \(grouped(Int64(progress.done + progress.notDone))) of "
        + "\(grouped(Int64(progress.found))) stores, \(grouped(Int64(progress.notDone))) not migrated"
        + (progress.waiting > 0 ? ", \(progress.waiting) tried again later" : "")
        + (others == nil ? "" : ", when the run was left to its tasks"))
    if let others { Output.result(StatusCommand.line(others)) }
    let io = progress.ioBytesPerSecond.map { "\(ByteSize.text($0))/s of I/O" } ?? "no I/O limit"
    Output.result("  " + (progress.workers.map { "workers \($0), " } ?? "") + io)
    for reason in progress.cluster?.stuck ?? [] { Output.result("  tasks do not begin: \(reason)") }
    if let silent = progress.cluster?.silent {
      Output.result("  the scheduler does not answer: \(silent)")
    }
    for store in progress.inFlight { Output.result("  under way: \(store)") }
  }
}

/// What is asked of a run from now on. A limit that is not given is the pipeline's.
struct ControlRecord: Encodable {
  var event = "control"
  var pipeline: String
  var isPaused: Bool
  /// The limit of bytes read and written a second that was asked for; 0 for none, nil for the pipeline's own.
  var ioBytesPerSecond: Int64?
  var workers: Int?
  /// The load average above which nothing begins that was asked for; 0 for none, nil for the pipeline's own.
  var load: Double?

  init(pipeline: String, _ control: RunControl) {
    self.pipeline = pipeline
    isPaused = control.isPaused
    ioBytesPerSecond = control.ioBytesPerSecond
    workers = control.workers
    load = control.load
  }
}
