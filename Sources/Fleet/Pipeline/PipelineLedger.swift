import Foundation
import GodwitDurableFiles
import GodwitLedger
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
///
/// It is progress, and not history: the lines of a finished run go with the next one. What they tell is
/// in `ledger.sqlite` by then, which is fed from here, see ``RunHistory``. Where that could not be written
/// until the end of a start, `endings.json` has what is not in these lines.
final class PipelineLedger: Sendable {
  /// `run.json`: which run it is.
  private struct RunName: Codable {
    var run: String
    var isFinished: Bool
    /// Whose run it is; nil from earlier versions.
    var pipeline: String?
    var file: String?
    /// True when every line is in the ledger.
    var isInHistory: Bool?
    /// How many starts of it have come to their end; nil for none.
    var ended: Int?
    /// What the ledger was told of it at its end, for a ledger that is lost.
    var record: LedgerRun?

    init(
      _ run: String, of owner: RunOwner, isFinished: Bool, ended: Int, isInHistory: Bool? = nil,
      record: LedgerRun? = nil
    ) {
      (self.run, self.isFinished, self.isInHistory) = (run, isFinished, isInHistory)
      self.ended = ended
      self.record = record
      // The command line is of any length.
      self.record?.options = []
      (pipeline, file) = (owner.pipeline, owner.file)
    }

    /// Whether the next start goes on with it: it has not finished, and is not another pipeline's that
    /// shares the folder.
    func isResumed(by owner: RunOwner) -> Bool {
      !isFinished && owner.owns(pipeline: pipeline ?? "", file: file ?? "")
    }
  }

  /// The run's name: when it began.
  let run: String
  /// Whether an earlier start of this run was interrupted.
  let isResumed: Bool
  /// How many starts of this run have come to their end. One that was killed or detached has not: the next one
  /// goes on with what it has counted.
  let ended: Int
  private let folder: FilePath
  private let owner: RunOwner
  private let log: GroupedLog
  /// The last line of each store.
  private let entries: Mutex<[FilePath: Entry]>

  /// 64 MiB. A line has a few hundred bytes for each loss.
  private static let lineLimit = 64 << 20

  private static func runFile(_ folder: FilePath) -> FilePath { folder.appending("run.json") }
  private static func logFile(_ folder: FilePath) -> FilePath { folder.appending("ledger.jsonl") }
  private static func endingsFile(_ folder: FilePath) -> FilePath {
    folder.appending("endings.json")
  }

  /// Takes up what is in the state folder. For the holder of its lock.
  ///
  /// - Parameters:
  ///   - now: Seconds since 1970-01-01 UTC.
  ///   - owner: Whose run begins. One of another pipeline is not resumed.
  ///   - history: Gets what it may lack after a crash, before a line goes.
  init(folder: FilePath, now: Double, owner: RunOwner, history: RunHistory) throws {
    self.folder = folder
    self.owner = owner
    let file = Self.logFile(folder)
    let known = try Self.runName(folder)
    isResumed =
      known.map { $0.isResumed(by: owner) && history.canResume($0.run, by: owner) } ?? false
    let isInHistory =
      try (known?.isInHistory == true && !history.isNew)
      || history.catchUp { try Self.add(inState: folder, to: $0) }
    if known?.isInHistory == true, history.isNew { history.noteLoss() }
    if isInHistory {
      try DurableFile.removeIfPresent(Self.endingsFile(folder))
    } else {
      // Before anything of this start.
      history.keep(try Missing(in: folder))
    }
    var lines: [FilePath: Entry] = [:]
    try Self.forEachEntry(in: file) {
      lines[FilePath($0.store)] = isInHistory ? $0.withoutHistory : $0
    }
    ended = isResumed ? known?.ended ?? 0 : 0
    if let known, isResumed {
      run = known.run
      if known.isInHistory != nil {
        try Self.write(RunName(run, of: owner, isFinished: false, ended: ended), in: folder)
      }
    } else {
      run = RunFolder.timestamp(now) { $0 == known?.run || history.hasRun(named: $0) }
      // What is not asked for again goes, so that the file does not grow for ever.
      lines = try lines.filter { try $0.value.isAskedForAgain || $0.value.attempt != nil }
      try Self.write(lines, to: file)
      try Self.write(RunName(run, of: owner, isFinished: false, ended: 0), in: folder)
    }
    log = try GroupedLog(at: file)
    entries = Mutex(isInHistory ? lines : lines.mapValues(\.withoutHistory))
  }

