import Foundation
import Glibc
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPlanning
import SystemPackage

/// The work of a run that others do: cut into bundles, submitted, followed by what lies in the folders of
/// its arrays, submitted again where it got lost. Belongs to the coordinator's loop.
struct ClusterWork {
  let run: PipelineRun
  let scheduler: any ArrayScheduler
  let cutter: BundleCutter
  let limits: SchedulerLimits
  /// What the headers of new manifests have in common.
  private let template: BundleManifest.Header

  private(set) var arrays: [ClusterArray] = []
  private var owned: Set<FilePath> = []
  /// Stores whose units are on their way.
  private var waitingForUnits: [FilePath: FoundStore] = [:]
  /// How often the units of a stage of a store were handed out.
  private var handOuts: [String: Int] = [:]
  private(set) var report = ClusterProgress()
  /// What nobody but their holders can go on with, for people.
  private(set) var heldByUnknown: [String] = []
  private var lastLook = 0.0
  private var restartsOfFinished = 0
  /// Of the arrays' names.
  private var lastNumber = 0

  init(
    _ run: PipelineRun, _ scheduler: any ArrayScheduler, _ limits: SchedulerLimits,
    books: any StoreBooks
  ) {
    self.run = run
    self.scheduler = scheduler
    self.limits = limits
    cutter = BundleCutter(run.pipeline.cluster, slots: limits.slots)
    template = BundleManifest.Header(
      name: "", pipeline: run.pipeline.file.absolute.string, state: run.clusterState.string,
      pipelineDigest: run.pipeline.digest, run: books.run, settings: books.settings,
      losses: run.template.losses,
      isStoreOffline: run.template.isStoreOffline, wave: 0, workers: run.clusterWorkers,
      slots: limits.slots, isFresh: run.options.isFresh, tellsEvents: run.tellsEvents, units: nil,
      handsOut: false, bundles: [])
  }

  /// Whether the store is in an array that is not over.
  func owns(_ store: FoundStore) -> Bool { owned.contains(store.path) }
  var isEmpty: Bool { arrays.isEmpty }
  /// Tasks that the scheduler itself started again.
  var restarted: Int { arrays.reduce(restartsOfFinished) { $0 + $1.progress.restarts } }
  var names: [String] { arrays.map(\.name) }

  /// Takes up an array of an earlier start. Its tasks may be at work.
  ///
  /// - Parameter store: The one whose units they are.
  mutating func adopt(_ array: ClusterArray, store: FoundStore?) {
    var array = array
    // Whether they were submitted the scheduler knows; those that it does not know are missing.
    array.progress.submitted(Array(array.header.bundles.indices))
    for stores in array.stores { owned.formUnion(stores.map(\.path)) }
    if let store {
      owned.insert(store.path)
      waitingForUnits[store.path] = store
    }
    lastNumber = max(lastNumber, Int(array.name.prefix { $0 != "-" }) ?? 0)
    arrays.append(array)
  }

  /// Cuts stores into bundles. What they become others begin with, once ``submitWaiting()`` has
  /// submitted it.
  mutating func add(_ stores: [FoundStore], wave: Int) throws {
    let large = stores.filter(cutter.isCut)
    let small = stores.filter { !cutter.isCut($0) }
    owned.formUnion(stores.map(\.path))
    // A large store has steps that one task performs alone: small ones fill the machines meanwhile.
    try write(large.map { .stores([$0]) }, wave: wave) { $0.handsOut = true }
    try write(cutter.bundles(small).map { .stores($0) }, wave: wave)
  }

  private mutating func write(
    _ bundles: [BundleManifest.Bundle], wave: Int,
    _ change: (inout BundleManifest.Header) -> Void = { _ in }
  ) throws {
    for start in stride(from: 0, to: bundles.count, by: limits.arrayTasks) {
      var header = template
      header.wave = wave
      header.name = newName()
      change(&header)
      let part = Array(bundles[start..<min(bundles.count, start + limits.arrayTasks)])
      arrays.append(try ClusterArray(part, header, in: run.clusterState))
    }
  }

