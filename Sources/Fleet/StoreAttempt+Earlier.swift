import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitPlanning
import SystemPackage

// What an earlier run has left of a commit.
extension StoreAttempt {
  /// Rolls forward or back what a crash left of a commit.
  ///
  /// - Returns: The commit, when the destination is in its place because of it.
  mutating func finishEarlierCommit(_ folder: RunFolder) async throws -> CommitJournal? {
    // The same place, unless the key `commit` has changed since; the recovery refuses any other.
    let output = try CommitJournal.read(in: directory).map { FilePath($0.store) }
    switch try await run.recoverCommit(leases) {
    case .nothing:
      try removeLeftRejects(beside: output)
      return nil
    case .takenBack:
      try removeLeftRejects(beside: output)
      note("The commit of an earlier run was taken back; it is made again.")
      return nil
    case .takenBackKeeping(let backup):
      try removeLeftRejects(beside: output)
      note(MigrationResult.keptBackupNote(request.store, backup))
      return nil
    case .committed(let journal):
      if try ChainFolder(directory: directory).lastDone() == nil {
        try await take(journal, folder)
      } else {
        result = try await run.result(of: journal)
      }
      return journal
    }
  }

  /// Whether the commit of an earlier run is all that this command asks for: in place, where nothing is left to be
  /// done; beside the source, where the command would do the same again, with the source as it is now.
  func isAnswer(_ committed: CommitJournal, to outcome: PlanOutcome) -> Bool {
    guard FilePath(committed.store).isSamePlace(as: request.destinationPath) else { return false }
    guard request.output != nil else { return outcome.isSameModel }
    guard case .migrate(let plan) = outcome, plan.fingerprint == committed.fingerprint else {
      return false
    }
    // What the rows showed is judged by options that a plan does not depend on.
    return request.refusals(of: result.losses, from: plan.source.versionName).isEmpty
      && ledger.unacceptable.isEmpty
      && result.losses.allSatisfy { loss in
        switch loss.kind {
        case .setAside: request.invalid == .setAside
        case .defaulted: request.invalid == .default
        default: true
        }
      }
  }

  /// Makes a commit that an earlier run began, and that is at its end, the result.
  mutating func take(_ journal: CommitJournal, _ folder: RunFolder) async throws {
    let kept = try keptResult(folder)
    if let kept { take(kept) }
    try findRejects(of: journal)
    run.finishedNotes(of: journal).forEach { note($0) }
    if let plan = earlierPlan(), plan.fingerprint == journal.fingerprint,
      plan.isOf(request, in: directory)
    {
      if kept == nil { recount(plan) }
      try await writeURITable(plan, written: FilePath(journal.store))
    }
    if kept == nil { recountRejects() }
    try succeed(journal)
  }

  /// What an earlier run knew of the store when it began the commit; nil where that is not there, or is not as it was
  /// written. The commit needs it no more.
  private mutating func keptResult(_ folder: RunFolder) throws -> MigrationResult? {
    let chain = ChainFolder(directory: directory)
    let obstacle: String
    do {
      if let kept = try folder.keptResult() { return kept }
      obstacle =
        try chain.exists
        ? "\(chain.steps) says of no finished step what was written down of it"
        : "\(folder.resultFile) is missing"
    } catch let error where error is SealedJSONError || error is DecodingError {
      obstacle = "\(folder.resultFile) cannot be read: \(error)"
    }
    note(
      "\(obstacle). The result does not say all that is known of that commit otherwise: references that "
        + "were dropped, default values that were given, other losses and findings may be missing.")
    return nil
  }

  /// What plan and checkpoints say of a commit of which nothing was kept.
  private mutating func recount(_ plan: MigrationPlan) {
    result.take(plan, diskBytes: nil)
    for stage in plan.isOnePass ? [Stage.rows, .audit] : [.copy, .link, .validate, .audit] {
      for unit in (try? reusable(stage, plan)) ?? [] { record(unit, of: stage, plan) }
    }
    if let counts = try? StoreVerification(plan: plan, run: directory).compare() { count(counts) }
  }

  /// The plan of a commit that is at its end; nil where there is none, or it cannot be used. The commit needs it no
  /// more.
  private mutating func earlierPlan() -> MigrationPlan? {
    do {
      return try PlanFile(directory).read()
    } catch {
      let table = run.settings.uriTable.map { ", and \($0) is not written" } ?? ""
      note(
        "\(directory.plan) cannot be read as a plan: \(error). The result does not say all that is known of that "
          + "commit otherwise\(table).")
      return nil
    }
  }

  /// Writes down the commit of an earlier run for itself: its backup may be the only copy of what the store
  /// was. Until then its journal stays: what a crash leaves unrecorded is found again by it.
  mutating func writeDownEarlierCommit(_ folder: RunFolder) throws {
    var earlier = result
    earlier.isOfEarlierCommit = true
    try run.settings.record(earlier)
    try requireLeases()
    try folder.discardPlan()
    try ChainFolder(directory: directory).discard()
    restart()
    result.notes = earlier.earlierCommitNotes
  }

  /// Takes over what an earlier run knew of the store when it began the commit.
  private mutating func take(_ kept: MigrationResult) {
    (result.source, result.destination) = (kept.source, kept.destination)
    (result.plan, result.sourceIdentity) = (kept.plan, kept.sourceIdentity)
    (result.storeUUID, result.sourceUUID) = (kept.storeUUID, kept.sourceUUID)
    (result.rows, result.counts) = (kept.rows, kept.counts)
    (result.setAside, result.rejects) = (kept.setAside, kept.rejects)
    (result.losses, result.notes) = (kept.losses, kept.notes + result.notes)
    ledger.add(kept.findings)
  }
}
