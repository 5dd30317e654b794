import Foundation
import GodwitDurableFiles
import SystemPackage

/// What an operator asks of a run that is going on: `control.json` in its state folder, which the run
/// looks at twice a second.
///
/// Each request is the whole of what is asked, so that the last one holds. A run removes what an
/// earlier one left when it begins.
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
    return bytes.flatMap { try? JSONDecoder().decode(RunControl.self, from: Data($0)) }
      ?? RunControl()
  }

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
  package var run: String
  /// Seconds since 1970-01-01 UTC.
  package var time: Double
  package var process: Int32
  package var found: Int
  package var done: Int
  package var notDone: Int
  package var inFlight: [String]
  /// Stores in use that are tried again.
  package var waiting: Int
  package var wave: Int?
  package var waves: Int?
  package var isPaused: Bool
  /// Nil where others work on the stores.
  package var workers: Int?
  package var ioBytesPerSecond: Int64?
  package var load: Double?
  /// Why nothing begins although something could: `paused` or `load`.
  package var held: String?
  /// Nil for a run on this machine.
  package var cluster: ClusterProgress?

  private static func path(_ state: FilePath) -> FilePath { state.appending("progress.json") }

  /// With what is asked by now; nil where there is none that can be read.
  package static func read(in state: FilePath) -> RunProgress? {
    let bytes = try? RegularFile.bytesIfPresent(of: path(state), limit: 1 << 20, isPrivate: true)
    guard let bytes, var progress = try? JSONDecoder().decode(RunProgress.self, from: Data(bytes))
    else { return nil }
    // Nobody brings the file up to date while a run is detached, and its tasks do what is asked.
    if let control = try? RunControl.read(in: state), control.isPaused != progress.isPaused {
      progress.isPaused = control.isPaused
      progress.held = control.isPaused ? "paused" : nil
    }
    // Likewise nobody asks the scheduler.
    if (try? FileLock.isHeld(at: state.appending("lock"))) == false {
      progress.cluster?.stuck = []
      progress.cluster?.silent = nil
    }
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
package enum RunState {
  /// Whether a run is going on, here or by tasks of others; not so while a rollback or another command
  /// works in the folder, which nobody controls. Looks without getting in the way of one that begins.
  package static func isUnderWay(in state: FilePath) throws -> Bool {
    try (FileLock.isHeld(at: state.appending("lock")) && !CommandMark.isOfHolder(in: state))
      || !BundleFolder.permitted(in: state.absolute).isEmpty
  }
}

/// `command` in the state folder: which holder of its lock is no run. It holds that one's epoch, so that
/// nobody has to remove it.
enum CommandMark {
  private static func path(_ state: FilePath) -> FilePath { state.appending("command") }

  /// For the holder. Who asks is told of a run where this cannot be written, as on a full volume.
  static func write(_ token: LeaseToken, in state: FilePath) {
    try? DurableFile.write(
      Array(String(token.epoch).utf8), to: path(state), surviving: .processCrash)
  }

  static func isOfHolder(in state: FilePath) throws -> Bool {
    let bytes = try RegularFile.bytesIfPresent(of: path(state), limit: 64, isPrivate: true)
    guard let bytes, let epoch = UInt64(String(decoding: bytes, as: UTF8.self)) else {
      return false
    }
    do {
      return try LeaseToken(ofFileAt: state.appending("lock")).epoch == epoch
    } catch let error as DurabilityError where error.isNotFound {
      return false
    }
  }
}
