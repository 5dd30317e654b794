import Testing

@testable import GodwitFleet

/// What the scheduler says is made up here, so that what it may say wrong is tried, too.
@Suite struct `What is submitted again` {
  private typealias Sight = ArrayProgress.Sight

  /// Two bundles that were submitted.
  private func progress() -> ArrayProgress {
    var progress = ArrayProgress(count: 2)
    progress.submitted([0, 1])
    return progress
  }

  private let waiting = TaskState(state: "PENDING", reason: "Resources", node: "")
  private let running = TaskState(state: "RUNNING", reason: "None", node: "n1")

  /// Looks twice, long enough apart for what is missing to be missed.
  private func actions(
    _ progress: inout ArrayProgress, _ tasks: [Int: TaskState]?, held: Set<Int> = [],
    from time: Double = 0
  ) -> [ArrayProgress.Action] {
    let early = progress.actions(at: time, tasks: tasks, isHeld: held.contains)
    #expect(early.isEmpty, "nothing is missed at the first look")
    return progress.actions(at: time + 70, tasks: tasks, isHeld: held.contains)
  }

  @Test func `is what the scheduler does not know, and nobody works on`() {
    var progress = progress()
    #expect(actions(&progress, [0: running]) == [.submit(1, hadBegun: false)])
  }

  @Test func `is said to have begun where it left a start marker`() {
    var progress = progress()
    progress.see(1, Sight(isDone: false, starts: 1, results: 0))
    #expect(actions(&progress, [0: waiting]) == [.submit(1, hadBegun: true)])
  }

  @Test func `is nothing while the scheduler does not answer`() {
    var progress = progress()
    #expect(actions(&progress, nil).isEmpty)
  }

  @Test func `is nothing that is done, whatever the scheduler says`() {
    var progress = progress()
    progress.see(0, Sight(isDone: true, starts: 1, results: 3))
    progress.see(1, Sight(isDone: true, starts: 1, results: 3))
    #expect(actions(&progress, [:]).isEmpty)
    #expect(progress.isDone)
  }

