import Foundation
import Glibc
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPlanning
import GodwitWorker
import Synchronization
import SystemPackage

/// One bundle of an array, from its first store or unit to its last: what a task of a scheduler does.
///
/// A task may be started twice, at the same time or after it has finished, and may end at any moment.
/// It says first that it has begun, under a name that is used once; holds the bundle's lease while it
/// works; and leaves out what an earlier attempt finished. The bundle is done when every store has a
/// result, in whichever attempt.
package struct BundleWork: Sendable {
  /// How a task ended.
  package enum Ending: Sendable, Equatable {
    /// The bundle is done, by this attempt or an earlier one.
    case done
    /// The coordinator does not want it any more.
    case revoked
    /// Another attempt is at work.
    case elsewhere
    /// It ended before its last store; another attempt goes on.
    case stopped
    /// The executable here is another build, whose own code or settings are others: nothing was done. The store's
    /// own process does what is left.
    case otherBuild
  }

  let manifest: BundleManifest
  let index: Int
  let folder: BundleFolder
  let attempt: String
  private let sink = EventSink()

  /// The pipeline's file, which the manifest is of.
  package var pipeline: String { manifest.header.pipeline }
  /// What the operator said; nil for nothing.
  package var losses: LossPolicy? {
    manifest.header.guardsUnknownVersions == true ? nil : manifest.header.losses
  }
  package var isStoreOffline: Bool { manifest.header.isStoreOffline }
  package var state: FilePath { FilePath(manifest.header.state) }
  package var workers: Int { manifest.header.workers }
  /// Where the processes of this attempt find how much they may read and write.
  package var paceFile: FilePath { folder.pace(index) }
  /// Whether the stages of its store are handed out.
  package var handsOut: Bool { manifest.header.handsOut }
  package var isFresh: Bool { manifest.header.isFresh }
  /// Whether somebody wants to know what happens to single stores.
  package var tellsEvents: Bool { manifest.header.tellsEvents }
  package var name: String { "bundle \(index) of \(folder.name)" }

  /// - Parameters:
  ///   - path: Of `manifest.jsonl`.
  ///   - index: From 0.
  /// - Throws: ``ClusterError/badManifest(path:reason:)``.
  package init(manifest path: FilePath, index: Int) throws {
    let path = path.whole
    manifest = try BundleManifest(at: path)
    self.index = index
    folder = BundleFolder(path.removingLastComponent())
    // In a copy nobody would look for results.
    let own = BundleFolder(manifest.header.name, in: FilePath(manifest.header.state))
    guard folder.path.isSamePlace(as: own.path) else {
      throw ClusterError.badManifest(path: path.string, reason: "its place is \(own.manifest)")
    }
    guard manifest.header.bundles.indices.contains(index) else {
      _ = try manifest.bundle(index)
      attempt = ""
      return
    }
    attempt = TaskName.attempt
  }

  /// Takes an event of the run that ``run(_:)`` was given.
  package func take(_ event: PipelineEvent) {
    if case .store(let store, let event) = event { sink.add(event, of: store) }
  }

  /// Does what is left of the bundle. Cancelling the task stops within seconds.
  ///
  /// - Parameter run: Makes the pipeline's run, once it is known that there is something to do.
  package func run(_ run: () throws -> PipelineRun) async throws -> Ending {
    if try FileKind(at: folder.done(index)) != .none { return .done }
    let permit: LeaseToken
    do {
      permit = try LeaseToken(ofFileAt: folder.permit)
    } catch let error as DurabilityError where error.isNotFound {
      return .revoked
    }
    try DurableFile.write(
      Array(JSONLine.text(of: TaskName.start).utf8), to: folder.start(index, attempt))
    let lease: HeldLease
    do {
      lease = try HeldLease(
        acquiring: folder.lock(index), patienceSeconds: Self.patienceSeconds)
    } catch DurabilityError.locked {
      return .elsewhere
    }
    // It may have been finished while we waited.
    if try FileKind(at: folder.done(index)) != .none { return .done }
    let isWhole: Bool
    var isOther = false
    var results: Int?
    let bundle = try manifest.bundle(index)
    let run = try unchanged(run)
    switch bundle {
    case .stores(let stores):
      if let run { try check(stores, StoreReach(run.pipeline)) }
      (isWhole, results) = try await migrate(stores, run, lease, permit)
    case .units(let units):
      // Where the pipeline has changed, the store's own process finds that out, too.
      guard let run else {
        isWhole = true
        break
      }
      isOther = try !isOfSameBuild(run)
      isWhole =
        isOther
        ? true : try await perform(units, run) { PipelineRun.Setting.loss(lease, permit) }
    }
    _ = try? DurableFile.removeIfPresent(paceFile, surviving: .processCrash)
    guard try lease.isCurrent else { return .elsewhere }
    guard try permit.isCurrent else { return .revoked }
    guard isWhole else { return .stopped }
    let end = BundleEnd(attempt: attempt, results: results)
    try DurableFile.write(Array(JSONLine.text(of: end).utf8), to: folder.done(index))
    withExtendedLifetime(lease) {}
    return isOther ? .otherBuild : .done
  }

  /// Nil where the pipeline's file is no longer what the manifest was made of, whatever it is now.
  private func unchanged(_ run: () throws -> PipelineRun) throws -> PipelineRun? {
    let digest = manifest.header.pipelineDigest
    guard try Pipeline.digest(ofFile: FilePath(pipeline)) == digest else { return nil }
    let run = try run()
    // It may have been changed since.
    return run.pipeline.digest == digest ? run : nil
  }

  private func check(_ stores: [FoundStore], _ reach: StoreReach) throws {
    guard let foreign = stores.first(where: { !reach.means($0) }) else { return }
    throw ClusterError.badManifest(path: manifest.path.string, foreign: foreign.path)
  }

  /// 3. The process before ours may be about to end.
  private static let patienceSeconds = 3.0
}

