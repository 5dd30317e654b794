import Foundation
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import Synchronization
import SystemPackage

/// What became of each store, a line each in `ledger.jsonl`: on the disk before the store's own run
/// directory goes.
///
/// A run that was interrupted is resumed under its name; the next one after a finished run has
/// a new name. The ledger decides what need not be looked at again: a store that is as this pipeline
/// left it, and an output beside a store that this pipeline wrote from the store as it is now.
///
/// Results that come at the same time are written and flushed together.
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
    /// The name of the state in which a store of the destination's version was left at its place.
    var finalIdentity: String?
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
  private let log: Mutex<Log>
  private let state: Mutex<State>
  private let work = DispatchSemaphore(value: 0)

  private struct Log: ~Copyable {
    var file: DurableLog
  }

  private struct State {
    /// The last line of each store.
    var entries: [String: Entry]
    var waiting: [(entry: Entry, answer: CheckedContinuation<Void, any Error>)] = []
    var isClosed = false
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
    var lines = try Self.lines(in: file)
    if let known, !known.isFinished {
      run = known.run
    } else {
      run = RunFolder.timestamp(now)
      // What is not asked for again goes, so that the file does not grow for ever.
      lines = try lines.filter { try $0.value.entry.isAskedForAgain }
      let bytes = lines.values.sorted { $0.entry.store < $1.entry.store }
        .flatMap { $0.line + [UInt8(ascii: "\n")] }
      try DurableFile.write(bytes, to: file)
      try Self.write(RunName(run: run, isFinished: false), in: folder)
    }
    log = Mutex(Log(file: try DurableLog(at: file)))
    state = Mutex(State(entries: lines.mapValues(\.entry)))
    try OwnThread.start { self.write() }
  }

  private static func write(_ name: RunName, in folder: FilePath) throws {
    try DurableFile.write(Array(JSONLine.text(of: name).utf8), to: runFile(folder))
  }

  /// The last line of each store. Those that are not whole, as a crash leaves one, or of a later
  /// version, are nobody's.
  private static func lines(
    in file: FilePath
  ) throws -> [String: (entry: Entry, line: ArraySlice<UInt8>)] {
    let bytes = try RegularFile.bytesIfPresent(of: file, limit: byteLimit, isPrivate: true)
    let decoder = JSONDecoder()
    var lines: [String: (entry: Entry, line: ArraySlice<UInt8>)] = [:]
    for line in (bytes ?? []).split(separator: UInt8(ascii: "\n")) {
      guard let entry = try? decoder.decode(Entry.self, from: Data(line)) else { continue }
      lines[entry.store] = (entry, line)
    }
    return lines
  }

  func entry(of store: FilePath) -> Entry? { state.withLock { $0.entries[store.string] } }

  /// Adds what became of a store. On return it is on the disk.
  func record(_ entry: Entry) async throws {
    try await withCheckedThrowingContinuation { answer in
      state.withLock { $0.waiting.append((entry, answer)) }
      work.signal()
    }
  }

  /// Writes what waits, all of it at once, until the ledger is closed.
  private func write() {
    while true {
      work.wait()
      let (waiting, isClosed) = state.withLock { state in
        defer { state.waiting = [] }
        return (state.waiting, state.isClosed)
      }
      if waiting.isEmpty {
        if isClosed { return }
        continue
      }
      let written = Result { try append(waiting.map(\.entry)) }
      for (_, answer) in waiting { answer.resume(with: written) }
    }
  }

  private func append(_ entries: [Entry]) throws {
    // That nothing was to be done is found out again where it is not known.
    let isLasting = entries.contains { $0.verdict != .sameModel }
    try log.withLock {
      try $0.file.append(
        entries.map { JSONLine.text(of: $0) }, surviving: isLasting ? .powerCut : .processCrash)
    }
    state.withLock { state in
      for entry in entries { state.entries[entry.store] = entry }
    }
  }

  /// Nothing is recorded any more.
  func close() {
    state.withLock { $0.isClosed = true }
    work.signal()
  }

  /// The run has come to its end: the next one is another.
  func finish() throws { try Self.write(RunName(run: run, isFinished: true), in: folder) }
}

extension PipelineLedger.Entry {
  /// True for a store that is there, and as it was left; and for an output that lies beside it.
  fileprivate var isAskedForAgain: Bool {
    get throws {
      let isOutput = verdict == .migrated && backup == nil
      return try (isOutput || finalIdentity != nil) && FileKind(at: FilePath(store)) != .none
    }
  }
}
