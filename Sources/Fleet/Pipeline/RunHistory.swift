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
/// together, so that a store costs no flush of its own. A ledger that cannot be written costs the
/// history of the run, and a note says so; no store fails because of it.
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
    var failures: [String: Failure] = [:]
    var notes: [String] = []
    var isClosed = false
    var hasEnded = false
  }

  let path: FilePath
  /// True for a ledger that this start began.
  let isNew: Bool
  private let ledger: GuardedLedger
  private let state = Mutex(State())
  private let work = DispatchSemaphore(value: 0)
  private let urgent = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)
  /// Failures in a row after which a store is quarantined; 0 for never.
  private let quarantineLimit: Int

  /// 512: as many results are written at once, however soon they come.
  private static let groupSize = 512

  /// - Parameter now: Seconds since 1970-01-01 UTC.
  /// - Throws: ``LedgerError/newerVersion(path:found:known:)`` and what shows that the file is
  ///   somebody else's: a run must not do without a history that is there.
  init(at path: FilePath, now: Double, quarantineLimit: Int) throws {
    self.path = path
    self.quarantineLimit = quarantineLimit
    var opened: Ledger?
    var note: String?
    do {
      let ledger = try Ledger(writingAt: path, now: now)
      note = ledger.note
      opened = ledger
    } catch let error as SQLiteError {
      note = Self.lost(path, error)
    } catch let error as DurabilityError where error.errno != nil {
      note = Self.lost(path, error)
    }
    isNew = opened?.isNew ?? false
    ledger = GuardedLedger(opened)
    if let note { state.withLock { $0.notes.append(note) } }
  }

  private static func lost(_ path: FilePath, _ error: any Error) -> String {
    "\(path) cannot be written, so this run's history and its list of backups are lost: \(error)"
  }

  /// What a person should know, each once.
  func takeNotes() -> [String] {
    state.withLock { state in
      defer { state.notes = [] }
      return state.notes
    }
  }

  /// Whether everything that was added is in the ledger.
  var isWhole: Bool { ledger.withLock { $0 != nil } }

  /// Changes the ledger, all of it together; nil where that could not be done, which is noted.
  private func writing<Result>(_ body: (Ledger) throws -> Result) -> Result? {
    ledger.withLock { ledger -> Result? in
      guard let open = ledger else { return nil }
      do {
        return try open.writing { try body(open) }
      } catch {
        ledger = nil
        let note = Self.lost(path, error)
        state.withLock { $0.notes.append(note) }
        return nil
      }
    }
  }

  /// Adds attempts that a progress file has and the ledger may lack.
  ///
  /// - Returns: Whether they are in the ledger now.
  func catchUp(_ attempts: ((LedgerAttempt, LedgerBackup?) throws -> Void) throws -> Void) throws
    -> Bool
  {
    var failure: (any Error)?
    let isDone = writing { ledger in
      do {
        try attempts { attempt, backup in
          try ledger.add(attempt)
          if let backup { try ledger.add(backup) }
        }
      } catch let error as SQLiteError {
        throw error
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return isDone != nil
  }

  /// A run begins, or goes on; from here on results are written as they come.
  ///
  /// - Throws: ``LedgerError/nameTaken(path:name:)``.
  func begin(_ run: LedgerRun, isResumed: Bool) throws {
    var refusal: LedgerError?
    _ = writing { ledger in
      do {
        try ledger.begin(run, isResumed: isResumed)
      } catch let error as LedgerError {
        refusal = error
      }
    }
    if let refusal { throw refusal }
    try OwnThread.start { self.write() }
  }

  /// Whether a run, or a rollback, has that name.
  func hasRun(named name: String) -> Bool { writing { try $0.hasRun(named: name) } ?? false }

  /// Whether a run may go on under its name, see ``Ledger/canResume(_:_:by:)``.
  func canResume(_ name: String, by owner: RunOwner) -> Bool {
    writing { try $0.canResume(name, by: owner) } ?? true
  }

  func setFound(_ stores: Int, in run: String) {
    _ = writing { try $0.setFound(stores, in: run) }
  }

  /// A start of a run has found its stores.
  ///
  /// - Parameter pipeline: The path of its file.
  func beginFleet(of pipeline: String, run: String, _ findings: StoreSearch.Findings) {
    _ = writing { ledger in
      try ledger.beginFleet(
        of: pipeline, run: run, found: findings.all.map(\.path.string),
        taken: findings.stores.map(\.path.string),
        // A root in which nothing was found was seen.
        unseen: findings.unreadable.filter { $0.kind != .noStores }.map(\.path.string))
    }
  }

  /// What became of stores, whether they were tried or not.
  func settle(_ stores: [LedgerStanding], of pipeline: String, run: String) {
    _ = writing { try $0.settle(stores, of: pipeline, run: run) }
  }

  /// How many stores of a pipeline are known below a folder.
  func knownStores(of pipeline: String, below folder: String) -> Int {
    writing { try $0.knownStores(of: pipeline, below: folder) } ?? 0
  }

  /// The stores that a run was the last to take up, by what is known of them.
  func fleet(of pipeline: String, run: String) -> RunReport.Counts? {
    writing { try $0.fleet(of: pipeline, run: run) } ?? nil
  }

  /// The stores that are quarantined.
  func quarantined() -> [String: LedgerQuarantine] {
    Self.quarantined(writing { try $0.quarantine() } ?? [])
  }

  static func quarantined(_ stores: [LedgerQuarantine]) -> [String: LedgerQuarantine] {
    Dictionary(stores.map { ($0.store, $0) }, uniquingKeysWith: { $1 })
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
      if !state.withLock({ $0.isClosed }) { _ = urgent.wait(timeout: .now() + 1) }
      let (items, isClosed) = state.withLock { state in
        defer { state.waiting = [] }
        return (state.waiting, state.isClosed)
      }
      if !items.isEmpty { _ = writing { try self.write(items, to: $0) } }
      if isClosed {
        state.withLock { $0.hasEnded = true }
        ended.signal()
        return
      }
    }
  }

  private func write(_ items: [Item], to ledger: Ledger) throws {
    for item in items {
      try ledger.add(item.attempt)
      if let backup = item.backup { try ledger.add(backup) }
      switch item.outcome {
      case .well:
        state.withLock { $0.failures[item.attempt.store] = nil }
        try ledger.forgetFailures(of: item.attempt.store)
      case .failed(let reason, let mark, let settings):
        let failure = Failure(
          reason: reason, mark: mark, settings: settings, time: item.attempt.ended)
        state.withLock { $0.failures[item.attempt.store] = failure }
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
    _ = writing { ledger in
      for (store, failure) in failures {
        try ledger.countFailure(
          of: store, reason: failure.reason, mark: failure.mark, settings: failure.settings,
          at: failure.time, limit: quarantineLimit)
      }
    }
  }

  /// A start of the run ends.
  func end(_ run: String, at time: Double, exitCode: Int, _ counts: RunReport.Counts) {
    _ = writing { try $0.end(run, at: time, exitCode: exitCode, counts) }
  }

  /// Lets the body use the ledger, for what comes after the stores; nil where there is none.
  func using<Result>(_ body: (Ledger) throws -> Result) rethrows -> Result? {
    try ledger.withLock { ledger in try ledger.map { try body($0) } }
  }
}

/// A ledger that several threads use, one at a time.
///
/// Unchecked, since a connection belongs to whoever holds the lock, and to nobody else.
private final class GuardedLedger: @unchecked Sendable {
  private let lock = NSLock()
  private var ledger: Ledger?

  init(_ ledger: Ledger?) { self.ledger = ledger }

  func withLock<Result>(_ body: (inout Ledger?) throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&ledger)
  }
}
