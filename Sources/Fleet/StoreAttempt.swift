import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

/// The one attempt that a ``StoreRun`` makes: what it has found and done so far.
struct StoreAttempt {
  let run: StoreRun
  var result: MigrationResult
  var ledger: FindingLedger
  /// What copy and link found in the source's rows, by unit.
  var foundBefore: [Int: [StoreFinding]] = [:]
  /// Made when it is first needed.
  var origins: FindingOrigins?
  var workerPeakRSS: Int64 = 0
  var stages: [MigrationResult.StageCost] = []
  /// Set while the source is read; the commit looks for itself.
  var watch: SourceWatch?
  /// The right to work in the run directory, and those of the settings.
  var leases: [LeaseToken] = []
  /// The run's name, once something is to be assembled.
  var name: String?
  /// Of a small store.
  let opened: OpenedStores?
  private var log: EventLog?

  var request: MigrationRequest { run.request }
  var directory: RunDirectory { run.directory }

  init(_ run: StoreRun) {
    self.run = run
    result = MigrationResult(
      store: run.request.store.string, verdict: .failed, ending: .fatal)
    ledger = FindingLedger(acceptsDamage: run.request.acceptsDamage)
    opened = run.settings.policiesHere.map { _ in OpenedStores() }
  }

  func emit(_ event: RunEvent) { eventSink(event) }

  /// Tells of an event from any thread.
  var eventSink: @Sendable (RunEvent) -> Void {
    let (log, observe) = (log, run.observe)
    return { event in
      var event = event
      event.time = Date().timeIntervalSince1970
      // How far the file has grown is for the eye only.
      if event.event != .assembly { log?.append(event) }
      observe(event)
    }
  }

  /// - Throws: `CommitError.leaseLost` where another process has taken the work over.
  func requireLeases() throws {
    try leases.requireCurrent(store: request.store)
  }

  /// Turns an error into the result. The run directory stays where there is something to resume.
  mutating func fail(_ error: any Error) {
    let judgement = RetryPolicy.judgement(of: error, about: request.store.string)
    result.verdict = judgement.verdict
    result.ending = judgement.ending
    result.code = judgement.code
    result.forgetRows()
    result.handedOut = (error as? StageHandedOut)?.handedOut
    result.reasons = judgement.reasons
    ledger.add(judgement.findings.filter { !ledger.findings.contains($0) })
    result.findings = ledger.findings
    result.stages = stages.isEmpty ? nil : stages
  }

  /// Takes the lock of the run directory, and clears the directory away at a final end.
  mutating func locked() async throws {
    // What is there may be the work of a commit that only needs its last step.
    let isNew = try !directory.exists
    if isNew { try run.checkOutput() }
    let folder = RunFolder(directory: directory)
    try folder.take()
    let lease = try HeldLease(
      acquiring: directory.lock, patienceSeconds: run.settings.lockPatienceSeconds)
    leases = run.settings.leases + [lease.token]
    try directory.removeLeftovers()
    if directory.memory == nil { log = EventLog(path: directory.events) }
    do {
      try await workUntilSettled(folder)
    } catch {
      fail(error)
      // Whatever led to it, the next run starts again.
      if error is UnsoundDestination, (try? lease.isCurrent) == true { try? folder.discardPlan() }
    }
    // What lies in the directory, and what becomes of the store, is now another's to say, also where that one
    // is at its end and nothing lies there any more. What was published before is published.
    do {
      try requireLeases()
    } catch {
      if result.verdict != .migrated { fail(error) }
      log?.close()
      log = nil
      if result.verdict == .migrated { try run.settings.record(result) }
      return
    }
    if result.isAboutStore, let error = await interference() {
      ledger = FindingLedger(acceptsDamage: request.acceptsDamage)
      fail(error)
    }
    log?.close()
    log = nil
    do {
      try run.settings.record(result)
    } catch {
      // The run directory stays: the next run finds the end again, and records it.
      fail(error)
      return
    }
    // What was compared with an output of somebody else is of no more use.
    let isUseless = isNew && result.ending == .cannotCreateOutput
    let hasCommit = try DurableFile.exists(directory.journal)
    let isUnderWay = try hasCommit || DurableFile.exists(directory.plan)
    // Whatever the store came to: nothing else tells of a commit that is not written down.
    let isCutOff = hasCommit && result.verdict != .migrated
    if ((isFinal || isUseless) && !isCutOff) || !isUnderWay {
      clear()
    } else if directory.memory != nil, !hasCommit, let name {
      // Nothing is kept that it could be of use to.
      try RunFolder(directory: directory).removeAssembled(for: request, name: name)
    }
    withExtendedLifetime(lease) {}
  }

