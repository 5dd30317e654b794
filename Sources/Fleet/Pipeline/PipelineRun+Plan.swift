import GodwitDurableFiles
import GodwitPlanning

// What a run would do.
extension PipelineRun {
  /// Says what ``run()`` would do, store by store, and changes nothing.
  public func plan() async throws -> PipelineSummary {
    let start = ContinuousClock.now
    let search = StoreSearch(
      pipeline, state: try FileKind(following: state) == .folder ? state : nil)
    let findings = try await onOwnThread { try search.run() }
    observe(
      .found(
        PipelineStart(
          pipeline: pipeline.name, stores: findings.stores.count,
          bytes: findings.stores.reduce(0) { $0 + $1.bytes }, links: findings.links)))
    var summary = PipelineSummary(pipeline: pipeline.name)
    summary.found = findings.stores.count
    tellUnreadable(findings, &summary)
    let settings = try settingsDigest()
    let hosts = hosts
    // Results are told in the order of the stores.
    var results: [MigrationResult?] = Array(repeating: nil, count: findings.stores.count)
    var told = 0
    await withTaskGroup(of: (Int, MigrationResult).self) { group in
      var begun = 0
      func begin() {
        guard begun < findings.stores.count, !Task.isCancelled else { return }
        let (place, store) = (begun, findings.stores[begun])
        begun += 1
        group.addTask {
          if let refusal = Self.refusal(of: store) { return (place, refusal) }
          return (place, await hosts.perform(task(store, workers: 1, settings, isPlan: true)))
        }
      }
      for _ in 0..<pool.workerCount { begin() }
      for await (place, result) in group {
        results[place] = result
        while told < results.count, let next = results[told] {
          summary.count(next)
          observe(.result(findings.stores[told], next))
          told += 1
        }
        begin()
      }
      summary.pending += findings.stores.count - begun
    }
    await hosts.close()
    summary.seconds = (ContinuousClock.now - start).inSeconds
    return summary
  }
}
