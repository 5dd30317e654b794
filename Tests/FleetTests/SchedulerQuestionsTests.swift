import Foundation
import GodwitDurableFiles
import Synchronization
import SystemPackage
import Testing

@testable import GodwitFleet

/// A scheduler that fails as it is told to, and counts how often it was asked.
private final class FailingScheduler: ArrayScheduler {
  struct State {
    var failures: [ClusterError] = []
    var known: [Int: TaskState] = [:]
    var submissions = 0
    var isSilent = false
    var refusal: ClusterError?
  }

  let state: Mutex<State>

  init(_ failures: [ClusterError] = [], known: [Int: TaskState] = [:], isSilent: Bool = false) {
    state = Mutex(State(failures: failures, known: known, isSilent: isSilent))
  }

  var submissions: Int { state.withLock { $0.submissions } }

  func limits() async throws -> SchedulerLimits { SchedulerLimits(slots: 1) }

  func submit(
    _ array: BundleFolder, _ indices: [Int], after: [String], isOfLargeStore: Bool
  ) async throws -> String {
    try state.withLock { state in
      state.submissions += 1
      if !state.failures.isEmpty { throw state.failures.removeFirst() }
      return "17"
    }
  }

  func tasks(of arrays: [String]) async throws -> [String: [Int: TaskState]]? {
    if let refusal = state.withLock({ $0.refusal }) { throw refusal }
    while state.withLock({ $0.isSilent }) {
      do { try await Task.sleep(for: .milliseconds(5)) } catch { return nil }
    }
    return state.withLock { [arrays[0]: $0.known] }
  }

  func cancel(_ arrays: [String]) async {}
  func cancel(tasks: [String]) async {}
  func submitFollower(
    _ command: [String], name: String, in state: FilePath, after: [String], isLater: Bool
  ) async throws -> String? { nil }
}

@Suite struct `A scheduler that is asked` {
  private let array = BundleFolder("/p/state/cluster/000001-ab")
  private let silence = ClusterError.unanswered(message: "no answer")

  private func questions(
    _ scheduler: FailingScheduler, patience: Duration = .seconds(600),
    lease: @escaping @Sendable () throws -> Void = {}
  ) -> SchedulerQuestions {
    SchedulerQuestions(
      scheduler,
      patience: SchedulerPatience(total: patience, pause: .milliseconds(5)),
      lease: lease, observe: { _ in })
  }

  private func submit(_ questions: SchedulerQuestions) async throws -> String? {
    questions.submit(TaskSubmission(array: array, indices: [0, 1]))
    // As long as it takes where all tests run at once.
    await questions.wait(seconds: 3_600)
    return try questions.takeSubmitted()?.job
  }

  @Test func `is asked again where it does not answer`() async throws {
    let scheduler = FailingScheduler([silence, silence])
    #expect(try await submit(questions(scheduler)) == "17")
    #expect(scheduler.submissions == 3)
  }

  @Test func `is asked until it takes more, however long that lasts`() async throws {
    let full = ClusterError.full(message: "MaxJobCount")
    let scheduler = FailingScheduler(Array(repeating: full, count: 20))
    #expect(try await submit(questions(scheduler, patience: .zero)) == "17")
    #expect(scheduler.submissions == 21)
  }

  @Test func `is asked for some time only where it does not answer`() async throws {
    let scheduler = FailingScheduler(Array(repeating: silence, count: 20))
    await #expect(throws: silence) {
      try await submit(questions(scheduler, patience: .zero))
    }
  }

  @Test func `is not asked again for what it has taken without saying so`() async throws {
    let task = TaskState(state: "PENDING", reason: "Resources", node: "", name: "12_0")
    let scheduler = FailingScheduler([silence], known: [0: task])
    #expect(try await submit(questions(scheduler)) == "12")
    #expect(scheduler.submissions == 1)
  }

  @Test func `is not asked again where it refuses`() async throws {
    let scheduler = FailingScheduler([.scheduler(message: "invalid partition")])
    await #expect(throws: ClusterError.scheduler(message: "invalid partition")) {
      try await submit(questions(scheduler))
    }
    #expect(scheduler.submissions == 1)
  }

  @Test func `gets nothing from who has lost the run`() async throws {
    let scheduler = FailingScheduler()
    await #expect(throws: DurabilityError.self) {
      try await submit(questions(scheduler) { throw DurabilityError.locked("/p/state/lock") })
    }
    #expect(scheduler.submissions == 0)
  }

  @Test(.timeLimit(.minutes(5))) func `keeps nobody waiting`() async throws {
    let questions = questions(FailingScheduler(isSilent: true))
    questions.ask([array.name])
    #expect(questions.takeAnswer() == nil)
    questions.end()
  }

  @Test func `says nothing of what was submitted after the question`() async throws {
    let scheduler = FailingScheduler(isSilent: true)
    let questions = questions(scheduler)
    questions.ask([array.name])
    #expect(try await submit(questions) == "17")
    scheduler.state.withLock { $0.isSilent = false }
    try await Task.sleep(for: .milliseconds(200))
    #expect(questions.takeAnswer() == nil)
    questions.ask([array.name])
    var answer = questions.takeAnswer()
    while answer == nil {
      try await Task.sleep(for: .milliseconds(10))
      answer = questions.takeAnswer()
    }
    #expect(answer == [array.name: [:]])
  }
}

