import Foundation
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import Synchronization
import SystemPackage

/// What became of each store, a line each in `ledger.jsonl`: on the disk before the store's own run
/// directory goes.
///
/// A run that was interrupted is resumed under its name; the next one after a finished run has
/// a new name. Nothing is decided by the ledger but one thing: whether an output that lies beside
/// its store is the one that this pipeline wrote from the store as it is now.
final class PipelineLedger: Sendable {
  /// A line. Fields may be added to and never change meaning.
  struct Entry: Codable, Sendable, Equatable {
    var run: String
    var store: String
    var verdict: MigrationResult.Verdict
    /// Seconds since 1970-01-01 UTC.
    var time: Double
    /// Everything but the store that its destination depends on: ``PipelineRun/settingsDigest``.
    var settings: String
    /// The name of the state of the store that was migrated.
    var identity: String?
    var source: String?
    var destination: String?
    var output: String?
    var backup: String?
    var rows: Int64?
    var losses: [Loss]?
    var code: Int?
    /// Of the reasons, the first.
    var message: String?
  }

  /// `run.json`: which run it is.
  private struct RunName: Codable {
    var run: String
    var isFinished: Bool
  }

  /// The run's name: when it began.
  let run: String
  /// Whether an earlier start of this run was interrupted.
  let isResumed: Bool
  private let folder: FilePath
  private let state: Mutex<State>

  private struct State: ~Copyable {
    var log: DurableLog
    /// The last line of each store.
    var entries: [String: Entry]
  }

  /// 1 GiB: some two million stores.
  private static let byteLimit = 1 << 30

  private static func runFile(_ folder: FilePath) -> FilePath { folder.appending("run.json") }
  private static func logFile(_ folder: FilePath) -> FilePath { folder.appending("ledger.jsonl") }

  /// Takes up what is in the state folder. For the holder of its lock.
  ///
  /// - Parameter now: Seconds since 1970-01-01 UTC.
  init(folder: FilePath, now: Double) throws {
    self.folder = folder
    let file = Self.logFile(folder)
    let known = try RegularFile.bytesIfPresent(
      of: Self.runFile(folder), limit: 4096, isPrivate: true
    ).flatMap { try? JSONDecoder().decode(RunName.self, from: Data($0)) }
    isResumed = known.map { !$0.isFinished } ?? false
    var entries = try Self.entries(in: file)
    if let known, !known.isFinished {
      run = known.run
    } else {
      run = RunFolder.timestamp(now)
      // Only outputs beside their stores are asked for again; so the file does not grow for ever.
      entries = entries.filter { $0.value.verdict == .migrated && $0.value.backup == nil }
      let lines = entries.values.sorted { $0.store < $1.store }.map { JSONLine.text(of: $0) + "\n" }
      try DurableFile.write(Array(lines.joined().utf8), to: file)
      try Self.write(RunName(run: run, isFinished: false), in: folder)
    }
    let log = try DurableLog(at: file)
    state = Mutex(State(log: log, entries: entries))
  }

  private static func write(_ name: RunName, in folder: FilePath) throws {
    try DurableFile.write(Array(JSONLine.text(of: name).utf8), to: runFile(folder))
  }

  /// Lines that are not whole, as a crash leaves one, or of a later version, are nobody's.
  private static func entries(in file: FilePath) throws -> [String: Entry] {
    let bytes = try RegularFile.bytesIfPresent(of: file, limit: byteLimit, isPrivate: true)
    guard let bytes else { return [:] }
    let decoder = JSONDecoder()
    var entries: [String: Entry] = [:]
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      guard let entry = try? decoder.decode(Entry.self, from: Data(line)) else { continue }
      entries[entry.store] = entry
    }
    return entries
  }

  func entry(of store: FilePath) -> Entry? { state.withLock { $0.entries[store.string] } }

  /// Adds what became of a store.
  func record(_ entry: Entry) throws {
    try state.withLock { state in
      try state.log.append(JSONLine.text(of: entry))
      state.entries[entry.store] = entry
    }
  }

  /// The run has come to its end: the next one is another.
  func finish() throws { try Self.write(RunName(run: run, isFinished: true), in: folder) }
}
