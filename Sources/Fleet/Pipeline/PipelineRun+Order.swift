import GodwitPersistentStore
import GodwitPlanning

// One store after the other, and side by side.
extension PipelineRun {
  func migrate(
    _ findings: StoreSearch.Findings, _ ledger: PipelineLedger, _ settings: String,
    _ hosts: StoreHosts, _ summary: inout PipelineSummary
  ) async {
    summary.found = findings.stores.count
    tellUnreadable(findings, &summary)
    var small = findings.stores.filter { workers(for: $0) == 0 }[...]
    var large = findings.stores.filter { workers(for: $0) > 0 }[...]
    await withTaskGroup(of: Outcome.self) { group in
      func begin(_ store: FoundStore) {
        group.addTask {
          await migrate(store, workers: self.workers(for: store), ledger, settings, hosts)
        }
      }
      var (places, workers) = (2 * pool.workerCount, pool.workerCount)
      while !Task.isCancelled, summary.lacksWorkers != true {
        while places > 0, let store = small.popFirst() {
          places -= 1
          begin(store)
        }
        while let store = large.first, self.workers(for: store) <= workers {
          workers -= self.workers(for: store)
          begin(large.removeFirst())
        }
        guard let outcome = await group.next() else { break }
        let taken = self.workers(for: outcome.store)
        if taken == 0 { places += 1 } else { workers += taken }
        take(outcome, &summary)
      }
      for await outcome in group { take(outcome, &summary) }
    }
    summary.pending += small.count + large.count
  }

  struct Outcome: Sendable {
    var store: FoundStore
    var result: MigrationResult
    /// Migrated before this start.
    var isEarlier = false
  }

  func take(_ outcome: Outcome, _ summary: inout PipelineSummary) {
    summary.count(outcome.result)
    if outcome.isEarlier { summary.earlier = (summary.earlier ?? 0) + 1 }
    observe(.result(outcome.store, outcome.result))
  }

  /// A folder that cannot be read may hold any number of stores: it counts as one that failed.
  func tellUnreadable(
    _ findings: StoreSearch.Findings, _ summary: inout PipelineSummary
  ) {
    for (path, reason) in findings.unreadable {
      let result = MigrationResult(
        store: path.string, verdict: .failed, ending: .inputOutput,
        reasons: [
          Reason(
            reason: "unreadable-folder",
            message: "\(path) cannot be searched for stores: \(reason). Let this user read it, or "
              + "exclude it.")
        ])
      summary.found += 1
      summary.count(result)
      observe(.result(nil, result))
    }
  }

  /// 4 MiB. What the stages of a small store finish stays in memory; the work of a larger one is worth
  /// going on with.
  static let largestSmallStore: Int64 = 4 << 20

  /// One worker for each shard's worth of bytes; none for a store that is smaller than a shard.
  func workers(for store: FoundStore) -> Int {
    if store.bytes < min(template.shardBytes, Self.largestSmallStore) { return 0 }
    return min(pool.workerCount, Int(clamping: store.bytes / max(1, template.shardBytes)) + 1)
  }
}
