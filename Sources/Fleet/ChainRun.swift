import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

/// One store through several versions, with one commit at the end.
///
/// Every migration is a store's run of its own, that writes into the run directory and resumes by
/// itself; a stage's handler works on a private copy of what the step before has left. No
/// intermediate store is ever at the store's place: whoever looks there sees the source
/// until the last step's store is whole, and then that one.
struct ChainRun {
  let run: StoreRun
  let folder: ChainFolder
  /// The right to work in the run directory, and those of the settings.
  private(set) var leases: [LeaseToken] = []

  init(_ run: StoreRun) {
    self.run = run
    folder = ChainFolder(directory: run.directory)
  }

  var request: MigrationRequest { run.request }
  var directory: RunDirectory { run.directory }

  func run() async -> MigrationResult {
    let start = ContinuousClock.now
    var result: MigrationResult
    var earlier: [String] = []
    do {
      try run.checkPaths()
      let isNew = try !directory.exists
      if isNew { try run.checkOutput() }
      switch try await underLock(isNew: isNew, &earlier) {
      case .ended(let ended): result = ended
      case .direct(let request, let route):
        // The one step there is, or the words why there is none.
        result = await StoreRun(
          request, directory: directory, settings: run.settings, observe: run.observe
        ).run()
        // Without one it may be the end of an earlier run's chain, which has its own.
        if let route {
          result.path = route.lines
          result.notes = route.notes + result.notes
        }
      }
    } catch {
      result = MigrationResult(
        failing: request.store.string,
        with: RetryPolicy.attributed(error, store: request.store, directory: directory))
    }
    result.notes = earlier + result.notes
    result.seconds = (ContinuousClock.now - start).inSeconds
    result.peakRSS = MigrationResult.Memory(
      coordinator: ProcessMemory.peakResidentBytes, worker: result.peakRSS?.worker ?? 0)
    return result
  }

  private enum Decision {
    case ended(MigrationResult)
    case direct(MigrationRequest, ChainRoute?)
  }

  /// Everything under the lock of the run directory.
  ///
  /// - Parameter earlier: Gets what is to be said of an earlier run's commit beside the result.
  private func underLock(isNew: Bool, _ earlier: inout [String]) async throws -> Decision {
    let own = RunFolder(directory: directory)
    try own.take()
    let lease = try HeldLease(
      acquiring: directory.lock, patienceSeconds: run.settings.lockPatienceSeconds)
    var leased = self
    leased.leases = run.settings.leases + [lease.token]
    let outcome: Result<Decision, any Error>
    do {
      try directory.removeLeftovers()
      let decision = try await leased.decide(own, &earlier)
      if case .ended(let result) = decision {
        if result.verdict != .migrated { try leased.requireLeases() }
        try run.settings.record(result)
        if try lease.isCurrent { try clear(after: result) }
      }
      outcome = .success(decision)
    } catch {
      // What was compared with an output of somebody else is of no more use.
      let isUseless = isNew && RetryPolicy.judgement(of: error).ending == .cannotCreateOutput
      let hasCommit = try DurableFile.exists(directory.journal)
      let isUnderWay = try hasCommit || folder.exists || DurableFile.exists(directory.plan)
      if try lease.isCurrent && (isUseless && !hasCommit || !isUnderWay) {
        try? directory.remove()
      }
      outcome = .failure(error)
    }
    withExtendedLifetime(lease) {}
    return try outcome.get()
  }

  private func clear(after result: MigrationResult) throws {
    guard result.ending == .done || result.ending == .badInput else { return }
    if result.verdict != .migrated {
      try RunFolder(directory: directory).removeAssembled(for: run.request)
    }
    if run.settings.keepsState {
      if result.verdict == .migrated { try folder.removePublished() }
      try DurableFile.removeIfPresent(directory.journal)
    } else {
      try directory.remove()
    }
  }