  /// A name that no array has had: the scheduler may know an older one still.
  private mutating func newName() -> String {
    lastNumber += 1
    let digits = String(lastNumber)
    let chance = String(UInt32.random(in: 0x1000_0000 ... .max), radix: 16)
    return String(repeating: "0", count: max(0, 6 - digits.count)) + digits + "-" + chance
  }
}

// What is submitted.
extension ClusterWork {
  /// Submits what waits, as far as the scheduler's limits go.
  mutating func submitWaiting() async throws -> [ClusterSubmission] {
    var submissions: [ClusterSubmission] = []
    for place in arrays.indices where arrays[place].progress.waiting > 0 {
      let waiting = arrays[place].progress.bundles.indices.filter {
        arrays[place].progress.bundles[$0].submissions == 0
      }
      let under = arrays.reduce(0) { $0 + $1.progress.open.count - $1.progress.waiting }
      guard under == 0 || under + waiting.count <= limits.tasks else { break }
      submissions.append(try await submit(waiting, of: place, neverStarted: nil))
    }
    return submissions
  }

  private mutating func submit(
    _ indices: [Int], of place: Int, neverStarted: Int?
  ) async throws -> ClusterSubmission {
    let array = arrays[place]
    // With a number of machines, arrays follow one another.
    let before =
      run.pipeline.cluster.nodes == nil || neverStarted != nil
      ? [] : arrays[..<place].filter { $0.progress.waiting == 0 }.suffix(1).map(\.name)
    let job = try await scheduler.submit(
      array.folder, indices, after: Array(before), isOfLargeStore: array.isOfLargeStore)
    array.note(job: job, indices: indices, at: Date().timeIntervalSince1970)
    arrays[place].progress.submitted(indices)
    return ClusterSubmission(
      array: array.name, job: job, tasks: indices.count, again: neverStarted != nil,
      neverStarted: neverStarted)
  }
}

// What is followed.
extension ClusterWork {
  /// What a look at the folders brought.
  struct News {
    var results: [(store: FoundStore, result: BundleResult)] = []
    var events: [(store: FilePath, event: RunEvent)] = []
  }

  /// Reads what is new. Arrays that are over go, and what they were waited for is cut.
  mutating func read() throws -> News {
    var news = News()
    for place in arrays.indices {
      let array = arrays[place]
      let found = Dictionary(
        array.stores.joined().map { ($0.path, $0) }, uniquingKeysWith: { $1 })
      for line in try arrays[place].read() {
        if let result = line.result {
          guard let store = found[FilePath(result.store)] else { continue }
          if let handedOut = result.end.handedOut {
            try handOut(handedOut, of: store, wave: array.header.wave)
          } else {
            // It may be tried again before its array is over.
            owned.remove(store.path)
            news.results.append((store, result))
          }
        } else if let event = line.event, let store = line.store {
          news.events.append((FilePath(store), event))
        }
      }
    }
    return news
  }

  /// Arrays that are over. Their folders may go once their results are written down.
  mutating func takeFinished() throws -> [ClusterArray] {
    let finished = arrays.filter(\.progress.isDone)
    restartsOfFinished += finished.reduce(0) { $0 + $1.progress.restarts }
    arrays.removeAll(where: \.progress.isDone)
    for array in finished {
      for store in array.stores.joined() where waitingForUnits[store.path] == nil {
        owned.remove(store.path)
      }
      guard let work = array.header.units,
        !arrays.contains(where: { $0.header.units?.store == work.store })
      else { continue }
      let path = FilePath(work.store)
      guard let store = waitingForUnits.removeValue(forKey: path) else { continue }
      // What was handed out again and again its own process performs, and says what is wrong.
      let isWhole = handOuts["\(work.store) \(work.stage)", default: 0] >= RetryPolicy.attempts
      owned.insert(path)
      try write([.stores([store])], wave: array.header.wave) {
        // What others have finished is not to be forgotten now.
        ($0.handsOut, $0.isFresh) = (!isWhole, false)
      }
    }
    return finished
  }

