import Foundation
import GodwitDurableFiles
import SystemPackage

/// What an operator asks of a run that is going on: `control.json` in its state folder, which the run
/// looks at twice a second.
///
/// Each request is the whole of what is asked, so that the last one holds. A run removes what an
/// earlier one left when it begins.
public struct RunControl: Codable, Sendable, Equatable {
  /// Nothing new begins, and what is under way waits before its next shard.
  public var isPaused = false
  /// Nil for what the pipeline says; 0 for no limit.
  public var ioBytesPerSecond: Int64?
  /// Nil for what the pipeline or the command line says.
  public var workers: Int?
  /// Likewise; 0 for no limit.
  public var load: Double?

  public init() {}

  private static func path(_ state: FilePath) -> FilePath { state.appending("control.json") }
  private static let byteLimit = 64 << 10

  /// What is asked now; nothing where nobody asked for anything, or what is there cannot be read.
  public static func read(in state: FilePath) -> RunControl {
    let bytes = try? RegularFile.bytesIfPresent(
      of: path(state), limit: byteLimit, isPrivate: true)
    return bytes.flatMap { try? JSONDecoder().decode(RunControl.self, from: Data($0)) }
      ?? RunControl()
  }

  public func write(in state: FilePath) throws {
    try DurableFile.write(
      Array(JSONLine.text(of: self).utf8), to: Self.path(state), surviving: .processCrash)
  }

  static func remove(in state: FilePath) throws {
    try DurableFile.removeIfPresent(path(state), surviving: .processCrash)
  }
}

/// How far a run is: `progress.json` in its state folder, written about once a second. For whoever
/// asks; nothing is decided by it.
public struct RunProgress: Codable, Sendable, Equatable {
  public private(set) var event = "progress"
  public var pipeline: String
  public var run: String
  /// Seconds since 1970-01-01 UTC.
  public var time: Double
  public var process: Int32
  public var found: Int
  public var done: Int
  public var notDone: Int
  public var inFlight: [String]
  /// Stores in use that are tried again.
  public var waiting: Int
  public var wave: Int?
  public var waves: Int?
  public var isPaused: Bool
  public var workers: Int
  public var ioBytesPerSecond: Int64?
  public var load: Double?
  /// Why nothing begins although something could: `paused` or `load`.
  public var held: String?

  private static func path(_ state: FilePath) -> FilePath { state.appending("progress.json") }

  /// Nil where there is none that can be read.
  public static func read(in state: FilePath) -> RunProgress? {
    let bytes = try? RegularFile.bytesIfPresent(of: path(state), limit: 1 << 20, isPrivate: true)
    return bytes.flatMap { try? JSONDecoder().decode(RunProgress.self, from: Data($0)) }
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
public enum RunState {
  /// Whether a run is going on. Looks without getting in the way of one that begins.
  public static func isUnderWay(in state: FilePath) throws -> Bool {
    try FileLock.isHeld(at: state.appending("lock"))
  }
}
