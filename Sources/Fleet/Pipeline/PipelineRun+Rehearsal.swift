import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitObjectModel
import GodwitPlanning
import SystemPackage

/// What became of stores that were migrated privately, their sources only read.
package struct Rehearsal: Sendable {
  package struct Store: Sendable {
    /// Relative to the folder that was searched.
    package var name: String
    /// The outcome of the private migration, with the plan's mapping models and path.
    package var result: MigrationResult
    var found: FoundStore
    /// Seconds since 1970-01-01 UTC.
    var started: Double
    var ended: Double
  }

  /// In the byte order of their paths. Those that a rehearsal has not come to before it was stopped are pending.
  package var stores: [Store] = []
  package var summary: PipelineSummary

  /// The rehearsal as a run, for its report.
  package func report(of folder: String, exitCode: Int) -> RunReport {
    let name = "rehearsal"
    let started = stores.map(\.started).min() ?? 0
    let seconds = summary.seconds ?? 0
    return RunReport(
      pipeline: summary.pipeline, pipelineFile: folder,
      run: RunReport.Run(
        kind: name, name: name, started: started, ended: started + seconds, seconds: seconds,
        exitCode: exitCode, starts: 1, host: MachineName.text),
      counts: RunReport.Counts(summary),
      stores: stores.map { store in
        var line = RunReport.Store(
          LedgerAttempt(
            store.result, of: store.found, run: name, started: store.started, ended: store.ended,
            lane: nil))
        line.path = store.name
        return line
      })
  }
}

extension Rehearsal.Store {
  /// A store that has ended now.
  ///
  /// - Parameter started: Nil for one that was not begun.
  fileprivate init(_ store: FoundStore, _ result: MigrationResult, started: Double? = nil) {
    let (path, now) = (store.path.string, Date().timeIntervalSince1970)
    self.init(
      name: path.after(store.root.string + "/") ?? path, result: result, found: store,
      started: started ?? now, ended: now)
  }
}

// Every store migrated privately.
extension PipelineRun {
  /// Plans every store, and migrates those that the plan would migrate to a file in `folder` that is
  /// removed at once. No source is written to, and no state is kept.
  ///
  /// Cancelling the task stops it: every store has a result all the same.
  ///
  /// - Parameter folder: An existing folder of the caller's own.
  /// - Throws: ``PipelineError``; no store was opened then.
  package func rehearse(in folder: FilePath) async throws -> Rehearsal {
    let start = ContinuousClock.now
    let findings = try await search(state: nil)
    observe(.found(self.start(findings, nil)))
    var rehearsal = Rehearsal(summary: PipelineSummary(pipeline: pipeline.name))
    rehearsal.summary.found = findings.stores.count
    for result in tellUnreadable(findings, &rehearsal.summary) {
      let folder = FoundStore(path: FilePath(result.store), root: FilePath(result.store), bytes: 0)
      rehearsal.stores.append(Rehearsal.Store(folder, result))
    }
    let settings = try settingsDigest()
    let hosts = hosts(pace: nil)
    var queue = StoreQueue(
      waves: [findings.stores], workerCount: pool.workerCount, need: workers(for:))
    await withTaskGroup(of: Rehearsal.Store.self) { group in
      var number = 0
      func begin() {
        while !Task.isCancelled, let (store, workers) = queue.next(at: 0) {
          var sample = task(store, workers: workers, settings, .sample)
          sample.output = folder.appending("\(number)").string
          number += 1
          group.addTask { [sample] in await rehearse(store, sample, settings, hosts) }
        }
      }
      begin()
      for await store in group {
        queue.end(store.found)
        rehearsal.stores.append(store)
        rehearsal.summary.count(store.result)
        observe(.result(store.found, store.result))
        begin()
      }
    }
    await hosts.close()
    for store in queue.left {
      let result = MigrationResult(notBegun: store.path.string)
      rehearsal.stores.append(Rehearsal.Store(store, result))
      rehearsal.summary.count(result)
      observe(.result(store, result))
    }
    rehearsal.stores.sort {
      $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
    }
    rehearsal.summary.seconds = (ContinuousClock.now - start).inSeconds
    return rehearsal
  }

  private func rehearse(
    _ store: FoundStore, _ sample: StoreTask, _ settings: String, _ hosts: StoreHosts
  ) async -> Rehearsal.Store {
    let started = Date().timeIntervalSince1970
    var result: MigrationResult
    if let refusal = Self.refusal(of: store) {
      result = refusal
    } else {
      var plan = task(store, workers: 1, settings, .plan)
      // The store's place is not to be taken, and nothing is to be written beside it.
      plan.output = sample.output.map { $0 + ".sqlite" }
      let planned = await hosts.perform(plan)
      result = planned
      if planned.verdict == .migrated {
        result = await hosts.perform(sample)
        (result.plan, result.path) = (planned.plan, planned.path)
        if result.source == nil { result.source = planned.source }
        if result.destination == nil { result.destination = planned.destination }
      }
    }
    if result.source == nil, Self.refusal(of: store) == nil, !Task.isCancelled {
      var look = task(store, workers: 0, settings, .version)
      look.output = sample.output
      result.source = await hosts.perform(look).source
    }
    // What was written is gone.
    (result.output, result.backup) = (nil, nil)
    return Rehearsal.Store(store, result.keepingNothing, started: started)
  }

  /// In the process that coordinates the store: its version among those given, in
  /// ``MigrationResult/source``; nothing where it is of none of them.
  ///
  /// - Parameter folder: For the clone of a store with a WAL. Made, and removed again.
  func version(of store: FoundStore, folder: FilePath) -> MigrationResult {
    var result = MigrationResult(store: store.path.string, verdict: .sameModel, ending: .done)
    TemporaryFolders.borrow(folder.folder)
    defer { try? DurableFile.removeTree(folder, surviving: .processCrash) }
    // Why a store cannot be read is in the result of its plan.
    guard (try? DurableFile.makeFolder(folder, surviving: .processCrash)) != nil else {
      return result
    }
    result.source =
      (try? StoreInspection(
        store.path, models: template.given, snapshotFolder: folder, readsRows: false))?
      .version
    return result
  }
}
