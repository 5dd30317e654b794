import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

/// Where a pipeline keeps what it knows.
///
/// Progress lies in a folder, `state/` beside the pipeline's file or the one of `--state`. The ledger
/// lies beside the pipeline's file, or in the folder of `--state`. Everything in the folder but the
/// ledger may be removed while nothing is under way; the ledger outlives that.
public struct PipelinePlaces: Sendable {
  public let state: FilePath
  public let ledger: FilePath

  /// - Parameter state: What `--state` says; nil for beside the pipeline.
  public init(_ pipeline: Pipeline, state: FilePath? = nil) {
    // A folder that a person names may be a link; the one beside the pipeline may not.
    self.state =
      state.map { $0.resolved ?? $0.resolvingFolders }
      ?? pipeline.stateFolder.resolvingFolders
    ledger =
      (state == nil ? self.state.removingLastComponent() : self.state)
      .appending(Ledger.fileName)
  }

  /// Whether a run, a rollback or a removal of backups is under way.
  public var isInUse: Bool {
    get throws {
      try FileLock.isHeld(at: state.appending("lock"))
    }
  }
}

/// What the ledger is to know of a start of a run.
public struct RunContext: Sendable {
  /// The arguments of the command line.
  public var options: [String]
  /// The exit code that a summary leads to.
  public var exitCode: @Sendable (PipelineSummary) -> Int

  public init(
    options: [String] = [], exitCode: @escaping @Sendable (PipelineSummary) -> Int = { _ in 0 }
  ) {
    self.options = options
    self.exitCode = exitCode
  }
}

/// What a run writes down of its stores, and what it knows of them.
struct Books: Sendable {
  let ledger: PipelineLedger
  let history: RunHistory
  /// ``PipelineRun/settingsDigest()``.
  let settings: String
  let quarantined: [String: LedgerQuarantine]

  /// Adds to the history what is in the progress file already.
  func add(_ entry: PipelineLedger.Entry, mark: String, _ result: MigrationResult) {
    guard let attempt = entry.attempt else { return }
    history.add(
      attempt, entry.backupRecord,
      RunHistory.Outcome(result, mark: mark, settings: settings))
  }

  /// Adds to the history what the progress file does not keep: it is found out again.
  func add(
    _ result: MigrationResult, of store: FoundStore, from start: Double, lane: Int?, mark: String
  ) {
    let attempt = LedgerAttempt(
      result, of: store, run: ledger.run, started: start, ended: Date().timeIntervalSince1970,
      lane: lane)
    history.add(attempt, nil, RunHistory.Outcome(result, mark: mark, settings: settings))
  }
}

extension MigrationResult {
  /// A store that is not tried.
  init(quarantined known: LedgerQuarantine) {
    self.init(
      store: known.store, verdict: .quarantined, ending: .badInput,
      reasons: [
        Reason(
          reason: known.reason,
          message:
            "\(known.store) is quarantined: it failed \(known.attempts) times with the reason "
            + "\(known.reason) and has not changed since. Change it, or release it with "
            + "`godwit quarantine release`.")
      ])
    attempts = known.attempts
  }
}

/// The ledger of a pipeline, for a command that is not a run.
public enum PipelineHistory {
  /// Opens the ledger for reading; nil where there is none. What a run that crashed has left in its
  /// progress file is added first, where nobody else is at work.
  ///
  /// - Throws: ``LedgerError``.
  public static func reading(_ places: PipelinePlaces) throws -> Ledger? {
    // Only after a crash: a run that begins meanwhile has to wait for the lock.
    if (try? PipelineLedger.isAheadOfHistory(places.state)) == true {
      do {
        let lock = try FileLock(acquiring: places.state.appending("lock"))
        _ = try writing(places)
        _ = consume lock
      } catch {
        // A run is under way, or this user may only read: what is there is told.
      }
    }
    return try Ledger(readingAt: places.ledger)
  }

  /// Opens the ledger for the holder of the state folder's lock; nil where there is none.
  ///
  /// - Throws: ``LedgerError``.
  public static func writing(_ places: PipelinePlaces) throws -> Ledger? {
    guard try Ledger(readingAt: places.ledger) != nil else { return nil }
    let ledger = try Ledger(writingAt: places.ledger, now: Date().timeIntervalSince1970)
    try ledger.writing {
      try PipelineLedger.forEachAttempt(inState: places.state) { attempt, backup in
        try ledger.add(attempt)
        if let backup { try ledger.add(backup) }
      }
    }
    return ledger
  }

  /// Takes the right to work in the state folder that a run holds, for a command that changes what a
  /// run would.
  ///
  /// - Throws: `DurabilityError.locked` while a run is under way.
  public static func lock(_ places: PipelinePlaces) throws -> PipelineLock {
    try DurableFile.makeFolder(places.state)
    try Folder(places.state).checkPrivate()
    return PipelineLock(
      lease: try HeldLease(
        acquiring: places.state.appending("lock"), patienceSeconds: lockPatienceSeconds))
  }

  /// 1. Commands that only ask hold the lock for moments, to see whether it is held.
  static let lockPatienceSeconds = 1.0
}

/// The right to work in a pipeline's state folder, for as long as the value lives.
public struct PipelineLock: Sendable {
  let lease: HeldLease
}