  private mutating func handOut(
    _ handedOut: HandedOut, of store: FoundStore, wave: Int
  ) throws {
    waitingForUnits[store.path] = store
    owned.insert(store.path)
    // An earlier start has cut them already.
    guard !arrays.contains(where: { $0.header.units == handedOut.work }) else { return }
    handOuts["\(handedOut.work.store) \(handedOut.work.stage)", default: 0] += 1
    let bundles = cutter.bundles(
      units: handedOut.units, shardBytes: run.template.shardBytes)
    try write(bundles.map { .units($0) }, wave: wave) { $0.units = handedOut.work }
  }

  /// Asks the scheduler, and submits what got lost.
  ///
  /// - Throws: ``ClusterError/bundleLost(array:index:attempts:)``.
  mutating func look(at time: Double) async throws -> [ClusterSubmission] {
    // Commands of the scheduler's cost it something, and folders say what is finished.
    guard time - lastLook >= (arrays.count > 5 ? 10 : 2) else { return [] }
    lastLook = time
    let tasks = await scheduler.tasks(of: names)
    var submissions: [ClusterSubmission] = []
    for place in arrays.indices {
      let array = arrays[place]
      let actions = arrays[place].progress.actions(
        at: time, tasks: tasks.map { $0[array.name] ?? [:] }, isHeld: array.isHeld)
      var (again, neverStarted, lost) = ([Int](), 0, [String]())
      for action in actions {
        switch action {
        case .submit(let index, let hadBegun):
          again.append(index)
          if !hadBegun { neverStarted += 1 }
        case .replace(let index):
          again.append(index)
          neverStarted += 1
          lost += (tasks?[array.name]?[index]?.name).map { [$0] } ?? []
        case .giveUp(let index, let count):
          throw ClusterError.bundleLost(array: array.name, index: index, attempts: count)
        }
      }
      guard !again.isEmpty else { continue }
      await scheduler.cancel(tasks: lost)
      submissions.append(try await submit(again, of: place, neverStarted: neverStarted))
      report.resubmitted += again.count
      report.neverStarted += neverStarted
    }
    takeReport()
    return submissions
  }

  private mutating func takeReport() {
    report.arrays = arrays.count
    report.bundles = arrays.reduce(0) { $0 + $1.progress.bundles.count }
    report.finished = arrays.reduce(0) { $0 + $1.progress.doneCount }
    report.restarted = restarted
    report.held = arrays.reduce(0) { $0 + $1.progress.waiting }
    let states = arrays.flatMap { array in array.progress.bundles.compactMap(\.state) }
    report.running = states.count { $0.phase == .running }
    heldByUnknown = arrays.flatMap { array in
      array.progress.bundles.indices.filter { array.progress.bundles[$0].isHeldByUnknown }
        .map { "Bundle \($0) of \(array.name) is held by \(array.holder(of: $0))" }
    }
    report.stuck = Set(states.filter(\.isStuck).map(\.reason)).sorted()
  }
}

// The end.
extension ClusterWork {
  /// Takes back what is under way: from here on nothing of it is committed.
  func revokeAll() async throws {
    for array in arrays { try array.folder.revoke() }
    await scheduler.cancel(names)
  }

  /// Waits for the attempts that are alive to end.
  func waitForEnds(seconds: Double) async {
    let end = ContinuousClock.now + .seconds(seconds)
    while ContinuousClock.now < end, arrays.contains(where: { $0.isAlive() }) {
      // Not to be cut short by the cancellation that led here.
      _ = try? await onOwnThread { usleep(100_000) }
    }
  }
}

extension FilePath {
  /// From the root on, for processes that stand elsewhere.
  var absolute: FilePath { resolved ?? resolvingFolders }
}