  @Test func `is nothing that an attempt works on which the scheduler has forgotten`() {
    var progress = progress()
    progress.see(0, Sight(isDone: false, starts: 1, results: 0))
    #expect(actions(&progress, [1: waiting], held: [0]).isEmpty)
    // It dies.
    #expect(
      progress.actions(at: 20, tasks: [1: waiting], isHeld: { _ in false })
        == [.submit(0, hadBegun: true)])
  }

  @Test func `is what was forgotten and came back only once`() {
    var progress = progress()
    _ = progress.actions(at: 0, tasks: [0: running], isHeld: { _ in false })
    _ = progress.actions(at: 2, tasks: [0: running, 1: running], isHeld: { _ in false })
    #expect(progress.actions(at: 4, tasks: [0: running], isHeld: { _ in false }).isEmpty)
  }

  @Test func `takes the place of what the scheduler could not start and holds`() {
    var progress = progress()
    let held = TaskState(state: "PENDING", reason: "launch failed requeued held", node: "")
    #expect(actions(&progress, [0: running, 1: held]) == [.replace(1)])
  }

  @Test(arguments: [
    ("JobHeldUser", true), ("JobHeldAdmin", true), ("DependencyNeverSatisfied", true),
    ("ReqNodeNotAvail, UnavailableNodes:n1", true),
    ("Nodes required for job are DOWN, DRAINED or reserved", true),
    ("PartitionTimeLimit", true), ("PartitionNodeLimit", true), ("PartitionConfig", true),
    ("BadConstraints", true), ("AccountNotAllowed", true), ("QOSNotAllowed", true),
    ("InvalidAccount", true), ("InvalidQOS", true), ("JobHoldMaxRequeue", true),
    ("AssocMaxWallDurationPerJobLimit", true), ("QOSMaxWallDurationPerJobLimit", true),
    ("AssocMaxCpuPerJobLimit", true), ("QOSMaxMemoryPerJob", true), ("QOSMaxCpuPerNode", true),
    ("QOSMinCpuNotSatisfied", true), ("MaxMemPerLimit", true), ("ReservationDeleted", true),
    ("QOSMaxJobsPerUserLimit", false), ("QOSMaxCpuPerUserLimit", false),
    ("MaxJobsPerAccount", false), ("AssocMaxJobsLimit", false), ("AssocGrpCpuLimit", false),
    ("QOSGrpNodeLimit", false), ("AssociationJobLimit", false), ("JobArrayTaskLimit", false),
    ("Licenses", false), ("Reservation", false), ("Cleaning", false), ("None", false),
    ("Resources", false), ("Priority", false), ("BeginTime", false), ("Dependency", false),
  ])
  func `is nothing that somebody holds, which is said`(reason: String, isStuck: Bool) {
    var progress = progress()
    let state = TaskState(state: "PENDING", reason: reason, node: "")
    #expect(actions(&progress, [0: running, 1: state]).isEmpty)
    #expect(state.isStuck == isStuck)
  }

  @Test func `is given up where nothing comes of it`() {
    var progress = ArrayProgress(count: 1)
    progress.submitted([0])
    var time = 0.0
    for _ in 1..<ArrayProgress.mostFruitless {
      #expect(actions(&progress, [:], from: time) == [.submit(0, hadBegun: false)])
      progress.submitted([0])
      time += 100
    }
    #expect(
      actions(&progress, [:], from: time)
        == [.giveUp(0, submissions: ArrayProgress.mostFruitless)])
  }

  @Test func `waits longer each time that nothing comes of it`() {
    var progress = ArrayProgress(count: 1)
    progress.submitted([0])
    var pauses: [Int] = []
    var time = 0
    for _ in 1..<7 {
      let begin = time
      while progress.actions(at: Double(time), tasks: [:], isHeld: { _ in false }).isEmpty {
        time += 1
      }
      pauses.append(time - begin)
      progress.submitted([0])
    }
    #expect(pauses == [3, 6, 12, 24, 48, 60])
  }

  @Test
  func
    `is what an earlier start submitted and nobody has, and until that is known no start may leave`()
  {
    var progress = ArrayProgress(count: 4)
    progress.adopt([], isSameTry: true)
    progress.see(3, Sight(isDone: true, starts: 1, results: 1))
    #expect(!progress.isSure, "nobody was asked")
    #expect(progress.actions(at: 0, tasks: nil, isHeld: { _ in true }).isEmpty)
    #expect(!progress.isSure, "it has not answered")
    #expect(actions(&progress, [0: waiting], held: [1]) == [.submit(2, hadBegun: false)])
    #expect(!progress.isSure, "it is not submitted yet")
    progress.submitted([2])
    #expect(progress.isSure)
  }

  @Test
  func `is surely in the queue where somebody holds it there, and not where it cannot be started`()
  {
    for (reason, isSure) in [("JobHeldUser", true), ("launch failed requeued held", false)] {
      var progress = ArrayProgress(count: 1)
      progress.adopt([], isSameTry: true)
      let state = TaskState(state: "PENDING", reason: reason, node: "")
      _ = progress.actions(at: 0, tasks: [0: state], isHeld: { _ in false })
      #expect(progress.isSure == isSure, "\(reason)")
    }
  }

  @Test func `is counted on from whatever a damaged file says`() {
    for number in [Int.max, Int.min, -1, 0] {
      var progress = ArrayProgress(count: 1)
      progress.adopt(
        [.init(bundle: 0, submissions: number, fruitless: number, starts: number, results: number)],
        isSameTry: true)
      _ = progress.actions(at: 0, tasks: [:], isHeld: { _ in false })
      progress.submitted([0])
      #expect(progress.bundles[0].submissions >= 2)
    }
  }

  /// A start of a cluster's own takes over from the one before it, again and again.
  @Test
  func `is given up where nothing comes of it in however many starts, unless a person begins one`()
  {
    var progress = ArrayProgress(count: 1)
    progress.submitted([0])
    #expect(progress.standings(of: [0]).isEmpty, "that it was submitted is known")
    for submissions in 2...ArrayProgress.mostFruitless {
      let known = progress.standings(of: [0])
      progress = ArrayProgress(count: 1)
      progress.adopt(known, isSameTry: true)
      #expect(actions(&progress, [:]) == [.submit(0, hadBegun: false)])
      progress.submitted([0])
      #expect(progress.standings(of: [0]).map(\.submissions) == [submissions])
    }
    let known = progress.standings(of: [0])
    var (next, anew) = (ArrayProgress(count: 1), ArrayProgress(count: 1))
    next.adopt(known, isSameTry: true)
    #expect(
      actions(&next, [:]) == [.giveUp(0, submissions: ArrayProgress.mostFruitless)])
    anew.adopt(known, isSameTry: false)
    #expect(actions(&anew, [:]) == [.submit(0, hadBegun: false)])
  }

  @Test func `is named where an attempt holds it that the scheduler does not know`() {
    var progress = progress()
    #expect(actions(&progress, [0: running], held: [1]).isEmpty)
    #expect(progress.bundles.map(\.isHeldByUnknown) == [false, true])
    #expect(progress.actions(at: 80, tasks: [0: running], isHeld: { _ in false }).count == 1)
  }

  @Test func `goes on while something comes of it`() {
    var progress = ArrayProgress(count: 1)
    progress.submitted([0])
    for attempt in 1...3 * ArrayProgress.mostFruitless {
      progress.see(0, Sight(isDone: false, starts: attempt, results: attempt))
      let time = Double(attempt) * 100
      #expect(actions(&progress, [:], from: time) == [.submit(0, hadBegun: true)])
      progress.submitted([0])
    }
    #expect(progress.bundles[0].submissions == 1 + 3 * ArrayProgress.mostFruitless)
  }

  @Test(arguments: [
    ([3], "3"), ([0, 1, 2, 3], "0-3"), ([0, 2, 3, 9], "0,2-3,9"), ([998, 999], "998-999"),
  ])
  func `is written as sbatch reads it`(indices: [Int], text: String) {
    #expect(SlurmScheduler.text(of: indices) == text)
  }
}
