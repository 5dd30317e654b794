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
/// until the end of a start, `endings.json` has what is not in these lines. So it has of a start that could not
/// write to the ledger when it began: it may be killed.
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
    /// Set by a start that was to forget the progress, until one comes to its end.
    var fresh: Fresh?
    /// What the ledger was told of it at its end, for a ledger that is lost.
    var record: LedgerRun?
    /// The last rollback that has begun since, likewise; nil for none.
    var rollback: String?

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

    struct Fresh: Codable {
      /// Up to where the lines are forgotten, in bytes.
      var lines: Int64
      /// ``StoreSelection/digest`` of that start.
      var stores: String
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
  /// Whether an earlier start was to forget the progress with the same stores, and none has come to its end since:
  /// on a cluster this one goes on with it.
  let isFresh: Bool
  private let stores: StoreSelection
  let folder: FilePath
  private let owner: RunOwner
  private let log: GroupedLog
  /// By which the run before has done its stores; none for one that goes on, of which the ledger knows which wait.
  private let formerSettings: Set<String>
  /// The last line of each store.
  private let entries: Mutex<[FilePath: Known]>

  /// 64 MiB. A line has a few hundred bytes for each loss.
  static let lineLimit = 64 << 20

  private static func runFile(_ folder: FilePath) -> FilePath { folder.appending("run.json") }
  static func logFile(_ folder: FilePath) -> FilePath { folder.appending("ledger.jsonl") }
  static func endingsFile(_ folder: FilePath) -> FilePath {
    folder.appending("endings.json")
  }

  /// Takes up what is in the state folder. For the holder of its lock.
  ///
  /// - Parameters:
  ///   - now: Seconds since 1970-01-01 UTC.
  ///   - owner: Whose run begins. One of another pipeline is not resumed.
  ///   - stores: Which of its stores the start takes up.
  ///   - history: Gets what it may lack after a crash, before a line goes.
  init(
    folder: FilePath, now: Double, owner: RunOwner, stores: StoreSelection = .all,
    history: RunHistory
  ) throws {
    self.folder = folder
    self.owner = owner
    self.stores = stores
    let file = Self.logFile(folder)
    let known = try Self.runName(folder)
    isResumed =
      known.map { $0.isResumed(by: owner) && history.canResume($0.run, by: owner) } ?? false
    let isBehind = history.isNew || known?.record.map(history.lacks) == true
    let isInHistory =
      try (known?.isInHistory == true && !isBehind)
      || history.catchUp { try Self.add(inState: folder, to: $0) }
    if known?.isInHistory == true, isBehind { history.noteLoss() }
    if isInHistory {
      try DurableFile.removeIfPresent(Self.endingsFile(folder))
    } else {
      // Before anything of this start.
      history.keep(try Missing(in: folder))
    }
    let fresh = isResumed ? known?.fresh.flatMap { $0.stores == stores.digest ? $0 : nil } : nil
    isFresh = fresh != nil
    var lines: [FilePath: Known] = [:]
    let damaged = try Self.forEachEntry(in: file) { entry, place in
      lines[FilePath(entry.store)] = Known(
        entry: isInHistory ? entry.withoutHistory : entry, place: place,
        isForgotten: fresh.map { place.start < $0.lines } ?? false)
    }
    if damaged > 0, known?.isInHistory != true || isBehind {
      history.note(Self.damageText(of: damaged, in: file))
    }
    ended = isResumed ? known?.ended ?? 0 : 0
    var formerSettings: Set<String> = []
    if let known, isResumed {
      run = known.run
      if known.isInHistory != nil {
        try Self.write(RunName(run, of: owner, isFinished: false, ended: ended), in: folder)
      }
    } else {
      run = RunFolder.timestamp(now) { $0 == known?.run || history.hasRun(named: $0) }
      formerSettings = Set(lines.values.map(\.entry.settings))
      // What is not asked for again goes, so that the file does not grow for ever.
      lines = try lines.filter {
        try $0.value.entry.isAskedForAgain || $0.value.entry.attempt != nil
      }
      lines = try Self.write(lines, to: file)
      try Self.write(RunName(run, of: owner, isFinished: false, ended: 0), in: folder)
    }
    log = try GroupedLog(at: file)
    self.formerSettings = formerSettings
    entries = Mutex(isInHistory ? lines : lines.mapValues(\.withoutHistory))
  }

  /// What the next start of a run over all stores knows of each, for whoever only reads.
  static func entries(in folder: FilePath, of owner: RunOwner) throws -> [FilePath: Entry] {
    let fresh = try runName(folder).flatMap { $0.isResumed(by: owner) ? $0.fresh : nil }
    let forgotten = fresh?.stores == StoreSelection.all.digest ? fresh?.lines ?? 0 : 0
    var entries: [FilePath: Entry] = [:]
    try forEachEntry(in: logFile(folder)) { entry, place in
      if place.start >= forgotten { entries[FilePath(entry.store)] = entry.withoutHistory }
    }
    return entries
  }

  private static func runName(_ folder: FilePath) throws -> RunName? {
    try RegularFile.bytesIfPresent(of: runFile(folder), limit: 65_536, isPrivate: true)
      .flatMap { try? SealedJSON.value(ofSealedOrPlain: $0) }
  }

  private static func write(_ name: RunName, in folder: FilePath) throws {
    try DurableFile.write(SealedJSON.bytes(of: name), to: runFile(folder))
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

  /// The run of the state folder as the ledger was told of it at its end, where it lacks that: see
  /// ``Ledger/lacks(_:)``.
  static func lostRun(_ folder: FilePath, of ledger: Ledger) throws -> LedgerRun? {
    try runName(folder)?.record.flatMap { try ledger.lacks($0) ? $0 : nil }
  }

  /// A rollback has begun in the ledger. Until the next run that says which stores were put back.
  static func note(rollback name: String, in folder: FilePath) throws {
    guard var known = try runName(folder) else { return }
    known.rollback = name
    try write(known, in: folder)
  }

  /// The last rollback since the run of the state folder, where the ledger lacks it.
  static func lostRollback(_ folder: FilePath, of ledger: Ledger) throws -> String? {
    try runName(folder)?.rollback.flatMap { try ledger.hasRun(named: $0) ? nil : $0 }
  }

  /// Adds what the state folder has and the ledger may lack: the ends of starts that could not write it,
  /// and what became of stores.
  static func add(inState folder: FilePath, to ledger: Ledger) throws {
    try add(try endings(folder), to: ledger) {
      let lost = try lostRun(folder, of: ledger)
      if let lost, try !ledger.knowsStart(at: lost.started) {
        try ledger.begin(lost, isResumed: true)
      }
      try forEachEntry(in: logFile(folder)) { entry, _ in try entry.add(to: ledger) }
      guard let lost, let ended = lost.ended, let exitCode = lost.exitCode else { return }
      try ledger.end(lost.name, at: ended, exitCode: exitCode, lost.counts)
    }
  }

  /// - Parameter stores: Adds what became of stores: between the begin and the end of their starts.
  private static func add(
    _ endings: [Ending], to ledger: Ledger, stores: () throws -> Void
  ) throws {
    let open = try endings.filter { try $0.begin(in: ledger) }
    try stores()
    for ending in open { try ending.end(in: ledger) }
  }

  /// The same, in memory: the folder changes before it is added.
  struct Missing {
    private let endings: [Ending]
    private let entries: [Entry]

    fileprivate init(in folder: FilePath) throws {
      endings = try PipelineLedger.endings(folder)
      var entries: [Entry] = []
      try PipelineLedger.forEachEntry(in: PipelineLedger.logFile(folder)) { entry, _ in
        if entry.attempt != nil { entries.append(entry) }
      }
      self.entries = entries
    }

    func add(to ledger: Ledger) throws {
      try PipelineLedger.add(endings, to: ledger) {
        for entry in entries { try entry.add(to: ledger) }
      }
    }
  }

  func entry(of store: FilePath) -> Entry? { entries.withLock { $0[store]?.entry } }

  /// Where stores were done by other settings, those that are not known to be done by these: what is known of
  /// them says nothing of the run. Else nil.
  func redone(_ stores: [FoundStore], settings: String) -> Set<String>? {
    entries.withLock { entries in
      func isSame(_ store: FoundStore) -> Bool? {
        entries[store.path].map { SettingsDigest.areSame($0.entry.settings, settings) }
      }
      guard
        !formerSettings.allSatisfy({ SettingsDigest.areSame($0, settings) })
          || stores.contains(where: { isSame($0) == false })
      else { return nil }
      return Set(stores.filter { isSame($0) != true }.map(\.path.string))
    }
  }

  func isForgotten(_ store: FilePath) -> Bool {
    entries.withLock { $0[store]?.isForgotten ?? false }
  }

  /// Forgets what is known so far, as a reason to leave a store as it is.
  func forget() throws {
    var name = RunName(run, of: owner, isFinished: false, ended: ended)
    name.fresh = .init(
      lines: try FileMark(Self.logFile(folder))?.size ?? 0, stores: stores.digest)
    try Self.write(name, in: folder)
    entries.withLock { known in
      for store in known.keys { known[store]?.isForgotten = true }
    }
  }

  /// What else the last line of a store says; nil where it says nothing else, or cannot be read again: it is for
  /// people alone.
  func detail(of store: FilePath) -> Detail? {
    guard let place = entries.withLock({ $0[store]?.place }) else { return nil }
    return try? Self.detail(of: store, at: place, in: Self.logFile(folder))
  }

  /// A store begins whose result is there in milliseconds.
  func enter() { log.enter() }

  /// That store has come to its end.
  func leave() { log.leave() }

  /// Adds what became of a store. On return it is on the disk.
  func record(_ entry: Entry, _ detail: Detail? = nil) async throws {
    let line = Line(entry: entry, detail: detail)
    // That nothing was to be done is found out again where it is not known.
    let place = try await log.append(
      line.text, isLasting: entry.verdict != .sameModel)
    let known = Known(entry: entry.withoutHistory, place: detail == nil ? nil : place)
    entries.withLock { $0[FilePath(entry.store)] = known }
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
    if let ending { try addEnding(ending) }
    try Self.write(
      RunName(
        run, of: owner, isFinished: isFinished, ended: ended.added(1), isInHistory: isInHistory,
        record: record),
      in: folder)
  }
}
