import Foundation
import GodwitDurableFiles
import SystemPackage

// Arrays that lie there: those of an earlier start, those that were taken back, and those that are.
extension PipelineRun {
  /// Says of what lies among the arrays, and is none, that it is left alone.
  func tellForeignFolders() throws {
    for path in try BundleFolder.foreignFolders(in: clusterState) {
      observe(
        .note(
          "\(path) is not a folder of this run's bundles, and is left alone. Move it elsewhere: only bundles "
            + "belong there."))
    }
  }

  /// Takes over the results of arrays that were taken back: what their tasks had committed by then.
  func takeLeftovers(_ stores: [FoundStore], _ setting: Setting) async throws {
    try setting.lease.requireCurrent()
    try BundleFolder.removeRest(in: clusterState)
    let folders = try BundleFolder.folders(in: clusterState)
    guard !folders.isEmpty else { return }
    let found = Dictionary(stores.map { ($0.path, $0) }, uniquingKeysWith: { $1 })
    for folder in folders
    where try !folder.isPermitted && folder.otherPipeline(than: pipeline.file.absolute) == nil {
      do {
        var array = try ClusterArray(at: folder)
        try await takeLast(&array, found, setting)
      } catch let error as ClusterError {  // any other is of the machine
        try await takeLast(of: folder, without: error, found, setting)
      }
    }
  }

  /// Writes down the results of an array that is over, and removes its folder unless somebody is still
  /// at work in it.
  ///
  /// - Returns: Whether the folder is gone.
  @discardableResult
  func takeLast(
    _ array: inout ClusterArray, _ found: [FilePath: FoundStore], _ setting: Setting
  ) async throws -> Bool {
    try setting.lease.requireCurrent()
    try array.folder.revoke()
    // Who has begun is known once the folder has been read; what those write until they end comes after.
    var lines = try array.read()
    let isAlive = array.isAlive()
    lines += try array.read()
    let known = array.storesByPath
    for line in lines {
      guard let result = line.result, result.isLasting,
        let store = found[FilePath(result.store)] ?? known[FilePath(result.store)]
      else { continue }
      _ = try await outcome(result, of: store, lane: nil, settings: array.header.settings, setting)
    }
    // One that is alive may have committed a store and not said so yet.
    guard !isAlive, !array.isAlive() else { return false }
    try setting.lease.requireCurrent()
    for store in array.stores.joined() { try clear(store, setting) }
    try array.folder.remove()
    return true
  }

  /// Does the same to arrays that are finished, of which those are kept that somebody has not let go of yet:
  /// a task says that its bundle is done, waits for the disk, and then ends.
  func takeLast(_ arrays: inout [ClusterArray], _ setting: Setting) async throws {
    var kept: [ClusterArray] = []
    for var array in arrays where try await !takeLast(&array, [:], setting) { kept.append(array) }
    arrays = kept
  }

  /// Waits for the tasks of finished arrays to end, not longer than for those of a run that stops: a task that
  /// stands still leaves its folder to the next start.
  func awaitEnd(of arrays: inout [ClusterArray], _ setting: Setting) async throws {
    let end = ContinuousClock.now + .seconds(Self.stopSeconds)
    while !arrays.isEmpty, !Task.isCancelled, ContinuousClock.now < end {
      try? await Task.sleep(for: .milliseconds(100))
      try await takeLast(&arrays, setting)
    }
  }

  /// Takes up what earlier starts of the same run have submitted, and takes back the rest.
  func adopt(
    _ work: inout ClusterWork, _ scheduler: any ArrayScheduler, _ found: [FilePath: FoundStore],
    _ setting: Setting
  ) async throws {
    var others: [ClusterArray] = []
    for folder in try BundleFolder.permitted(in: clusterState) {
      let array: ClusterArray
      let isOurs: Bool
      do {
        array = try ClusterArray(at: folder)
        // Tasks do nothing by a copy, or by one that was moved.
        isOurs = work.isSame(array.header) && array.header.name == folder.name
        if isOurs { try array.check(StoreReach(pipeline)) }
      } catch let error as ClusterError {
        await scheduler.cancel([folder.name])
        try await takeLast(of: folder, without: error, found, setting)
        continue
      }
      let store = array.header.units.flatMap { found[FilePath($0.store)] }
      if isOurs, try isTakenUp(array, found), !array.isOfUnits || store != nil {
        try work.adopt(array, store: store)
        observe(.note("Attached to \(array.name), \(array.header.bundles.count) bundles."))
      } else {
        try setting.lease.requireCurrent()
        try folder.revoke()
        others.append(array)
      }
    }
    guard !others.isEmpty else { return }
    await takeBack(others, scheduler, meanwhile: {})
    for var array in others {
      try await takeLast(&array, found, setting)
      observe(
        .note(
          "\(array.name) is of another run, other settings or other stores, and was cancelled."))
    }
  }

  /// Whether every store of an array that has no result yet is one that this start takes up.
  private func isTakenUp(_ array: ClusterArray, _ found: [FilePath: FoundStore]) throws -> Bool {
    var copy = array
    let known = Set(
      try copy.read(changing: false).compactMap { line in
        line.result.flatMap { $0.isFinal ? FilePath($0.store) : nil }
      })
    return array.stores.joined().allSatisfy { found[$0.path] != nil || known.contains($0.path) }
  }

  /// Waits for tasks that are revoked to end, which their scheduler is asked for, too. Whether it answers
  /// makes no difference to what is read.
  func takeBack(
    _ arrays: [ClusterArray], _ scheduler: any ArrayScheduler,
    meanwhile look: () async throws -> Void
  ) async rethrows {
    let names = arrays.map(\.name)
    // Of its own: the cancellation that led here would end the scheduler's commands.
    let cancelling = Task.detached { await scheduler.cancel(names) }
    var waiting = arrays
    // Who has begun is known once a folder has been read.
    for place in waiting.indices { _ = try? waiting[place].read(changing: false) }
    defer { cancelling.cancel() }
    let end = ContinuousClock.now + .seconds(Self.stopSeconds)
    while ContinuousClock.now < end, waiting.contains(where: { $0.isAlive() }) {
      // Not to be cut short by the cancellation that led here.
      _ = try? await onOwnThread { usleep(100_000) }
    }
    try await look()
    let late = Task.detached {
      try? await Task.sleep(for: .seconds(Self.cancelSeconds))
      cancelling.cancel()
    }
    await cancelling.value
    late.cancel()
  }

  /// 4 s, of the 8 that a stop may take.
  private static let stopSeconds = 4.0
  /// 1 s more: without their permit tasks end by themselves.
  private static let cancelSeconds = 1.0

  /// Takes back an array whose manifest cannot be used: the results of its tasks are written down all the
  /// same, and its stores are looked at again. Its folder goes unless somebody is still at work in it.
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
    for result in try folder.lastingResults() {
      let path = FilePath(result.store)
      guard stores[path] == nil else { continue }
      let store = found[path] ?? known(path)
      if result.isFinal { stores[path] = store }
      // Nobody can tell what they were to become: they are looked at again.
      _ = try await outcome(result, of: store, lane: nil, settings: "", setting)
    }
    observe(
      .note(
        "\(folder.name) was taken back: \(reason) Its \(stores.count) results are recorded, and all its "
          + "stores are looked at again."))
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