  private func decide(_ own: RunFolder, _ earlier: inout [String]) async throws -> Decision {
    var committed: MigrationResult?
    var fingerprint: String?
    var isWanted = false
    switch try await run.recoverCommit(leases) {
    case .committed(let journal):
      (committed, fingerprint) = (try await run.result(of: journal), journal.fingerprint)
      isWanted = FilePath(journal.store).isSamePlace(as: request.destinationPath)
    case .takenBackKeeping(let backup):
      earlier.append(MigrationResult.keptBackupNote(request.store, backup))
    case .nothing, .takenBack: break
    }
    if run.settings.discardsProgress, committed == nil {
      try own.discardPlan()
      try folder.discard()
    }
    if committed == nil { try run.checkOutput() }
    let way: Way
    do {
      way = try await onOwnThread { try Self.decide(request) }
    } catch {
      if let committed { try writeDown(committed, own, &earlier) }
      throw error
    }
    // This command may want more than the run whose commit was finished, or another output.
    if let committed {
      switch way {
      // Planning the store directly finds the commit again, and says whether there is more to do.
      case .direct: break
      case .ended(let ended) where isWanted && ended.verdict == .sameModel && request.output == nil:
        return .ended(committed)
      case .through(let route) where isWanted && request.output != nil:
        if try route.fingerprint(request) == fingerprint { return .ended(committed) }
        // So does a migration of one step, where that was all.
        if route.onlyMigration != nil, try folder.lastDone() == nil { break }
        try writeDown(committed, own, &earlier)
      case .ended, .through: try writeDown(committed, own, &earlier)
      }
    }
    switch way {
    case .direct: return .direct(directly(request), nil)
    case .ended(let ended): return .ended(ended)
    case .through(let route):
      try StoreReplacement.check(
        by: request, uriTable: run.settings.uriTable, in: directory)
      guard let leg = route.onlyMigration else {
        return .ended(try await through(route, own))
      }
      try folder.discard()
      return .direct(
        route.request(of: leg, request, store: request.store, output: request.output), route)
    }
  }

  /// Writes down the commit of an earlier run for itself: its backup may be the only copy of what the store
  /// was. Until then its journal stays: what a crash leaves unrecorded is found again by it.
  private func writeDown(
    _ committed: MigrationResult, _ own: RunFolder, _ earlier: inout [String]
  ) throws {
    var result = committed
    result.isOfEarlierCommit = true
    try run.settings.record(result)
    try requireLeases()
    try own.discardPlan()
    try folder.discard()
    earlier = committed.earlierCommitNotes
  }

  private func directly(_ request: MigrationRequest) -> MigrationRequest {
    var request = request
    request.chain = .direct
    return request
  }
}

// Which steps.
extension ChainRun {
  enum Way {
    /// There is nothing to choose: planning the store says the rest.
    case direct
    case through(ChainRoute)
    case ended(MigrationResult)
  }

  /// What becomes of a request, by the models and the store's metadata alone.
  static func decide(_ request: MigrationRequest) throws -> Way {
    let watch = SourceWatch(request.store)
    let way = try watch.reading { try choose(request) }
    if case .ended(let result) = way, result.isAboutStore, let error = watch.interference() {
      throw error
    }
    return way
  }

  private static func choose(_ request: MigrationRequest) throws -> Way {
    switch request.chain {
    case .direct:
      return .direct
    case .progressive:
      guard request.migrates, let chain = try VersionChain(request) else { return .direct }
      var result = MigrationResult(
        store: request.store.string, verdict: .needsMapping, ending: .badInput)
      result.notes = chain.notes
      if chain.path.steps.isEmpty {
        result.refuse(.needsMapping, request.infersMapping ? 134_190 : 134_140, chain.reasons)
      } else if let (code, reasons) = try chain.obstacles(request) {
        // A later step's, too: nothing is begun that cannot be finished.
        result.path = chain.lines
        result.refuse(.needsMapping, code, reasons)
      } else {
        return refused(ChainRoute(chain), request) ?? .through(ChainRoute(chain))
      }
      return .ended(result)
    case .staged:
      guard let stages = request.stages else { throw FleetError.noStages }
      let path = try StagedPath(request, stages)
      guard !path.steps.isEmpty else {
        // Which has words for what the model would misread.
        if request.destination != nil { return .direct }
        return .ended(
          MigrationResult(store: request.store.string, verdict: .sameModel, ending: .done))
      }
      guard request.migrates else { return .direct }
      return refused(ChainRoute(path), request) ?? .through(ChainRoute(path))
    }
  }

  /// The end of a run that would lose what the request does not allow to be lost.
  private static func refused(_ route: ChainRoute, _ request: MigrationRequest) -> Way? {
    let losses = route.losses ?? []
    let refusals = route.refusals(of: losses, request)
    guard !refusals.isEmpty else { return nil }
    var result = MigrationResult(
      store: request.store.string, verdict: .refused, ending: .badInput, notes: route.notes)
    result.refuse(.refused, LossPolicy.refusalCode, refusals)
    result.losses = losses
    result.path = route.lines
    return .ended(result)
  }
}