  private static func runName(_ folder: FilePath) throws -> RunName? {
    try RegularFile.bytesIfPresent(of: runFile(folder), limit: 65_536, isPrivate: true)
      .flatMap { try? JSONDecoder().decode(RunName.self, from: Data($0)) }
  }

  private static func write(_ name: RunName, in folder: FilePath) throws {
    try DurableFile.write(Array(JSONLine.text(of: name).utf8), to: runFile(folder))
  }

  private static func write(_ lines: [FilePath: Entry], to file: FilePath) throws {
    var pending = try PendingFile(for: file)
    var bytes: [UInt8] = []
    for entry in lines.values.sorted(by: { $0.store < $1.store }) {
      bytes += JSONLine.text(of: entry).utf8
      bytes.append(UInt8(ascii: "\n"))
      guard bytes.count >= 1 << 16 else { continue }
      try bytes.withUnsafeBytes { try pending.write($0) }
      bytes.removeAll(keepingCapacity: true)
    }
    try bytes.withUnsafeBytes { try pending.write($0) }
    try pending.publish(surviving: .powerCut)
  }

  /// Every line, one after the other. Those that are not whole, as a crash leaves one, or of a later
  /// version, are nobody's.
  private static func forEachEntry(in file: FilePath, _ body: (Entry) throws -> Void) throws {
    guard try FileKind(at: file) != .none else { return }
    let descriptor = try RegularFile.open(file, isPrivate: true)
    defer { try? descriptor.close() }
    var lines = LineReader(descriptor, mostBytes: lineLimit)
    let decoder = JSONDecoder()
    do {
      while let line = try lines.next() {
        guard let entry = try? decoder.decode(Entry.self, from: Data(line)) else { continue }
        try body(entry)
      }
    } catch let error as Errno {
      throw DurabilityError.failed(call: "read", path: file, error)
    }
  }

  /// The name of the run that the next start resumes; nil where it begins another.
  static func interruptedRun(_ folder: FilePath, of owner: RunOwner) throws -> String? {
    try runName(folder).flatMap { $0.isResumed(by: owner) ? $0.run : nil }
  }

  /// Whose run is not finished; nil where it is, or where nobody knows.
  static func ownerUnderWay(_ folder: FilePath) throws -> RunOwner? {
    guard let known = try runName(folder), !known.isFinished, let pipeline = known.pipeline,
      let file = known.file
    else { return nil }
    return RunOwner(pipeline: pipeline, file: file)
  }

  /// Whether the state folder is that of a run of that name, finished or not.
  static func names(_ run: String, in folder: FilePath) throws -> Bool {
    try runName(folder)?.run == run
  }

  /// Whether a run has been at work in the state folder.
  static func knowsRun(_ folder: FilePath) throws -> Bool { try runName(folder) != nil }

  /// Whether the ledger may lack what the state folder of a run has.
  static func isAheadOfHistory(_ folder: FilePath) throws -> Bool {
    try runName(folder).map { $0.isInHistory != true } ?? false
  }

  /// Adds what the state folder has and the ledger may lack: the ends of starts that could not write it,
  /// and what became of stores.
  static func add(inState folder: FilePath, to ledger: Ledger) throws {
    try add(try endings(folder), to: ledger) {
      let lost = try runName(folder)?.record.flatMap { record in
        try ledger.hasRun(named: record.name) ? nil : record
      }
      if let lost { try ledger.begin(lost) }
      try forEachEntry(in: logFile(folder)) { try $0.add(to: ledger) }
      guard let lost, let ended = lost.ended, let exitCode = lost.exitCode else { return }
      try ledger.end(lost.name, at: ended, exitCode: exitCode, lost.counts)
    }
  }

  /// - Parameter stores: Adds what became of stores: between the begin and the end of their starts.
  private static func add(
    _ endings: [Ending], to ledger: Ledger, stores: () throws -> Void
  ) throws {
    for ending in endings { try ending.begin(in: ledger) }
    try stores()
    for ending in endings { try ending.end(in: ledger) }
  }

  /// The same, in memory: the folder changes before it is added.
  struct Missing {
    private let endings: [Ending]
    private let entries: [Entry]

