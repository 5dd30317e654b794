import Foundation
import GodwitDurableFiles
import SystemPackage

/// Decides what a run does next: what begins, what is tried again, and when it stops. Time is given
/// to it: of the window in seconds since 1970-01-01 UTC, else those of ``SteadyClock``.
struct RunFlow {
  /// Why a run ends before its last store.
  enum Stop: Equatable {
    case window(DailyWindow)
    /// - Parameters:
    ///   - stores: Of the wave, or of the run.
    ///   - wave: From 1; nil where the budget is of the whole run: without canary waves, and for a count.
    case failureBudget(failures: Int, allowed: Int, stores: Int, wave: Int?)
    case noWorkers
    /// Another run has taken over, while this one did not get on.
    case leaseLost
    /// The lock of the state folder is gone, or the folder itself.
    case lockGone(FilePath)
  }

  private(set) var queue: StoreQueue
  /// What the operator asks for.
  private(set) var control = RunControl()
  private(set) var stop: Stop?
  private let limits: RunLimits
  private let inUse: InUsePolicy
  private let workerCount: Int
  /// Whether a store may be tried again.
  private let retries: Bool
  private var failures = 0
  private var failuresOfWave = 0
  /// How often stores that have begun and not ended were tried before, and since when.
  private(set) var attempts: [FilePath: (count: Int, since: Double)] = [:]

  /// - Parameter failures: What failed before the first store began: it counts in the first wave.
  init(
    queue: StoreQueue, limits: RunLimits, inUse: InUsePolicy, retries: Bool = true,
    failures: Int = 0
  ) {
    self.queue = queue
    self.retries = retries
    self.limits = limits
    self.inUse = inUse
    workerCount = queue.workerCount
    (self.failures, failuresOfWave) = (failures, failures)
    if failures > 0 { checkBudget() }
  }

  var waves: Int { queue.waveSizes.count }
  var ioBytesPerSecond: Int64? {
    let asked = control.ioBytesPerSecond ?? limits.ioBytesPerSecond
    return asked == 0 ? nil : asked
  }
  var load: Double? {
    let asked = control.load ?? limits.load
    return asked == 0 ? nil : asked
  }

  /// Takes what the operator asks for.
  ///
  /// - Returns: Whether it is another than before.
  mutating func take(_ control: RunControl) -> Bool {
    guard control != self.control else { return false }
    self.control = control
    queue.workerCount = control.workers ?? workerCount
    return true
  }

  /// Looks at the clock: a run outside of its window stops.
  ///
  /// - Parameters:
  ///   - time: In seconds since 1970-01-01 UTC.
  ///   - loss: Set where the right to work is lost.
  mutating func look(at time: Double, loss: Stop? = nil) {
    if let loss { stop = loss }
    guard stop == nil, let window = limits.window, !window.contains(time: time),
      !queue.isWaveOver || queue.wave + 1 < waves
    else { return }
    stop = .window(window)
  }

  /// Why nothing begins although something could; nil where nothing is in the way.
  func held(load: Double?) -> String? {
    if control.isPaused { return "paused" }
    if let load, let limit = self.load, load > limit { return "load" }
    return nil
  }

  /// The next store that begins; nil where none may.
  mutating func next(at time: Double) -> (store: FoundStore, workers: Int)? {
    guard stop == nil else { return nil }
    guard let next = queue.next(at: time) else { return nil }
    if attempts[next.store.path] == nil { attempts[next.store.path] = (0, time) }
    return next
  }

  /// Takes up how often earlier starts tried a store that has begun, and since when.
  mutating func recall(_ store: FoundStore, count: Int, since: Double) {
    attempts[store.path] = (count, since)
  }

  /// Takes what became of a store.
  ///
  /// - Returns: False where the store is tried again, and this is not its result.
  mutating func take(_ store: FoundStore, _ result: MigrationResult, at time: Double) -> Bool {
    let (count, since) = attempts[store.path] ?? (0, time)
    if stop == nil, retries,
      let pause = RetryPolicy.secondsBeforeRetry(
        of: result, attempts: count.added(1), waited: time - since, inUse: inUse)
    {
      attempts[store.path] = (count.added(1), since)
      queue.putBack(store, until: time + pause)
      return false
    }
    attempts[store.path] = nil
    queue.end(store)
    if result.isFailure {
      failures += 1
      failuresOfWave += 1
      checkBudget()
    }
    if result.ending == .engineUnavailable { stop = stop ?? .noWorkers }
    return true
  }

  private mutating func checkBudget() {
    guard let budget = limits.failureBudget, stop == nil, queue.wave < waves else { return }
    let isOfRun = if case .count = budget { true } else { false }
    let stores = isOfRun ? queue.waveSizes.reduce(0, +) : queue.waveSizes[queue.wave]
    let allowed = budget.allowedFailures(among: stores)
    let count = isOfRun ? failures : failuresOfWave
    guard count > allowed else { return }
    stop = .failureBudget(
      failures: count, allowed: allowed, stores: stores,
      wave: waves > 1 && !isOfRun ? queue.wave + 1 : nil)
  }

  /// Goes on to the next wave when one is over.
  ///
  /// - Returns: False where everything is done, or the run stops.
  mutating func advance() -> Bool {
    guard stop == nil else { return false }
    while queue.isWaveOver {
      guard queue.beginNextWave() else { return false }
      failuresOfWave = 0
    }
    return true
  }
}

extension MigrationResult {
  /// Whether it counts against the failure budget.
  var isFailure: Bool {
    switch verdict {
    case .failed, .refused, .needsMapping: true
    case .migrated, .sameModel, .quarantined, .pending: false
    }
  }
}

extension RunFlow.Stop {
  static let budgetWord = "failure-budget"
  static let windowWord = "window"

  /// Whether the right to work is lost: what becomes of the run is not this start's to say.
  var isLoss: Bool { word == "lease" }

  var word: String {
    switch self {
    case .window: Self.windowWord
    case .failureBudget: Self.budgetWord
    case .noWorkers: "no-workers"
    case .leaseLost, .lockGone: "lease"
    }
  }

  var message: String {
    switch self {
    case .window(let window):
      "The time is outside of the window \(window). Run the same command within it to resume."
    case .failureBudget(let failures, let allowed, let stores, let wave):
      "\(failures) \(failures == 1 ? "store" : "stores")"
        + (wave.map { " of wave \($0), which has \(stores) \(stores == 1 ? "store" : "stores")," }
          ?? "")
        + " did not migrate: failed, refused or without a mapping model. The failure budget allows "
        + "\(allowed). Nothing further begins. See the reasons, fix the cause, and run again."
    case .leaseLost:
      "Another run has taken over, since this one did not get on. Nothing further begins. See the "
        + "result of the other run."
    case .lockGone(let lock):
      "\(lock), by which this run holds the state folder, is gone: it was moved or removed. Nothing further "
        + "begins. Put the folder back where it was moved, and run again."
    case .noWorkers:
      "Worker processes could not be started. Check the installation with `godwit doctor`."
    }
  }
}

/// How long something waits is told by a clock that nobody sets.
enum SteadyClock {
  private static let start = ContinuousClock.now

  /// Seconds since the first question of the process.
  static var seconds: Double { (ContinuousClock.now - start).inSeconds }
}

/// The system's load average of one minute.
enum SystemLoad {
  /// Nil where the system does not tell it.
  static var now: Double? {
    var load = 0.0
    return getloadavg(&load, 1) == 1 ? load : nil
  }
}