  private func interference() async -> StoreError? {
    guard let watch else { return nil }
    return try? await onOwnThread { watch.interference() }
  }

  /// Removes the run directory. One that is kept says nothing of a commit any more, so that the
  /// next run in it is a new one.
  private mutating func clear() {
    do {
      let folder = RunFolder(directory: directory)
      if result.verdict != .migrated { try folder.removeAssembled(for: request, name: name) }
      // Without the name nobody takes the rejects of a finished commit for those of a lost one.
      if result.verdict == .migrated { try folder.forgetName() } else { try removeLeftRejects() }
      if run.settings.keepsState, result.plan != nil {
        try DurableFile.removeIfPresent(directory.journal)
      } else {
        try directory.remove()
      }
    } catch {
      result.notes.append("The run directory \(directory.path) could not be removed: \(error)")
    }
  }

  /// True when running again would find nothing to go on with.
  private var isFinal: Bool { result.ending == .done || result.ending == .badInput }

  /// Forgets what was found and counted, but not what was noted.
  mutating func restart() {
    let notes = result.notes
    result = MigrationResult(store: request.store.string, verdict: .failed, ending: .fatal)
    result.notes = notes
    ledger = FindingLedger(acceptsDamage: request.acceptsDamage)
    stages = []
  }

  mutating func work(_ folder: RunFolder) async throws {
    let committed = try await finishEarlierCommit(folder)
    let recovered = committed != nil
    if run.settings.discardsProgress, !recovered { try folder.discardPlan() }
    if !recovered { try run.checkOutput() }
    let outcome: PlanOutcome
    do {
      outcome = try await look()
    } catch  where recovered {
      try writeDownEarlierCommit(folder)
      throw error
    }
    if let committed {
      if isAnswer(committed, to: outcome) {
        // What the earlier run's commit brought about is this command's result.
        if case .sameModel(let notes) = outcome { result.notes += notes }
        return
      }
      // Another command wants more than the run whose commit was finished, or another output.
      try writeDownEarlierCommit(folder)
    }
    try EarlierOutput(request)?.check(against: outcome)
    switch outcome {
    case .sameModel(let notes):
      result.notes += notes
      result.finalIdentity = watch?.identity?.name
      result.verdict = .sameModel
      if run.settings.uriTable != nil {
        result.notes.append("Nothing was migrated: there is no table of object URIs to write.")
      }
      result.ending = .done
    case .refused(let code, let reasons):
      result.refuse(.refused, code, reasons)
    case .needsMapping(let code, let reasons):
      result.refuse(.needsMapping, code, reasons)
    case .migrate(let plan):
      try StoreReplacement.check(
        by: request, uriTable: run.settings.uriTable, in: directory)
      try await migrate(plan, folder)
    }
  }

  /// Reads the store as it is now, and says what is to be done with it.
  private mutating func look() async throws -> PlanOutcome {
    watch = try await onOwnThread { [request] in SourceWatch(request.store) }
    let outcome = try await onOwnThread { [opened, watch, request] in
      try Planner().plan(request, identity: watch?.identity) { opened?.source = $0 }
    }
    try Task.checkCancellation()
    return outcome
  }

  mutating func count(_ counts: StoreVerification.RowCounts) {
    result.rows = counts.entities.values.reduce(0, +)
    result.counts = Dictionary(
      counts.entities.map { ($0.key.rawValue, $0.value) }, uniquingKeysWith: +)
  }

  mutating func note(_ text: String) {
    result.notes.append(text)
    tell(text)
  }

  private func tell(_ text: String) {
    var event = RunEvent(.note)
    event.message = text
    emit(event)
  }

  mutating func succeed(_ journal: CommitJournal) throws {
    try result.succeed(request, journal)
    result.findings = ledger.findings
    result.stages = stages.isEmpty ? nil : stages
    journal.notes.forEach(tell)
  }
}

extension MigrationResult {
  /// What was counted is of a file that nobody gets.
  mutating func forgetRows() { (rows, counts, setAside, rejects) = (nil, nil, nil, nil) }

  /// The models or the rows forbid it: no fault of anybody, and final.
  mutating func refuse(_ verdict: Verdict, _ code: Int, _ reasons: [Reason]) {
    forgetRows()
    self.verdict = verdict
    self.code = code
    self.reasons = reasons
    ending = .badInput
  }
}