// Stores.
extension BundleWork {
  /// - Parameter run: Nil where the stores are left as they are, since the pipeline's file changed.
  /// - Returns: Whether every store has a result, and how many have one that is not found out again.
  private func migrate(
    _ stores: [FoundStore], _ run: PipelineRun?, _ lease: HeldLease, _ permit: LeaseToken
  ) async throws -> (isWhole: Bool, results: Int) {
    let earlier = try folder.markers().results[index] ?? []
    let final = try folder.finalResults(of: index, earlier)
    let known = Set(final.map { FilePath($0.store) })
    let news = Set(final.filter(\.isNews).map { FilePath($0.store) })
    let left = stores.filter { !known.contains($0.path) }
    if left.isEmpty { return (true, news.count) }
    let books = try BundleBooks(manifest.header, results: folder.results(index, attempt))
    sink.set(books)
    guard let run else {
      let now = Date().timeIntervalSince1970
      for store in left {
        books.add(
          MigrationResult(changingUnder: store.path.string),
          StoreFacts(store: store, started: now, mark: ""))
      }
      return end(of: stores, known, news, await books.close())
    }
    try Pace.set(share(run.pipeline.limits.ioBytesPerSecond), in: paceFile)
    let setting = PipelineRun.Setting(
      books: books, hosts: run.hosts(pace: paceFile), lease: lease, permit: permit)
    await work(left, run, setting)
    await setting.hosts.close()
    return end(of: stores, known, news, await books.close())
  }

  private func end(
    of stores: [FoundStore], _ known: Set<FilePath>, _ news: Set<FilePath>,
    _ own: (written: Set<FilePath>, news: Set<FilePath>)
  ) -> (isWhole: Bool, results: Int) {
    (
      known.union(own.written).isSuperset(of: stores.map(\.path)), news.union(own.news).count
    )
  }

