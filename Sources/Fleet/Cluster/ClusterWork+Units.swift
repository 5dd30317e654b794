import GodwitCheckpoints
import GodwitPlanning
import SystemPackage

// Large stores, from one step to the next.
extension ClusterWork {
  /// Arrays that are over. Their folders may go once their results are written down.
  mutating func takeFinished() throws -> [ClusterArray] {
    let all = arrays
    let finished = arrays.filter(\.progress.isDone)
    restartsOfFinished += finished.reduce(0) { $0 + $1.progress.restarts }
    arrays.removeAll(where: \.progress.isDone)
    for array in finished {
      for store in array.stores.joined() where waitingForUnits[store.path] == nil {
        owned.remove(store.path)
      }
      guard let work = array.header.units,
        !arrays.contains(where: { $0.header.units?.path == work.path }),
        let store = waitingForUnits.removeValue(forKey: work.path)
      else { continue }
      // An earlier start may have been killed between the next step and the end of this one.
      if all.contains(where: {
        $0.number > array.number && $0.holds(work.path) && $0.header.units != work
      }) {
        continue
      }
      // What others could not perform its own process performs, and says what is wrong.
      try goOn(with: store, wave: array.header.wave, handsOut: try array.isPerformed())
    }
    return finished
  }

  /// Has a task of its own go on with a store.
  private mutating func goOn(with store: FoundStore, wave: Int, handsOut: Bool) throws {
    owned.insert(store.path)
    try write([.stores([store])], wave: wave) {
      // What is finished is not to be forgotten now.
      ($0.handsOut, $0.isFresh) = (handsOut, false)
    }
  }

  /// Has others perform the units of a stage. An array of an earlier start says so again as long as it is there,
  /// and that start may have come further with the store since.
  ///
  /// - Returns: Whether nobody has the store in hand: it had come to its end.
  mutating func handOut(
    _ handedOut: HandedOut, of store: FoundStore, by array: ClusterArray
  ) throws -> Bool {
    // Another attempt may say the same, too.
    if arrays.contains(where: { $0.number > array.number && $0.holds(store.path) }) { return false }
    if array.isAdopted, let known = books.entry(of: store.path), known.run == books.run,
      SettingsDigest.areSame(known.settings, books.settings), known.verdict != .pending,
      !books.isForgotten(store.path)
    {
      owned.remove(store.path)
      return true
    }
    // A step of a chain, and a snapshot, are read from files that lie elsewhere.
    var work = handedOut.work
    work.store = store.path.string
    let finished = try RunDirectory(FilePath(work.runDirectory)).finished(work.stage)
    let units = handedOut.units.filter { !finished.contains($0) }
    guard !units.isEmpty else {
      try goOn(with: store, wave: array.header.wave, handsOut: true)
      return false
    }
    waitingForUnits[store.path] = store
    owned.insert(store.path)
    let bundles = cutter.bundles(units: units, shardBytes: run.template.shardBytes)
    try write(bundles.map { .units($0) }, wave: array.header.wave) { $0.units = work }
    return false
  }
}
