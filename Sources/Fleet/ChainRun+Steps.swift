import Foundation
import GodwitBarriers
import GodwitCheckpoints
import GodwitCommit
import GodwitDigests
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

// The steps.
extension ChainRun {
  /// - Parameter isRedo: True when a store that a step wrote has been found damaged already.
  func through(
    _ route: ChainRoute, _ own: RunFolder, isRedo: Bool = false
  ) async throws -> MigrationResult {
    let fingerprint = try route.fingerprint(request)
    if try DurableFile.exists(directory.plan) { try own.discardPlan() }
    var notes = route.notes(for: request)
    if try folder.take(fingerprint, path: route.lines, notes: notes) {
      notes.append(
        "The store, a model, a mapping model, an option or the program has changed since an "
          + "earlier run; its steps are discarded.")
    }
    let count = route.steps.count
    var last = try folder.lastDone(
      of: count, fingerprint, store: request.store, needsURIs: run.settings.uriTable != nil
    ) { path in
      notes.append(
        "\(path) is not as an earlier run wrote it: look at the disk. Steps are made again.")
    }
    if let ends = last?.done.ends, ends.readPath != ends.sourcePath {
      // The commit uses the clone that the first step has read, in an earlier process perhaps.
      try await onOwnThread { [folder, request] in
        _ = try StoreFiles(request.store).clone(in: folder.run(of: 0).snapshot)
      }
    }
    let isResumed = last != nil
    for step in ((last?.step ?? -1) + 1)..<count {
      let result = try await perform(step, of: route, after: last?.done, fingerprint)
      guard let done = result.done else {
        var failed = result.result
        if step > 0, failed.code == RetryPolicy.coreDataCorruption {
          // What the step read is a file of our own, and no fault of the source.
          try folder.discard()
          if !isRedo { return try await through(route, own, isRedo: true) }
          (failed.verdict, failed.ending) = (.failed, .inputOutput)
        }
        failed.store = request.store.string
        (failed.source, failed.destination) = (route.source, route.destination)
        for number in failed.reasons.indices {
          // Keys that are not those of the store that people know.
          let place: String? =
            if RetryPolicy.areKeysOfDestination(failed.reasons[number].reason) {
              count > 1 ? "In the store that step \(step + 1) makes: " : nil
            } else {
              step > 0 ? "In the store that step \(step) wrote: " : nil
            }
          failed.reasons[number].message = (place ?? "") + failed.reasons[number].message
        }
        failed.path = route.lines
        failed.notes = notes + failed.notes
        failed.output = nil
        failed.notes.append(
          "Step \(step + 1) of \(count), \(route.lines[step]), did not succeed; the store is as "
            + "it was.")
        return failed
      }
      last = (step, done)
    }
    guard let last else { throw CancellationError() }
    try Task.checkCancellation()
    var result = last.done.result
    result.store = request.store.string
    result.source = route.source
    result.destination = route.destination
    result.path = route.lines
    result.resumed = isResumed || result.resumed == true
    result.sourceIdentity = last.done.ends.sourceIdentity.name
    let earlier = try EarlierOutput(request)
    if let earlier {
      let swap = try swap(last.done, fingerprint, own)
      let written = folder.store(of: last.step)
      guard try await onOwnThread({ try swap.isPublished(chain: written) }) else {
        throw earlier.isAnother
      }
    }
    result.uriTable = try await publishURIs(of: last.step, last.done)
    result.notes = notes + result.notes
    if let earlier {
      result.keep(earlier)
    } else {
      do {
        try result.succeed(request, try await commit(last.step, last.done, fingerprint, own))
      } catch let error as CommitError {
        // The steps have written the file, and write it again.
        guard case .damagedExternalData = error else { throw error }
        try folder.discard()
        if isRedo { throw error }
        return try await through(route, own, isRedo: true)
      }
    }
    return result
  }

  /// What a step came to; `done` when it is finished.
  struct StepResult {
    var result: MigrationResult
    var done: ChainFolder.Done?
  }

  private func perform(
    _ step: Int, of route: ChainRoute, after earlier: ChainFolder.Done?, _ fingerprint: String
  ) async throws -> StepResult {
    try Task.checkCancellation()
    try folder.prepare(step)
    var begin = RunEvent(.note)
    begin.message = "Step \(step + 1) of \(route.steps.count): \(route.lines[step])"
    begin.time = Date().timeIntervalSince1970
    run.observe(begin)
    switch route.steps[step].work {
    case .migration(let leg):
      return try await migrate(leg, step, of: route, after: earlier, fingerprint)
    case .handler(let call): return try await handle(call, step, after: earlier, fingerprint)
    }
  }

