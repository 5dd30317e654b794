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
/// Every step is a store's run of its own, that writes into the run directory and resumes by
/// itself. No intermediate store is ever at the store's place: whoever looks there sees the source
/// until the last step's store is whole, and then that one.
struct ChainRun {
  private let run: StoreRun
  private let folder: ChainFolder

  init(_ run: StoreRun) {
    self.run = run
    folder = ChainFolder(directory: run.directory)
  }

  private var request: MigrationRequest { run.request }
  private var directory: RunDirectory { run.directory }

  func run() async -> MigrationResult {
    let start = ContinuousClock.now
    var result: MigrationResult
    do {
      try run.checkPaths()
      if !directory.exists { try run.checkOutput() }
      switch try await underLock() {
      case .ended(let ended): result = ended
      case .direct(let request, let chain):
        // The one step there is, or the words why there is none.
        result = await StoreRun(
          request, directory: directory, settings: run.settings, observe: run.observe
        ).run()
        result.path = chain.map(\.lines)
        result.notes = (chain?.notes ?? []) + result.notes
      }
    } catch {
      result = MigrationResult(failing: request.store.string, with: error)
    }
    result.seconds = (ContinuousClock.now - start).inSeconds
    result.peakRSS = MigrationResult.Memory(
      coordinator: ProcessMemory.peakResidentBytes, worker: result.peakRSS?.worker ?? 0)
    return result
  }

  private enum Decision {
    case ended(MigrationResult)
    case direct(MigrationRequest, VersionChain?)
  }

  /// Everything under the lock of the run directory.
  private func underLock() async throws -> Decision {
    let own = RunFolder(directory: directory)
    try own.take()
    let lock = try FileLock(acquiring: directory.lock)
    let outcome: Result<Decision, any Error>
    do {
      try directory.removeLeftovers()
      let decision = try await decide(own)
      if case .ended(let result) = decision {
        try run.settings.record(result)
        try clear(after: result)
      }
      outcome = .success(decision)
    } catch {
      if !DurableFile.exists(directory.plan), !folder.exists { try? directory.remove() }
      outcome = .failure(error)
    }
    _ = consume lock
    return try outcome.get()
  }

  private func clear(after result: MigrationResult) throws {
    guard result.ending == .done || result.ending == .badInput else { return }
    if run.settings.keepsState {
      try DurableFile.removeIfPresent(directory.journal)
    } else {
      try directory.remove()
    }
  }

  private func decide(_ own: RunFolder) async throws -> Decision {
    let directory = directory
    var committed: MigrationResult?
    switch try await onOwnThread({ try StoreSwap.recover(run: directory) }) {
    case .nothing, .takenBack: break
    case .committed(let journal):
      if journal.store == (request.output ?? request.store).string {
        var result = MigrationResult(
          store: request.store.string, verdict: .migrated, ending: .done)
        result.notes.append("The commit of an earlier run was finished.")
        succeed(&result, journal)
        if request.output != nil { return .ended(result) }
        committed = result
      }
      // In place, this command may want more than that run: it looks anew.
      try own.discardPlan()
      try folder.discard()
    }
    try run.checkOutput()
    let request = request
    guard let chain = try await onOwnThread({ try VersionChain(request) }) else {
      if let committed { return .ended(committed) }
      return .direct(directly(request), nil)
    }
    switch chain.path.steps.count {
    case 0:
      var result = MigrationResult(
        store: request.store.string, verdict: .needsMapping, ending: .badInput)
      result.refuse(
        .needsMapping, request.infersMapping ? 134_190 : 134_140, chain.reasons)
      result.notes = chain.notes
      return .ended(result)
    case 1:
      try folder.discard()
      var request = directly(request)
      request.mappings = chain.mappings(of: 0)
      return .direct(request, chain)
    default:
      return .ended(try await through(chain, own))
    }
  }

  private func directly(_ request: MigrationRequest) -> MigrationRequest {
    var request = request
    request.chain = .direct
    return request
  }
}

// The steps.
extension ChainRun {
  private func through(_ chain: VersionChain, _ own: RunFolder) async throws -> MigrationResult {
    let fingerprint = try chain.fingerprint(request)
    if DurableFile.exists(directory.plan) { try own.discardPlan() }
    var notes = chain.notes
    if try folder.take(fingerprint) {
      notes.append(
        "The store, a model, a mapping model or an option has changed since an earlier run; its "
          + "steps are discarded.")
    }
    let count = chain.path.steps.count
    var last = try folder.lastDone(
      of: count, fingerprint, needsURIs: run.settings.uriTable != nil)
    let isResumed = last != nil
    for step in ((last?.step ?? -1) + 1)..<count {
      let result = try await perform(step, of: chain, after: last?.done, fingerprint)
      guard let done = result.done else {
        var failed = result.result
        failed.store = request.store.string
        failed.path = chain.lines
        failed.notes = notes + failed.notes
        failed.output = nil
        failed.notes.append(
          "Step \(step + 1) of \(count), \(chain.lines[step]), did not succeed; the store is as "
            + "it was.")
        return failed
      }
      last = (step, done)
    }
    guard let last else { throw CancellationError() }
    try Task.checkCancellation()
    var result = last.done.result
    result.store = request.store.string
    result.source = chain.source(of: 0).name
    result.path = chain.lines
    result.resumed = isResumed || result.resumed == true
    result.uriTable = try await publishURIs(of: last.step, last.done)
    let journal = try await commit(last.step, last.done, fingerprint, own)
    result.notes = notes + result.notes
    succeed(&result, journal)
    return result
  }

