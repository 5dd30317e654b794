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
  private let questions: SchedulerQuestions
  /// What got lost, until it is submitted again.
  private var waitingAgain: [TaskSubmission] = []
  let books: any StoreBooks
  private let lease: HeldLease
  let cutter: BundleCutter
  let limits: SchedulerLimits
  /// What the headers of new manifests have in common.
  private let template: BundleManifest.Header

  var arrays: [ClusterArray] = []
  var owned: Set<FilePath> = []
  /// Stores whose units are on their way.
  var waitingForUnits: [FilePath: FoundStore] = [:]
  private(set) var report = ClusterProgress()
  /// What nobody but their holders can go on with, for people.
  private(set) var heldByUnknown: [String] = []
  private var lastLook = -Double.infinity
  var restartsOfFinished = 0
  /// Of the arrays' names.
  private var lastNumber = 0

  init(
    _ run: PipelineRun, _ scheduler: any ArrayScheduler, _ limits: SchedulerLimits,
    _ setting: PipelineRun.Setting
  ) throws {
    let (books, lease) = (setting.books, setting.lease)
    self.run = run
    self.books = books
    self.lease = lease
    self.limits = limits
    questions = SchedulerQuestions(
      scheduler,
      // A question that has no answer yet keeps nobody from the state folder once this start has ended.
      lease: { [weak lease, path = lease.token.path] in
        guard let lease else { throw DurabilityError.locked(FilePath(path)) }
        try lease.requireCurrent()
      }, observe: run.observe)
    cutter = BundleCutter(run.pipeline.cluster, slots: limits.slots)
    template = BundleManifest.Header(
      name: "", pipeline: run.pipeline.file.absolute.string, state: run.clusterState.string,
      pipelineDigest: run.pipeline.digest, run: books.run, settings: books.settings,
      losses: run.template.losses,
      guardsUnknownVersions: run.template.guardsUnknownVersions ? true : nil,
      isStoreOffline: run.template.isStoreOffline, wave: 0, workers: run.clusterWorkers,
      slots: limits.slots, isFresh: run.options.isFresh || books.isFresh,
      tellsEvents: run.tellsEvents, units: nil,
      handsOut: false, bundles: [], request: run.requestDigest(books.settings),
      code: books.code)
  }

  /// Whether tasks of an array do what this start would have done: the operator may have changed the
  /// pipeline's file or the options since.
  func isSame(_ header: BundleManifest.Header) -> Bool {
    FilePath(header.state).isSamePlace(as: FilePath(template.state))
      && header.run == template.run && SettingsDigest.areSame(header.settings, template.settings)
      && header.request == template.request && !run.options.isFresh
  }

  /// Whether the store is in an array that is not over.
  func owns(_ store: FoundStore) -> Bool { owned.contains(store.path) }
  var isEmpty: Bool { arrays.isEmpty }
  /// Whether this start may leave the arrays to others: all that is cut is submitted, and what earlier starts
  /// submitted is in the scheduler's queue or in somebody's hands. A scheduler that does not answer is not waited
  /// for here: who submits the next start asks it.
  var canBeLeft: Bool {
    guard waitingAgain.isEmpty, !questions.isSubmitting,
      arrays.allSatisfy({ $0.progress.waiting == 0 })
    else { return false }
    return arrays.allSatisfy(\.progress.isSure) || questions.hasNobody
      || questions.silence != nil
  }
  /// Tasks that were begun again without a further submission, by the scheduler or by hand.
  var restarted: Int { arrays.reduce(restartsOfFinished) { $0 + $1.progress.restarts } }

  /// Takes up an array of an earlier start. Its tasks may be at work.
  ///
  /// - Parameter store: The one whose units they are.
  mutating func adopt(_ array: ClusterArray, store: FoundStore?) throws {
    var array = array
    try array.adopt(isSameTry: run.context.followerToken != nil)
    for stores in array.stores { owned.formUnion(stores.map(\.path)) }
    if let store {
      owned.insert(store.path)
      waitingForUnits[store.path] = store
    }
    lastNumber = max(lastNumber, array.number)
    arrays.append(array)
  }

  /// Cuts stores into bundles. What they become others begin with, once ``submitWaiting(isHeld:)`` has
  /// submitted it.
  mutating func add(_ stores: [FoundStore], wave: Int) throws {
    let stores = stores.map { run.namingSnapshot($0, books) }
    let large = stores.filter(cutter.isCut)
    let small = stores.filter { !cutter.isCut($0) }
    owned.formUnion(stores.map(\.path))
    // A large store has steps that one task performs alone: small ones fill the machines meanwhile.
    try write(large.map { .stores([$0]) }, wave: wave) { $0.handsOut = true }
    try write(cutter.bundles(small).map { .stores($0) }, wave: wave)
  }

  mutating func write(
    _ bundles: [BundleManifest.Bundle], wave: Int,
    _ change: (inout BundleManifest.Header) -> Void = { _ in }
  ) throws {
    for start in stride(from: 0, to: bundles.count, by: limits.arrayTasks) {
      try lease.requireCurrent()
      var header = template
      header.wave = wave
      header.name = newName()
      header.made = Date().timeIntervalSince1970
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
  /// Submits what waits, as far as the scheduler's limits go. One that does not answer soon is not waited
  /// for.
  ///
  /// - Parameter isHeld: Whether nothing may be submitted for the first time.
  /// - Returns: What was submitted.
  mutating func submitWaiting(isHeld: Bool) async throws -> [ClusterSubmission] {
    let end = ContinuousClock.now + .seconds(Self.submitSeconds)
    var submissions: [ClusterSubmission] = []
    repeat {
      await questions.wait(seconds: Self.submitSeconds)
      if let (submission, job) = try questions.takeSubmitted(),
        let place = arrays.firstIndex(where: { $0.folder == submission.array })
      {
        submissions.append(take(submission, job, at: place))
      }
      guard !questions.isSubmitting, !Task.isCancelled,
        let next = waitingAgain.popLast() ?? (isHeld ? nil : nextWaiting())
      else { break }
      try lease.requireCurrent()
      questions.submit(next)
    } while ContinuousClock.now < end
    return submissions
  }

  /// 2 s, and then it is time to look at results.
  private static let submitSeconds = 2.0

  /// Whether there is something that may be submitted.
  var canSubmit: Bool {
    !questions.isSubmitting && (!waitingAgain.isEmpty || nextWaiting() != nil)
  }
  /// How many bundles are not finished.
  var openCount: Int { arrays.reduce(0) { $0 + $1.progress.open.count } }

  private func nextWaiting() -> TaskSubmission? {
    guard let place = arrays.firstIndex(where: { $0.progress.waiting > 0 }) else { return nil }
    let array = arrays[place]
    let waiting = array.progress.bundles.indices.filter {
      array.progress.bundles[$0].submissions == 0
    }
    let under = arrays.reduce(0) { $0 + $1.progress.open.count - $1.progress.waiting }
    guard under == 0 || under + waiting.count <= limits.tasks else { return nil }
    // With a number of machines, arrays follow one another.
    let before =
      run.pipeline.cluster.nodes == nil
      ? [] : arrays[..<place].filter { $0.progress.waiting == 0 }.suffix(1).map(\.name)
    return TaskSubmission(
      array: array.folder, indices: waiting, after: Array(before),
      isOfLargeStore: array.isOfLargeStore)
  }

  private mutating func take(
    _ submission: TaskSubmission, _ job: String, at place: Int
  ) -> ClusterSubmission {
    let (name, count) = (arrays[place].name, submission.indices.count)
    arrays[place].progress.submitted(submission.indices)
    arrays[place].note(
      job: job, indices: submission.indices, at: Date().timeIntervalSince1970)
    if let neverStarted = submission.neverStarted {
      report.resubmitted += count
      report.neverStarted += neverStarted
    }
    return ClusterSubmission(
      array: name, job: job, tasks: count, again: submission.neverStarted != nil,
      neverStarted: submission.neverStarted)
  }
}

// What is followed.
extension ClusterWork {
  /// What a look at the folders brought.
  struct News {
    var results: [(store: FoundStore, result: BundleResult)] = []
    /// Of commits that earlier runs began: the results of their stores are still to come.
    var earlierCommits: [(store: FoundStore, result: BundleResult)] = []
    var events: [(store: FilePath, event: RunEvent)] = []
    /// Stores that nobody has in hand any more, without a result that is new.
    var left: [FoundStore] = []
  }

  /// Reads what is new. Arrays that are over go, and what they were waited for is cut.
  mutating func read() throws -> News {
    var news = News()
    for place in arrays.indices {
      let array = arrays[place]
      let found = array.storesByPath
      for line in try arrays[place].read() {
        if let result = line.result {
          guard let store = found[FilePath(result.store)] else { continue }
          if result.isOfEarlierCommit {
            news.earlierCommits.append((store, result))
          } else if let handedOut = result.end.handedOut {
            if try handOut(handedOut, of: store, by: array) { news.left.append(store) }
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

  /// Asks the scheduler, and by what it answered finds what got lost: ``submitWaiting(isHeld:)`` submits
  /// it again.
  ///
  /// - Throws: ``ClusterError/bundleLost(array:index:attempts:)``.
  mutating func look(at time: Double) throws {
    // Commands of the scheduler's cost it something, and folders say what is finished.
    if time - lastLook >= (arrays.count > 5 ? 10 : 2) {
      lastLook = time
      questions.ask(arrays.map(\.name))
    }
    defer { takeReport() }
    // What is submitted now no answer knows.
    guard waitingAgain.isEmpty, !questions.isSubmitting, let tasks = questions.takeAnswer() else {
      return
    }
    for place in arrays.indices {
      let array = arrays[place]
      let actions = arrays[place].progress.actions(
        at: time, tasks: tasks[array.name] ?? [:], isHeld: array.isHeld)
      var (again, neverStarted, lost) = ([Int](), 0, [String]())
      for action in actions {
        switch action {
        case .submit(let index, let hadBegun):
          again.append(index)
          if !hadBegun { neverStarted += 1 }
        case .replace(let index):
          again.append(index)
          neverStarted += 1
          lost += (tasks[array.name]?[index]?.name).map { [$0] } ?? []
        case .giveUp(let index, let count):
          throw ClusterError.bundleLost(array: array.name, index: index, attempts: count)
        }
      }
      guard !again.isEmpty else { continue }
      waitingAgain.append(
        TaskSubmission(
          array: array.folder, indices: again, isOfLargeStore: array.isOfLargeStore,
          neverStarted: neverStarted, lost: lost))
    }
  }

  private mutating func takeReport() {
    report.arrays = arrays.count
    report.bundles = arrays.reduce(0) { $0 + $1.progress.bundles.count }
    report.finished = arrays.reduce(0) { $0 + $1.progress.doneCount }
    report.restarted = restarted
    report.held = arrays.reduce(0) { $0 + $1.progress.waiting }
    let states = arrays.flatMap { array in
      array.progress.open.compactMap { array.progress.bundles[$0].state }
    }
    report.running = states.count { $0.phase == .running }
    heldByUnknown = arrays.flatMap { array in
      array.progress.bundles.indices.filter { array.progress.bundles[$0].isHeldByUnknown }
        .map { "Bundle \($0) of \(array.name) is held by \(array.holder(of: $0))" }
    }
    report.silent = questions.silence
    // What it said before may be over.
    report.stuck =
      report.silent == nil ? Set(states.filter(\.isStuck).map(\.reason)).sorted() : []
  }
}

// The end.
extension ClusterWork {
  /// Takes back what the scheduler has never taken, since it refuses: nobody else would. The folders stay
  /// for the next start, in case a submission without an answer came through before that.
  ///
  /// - Throws: Where a permit stays.
  func revokeUnsubmitted() throws {
    for array in arrays where array.progress.bundles.allSatisfy({ $0.submissions == 0 }) {
      try lease.requireCurrent()
      try array.folder.revoke()
    }
  }

  /// Asks the scheduler for nothing further.
  func endQuestions() { questions.end() }
}
