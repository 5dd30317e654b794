import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitSQLite
import GodwitWorker
import Synchronization
import SystemPackage

/// Feeds the ledger while a pipeline runs.
///
/// Nothing waits for it: what a run must not lose is in its progress file before, and a start that finds
/// lines there which the ledger lacks adds them. Results are written in groups, a second's worth
/// together, so that a store costs no flush of its own. What cannot be written, since somebody reads the
/// ledger for long or its volume is full, is written later, at the latest at the end; what cannot be
/// written by then is left in the state folder for the next start or whoever asks, see
/// ``PipelineLedger/Ending``. A note says so; no store fails because of it.
///
/// Failures are counted for the quarantine when a start ends, and not where its failure budget stopped it:
/// a store that stands in the way of a wave would otherwise be quarantined after a few starts, count against
/// the budget no more, and let the next wave begin though nobody decided so.
final class RunHistory: Sendable {
  /// What an attempt says of the store's failures.
  enum Outcome: Sendable {
    /// It ended well.
    case well
    /// It failed, and will again while the state of that name and the settings are the same.
    case failed(reason: String, mark: String, settings: String)
    /// Nothing: the reason passes.
    case passing
  }

  private struct Item: Sendable {
    var attempt: LedgerAttempt
    var backup: LedgerBackup?
    var outcome: Outcome
  }

  private struct Failure: Sendable {
    var reason: String
    var mark: String
    var settings: String
    var time: Double
  }

  private struct State {
    var waiting: [Item] = []
    /// The last failure of each store in this start.
    var failures: [FilePath: Failure] = [:]
    var notes: [String] = []
    var isClosed = false
    /// What this start has begun, for whoever writes it down after it.
    var start: PipelineLedger.Start?
    var standings: [LedgerStanding] = []
  }

  let path: FilePath
  /// True for a ledger that this start began.
  let isNew: Bool
  private let owner: RunOwner
  private let ledger: PatientLedger
  private let state = Mutex(State())
  private let work = DispatchSemaphore(value: 0)
  private let urgent = SteadySemaphore()
  private let ended = DispatchSemaphore(value: 0)
  /// Failures in a row after which a store is quarantined; 0 for never.
  private let quarantineLimit: Int

  /// 512: as many results are written at once, however soon they come.
  private static let groupSize = 512

  /// - Parameters:
  ///   - owner: Whose runs they are. What is known of its stores goes along where it was moved.
  ///   - now: Seconds since 1970-01-01 UTC.
  /// - Throws: ``LedgerError/newerVersion(path:found:known:)`` and what shows that the file is
  ///   somebody else's: a run must not do without a history that is there.
  init(at path: FilePath, of owner: RunOwner, now: Double, quarantineLimit: Int) throws {
    (self.path, self.owner) = (path, owner)
    self.quarantineLimit = quarantineLimit
    ledger = try PatientLedger {
      let ledger = try Ledger(writingAt: path, now: now, readsAll: true)
      try ledger.adoptFleet(of: owner)
      return ledger
    }
    isNew = ledger.isNew
    if let note = ledger.note { state.withLock { $0.notes.append(note) } }
  }

  /// What a person should know, each once.
  func takeNotes() -> [String] {
    state.withLock { state in
      defer { state.notes = [] }
      return state.notes
    }
  }

  /// A history begins, or goes on from an older copy, although there was more of it: what the state folder has
  /// is added.
  func noteLoss() {
    let isGone = ledger.hasBegunFile
    guard isGone || !isNew else { return }
    note(Self.lossText(of: path, isGone: isGone))
  }

  /// Something that a person should know.
  func note(_ words: String) { state.withLock { $0.notes.append(words) } }

  static func lossText(of path: FilePath, isGone: Bool) -> String {
    let (loss, runs) =
      isGone
      ? ("There is no ledger at \(path) any more. A new history begins,", "earlier runs")
      : ("\(path) is older than the last run. It goes on,", "runs in between")
    return
      "\(loss) with what the state folder has of the last run. Backups of \(runs) lie beside their stores, "
      + "and `godwit rollback` does not know of them."
  }

  /// What the ledger has been told of the run; nil before its end.
  var endedRun: LedgerRun? {
    state.withLock { $0.start.flatMap { $0.run.ended == nil ? nil : $0.run } }
  }

