import GodwitDurableFiles
import SystemPackage

// What lies in the folders of arrays that this run did not write.
extension PipelineRun {
  /// Takes back an array whose manifest cannot be used: the results of its tasks are written down all the
  /// same, and the rest is done anew. Its folder goes unless somebody is still at work in it.
  ///
  /// - Throws: Where results cannot be read: they are still there then.
  func takeLast(
    of folder: BundleFolder, without reason: ClusterError, _ found: [FilePath: FoundStore],
    _ setting: Setting
  ) async throws {
    try setting.lease.requireCurrent()
    try folder.revoke()
    let isAlive = try folder.isAlive()
    var stores: [FilePath: FoundStore] = [:]
    for result in try folder.finalResults() {
      let path = FilePath(result.store)
      guard stores[path] == nil else { continue }
      let store = found[path] ?? known(path)
      stores[path] = store
      _ = try await outcome(result, of: store, lane: nil, setting)
    }
    observe(
      .note(
        "\(folder.name) was taken back: \(reason) Its \(stores.count) results were taken over, and "
          + "the rest is done anew."))
    // One that is alive may have committed a store and not said so yet.
    guard !isAlive, try !folder.isAlive() else { return }
    try setting.lease.requireCurrent()
    for store in stores.values { try clear(store, setting) }
    try folder.remove()
  }

  /// A store that the search did not find, in the root that it lies in.
  private func known(_ path: FilePath) -> FoundStore {
    let root = pipeline.stores.roots.compactMap(\.resolved).first { path.starts(with: $0) }
    return FoundStore(path: path, root: root ?? path.removingLastComponent(), bytes: 0)
  }
}

extension BundleFolder {
  /// Whether an attempt is alive, as far as leases tell, at whichever bundle.
  fileprivate func isAlive() throws -> Bool {
    try markers().started.keys.contains(where: isHeld)
  }

  /// The results of all attempts that are final, whatever the manifest says.
  fileprivate func finalResults() throws -> [BundleResult] {
    var results: [BundleResult] = []
    for (index, attempts) in try markers().results {
      for attempt in attempts {
        var offset: Int64 = 0
        while true {
          let (lines, end) = try BundleLine.read(self.results(index, attempt), from: offset)
          results += lines.compactMap(\.result).filter(\.isFinal)
          if end == offset { break }
          offset = end
        }
      }
    }
    return results.sorted { $0.ended < $1.ended }
  }
}