    fileprivate init(in folder: FilePath) throws {
      endings = try PipelineLedger.endings(folder)
      var entries: [Entry] = []
      try PipelineLedger.forEachEntry(in: PipelineLedger.logFile(folder)) {
        if $0.attempt != nil { entries.append($0) }
      }
      self.entries = entries
    }

    func add(to ledger: Ledger) throws {
      try PipelineLedger.add(endings, to: ledger) {
        for entry in entries { try entry.add(to: ledger) }
      }
    }
  }

  func entry(of store: FilePath) -> Entry? { entries.withLock { $0[store] } }

  /// A store begins whose result is there in milliseconds.
  func enter() { log.enter() }

  /// That store has come to its end.
  func leave() { log.leave() }

  /// Adds what became of a store. On return it is on the disk.
  func record(_ entry: Entry) async throws {
    // That nothing was to be done is found out again where it is not known.
    try await log.append(JSONLine.text(of: entry), isLasting: entry.verdict != .sameModel)
    entries.withLock { $0[FilePath(entry.store)] = entry.withoutHistory }
  }

  /// Nothing is recorded any more.
  func close() { log.close() }

  /// This start has come to its end.
  ///
  /// - Parameters:
  ///   - isFinished: The run has, too: the next one is another.
  ///   - isInHistory: Every line is in the ledger.
  ///   - ending: What the ledger is to be told later.
  ///   - record: What it was told, or is to be told, of the run.
  func end(
    isFinished: Bool, isInHistory: Bool, _ ending: Ending? = nil, record: LedgerRun? = nil
  ) throws {
    if isInHistory { try DurableFile.removeIfPresent(Self.endingsFile(folder)) }
    if let ending {
      let all = try Self.endings(folder) + [ending]
      try DurableFile.write(
        Array(JSONLine.text(of: all).utf8), to: Self.endingsFile(folder))
    }
    try Self.write(
      RunName(
        run, of: owner, isFinished: isFinished, ended: ended + 1, isInHistory: isInHistory,
        record: record),
      in: folder)
  }
}

// Starts that ended while the ledger could not be written.
extension PipelineLedger {
  /// The stores of a start.
  struct Fleet: Codable, Sendable {
    var found: [String]
    var taken: [String]
    var unseen: [String]
  }

  /// How a start ended. All of it is told again, since it is not known what the ledger has.
  struct Ending: Codable, Sendable {
    var run: LedgerRun
    var fleet: Fleet
    var standings: [LedgerStanding]

    /// Whether the ledger knows of it, or of a later start of the run.
    private func isKnown(to ledger: Ledger) throws -> Bool {
      guard let ended = try? ledger.run(named: run.name).ended else { return false }
      return ended >= run.ended ?? 0
    }

    /// Whether the name is not another's meanwhile.
    private func isOwn(in ledger: Ledger) throws -> Bool {
      try ledger.canResume(run.name, by: RunOwner(pipeline: run.pipeline, file: run.file))
    }

    func begin(in ledger: Ledger) throws {
      guard try !isKnown(to: ledger), try isOwn(in: ledger) else { return }
      let known = try? ledger.run(named: run.name)
      if known?.ended != nil || known == nil {
        try ledger.begin(run, isResumed: true)
      }
      try ledger.beginFleet(fleet, of: run.file, run: run.name)
    }

    func end(in ledger: Ledger) throws {
      guard try !isKnown(to: ledger), try isOwn(in: ledger), let ended = run.ended,
        let exitCode = run.exitCode
      else {
        return
      }
      try ledger.settle(standings, of: run.file, run: run.name)
      try ledger.end(run.name, at: ended, exitCode: exitCode, run.counts)
    }
  }

  /// 256 MiB: some hundred bytes for each store.
  private static let endingsLimit = 256 << 20

  private static func endings(_ folder: FilePath) throws -> [Ending] {
    try RegularFile.bytesIfPresent(of: endingsFile(folder), limit: endingsLimit, isPrivate: true)
      .flatMap { try? JSONDecoder().decode([Ending].self, from: Data($0)) } ?? []
  }
}

extension Ledger {
  func beginFleet(_ fleet: PipelineLedger.Fleet, of pipeline: String, run: String) throws {
    try beginFleet(
      of: pipeline, run: run, found: fleet.found, taken: fleet.taken, unseen: fleet.unseen)
  }
}