  /// Whether everything that was added is in the ledger.
  var isWhole: Bool { ledger.missing == nil }

  /// See ``Ledger/lacks(_:)``.
  func lacks(_ run: LedgerRun) -> Bool { ledger.ask { try $0.lacks(run) } ?? false }

  /// Adds what a state folder has and the ledger may lack.
  ///
  /// - Returns: Whether it is in the ledger now. Else it goes to ``keep(_:)``.
  func catchUp(_ add: (Ledger) throws -> Void) throws -> Bool {
    var failure: (any Error)?
    let isDone = ledger.changeNow { ledger in
      do {
        try add(ledger)
        // What was added may have the first run of a path at which the pipeline was before.
        try ledger.adoptFleet(of: owner)
      } catch  where error is SQLiteError || (error as? LedgerError)?.isDamage == true {
        throw error
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return isDone
  }

  /// Adds something as soon as that can be done.
  func keep(_ missing: PipelineLedger.Missing) {
    ledger.change { [owner] in
      try missing.add(to: $0)
      try $0.adoptFleet(of: owner)
    }
  }

  private final class Refusal {
    var error: LedgerError?
    var isTold = false
  }

  /// A run begins, or goes on, with the stores that this start has found; results are written as they come.
  ///
  /// - Parameters:
  ///   - redone: See ``PipelineLedger/redone(_:settings:)``.
  ///   - isPartOfRun: See ``PipelineLedger/Start``.
  /// - Returns: What the ledger is to be told if this start does not come to its end; nil where it knows.
  /// - Throws: ``LedgerError/nameTaken(path:name:)``.
  func begin(
    _ run: LedgerRun, isResumed: Bool, _ findings: StoreSearch.Findings, redone: Set<String>?,
    isPartOfRun: Bool
  ) throws -> PipelineLedger.Start? {
    let fleet = PipelineLedger.Fleet(
      found: findings.all.map(\.path.string), taken: findings.stores.map(\.path.string),
      redone: redone,
      // A root in which nothing was found was seen.
      unseen: findings.unreadable.filter { $0.kind != .noStores }.map(\.path.string))
    let start = PipelineLedger.Start(run: run, fleet: fleet, isPartOfRun: isPartOfRun)
    state.withLock { $0.start = start }
    let refusal = Refusal()
    // One transaction: a ledger that knows of the start knows its stores.
    ledger.change { ledger in
      do {
        try start.begin(in: ledger, isResumed: isResumed)
      } catch let error as LedgerError where !refusal.isTold && !error.isDamage {
        refusal.error = error
      }
    }
    if let error = refusal.error { throw error }
    // A ledger that could not be asked for the name is given up where it turns out to be another's.
    refusal.isTold = true
    try OwnThread.start { self.write() }
    return isWhole ? nil : start
  }

  /// Whether a run, or a rollback, has that name.
  func hasRun(named name: String) -> Bool {
    ledger.ask { try $0.hasRun(named: name) } ?? false
  }

  /// Whether a run may go on under its name, see ``Ledger/canResume(_:_:by:)``.
  func canResume(_ name: String, by owner: RunOwner) -> Bool {
    ledger.ask { try $0.canResume(name, by: owner) } ?? true
  }

  /// What became of stores, whether they were tried or not.
  ///
  /// - Parameter isAtEnd: ``end(at:exitCode:_:)`` follows. Else the start leaves the run to others.
  func settle(_ stores: [LedgerStanding], of pipeline: String, run: String, isAtEnd: Bool) {
    state.withLock { $0.standings = stores }
    ledger.change(isFollowed: isAtEnd) {
      try $0.settle(stores, of: pipeline, run: run)
      if !isAtEnd { try $0.leave(run, at: Date().timeIntervalSince1970) }
    }
  }

  /// How many stores of a pipeline are known below a folder.
  func knownStores(of pipeline: String, below folder: String) -> Int {
    ledger.ask { try $0.knownStores(of: pipeline, below: folder) } ?? 0
  }

  /// The stores that are quarantined.
  func quarantined() -> [FilePath: LedgerQuarantine] {
    Self.quarantined(
      ledger.ask { [owner] in try $0.quarantine(of: owner.file) } ?? [], limit: quarantineLimit)
  }

  /// Those of them that are under the limit of today: the pipeline may have said another one when they failed.
  static func quarantined(
    _ stores: [LedgerQuarantine], limit: Int
  ) -> [FilePath: LedgerQuarantine] {
    let still = stores.filter { $0.isQuarantined(after: limit) }
    return Dictionary(still.map { (FilePath($0.store), $0) }, uniquingKeysWith: { $1 })
  }

  /// What became of a store. Returns at once.
  func add(_ attempt: LedgerAttempt, _ backup: LedgerBackup?, _ outcome: Outcome) {
    let count = state.withLock { state in
      state.waiting.append(Item(attempt: attempt, backup: backup, outcome: outcome))
      return state.waiting.count
    }
    if count == 1 { work.signal() }
    if count == Self.groupSize { urgent.signal() }
  }

  private func write() {
    while true {
      work.wait()
      // What comes within a second is written together.
      if !state.withLock({ $0.isClosed }) { urgent.wait(timeout: .now() + 1) }
      let (items, isClosed) = state.withLock { state in
        defer { state.waiting = [] }
        return (state.waiting, state.isClosed)
      }
      if !items.isEmpty {
        countFailures(items)
        ledger.change { [owner] in try Self.write(items, of: owner, to: $0) }
      }
      if isClosed {
        ended.signal()
        return
      }
    }
  }

  private static func write(
    _ items: [Item], of owner: RunOwner, to ledger: Ledger
  ) throws {
    for item in items {
      try ledger.add(item.attempt)
      if let backup = item.backup { try ledger.add(backup) }
      if case .well = item.outcome {
        try ledger.forgetFailures(of: item.attempt.store, in: owner.file)
      }
    }
  }

  private func countFailures(_ items: [Item]) {
    for item in items {
      recall(item.outcome, of: FilePath(item.attempt.store), at: item.attempt.ended)
    }
  }

  /// What became of a store counts at the end of this start, and is written down already.
  func recall(_ outcome: Outcome, of store: FilePath, at time: Double) {
    state.withLock { state in
      switch outcome {
      case .well: state.failures[store] = nil
      case .failed(let reason, let mark, let settings):
        state.failures[store] = Failure(
          reason: reason, mark: mark, settings: settings, time: time)
      case .passing: break
      }
    }
  }

  /// Writes what waits. Nothing is added any more.
  ///
  /// - Parameter countsFailures: Whether stores that failed are nearer to their quarantine.
  func close(countsFailures: Bool = true) {
    let isOpen = state.withLock { state in
      defer { state.isClosed = true }
      return !state.isClosed
    }
    guard isOpen else { return }
    work.signal()
    urgent.signal()
    ended.wait()
    let failures = state.withLock { $0.failures }
    guard countsFailures, !failures.isEmpty else { return }
    ledger.change { [owner, quarantineLimit] ledger in
      for (store, failure) in failures {
        try ledger.countFailure(
          of: store.string, in: owner.file, reason: failure.reason, mark: failure.mark,
          settings: failure.settings, at: failure.time, limit: quarantineLimit)
      }
    }
  }

  /// A start of the run ends.
  ///
  /// - Parameter counts: Of this start.
  /// - Returns: What the ledger is to be told later; nil where it knows all.
  func end(
    at time: Double, exitCode: Int, _ counts: RunReport.Counts
  ) -> PipelineLedger.Ending? {
    guard var start = state.withLock(\.start) else { return nil }
    (start.run.ended, start.run.exitCode, start.run.counts) = (time, exitCode, counts)
    let ended = start
    ledger.change(isLast: true) { try ended.end(in: $0) }
    if start.isPartOfRun {
      // The run's own, where the ledger can tell.
      start.run.counts = ledger.ask { try $0.fleet(of: ended.run.file, run: ended.run.name) } ?? nil
    }
    if isWhole { start.run.starts = ledger.ask { try $0.run(named: ended.run.name).starts } ?? 1 }
    state.withLock { [start] in $0.start = start }
    guard let missing = ledger.missing else { return nil }
    return state.withLock { state in
      state.notes.append(
        "\(path) could not be written: \(missing) What it lacks of this run is in the state folder; the "
          + "next start adds it, and `godwit status` shows it until then.")
      return PipelineLedger.Ending(ended, state.standings)
    }
  }

  /// Lets the body use the ledger, for what comes after the stores; nil where there is none.
  func using<Result>(_ body: (Ledger) throws -> Result) rethrows -> Result? {
    try ledger.using(body)
  }
}
