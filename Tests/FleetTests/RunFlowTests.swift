import Foundation
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `The flow of a run` {
  private static func store(_ name: String, bytes: Int64 = 1) -> FoundStore {
    FoundStore(path: FilePath("/r/\(name)"), root: "/r", bytes: bytes)
  }

  /// As many workers as a store has bytes, less one.
  private func flow(
    _ waves: [[FoundStore]], workers: Int = 2, budget: FailureBudget? = nil,
    window: DailyWindow? = nil, inUse: InUsePolicy = .skip
  ) -> RunFlow {
    var limits = RunLimits()
    (limits.failureBudget, limits.window) = (budget, window)
    return RunFlow(
      queue: StoreQueue(waves: waves, workerCount: workers) { Int($0.bytes) - 1 },
      limits: limits, inUse: inUse)
  }

  private func result(_ verdict: MigrationResult.Verdict, _ reason: String = "x")
    -> MigrationResult
  {
    MigrationResult(
      store: "/", verdict: verdict, ending: verdict == .migrated ? .done : .inputOutput,
      reasons: [.init(reason: reason, message: "")])
  }

  private func begun(_ flow: inout RunFlow, at time: Double = 0) -> [String] {
    var names: [String] = []
    while let next = flow.next(at: time) {
      names.append(next.store.path.lastComponent?.string ?? "")
    }
    return names
  }

  private func begins(
    _ flow: inout RunFlow, _ names: [String], at time: Double = 0,
    location: SourceLocation = #_sourceLocation
  ) {
    let found = begun(&flow, at: time)
    #expect(found == names, sourceLocation: location)
  }

  private func ends(
    _ flow: inout RunFlow, _ store: FoundStore, _ verdict: MigrationResult.Verdict,
    goesOn: Bool? = nil, location: SourceLocation = #_sourceLocation
  ) {
    let isFinal = flow.take(store, result(verdict), at: 0)
    #expect(isFinal, sourceLocation: location)
    guard let goesOn else { return }
    let next = flow.advance()
    #expect(next == goesOn, sourceLocation: location)
  }

  @Test(arguments: [(0, false), (1, true)])
  func `counts what failed before the first store began`(allowed: Int, goesOn: Bool) {
    var limits = RunLimits()
    limits.failureBudget = .count(allowed)
    var flow = RunFlow(
      queue: StoreQueue(waves: [[Self.store("a")]], workerCount: 1) { _ in 0 }, limits: limits,
      inUse: .skip, failures: 1)
    let next = flow.advance()
    #expect(next == goesOn)
    begins(&flow, goesOn ? ["a"] : [])
  }

  @Test func `gives three small stores to each worker, and large ones the workers beside them`() {
    let small = (1...8).map { Self.store("s\($0)") }
    let large = [
      Self.store("l1", bytes: 3), Self.store("l2", bytes: 2), Self.store("l3", bytes: 2),
    ]
    var flow = flow([small + large])
    begins(&flow, ["s1", "s2", "s3", "s4", "s5", "s6", "l1"])
    ends(&flow, small[1], .migrated)
    begins(&flow, ["s7"])
    ends(&flow, large[0], .migrated)
    begins(&flow, ["l2", "l3"])
  }

  @Test(arguments: [1, 2] as [Int64])
  func `has one name of a file under way at a time`(bytes: Int64) {
    var stores = ["a", "b", "c"].map { Self.store($0, bytes: bytes) }
    for place in [0, 1] { stores[place].inode = .init(device: 1, number: 2) }
    var flow = flow([stores])
    begins(&flow, ["a", "c"])
    #expect(flow.queue.left == [stores[1]])
    ends(&flow, stores[2], .migrated, goesOn: true)
    begins(&flow, [])
    ends(&flow, stores[0], .migrated, goesOn: true)
    begins(&flow, ["b"])
    ends(&flow, stores[1], .migrated, goesOn: false)
  }

  @Test func `has fewer or more workers when the operator says so`() {
    var flow = flow([(1...9).map { Self.store("\($0)") }])
    var control = RunControl()
    control.workers = 1
    let changes = [flow.take(control), flow.take(control)]
    #expect(changes == [true, false], "the same again changes nothing")
    begins(&flow, ["1", "2", "3"])
    _ = flow.take(RunControl())
    begins(&flow, ["4", "5", "6"])
  }

  @Test func `begins nothing while it is paused or the load is too high`() {
    var flow = flow([[Self.store("a")]])
    var control = RunControl()
    #expect(flow.held(load: 99) == nil)
    (control.load, control.isPaused) = (4, true)
    _ = flow.take(control)
    #expect(flow.held(load: 0) == "paused")
    control.isPaused = false
    _ = flow.take(control)
    #expect(flow.held(load: 4.1) == "load")
    #expect(flow.held(load: 4) == nil)
  }

  @Test func `knows the load that the system has`() throws {
    let text = try String(contentsOfFile: "/proc/loadavg", encoding: .utf8)
    let told = try #require(text.split(separator: " ").first.flatMap { Double($0) })
    let load = try #require(SystemLoad.now)
    // Read a moment later: the system works it out every five seconds.
    #expect(abs(load - told) < max(1, told))
  }

  @Test func `ends a wave within the budget before the next one begins`() {
    let waves = [["a"], ["b", "c", "d", "e"], ["f"]].map { $0.map { Self.store($0) } }
    var flow = flow(waves, workers: 4, budget: .percent(25))
    begins(&flow, ["a"])
    ends(&flow, waves[0][0], .migrated, goesOn: true)
    begins(&flow, ["b", "c", "d", "e"])
    ends(&flow, waves[1][0], .refused, goesOn: true)
    begins(&flow, [])
    for store in waves[1].dropFirst() {
      ends(&flow, store, .migrated, goesOn: true)
    }
    begins(&flow, ["f"])
    ends(&flow, waves[2][0], .migrated)
    let goesOn = flow.advance()
    #expect(!goesOn && flow.stop == nil)
  }

  @Test func `stops in the wave that breaks the budget, and says which`() {
    let waves = [["a"], ["b", "c", "d", "e"], ["f"]].map { $0.map { Self.store($0) } }
    var flow = flow(waves, workers: 4, budget: .percent(25))
    _ = begun(&flow)
    ends(&flow, waves[0][0], .migrated, goesOn: true)
    _ = begun(&flow)
    ends(&flow, waves[1][0], .failed, goesOn: true)
    ends(&flow, waves[1][1], .needsMapping, goesOn: false)
    #expect(flow.stop == .failureBudget(failures: 2, allowed: 1, stores: 4, wave: 2))
    #expect(flow.stop?.message.contains("wave 2") == true)
    begins(&flow, [])
    #expect(flow.queue.left.map(\.path.string) == ["/r/f"])
  }

  @Test func `counts failures over all waves where the budget is a count, and names none`() {
    let waves = [["a"], ["b"], ["c"]].map { $0.map { Self.store($0) } }
    var flow = flow(waves, budget: .count(1))
    for (store, goesOn) in [(waves[0][0], true), (waves[1][0], false)] {
      _ = begun(&flow)
      ends(&flow, store, .failed, goesOn: goesOn)
    }
    #expect(flow.stop == .failureBudget(failures: 2, allowed: 1, stores: 3, wave: nil))
    #expect(flow.stop?.message.contains("2 stores did not migrate") == true)
  }

  @Test func `does not count what passes as a failure`() {
    let store = Self.store("a")
    var flow = flow([[store, Self.store("b")]], budget: .count(0))
    _ = begun(&flow)
    ends(&flow, store, .pending, goesOn: true)
    #expect(flow.stop == nil)
  }

  @Test func `tries a store in use again until the time is over`() {
    let store = Self.store("a")
    var flow = flow([[store]], inUse: .wait(seconds: 10))
    var (time, times) = (100.0, [Double]())
    while true {
      begins(&flow, ["a"], at: time)
      guard !flow.take(store, result(.pending, "in-use"), at: time) else { break }
      begins(&flow, [], at: time)
      let goesOn = flow.advance()
      #expect(goesOn && flow.queue.waitingCount == 1)
      time =
        (1...1_000).lazy.map { time + Double($0) / 10 }.first { [flow] in
          var copy = flow
          return copy.next(at: $0) != nil
        } ?? .infinity
      times.append(time)
    }
    #expect(times == [101, 103, 107, 110], "farther and farther apart, and once at the end")
    let goesOn = flow.advance()
    #expect(!goesOn)
  }

  @Test func `goes on with how often, and since when, earlier starts have tried a store`() {
    let store = Self.store("a")
    var flow = flow([[store]], inUse: .wait(seconds: 10))
    begins(&flow, ["a"], at: 100)
    flow.recall(store, count: 2, since: 95)
    let isEnd = flow.take(store, result(.pending, "in-use"), at: 100)
    #expect(!isEnd)
    begins(&flow, [], at: 103)
    begins(&flow, ["a"], at: 104)
    let isLast = flow.take(store, result(.pending, "in-use"), at: 105)
    #expect(isLast, "10 s are over")
  }

  @Test func `stops when its window is over, but not when nothing is left`() throws {
    let store = Self.store("a")
    // Every minute but the present one, wherever the machine stands.
    let open = try #require(DailyWindow("00:00-24:00"))
    var flow = flow([[store]], window: open)
    flow.look(at: 0)
    #expect(flow.stop == nil)
    _ = begun(&flow)
    ends(&flow, store, .migrated)
    let closed = [DailyWindow("00:00-00:01"), DailyWindow("12:00-12:01")].compactMap { $0 }
      .first { !$0.contains(time: 0) }
    let window = try #require(closed)
    var late = self.flow([[store]], window: window)
    late.look(at: 0)
    #expect(late.stop == .window(window))
    begins(&late, [])
    var done = self.flow([[]], window: window)
    done.look(at: 0)
    #expect(done.stop == nil)
  }
}

