// What a store came to in a task.
extension PipelineRun {
  /// Writes down what became of a store on the cluster.
  func outcome(
    _ line: BundleResult, of store: FoundStore, lane: Int?, settings: String? = nil,
    _ setting: Setting
  ) async throws -> Outcome {
    let books = setting.books
    let result = line.end.whole
    let known = books.entry(of: store.path)
    if result.verdict == .sameModel, var known, known.verdict == .migrated,
      known.run == books.run
    {
      // As an application has left it since, which may go on: in this run it is not looked at again.
      if known.finalIdentity != result.finalIdentity || books.isForgotten(store.path) {
        (known.finalIdentity, known.ended) = (result.finalIdentity, books.ended)
        try setting.lease.requireCurrent()
        try await books.keep(known)
      }
      return Outcome(store: store, result: earlierStart(known, books), isEarlier: true)
    }
    if result.differs(fromOutput: known?.output), let kept = keptOutput(of: store, known, books) {
      try setting.lease.requireCurrent()
      try await books.keep(kept.entry)
      return kept.outcome
    }
    if result.isInUse, pipeline.stores.inUse == .snapshot,
      let earlier = try? sameSnapshot(store, known, books)
    {
      return earlier
    }
    let facts = StoreFacts(
      store: store, started: line.started, ended: line.ended, lane: lane, mark: line.mark,
      host: line.host, settings: settings)
    // A start that was killed may have written it down.
    let isKnown = known?.run == books.run && known?.time == line.ended
    if !isKnown {
      // Whoever has taken the run over has its own progress file.
      try setting.lease.requireCurrent()
      if line.isLasting { try await books.record(result, facts) } else { books.add(result, facts) }
    }
    return Outcome(store: store, result: result)
  }
}
