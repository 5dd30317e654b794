import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

/// The ledger of a pipeline, for a command that is not a run.
package enum PipelineHistory {
  /// Opens the ledger for reading, narrowed to the pipeline's own runs; nil where there is none. What a run
  /// that crashed has left in its progress file or on a cluster is added first, where nobody else is at
  /// work. So is what a run could not write to the ledger: where it still cannot be written, to a copy in memory, which
  /// is read in its place.
  ///
  /// - Parameters:
  ///   - writes: Whether the ledger itself is told; else a copy alone is.
  ///   - warn: Called with why what is read may not be all that is known.
  /// - Throws: ``LedgerError``.
  package static func reading(
    _ places: PipelinePlaces, writes: Bool = true, warn: (String) -> Void = { _ in }
  ) throws -> Ledger? {
    // Only after a crash: a run that begins meanwhile has to wait for the lock.
    let left = try LeftResults(of: places)
    // What cannot be read is told below.
    if let ledger = try? Ledger(readingAt: places.ledger),
      let name = try? PipelineLedger.lostRollback(places.state, of: ledger)
    {
      warn(
        "\(places.ledger) does not have the last rollback, \(name): it is older, or was begun after it. Until the "
          + "next run it may call stores migrated that were put back.")
    }
    do {
      if try isBehind(places, left) {
        // A run that is at work has said so.
        if try !FileLock.isHeld(at: places.state.appending("lock")) { try tellLoss(places, warn) }
        if writes, try catchUp(places) { return try asItIs(places) }
        return try copy(places, left)
      }
    } catch let error as ClusterError where writes {
      throw error  // what is there is not all
    } catch {
      let ledger = try asItIs(places)
      warn(
        "\(places.ledger) may lack what the last runs did: what they left in \(places.state) cannot be read. "
          + "\(error)")
      return ledger
    }
    return try asItIs(places)
  }

  private static func asItIs(_ places: PipelinePlaces) throws -> Ledger? {
    let ledger = try Ledger(readingAt: places.ledger)
    try ledger?.narrow(to: places.owner)
    return ledger
  }

  /// 1000. What the ledger cannot be told is read from a copy.
  private static let patienceMilliseconds: Int32 = 1_000

  /// Adds what the state folder has to the ledger.
  ///
  /// - Returns: Whether the ledger can be read as it is.
  /// - Throws: ``ClusterError``.
  private static func catchUp(_ places: PipelinePlaces) throws -> Bool {
    do {
      let lock = try FileLock(acquiring: places.state.appending("lock"))
      _ = try writing(places, patienceMilliseconds: patienceMilliseconds)
      _ = consume lock
      return true
    } catch DurabilityError.locked {
      // A run is under way, and tells the ledger, unless it could not when it began.
      return try !DurableFile.exists(PipelineLedger.endingsFile(places.state))
    } catch let error as ClusterError {
      throw error
    } catch {
      return false  // somebody reads it for long, or this user may only read
    }
  }

  /// The ledger in memory, with what the state folder has.
  private static func copy(_ places: PipelinePlaces, _ left: LeftResults) throws -> Ledger {
    let ledger = try Ledger(copying: places.ledger)
    try ledger.adoptFleet(of: places.owner)
    try add(inState: places, left, to: ledger)
    return ledger
  }

  private static func add(
    inState places: PipelinePlaces, _ left: LeftResults, to ledger: Ledger
  ) throws {
    try ledger.writing {
      try PipelineLedger.add(inState: places.state, to: ledger)
      try left.add(to: ledger)
    }
    // What was added may have the first run of a path at which the pipeline was before.
    try ledger.adoptFleet(of: places.owner)
  }

  /// Whether the ledger may lack what the state folder has: that it was lost, or put back from a copy, included.
  private static func isBehind(_ places: PipelinePlaces, _ left: LeftResults) throws -> Bool {
    guard left.isEmpty, try !PipelineLedger.isAheadOfHistory(places.state) else { return true }
    guard try PipelineLedger.knowsRun(places.state) else { return false }
    guard let ledger = try Ledger(readingAt: places.ledger) else { return true }
    return try PipelineLedger.lostRun(places.state, of: ledger) != nil
  }

  /// Says what the ledger lacks for good, before it gets what there is.
  private static func tellLoss(_ places: PipelinePlaces, _ warn: (String) -> Void) throws {
    let loss = try lossText(places)
    if let loss { warn(loss) }
    guard try loss != nil || PipelineLedger.isAheadOfHistory(places.state) else { return }
    if let damage = try PipelineLedger.damageText(inState: places.state) { warn(damage) }
  }

  /// What to say of a ledger that is gone, or older than a run that it was told of; nil of any other.
  static func lossText(_ places: PipelinePlaces) throws -> String? {
    guard try PipelineLedger.knowsRun(places.state),
      try !PipelineLedger.isAheadOfHistory(places.state)
    else { return nil }
    let ledger = try Ledger(readingAt: places.ledger)
    guard try ledger.map({ try PipelineLedger.lostRun(places.state, of: $0) != nil }) ?? true else {
      return nil
    }
    return RunHistory.lossText(of: places.ledger, isGone: ledger == nil)
  }

  /// Opens the ledger for the holder of the state folder's lock, narrowed to the pipeline's own runs; nil
  /// where there is none.
  ///
  /// - Parameter patienceMilliseconds: How long it waits for whoever reads.
  /// - Throws: ``LedgerError``, ``ClusterError``.
  package static func writing(
    _ places: PipelinePlaces, patienceMilliseconds: Int32 = 5_000
  ) throws -> Ledger? {
    guard
      try Ledger(readingAt: places.ledger) != nil || PipelineLedger.knowsRun(places.state)
    else { return nil }
    let ledger = try Ledger(
      writingAt: places.ledger, now: Date().timeIntervalSince1970,
      patienceMilliseconds: patienceMilliseconds)
    try ledger.adoptFleet(of: places.owner)
    let left = try LeftResults(of: places)
    if try ledger.isNew || isBehind(places, left) { try add(inState: places, left, to: ledger) }
    return ledger
  }

  /// Writes down that a start of a run failed before it had a result: of the run that is interrupted, if
  /// one is, else of a run of its own.
  ///
  /// - Parameters:
  ///   - start: Seconds since 1970-01-01 UTC.
  ///   - message: Why it failed.
  ///   - warn: Called with what the ledger lacks for good.
  /// - Returns: The run's name; nil where somebody else is at work.
  /// - Throws: ``LedgerError``, `DurabilityError`, `SQLiteError` where there is no ledger to write to; where
  ///   it lies in a state folder that cannot be used, why not.
  package static func addFailedStart(
    of pipeline: Pipeline, _ places: PipelinePlaces, at start: Double, exitCode: Int,
    message: String, options: [String], warn: (String) -> Void = { _ in }
  ) throws -> String? {
    let held: PipelineLock?
    do {
      held = try lock(places, dismissesFollower: false)
    } catch DurabilityError.locked {
      return nil
    } catch is ClusterError {
      return nil
    } catch {
      // Nobody works in such a folder. It is not read, and what lies in it is not trusted.
      guard places.ledger.removingLastComponent() != places.state else { throw error }
      held = nil
    }
    let now = Date().timeIntervalSince1970
    let isHeld = held != nil
    if isHeld { try? tellLoss(places, warn) }
    // What an earlier start has left there counts.
    let ledger =
      try held.flatMap { _ in try? writing(places) } ?? Ledger(writingAt: places.ledger, now: now)
    let resumed =
      try isHeld
      ? PipelineLedger.interruptedRun(places.state, of: places.owner)
        .flatMap { try ledger.canResume($0, by: places.owner) ? $0 : nil } : nil
    let run = LedgerRun(
      name: try resumed
        ?? RunFolder.timestamp(start) { name in
          try ledger.hasRun(named: name)
            || isHeld && PipelineLedger.names(name, in: places.state)
        },
      pipeline: places.owner.pipeline, file: places.owner.file, started: start,
      host: MachineName.text,
      options: options)
    try ledger.writing {
      // A start that came as far as to have a row has it already.
      let known = try ledger.runs(limit: 1).first
      if known?.name != run.name || known?.ended != nil {
        try ledger.begin(run, isResumed: resumed != nil)
      }
      try ledger.end(run.name, at: now, exitCode: exitCode, nil, message: message)
    }
    withExtendedLifetime(held) {}
    return run.name
  }

  /// Takes the right to work in the state folder that a run holds, for a command that changes what a
  /// run would.
  ///
  /// - Throws: `DurabilityError.locked` while a run is under way, ``ClusterError`` while its work is on a
  ///   cluster.
  package static func lock(
    _ places: PipelinePlaces, dismissesFollower: Bool = true
  ) throws -> PipelineLock {
    try StateFolder(places).take()
    let lease = try HeldLease(
      acquiring: places.state.appending("lock"), patienceSeconds: lockPatienceSeconds)
    try ClusterWork.requireNone(in: places.state, of: FilePath(places.owner.file))
    try LeftResults(of: places).requireEnded()
    HolderMark.write(command: lease.token, in: places.state)
    // A start that waits in a queue would undo what the command does.
    if dismissesFollower { try ClusterFollower.dismiss(in: places.state.absolute) }
    return PipelineLock(lease: lease)
  }

  /// 1. Commands that only ask hold the lock for moments, to see whether it is held.
  static let lockPatienceSeconds = 1.0
}

/// The right to work in a pipeline's state folder, for as long as the value lives.
package struct PipelineLock: Sendable {
  let lease: HeldLease
}