  /// One step, as a run of its own.
  private func perform(
    _ step: Int, of chain: VersionChain, after earlier: ChainFolder.Done?, _ fingerprint: String
  ) async throws -> (result: MigrationResult, done: ChainFolder.Done?) {
    try Task.checkCancellation()
    try folder.prepare(step)
    var begin = RunEvent(.note)
    begin.message = "Step \(step + 1) of \(chain.path.steps.count): \(chain.lines[step])"
    begin.time = Date().timeIntervalSince1970
    run.observe(begin)
    let input = step == 0 ? request.store : folder.store(of: step - 1).store
    let written = folder.store(of: step)
    var settings = run.settings
    settings.keepsState = true
    settings.uriTable = settings.uriTable.map { _ in folder.stepURIs(of: step) }
    settings.record = { _ in }
    var result = await StoreRun(
      chain.request(step, of: request, store: input, output: written.store),
      directory: folder.run(of: step), settings: settings, observe: run.observe
    ).run()
    guard result.verdict == .migrated, result.ending == .done else { return (result, nil) }
    guard let plan = try PlanFile(folder.run(of: step)).read() else {
      throw FleetError.runDirectory(
        path: folder.run(of: step).path.string, message: "the plan of a finished step is gone")
    }
    let obsolete = try await onOwnThread {
      try StoreSwap.dropObsoleteExternalData(plan, from: written)
    }
    try await joinURIs(of: step, &result)
    let lines = "Step \(step + 1)"
    result.notes = (earlier?.result.notes ?? []) + result.notes.map { "\(lines): \($0)" }
    result.findings = (earlier?.result.findings ?? []) + result.findings
    result.stages = (earlier?.result.stages ?? []) + (result.stages ?? [])
    let done = ChainFolder.Done(
      fingerprint: fingerprint, identity: try written.identity(),
      obsolete: (earlier?.obsolete ?? []) + obsolete, result: result)
    try folder.finish(step, done)
    return (result, done)
  }

  /// Makes the step's table of object URIs the chain's so far.
  private func joinURIs(of step: Int, _ result: inout MigrationResult) async throws {
    guard run.settings.uriTable != nil else { return }
    let folder = folder
    let own = folder.stepURIs(of: step)
    guard step > 0 else { return try DurableFile.rename(own, to: folder.uris(of: step)) }
    let scratch = FilePath(own.string + ".join")
    result.uriTable?.pairs = try await onOwnThread {
      try URITable.join(
        folder.uris(of: step - 1), own, to: folder.uris(of: step), scratch: scratch)
    }
  }

  /// Puts the chain's table of object URIs where it is wanted, before the commit.
  private func publishURIs(
    of step: Int, _ done: ChainFolder.Done
  ) async throws -> MigrationResult.URITable? {
    guard let path = run.settings.uriTable else { return nil }
    let table = folder.uris(of: step)
    try await onOwnThread { try URITable.copy(table, to: path) }
    return MigrationResult.URITable(path: path.string, pairs: done.result.uriTable?.pairs ?? 0)
  }

  /// The one commit: what the last step wrote takes the place that the first step's plan names.
  private func commit(
    _ step: Int, _ done: ChainFolder.Done, _ fingerprint: String, _ own: RunFolder
  ) async throws -> CommitJournal {
    guard var plan = try PlanFile(folder.run(of: 0)).read() else {
      throw FleetError.runDirectory(
        path: directory.path.string, message: "the plan of the first step is gone")
    }
    plan.destinationPath = request.output?.string ?? plan.sourcePath
    plan.fingerprint = fingerprint
    let swap = StoreSwap(
      plan: plan, run: directory, name: try own.name(now: Date().timeIntervalSince1970))
    let written = folder.store(of: step)
    return try await onOwnThread { try swap.commit(chain: written, obsolete: done.obsolete) }
  }

  private func succeed(_ result: inout MigrationResult, _ journal: CommitJournal) {
    result.verdict = .migrated
    result.ending = .done
    result.reasons = []
    result.output = (request.output ?? request.store).string
    result.backup = journal.kind == .replace ? journal.backup.store.string : nil
  }
}
