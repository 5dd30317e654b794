import Foundation
import GodwitDurableFiles
import GodwitLedger
import SystemPackage

/// What an operator asks of a run that is going on: `control.json` in its state folder, which the run
/// looks at twice a second.
///
/// Each request is the whole of what is asked, so that the last one holds. A start that comes to its end removes
/// it; one that begins does where another run, or one on this machine, was killed.
package struct RunControl: Codable, Sendable, Equatable {
  /// Nothing new begins, and what is under way waits before its next shard.
  package var isPaused = false
  /// Nil for what the pipeline says; 0 for no limit.
  package var ioBytesPerSecond: Int64?
  /// Nil for what the pipeline or the command line says.
  package var workers: Int?
  /// Likewise; 0 for no limit.
  package var load: Double?

  package init() {}

  private static func path(_ state: FilePath) -> FilePath { state.appending("control.json") }
  private static let byteLimit = 64 << 10

  /// What is asked now; nothing where nobody asked for anything, or where the file holds something else.
  ///
  /// - Throws: `DurabilityError` where it cannot be read: what was asked before still holds then.
  package static func read(in state: FilePath) throws -> RunControl {
    let bytes = try RegularFile.bytesIfPresent(
      of: path(state), limit: byteLimit, isPrivate: true)
    guard
      var control = bytes.flatMap({ try? JSONDecoder().decode(RunControl.self, from: Data($0)) })
    else { return RunControl() }
    // A number that nobody can have asked for says nothing of a pause.
    if control.workers.map(workerCounts.contains) == false { control.workers = nil }
    if control.ioBytesPerSecond ?? 0 < 0 { control.ioBytesPerSecond = nil }
    if control.load ?? 0 < 0 { control.load = nil }
    return control
  }

  /// How many workers a run may have.
  package static let workerCounts = 1...256

  package func write(in state: FilePath) throws {
    try DurableFile.write(
      Array(JSONLine.text(of: self).utf8), to: Self.path(state), surviving: .processCrash)
  }

  static func remove(in state: FilePath) throws {
    try DurableFile.removeIfPresent(path(state), surviving: .processCrash)
  }
}

/// How far a run is: `progress.json` in its state folder, written about once a second. For whoever
/// asks; nothing is decided by it.
package struct RunProgress: Codable, Sendable, Equatable {
  package private(set) var event = "progress"
  package var pipeline: String
  /// The run's name. Nil while it is starting.
  package var run: String?
  /// When this was written, in seconds since 1970-01-01 UTC.
  package var time: Double
  /// The run's process number. Nil while it is starting, and where it is left to its tasks.
  package var process: Int32?
  package var found: Int
  package var done: Int
  package var notDone: Int
  package var inFlight: [String]
  /// Stores in use that are tried again.
  package var waiting: Int
  package var wave: Int?
  package var waves: Int?
  package var isPaused: Bool
  /// How many worker processes it has at most; nil where the tasks of a cluster work on the stores.
  package var workers: Int?
  package var ioBytesPerSecond: Int64?
  package var load: Double?
  /// Why nothing begins although something could: `paused` or `load`; nil where nothing holds it.
  package var held: String?
  /// What its tasks on a cluster do; nil for a run on this machine.
  package var cluster: ClusterProgress?

  private static func path(_ state: FilePath) -> FilePath { state.appending("progress.json") }

  /// With what is asked by now; nil where there is none that can be read.
  package static func read(in state: FilePath) -> RunProgress? {
    let bytes = try? RegularFile.bytesIfPresent(of: path(state), limit: 1 << 20, isPrivate: true)
    guard let bytes, var progress = try? JSONDecoder().decode(RunProgress.self, from: Data(bytes))
    else { return nil }
    let control = try? RunControl.read(in: state)
    if let control, control.isPaused != progress.isPaused {
      progress.isPaused = control.isPaused
      progress.held = control.isPaused ? "paused" : nil
    }
    // Nobody brings the file up to date while a run is detached, and its tasks do what is asked; nor does anybody
    // ask the scheduler.
    if (try? FileLock.isHeld(at: state.appending("lock"))) == false {
      progress.process = nil
      progress.cluster?.stuck = []
      progress.cluster?.silent = nil
      if let io = control?.ioBytesPerSecond { progress.ioBytesPerSecond = io == 0 ? nil : io }
      if let load = control?.load { progress.load = load == 0 ? nil : load }
    }
    return progress
  }

  /// Of a run that has written down nothing yet: it still looks for its stores.
  package static func starting(_ pipeline: String, in state: FilePath) -> RunProgress {
    let isPaused = (try? RunControl.read(in: state))?.isPaused ?? false
    return RunProgress(
      pipeline: pipeline, time: Date().timeIntervalSince1970, found: 0, done: 0, notDone: 0,
      inFlight: [], waiting: 0, isPaused: isPaused, held: isPaused ? "paused" : nil)
  }

  /// Of a run that is left to its tasks: with how far those are.
  package func leftTo(_ tasks: ClusterStatus) -> RunProgress {
    var progress = self
    progress.cluster?.bundles = tasks.bundles
    progress.cluster?.finished = tasks.finished
    progress.cluster?.running = tasks.begun
    return progress
  }

  /// A display that cannot be written is no reason to stop.
  func write(in state: FilePath) {
    try? DurableFile.write(
      Array(JSONLine.text(of: self).utf8), to: Self.path(state), surviving: .processCrash)
  }

  static func remove(in state: FilePath) throws {
    try DurableFile.removeIfPresent(path(state), surviving: .processCrash)
  }
}

