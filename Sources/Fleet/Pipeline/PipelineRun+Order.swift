import Foundation
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import Synchronization
import SystemPackage

// One store after the other, and side by side.
extension PipelineRun {
  /// What the stores of a run have in common while it lasts.
  struct Setting: Sendable {
    var books: any StoreBooks
    var hosts: StoreHosts
    /// The right to work in the state folder, or on the bundle.
    var lease: HeldLease
    /// The coordinator's permission to work on the bundle; nil in its own process.
    var permit: LeaseToken?
    /// Set while the operator has the run stand still.
    let isPaused = PauseFlag()
    /// What became of stores in this start.
    let outcomes = StoreOutcomes()

    /// Whether somebody is known to have taken the work over. Every commit asks again, and refuses
    /// where that cannot be told.
    var isLost: Bool { loss != nil }

    /// The same, with how it was lost.
    var loss: RunFlow.Stop? { Self.loss(lease, permit) }

    static func loss(_ lease: HeldLease, _ permit: LeaseToken?) -> RunFlow.Stop? {
      let lost =
        (try? lease.isCurrent) == false
        ? lease.token : (try? permit?.isCurrent) == false ? permit : nil
      return lost.map { $0.isGone ? .lockGone(FilePath($0.path)) : .leaseLost }
    }
  }

  final class PauseFlag: Sendable {
    private let flag = Atomic(false)
    var isSet: Bool {
      get { flag.load(ordering: .relaxed) }
      set { flag.store(newValue, ordering: .relaxed) }
    }
  }

  private enum Step: Sendable {
    case outcome(Outcome)
    /// Time to look at the clock and at what the operator asks for.
    case tick
  }

  private static let tickInterval = Duration.milliseconds(500)

  func migrate(
    _ waves: [[FoundStore]], _ setting: Setting, _ summary: inout PipelineSummary
  ) async {
    var flow = RunFlow(
      queue: StoreQueue(waves: waves, workerCount: pool.workerCount, need: workers(for:)),
      limits: pipeline.limits, inUse: pipeline.stores.inUse, failures: summary.failed)
    var inFlight: Set<FoundStore> = []
    var wave = -1
    var knowsLoad = true
    await withTaskGroup(of: Step.self) { group in
      func tick() {
        group.addTask {
          try? await Task.sleep(for: Self.tickInterval)
          return .tick
        }
      }
      look(&flow, setting, isFirst: true)
      tick()
      while !Task.isCancelled, flow.advance() {
        if wave != flow.queue.wave {
          wave = flow.queue.wave
          if flow.waves > 1 {
            observe(
              .wave(
                WaveStart(wave: wave + 1, waves: flow.waves, stores: flow.queue.waveSizes[wave])))
          }
        }
        let now = SteadyClock.seconds
        let load = flow.load == nil ? nil : SystemLoad.now
        if knowsLoad, flow.load != nil, load == nil {
          knowsLoad = false
          observe(
            .warning("The system does not tell its load average. The limit of load is not kept."))
        }
        let held = flow.held(load: load)
        while held == nil, let (store, workers) = flow.next(at: now) {
          inFlight.insert(store)
          group.addTask { .outcome(await migrate(store, workers: workers, setting)) }
        }
        switch await group.next() {
        case .outcome(let outcome):
          inFlight.remove(outcome.store)
          take(outcome, &flow, setting, &summary)
        case .tick:
          look(&flow, setting, isFirst: false)
          tell(flow, inFlight, held: held, summary, setting)
          tick()
        case nil: break
        }
      }
      group.cancelAll()
      for await step in group {
        guard case .outcome(let outcome) = step else { continue }
        take(outcome, &flow, setting, &summary)
      }
    }
    // Its last stores may have come to their end before it looked again.
    if let loss = setting.loss { flow.look(at: 0, loss: loss) }
    summary.take(flow)
  }

  /// - Returns: False where the store is tried again.
  @discardableResult
  func take(
    _ outcome: Outcome, _ flow: inout RunFlow, _ setting: Setting,
    _ summary: inout PipelineSummary
  ) -> Bool {
    guard flow.take(outcome.store, outcome.result, at: SteadyClock.seconds) else {
      setting.outcomes.addLater(outcome.store, outcome.result)
      observe(.later(outcome.store, outcome.result))
      return false
    }
    end(outcome, setting, &summary)
    return true
  }

  func end(_ outcome: Outcome, _ setting: Setting, _ summary: inout PipelineSummary) {
    setting.outcomes.add(outcome.store, outcome.result)
    tell(outcome, &summary)
  }

  func tell(_ outcome: Outcome, _ summary: inout PipelineSummary) {
    summary.count(outcome.result)
    if outcome.isEarlier { summary.earlier = (summary.earlier ?? 0) + 1 }
    observe(.result(outcome.store, outcome.result))
  }