  func share(_ bytesPerSecond: Int64?) -> Int64? {
    bytesPerSecond.map { max(1, $0 / Int64(max(1, manifest.header.slots))) }
  }

  private enum Step: Sendable {
    case ended(FoundStore, MigrationResult)
    /// Time to look at the clock and at what the operator asks for.
    case tick
  }

  private func work(
    _ stores: [FoundStore], _ run: PipelineRun, _ setting: PipelineRun.Setting
  ) async {
    // What is tried again, and when the run stops for its failures, the coordinator decides.
    var limits = run.pipeline.limits
    limits.failureBudget = nil
    var flow = RunFlow(
      queue: StoreQueue(
        waves: [stores], workerCount: manifest.header.workers, need: run.workers(for:)),
      limits: limits, inUse: .skip, retries: false)
    var isStopped = false
    await withTaskGroup(of: Step.self) { group in
      func tick() {
        group.addTask {
          try? await Task.sleep(for: .milliseconds(500))
          return .tick
        }
      }
      look(&flow, run, setting)
      tick()
      while !Task.isCancelled, !isStopped, flow.advance() {
        let now = SteadyClock.seconds
        let held = flow.held(load: flow.load == nil ? nil : SystemLoad.now)
        while held == nil, let (store, workers) = flow.next(at: now) {
          group.addTask {
            .ended(store, await run.migrate(store, workers: workers, setting).result)
          }
        }
        switch await group.next() {
        case .ended(let store, let result):
          _ = flow.take(store, result, at: SteadyClock.seconds)
        case .tick:
          look(&flow, run, setting)
          isStopped = setting.isLost
          tick()
        case nil: break
        }
      }
      group.cancelAll()
    }
  }

  private func look(
    _ flow: inout RunFlow, _ run: PipelineRun, _ setting: PipelineRun.Setting
  ) {
    look(&flow, run, loss: setting.loss)
    setting.isPaused.isSet = flow.control.isPaused
  }

  func look(_ flow: inout RunFlow, _ run: PipelineRun, loss: RunFlow.Stop?) {
    flow.look(at: Date().timeIntervalSince1970, loss: loss)
    var control = (try? RunControl.read(in: run.state)) ?? flow.control
    // A task has as many as its array says.
    control.workers = nil
    guard flow.take(control) else { return }
    try? Pace.set(flow.control.isPaused ? 0 : share(flow.ioBytesPerSecond), in: paceFile)
  }
}

/// Where events of stores go, once there is something.
private final class EventSink: Sendable {
  private let books = Mutex<BundleBooks?>(nil)

  func set(_ books: BundleBooks) { self.books.withLock { $0 = books } }
  func add(_ event: RunEvent, of store: FoundStore) {
    books.withLock { $0 }?.add(event, of: store)
  }
}

/// What a task of a scheduler is called.
enum TaskName {
  /// A name that no other start of a task has: job and task where the scheduler says them, the number of
  /// the restart, and chance, since a scheduler that forgot a job gives its number to another.
  static var attempt: String {
    let start = start
    let chance = String(UInt32.random(in: .min ... .max), radix: 16)
    let name = start.job ?? "\(start.host)-\(start.process)"
    let safe = name.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") ? $0 : "-" }
    return String(safe.prefix(80)) + "-\(start.restarts ?? 0)-" + chance
  }

  static var start: AttemptStart {
    func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
    var start = AttemptStart(
      host: MachineName.text, process: getpid(), time: Date().timeIntervalSince1970)
    if let job = variable("SLURM_ARRAY_JOB_ID"), let task = variable("SLURM_ARRAY_TASK_ID") {
      // `SLURM_JOB_ID` of an array's last task is that of the array.
      start.job = "\(job)_\(task)"
    }
    start.restarts = variable("SLURM_RESTART_COUNT").flatMap(Int.init)
    if let node = variable("SLURMD_NODENAME") { start.host = node }
    return start
  }
}