@Suite struct `A scheduler that does not say what its tasks do` {
  @Test(.timeLimit(.minutes(5))) func `is known not to answer, until it does`() async throws {
    let scheduler = FailingScheduler()
    scheduler.state.withLock { $0.refusal = .scheduler(message: "Security violation") }
    let questions = SchedulerQuestions(scheduler, lease: {}, observe: { _ in })
    while questions.silence == nil {
      questions.ask(["000001-ab"])
      try await Task.sleep(for: .milliseconds(5))
    }
    #expect(questions.silence == "Security violation")
    scheduler.state.withLock { $0.refusal = nil }
    while questions.silence != nil {
      questions.ask(["000001-ab"])
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  @Test func `is spoken of once, again after minutes, and when it answers`() {
    var notes = SilenceNotes()
    let start = ContinuousClock.now
    func said(_ silence: String?, after seconds: Double) -> String? {
      notes.next(silence, at: start + .seconds(seconds)).map { String($0.prefix(27)) }
    }
    #expect(said(nil, after: 0) == nil)
    #expect(said("no answer", after: 1) == "The scheduler does not answ")
    #expect(said("no answer", after: 200) == nil)
    #expect(said("no answer", after: 302) == "The scheduler still does no")
    #expect(said("no answer", after: 400) == nil)
    #expect(said(nil, after: 401) == "The scheduler answers again")
    #expect(said(nil, after: 402) == nil)
  }
}

@Suite final class `A follower` {
  private let state = FilePath(
    FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path)

  init() throws { try DurableFile.makeFolder(state.appending("cluster")) }

  deinit { try? FileManager.default.removeItem(atPath: state.string) }

  @Test func `counts until another takes its place or the run is taken up`() throws {
    let (first, second) = (ClusterFollower(name: "next-1"), ClusterFollower(name: "next-2"))
    #expect(try !ClusterFollower.isWanted(first.token, in: state))
    try first.write(in: state)
    #expect(try ClusterFollower.isWanted(first.token, in: state))
    try second.write(in: state)
    #expect(try !ClusterFollower.isWanted(first.token, in: state))
    try ClusterFollower.remove(in: state)
    #expect(try !ClusterFollower.isWanted(second.token, in: state))
  }

  @Test func `counts beside the one that it submits until the scheduler has taken that`() throws {
    let first = ClusterFollower(name: "next-1")
    var second = ClusterFollower(name: "next-2", after: first.token)
    for (former, isWanted) in [(first.token as String?, true), (nil, false)] {
      second.former = former
      try second.write(in: state)
      #expect(try ClusterFollower.isWanted(first.token, in: state) == isWanted)
      #expect(try ClusterFollower.isWanted(second.token, in: state))
    }
  }

  @Test func `folder that is removed is not an array any more, whatever comes into it`() throws {
    let folder = BundleFolder("000001-ab", in: state)
    try DurableFile.makeFolder(folder.path)
    try DurableFile.write([], to: folder.permit)
    #expect(try BundleFolder.permitted(in: state) == [folder])
    try DurableFile.makeFolder(BundleFolder.all(in: state).appending(".removed-000002-cd"))
    #expect(try BundleFolder.folders(in: state) == [folder])
    try folder.remove()
    #expect(try BundleFolder.folders(in: state).isEmpty)
    try BundleFolder.removeRest(in: state)
    #expect(try DurableFile.names(in: BundleFolder.all(in: state)).isEmpty)
  }
}