/// The state folder of a pipeline, for who looks at it from outside.
package enum RunState: Sendable, Equatable {
  case idle
  /// A run of the pipeline is going on, here or by tasks of others, or a job of the scheduler's goes on with it.
  case underWay
  /// A run of another pipeline with the same state folder is.
  ///
  /// - Parameter pipeline: The path of its file.
  case underWayElsewhere(pipeline: String)

  /// Idle, too, while a rollback or another command works in the folder, which nobody controls. Looks without
  /// getting in the way of a run that begins.
  package init(of owner: RunOwner, in state: FilePath) throws {
    self = .idle
    let own = FilePath(owner.file)
    for folder in try BundleFolder.permitted(in: state.absolute) {
      guard let other = folder.otherPipeline(than: own) else {
        self = .underWay
        return
      }
      self = .underWayElsewhere(pipeline: other.string)
    }
    let lock = state.appending("lock")
    // Another program may hold a lock of that name.
    let isHeld = try FileLock.isHeld(at: lock) && Lease.mark(at: lock) == .epoch
    // Between two waves nobody may be at work.
    guard
      try isHeld
        ? !HolderMark.isOfCommand(in: state) : ClusterFollower.read(in: state.absolute) != nil
    else { return }
    let holder = try HolderMark.runOwner(in: state) ?? PipelineLedger.ownerUnderWay(state)
    guard let holder, !owner.owns(pipeline: holder.pipeline, file: holder.file) else {
      self = .underWay
      return
    }
    self = .underWayElsewhere(pipeline: holder.file)
  }
}

/// `command` in the state folder: who holds its lock, a command that is no run, or a run and whose. It has that one's
/// epoch, so that nobody has to remove it.
enum HolderMark {
  private struct Run: Codable {
    var epoch: UInt64
    var pipeline: String
    var file: String
  }

  private static func path(_ state: FilePath) -> FilePath { state.appending("command") }

  /// For a holder that is no run. Who asks is told of a run where this cannot be written, as on a full volume.
  static func write(command token: LeaseToken, in state: FilePath) {
    write(String(token.epoch), in: state)
  }

  /// For a run. Who asks is told of the run that the folder knows where this cannot be written.
  static func write(run owner: RunOwner, _ token: LeaseToken, in state: FilePath) {
    write(
      JSONLine.text(of: Run(epoch: token.epoch, pipeline: owner.pipeline, file: owner.file)),
      in: state)
  }

  private static func write(_ text: String, in state: FilePath) {
    try? DurableFile.write(Array(text.utf8), to: path(state), surviving: .processCrash)
  }

  static func isOfCommand(in state: FilePath) throws -> Bool {
    guard let epoch = try bytes(in: state).flatMap({ UInt64(String(decoding: $0, as: UTF8.self)) })
    else { return false }
    return try isCurrent(epoch, in: state)
  }

  /// Whether a holder of the lock wrote it, whoever holds that now. It may be torn.
  static func isThere(in state: FilePath) throws -> Bool {
    guard let mark = try bytes(in: state) else { return false }
    return UInt64(String(decoding: mark, as: UTF8.self)) != nil
      || mark.starts(with: #"{"epoch":"#.utf8)
  }

  /// Nil where the holder has written nothing.
  static func runOwner(in state: FilePath) throws -> RunOwner? {
    let run = try bytes(in: state).flatMap { try? JSONDecoder().decode(Run.self, from: Data($0)) }
    guard let run, try isCurrent(run.epoch, in: state) else { return nil }
    return RunOwner(pipeline: run.pipeline, file: run.file)
  }

  private static func bytes(in state: FilePath) throws -> [UInt8]? {
    try RegularFile.bytesIfPresent(of: path(state), limit: 65_536, isPrivate: true)
  }

  private static func isCurrent(_ epoch: UInt64, in state: FilePath) throws -> Bool {
    do {
      return try LeaseToken(ofFileAt: state.appending("lock")).epoch == epoch
    } catch let error as DurabilityError where error.isNotFound {
      return false
    }
  }
}