  /// One migration, as a run of its own.
  private func migrate(
    _ leg: MigrationStep, _ step: Int, of route: ChainRoute, after earlier: ChainFolder.Done?,
    _ fingerprint: String
  ) async throws -> StepResult {
    let input = step == 0 ? request.store : folder.store(of: step - 1).store
    let written = folder.store(of: step)
    try requireLeases()
    var settings = run.settings
    settings.leases = leases
    settings.keepsState = true
    settings.uriTable = settings.uriTable.map { _ in folder.stepURIs(of: step) }
    settings.record = { _ in }
    // What one step sets aside would be noted beside a store that nobody sees.
    var stepRequest = route.request(of: leg, request, store: input, output: written.store)
    // What a step writes does not depend on when and where the one before was written.
    stepRequest.identitySeed = "\(fingerprint) \(step)"
    stepRequest.invalid = .fail
    var result = await StoreRun(
      stepRequest,
      directory: folder.run(of: step), settings: settings, observe: run.observe
    ).run()
    guard result.verdict == .migrated, result.ending == .done else {
      return StepResult(result: result)
    }
    guard let plan = try PlanFile(folder.run(of: step)).read() else {
      throw FleetError.runDirectory(
        path: folder.run(of: step).path.string, message: "the plan of a finished step is missing")
    }
    let losses = route.losses(of: result, plan)
    let refusals = route.losses == nil ? [] : route.refusals(of: losses, request)
    guard refusals.isEmpty else {
      var refused = MigrationResult(
        store: result.store, verdict: .refused, ending: .badInput, notes: result.notes)
      refused.refuse(.refused, LossPolicy.refusalCode, refusals)
      refused.losses = (earlier?.result.losses ?? route.losses ?? []) + losses
      return StepResult(result: refused)
    }
    let obsolete = try await onOwnThread {
      try StoreSwap.dropObsoleteExternalData(plan, from: written)
    }
    try await joinURIs(of: step, &result)
    let lines = "Step \(step + 1)"
    result.notes = (earlier?.result.notes ?? []) + result.notes.map { "\(lines): \($0)" }
    // Damage that a step carries is found again by the next one.
    let told = earlier?.result.findings ?? []
    result.findings = told + result.findings.filter { !told.contains($0) }
    result.losses =
      (earlier?.result.losses ?? route.losses ?? [])
      + losses.map { loss in
        var loss = loss
        loss.message = "\(lines): \(loss.message)"
        return loss
      }
    result.stages = (earlier?.result.stages ?? []) + (result.stages ?? [])
    if let earlier { result.sourceUUID = earlier.result.sourceUUID }
    // What the step's own commit has published.
    return try await finish(
      step, fingerprint, digest: result.digest, earlier?.ends ?? CommitEnds(plan),
      obsolete: (earlier?.obsolete ?? []) + obsolete, result)
  }

  /// Writes down that a step is finished.
  ///
  /// - Parameter digest: Of the store that it wrote; nil to find out.
  func finish(
    _ step: Int, _ fingerprint: String, digest: String?, _ ends: CommitEnds, obsolete: [String],
    _ result: MigrationResult
  ) async throws -> StepResult {
    let (folder, hasURIs) = (folder, run.settings.uriTable != nil)
    let done = try await onOwnThread {
      let written = folder.store(of: step)
      return ChainFolder.Done(
        fingerprint: fingerprint, identity: try written.identity(),
        storeDigest: try digest ?? written.fileDigest(),
        uriDigest: try hasURIs ? FileDigest.text(of: folder.uris(of: step)) : nil, ends: ends,
        obsolete: obsolete, result: result)
    }
    try folder.finish(step, done)
    return StepResult(result: result, done: done)
  }

  /// Makes the step's table of object URIs the chain's so far.
  func joinURIs(of step: Int, _ result: inout MigrationResult) async throws {
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
  func publishURIs(
    of step: Int, _ done: ChainFolder.Done
  ) async throws -> MigrationResult.URITable? {
    guard let path = run.settings.uriTable else { return nil }
    let table = folder.uris(of: step)
    try await onOwnThread { try URITable.copy(table, to: path) }
    return MigrationResult.URITable(path: path.string, pairs: done.result.uriTable?.pairs ?? 0)
  }

  private func swap(
    _ done: ChainFolder.Done, _ fingerprint: String, _ own: RunFolder
  ) throws -> StoreSwap {
    var ends = done.ends
    ends.destinationPath = request.output?.string ?? ends.sourcePath
    ends.fingerprint = fingerprint
    let name = try own.name(
      now: Date().timeIntervalSince1970,
      replacing: request.output == nil ? request.store : nil)
    var swap = StoreSwap(
      chain: ends, run: directory, name: name, isStoreOffline: request.isStoreOffline)
    swap.leases = leases
    swap.digest = done.storeDigest
    swap.owner = run.settings.owner
    return swap
  }

  /// - Throws: `CommitError.leaseLost` where another process has taken the work over.
  func requireLeases() throws {
    try leases.requireCurrent(store: request.store)
  }

  /// The one commit: what the last step wrote takes the place that the first step's source names.
  private func commit(
    _ step: Int, _ done: ChainFolder.Done, _ fingerprint: String, _ own: RunFolder
  ) async throws -> CommitJournal {
    let swap = try swap(done, fingerprint, own)
    let written = folder.store(of: step)
    // A handler may have brought back the very file that a step before had let go.
    let obsolete = try done.obsolete.filter {
      try FileKind(at: written.externalDataFolder.appending($0)) == .none
    }
    return try await onOwnThread { try swap.commit(chain: written, obsolete: obsolete) }
  }
}