  /// Gives the stores that the run has not come to a result, too. For those that are as an earlier start
  /// left them nothing has to be done; what the ledger knows of the others holds until a start comes to
  /// them.
  func takeRest(
    _ stores: [FoundStore], _ setting: Setting, _ summary: inout PipelineSummary
  ) async {
    let rest = setting.outcomes.rest(of: stores)
    let unbegun = rest.filter { $0.later == nil }.map(\.store)
    let known = await sideBySide(unbegun) { store in
      setting.isLost || Self.refusal(of: store) != nil ? nil : settled(store, setting)
    }
    for (store, known) in zip(unbegun, known) {
      if let known {
        end(known, setting, &summary)
      } else {
        let outcome = Outcome(store: store, result: .init(notBegun: store.path.string))
        setting.outcomes.add(store, outcome.result)
        tell(outcome, &summary)
      }
    }
    for case (let store, let later?) in rest {
      end(Outcome(store: store, result: later), setting, &summary)
    }
    // Nothing was left to begin.
    if summary.pending == 0, summary.stopped == RunFlow.Stop.windowWord {
      (summary.stopped, summary.message) = (nil, nil)
    }
  }

  /// Looks at many stores side by side: each costs a few calls to a volume that may be far away.
  func sideBySide(
    _ stores: [FoundStore], _ look: @escaping @Sendable (FoundStore) -> Outcome?
  ) async -> [Outcome?] {
    var outcomes: [Outcome?] = Array(repeating: nil, count: stores.count)
    await withTaskGroup(of: [(Int, Outcome?)].self) { group in
      let size = max(1, (stores.count + 15) / 16)
      for start in stride(from: 0, to: stores.count, by: size) {
        group.addTask {
          (start..<min(stores.count, start + size)).map { ($0, look(stores[$0])) }
        }
      }
      for await part in group { for (place, outcome) in part { outcomes[place] = outcome } }
    }
    return outcomes
  }

  /// Looks at the clock, and at what the operator asks for.
  func look(_ flow: inout RunFlow, _ setting: Setting, isFirst: Bool) {
    flow.look(at: Date().timeIntervalSince1970, loss: setting.loss)
    guard flow.stop?.isLoss != true else { return }
    var control = (try? RunControl.read(in: state)) ?? flow.control
    // Tasks have as many as their array says, and nothing but tasks has any.
    if options.engine != .local { control.workers = nil }
    guard flow.take(control) || isFirst else { return }
    setting.isPaused.isSet = flow.control.isPaused
    do {
      try Pace.set(flow.control.isPaused ? 0 : flow.ioBytesPerSecond, in: paceFile)
    } catch {
      observe(.warning("The limit of I/O stays as it was: \(paceFile) cannot be written: \(error)"))
    }
  }

  func tell(
    _ flow: RunFlow, _ inFlight: Set<FoundStore>, held: String?, _ summary: PipelineSummary,
    _ setting: Setting, _ cluster: ClusterProgress? = nil
  ) {
    guard flow.stop?.isLoss != true else { return }
    let progress = RunProgress(
      pipeline: pipeline.name, run: setting.books.run, time: Date().timeIntervalSince1970,
      process: getpid(), found: summary.found, done: summary.done, notDone: summary.notDone,
      inFlight: inFlight.map(\.path.string).sorted(), waiting: flow.queue.waitingCount,
      wave: flow.waves > 1 ? flow.queue.wave + 1 : nil, waves: flow.waves > 1 ? flow.waves : nil,
      isPaused: flow.control.isPaused, workers: cluster == nil ? flow.queue.workerCount : nil,
      ioBytesPerSecond: flow.ioBytesPerSecond, load: flow.load, held: held, cluster: cluster)
    progress.write(in: state)
    observe(.progress(progress))
  }

  /// A folder that cannot be read may hold any number of stores: it counts as one that failed. So does a
  /// root that has lost its stores, and a pipeline that has none.
  func tellUnreadable(
    _ findings: StoreSearch.Findings, _ summary: inout PipelineSummary
  ) -> [MigrationResult] {
    findings.unreadable.map { place in
      let result = MigrationResult(
        store: place.path.unambiguousText, verdict: .failed, ending: .inputOutput,
        reasons: [Reason(reason: place.kind.rawValue, message: place.message)])
      summary.found += 1
      summary.count(result)
      observe(.result(nil, result))
      return result
    }
  }

  /// 4 MiB. What the stages of a small store finish stays in memory; the work of a larger one is worth
  /// going on with.
  private static let largestSmallStore: Int64 = 4 << 20

  /// One worker for each shard's worth of bytes; none for a store that is smaller than a shard.
  func workers(for store: FoundStore) -> Int {
    if store.bytes < min(template.shardBytes, Self.largestSmallStore) { return 0 }
    return min(pool.workerCount, Int(clamping: store.bytes / max(1, template.shardBytes)) + 1)
  }
}