@Suite struct `A store is tried again in the same run` {
  private static func result(
    _ verdict: MigrationResult.Verdict, _ ending: MigrationResult.Ending, _ reason: String
  ) -> MigrationResult {
    MigrationResult(
      store: "/", verdict: verdict, ending: ending, reasons: [.init(reason: reason, message: "")])
  }

  @Test(arguments: [
    (result(.failed, .inputOutput, "io"), InUsePolicy.skip, 1 as Double?),  // it may succeed
    (result(.failed, .inputOutput, "timeout"), .skip, nil),
    (result(.failed, .badInput, "damaged"), .skip, nil),
    (result(.refused, .badInput, "validation"), .wait(seconds: 60), nil),
    (result(.pending, .resumable, "in-use"), .skip, nil),
    (result(.pending, .resumable, "in-use"), .snapshot, nil),
    (result(.pending, .resumable, "in-use"), .wait(seconds: 60), 1),
    (result(.pending, .resumable, "changed"), .wait(seconds: 60), 1),
    (result(.pending, .resumable, "disk-full"), .wait(seconds: 60), nil),
    (result(.pending, .resumable, "stopped"), .wait(seconds: 60), nil),
    (result(.migrated, .done, ""), .wait(seconds: 60), nil),
  ])
  func `only for what passes`(result: MigrationResult, inUse: InUsePolicy, seconds: Double?) {
    #expect(
      RetryPolicy.secondsBeforeRetry(of: result, attempts: 1, waited: 0, inUse: inUse) == seconds)
  }

  @Test func `three times for a fault, each after a longer pause`() {
    let fault = Self.result(.failed, .inputOutput, "io")
    let pauses = (1...3).map {
      RetryPolicy.secondsBeforeRetry(of: fault, attempts: $0, waited: 0, inUse: .skip)
    }
    #expect(pauses == [1, 2, nil])
  }
}
