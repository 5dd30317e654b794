import GodwitDurableFiles
import Synchronization

/// How long a scheduler that does not answer is asked again. One that refuses is not, and one that has
/// enough to do is asked until it has not.
struct SchedulerPatience: Sendable {
  /// 5 minutes: a controller is restarted within that.
  var total = Duration.seconds(300)
  var pause = Duration.seconds(5)

  /// Does something that may be done twice.
  ///
  /// - Throws: ``ClusterError/unanswered(message:)`` after all that time, and whatever else at once.
  func asking<Answer: Sendable>(
    _ observe: @Sendable (PipelineEvent) -> Void, _ work: () async throws -> Answer
  ) async throws -> Answer {
    var end: ContinuousClock.Instant?
    var isFullSaid = false
    while true {
      do {
        return try await work()
      } catch ClusterError.unanswered(let message)
        where end.map({ ContinuousClock.now < $0 }) ?? true
      {
        if end == nil {
          end = ContinuousClock.now + total
          observe(
            .note(
              "The scheduler does not answer, and is asked again for some minutes: \(message)"))
        }
      } catch ClusterError.full(let message) {
        end = nil
        if !isFullSaid {
          observe(.note("The scheduler takes no more jobs now, and is asked again: \(message)"))
        }
        isFullSaid = true
      }
      try await Task.sleep(for: pause)
    }
  }
}

/// A scheduler that has not answered several times in a row.
struct SchedulerSilence: Sendable {
  private var failures = 0
  private var reason = ""

  /// 2: one question may be lost.
  private static let mostLost = 2

  mutating func add(_ error: any Error) {
    // The question was taken back.
    guard !(error is CancellationError) else { return }
    failures += 1
    reason = "\(error)"
  }

  mutating func end() { failures = 0 }

  /// Why it does not answer; nil where it does, as far as is known.
  var message: String? { failures >= Self.mostLost ? reason : nil }
}

/// What is said of that, and when: once when it begins, again every few minutes, and when it is over.
struct SilenceNotes: Sendable {
  private var said: ContinuousClock.Instant?

  /// 5 minutes.
  private static let pause = Duration.seconds(300)

  /// What to say now; nil for nothing.
  mutating func next(
    _ silence: String?, at now: ContinuousClock.Instant = .now
  ) -> String? {
    guard let silence else {
      defer { said = nil }
      return said == nil ? nil : "The scheduler answers again."
    }
    if let said, now - said < Self.pause { return nil }
    let isFirst = said == nil
    said = now
    return
      "The scheduler \(isFirst ? "does not answer" : "still does not answer"), and is asked again: \(silence) "
      + "What tasks have done is taken over meanwhile; what gets lost is submitted again when it answers."
  }
}

/// Tasks that are to be submitted.
struct TaskSubmission: Sendable {
  var array: BundleFolder
  var indices: [Int]
  /// Names of arrays that must have ended before.
  var after: [String] = []
  var isOfLargeStore = false
  /// Nil where they were never submitted.
  var neverStarted: Int?
  /// The scheduler's names of tasks that are cancelled first.
  var lost: [String] = []
}

/// What the scheduler is asked for, in tasks of their own: while it does not answer, the coordinator
/// looks at results, limits and requests as ever.
final class SchedulerQuestions: Sendable {
  typealias Tasks = [String: [Int: TaskState]]

  private struct State {
    var asking: Task<Void, Never>?
    var answer: Tasks?
    var hasNobody = false
    var silence = SchedulerSilence()
    /// An answer to a question from before a submission knows nothing of what was submitted.
    var submissions = 0
    var submitting: Task<Void, Never>?
    var submitted: Result<(TaskSubmission, job: String), any Error>?
  }

  private let scheduler: any ArrayScheduler
  private let patience: SchedulerPatience
  private let lease: @Sendable () throws -> Void
  private let observe: @Sendable (PipelineEvent) -> Void
  private let state = Mutex(State())

  /// - Parameter lease: Throws where the work is somebody else's by now.
  init(
    _ scheduler: any ArrayScheduler, patience: SchedulerPatience = SchedulerPatience(),
    lease: @escaping @Sendable () throws -> Void,
    observe: @escaping @Sendable (PipelineEvent) -> Void
  ) {
    (self.scheduler, self.patience, self.lease, self.observe) = (
      scheduler, patience, lease, observe
    )
  }

  /// Asks for the tasks of arrays, unless an earlier question is open.
  func ask(_ names: [String]) {
    state.withLock { state in
      guard state.asking == nil, state.submitting == nil else { return }
      let submissions = state.submissions
      state.asking = Task {
        let answer: Result<Tasks?, any Error>
        do {
          answer = .success(try await scheduler.tasks(of: names))
        } catch {
          answer = .failure(error)
        }
        self.state.withLock { state in
          state.asking = nil
          switch answer {
          case .success(let tasks):
            state.silence.end()
            state.hasNobody = tasks == nil
            if state.submissions == submissions { state.answer = tasks }
          case .failure(let error): state.silence.add(error)
          }
        }
      }
    }
  }

  /// What it answered; nil where nothing has come since the last answer.
  func takeAnswer() -> Tasks? { state.withLock { $0.answer.take() } }

  /// Why it does not answer when it is asked for tasks; nil where it does.
  var silence: String? { state.withLock { $0.silence.message } }

  /// Whether nobody can be asked for tasks: no answer will come.
  var hasNobody: Bool { state.withLock(\.hasNobody) }

  var isSubmitting: Bool { state.withLock { $0.submitting != nil || $0.submitted != nil } }

  /// Submits tasks; what became of it says ``takeSubmitted()``. One submission at a time.
  func submit(_ submission: TaskSubmission) {
    state.withLock { state in
      state.submissions += 1
      state.answer = nil
      state.submitting = Task {
        let result: Result<(TaskSubmission, job: String), any Error>
        do {
          result = .success((submission, job: try await perform(submission)))
        } catch {
          result = .failure(error)
        }
        self.state.withLock { ($0.submitting, $0.submitted) = (nil, result) }
      }
    }
  }

  /// What was submitted since the last call, with the scheduler's name for it.
  func takeSubmitted() throws -> (TaskSubmission, job: String)? {
    try state.withLock { $0.submitted.take() }?.get()
  }

  /// Waits for the submission under way, but not for long.
  func wait(seconds: Double) async {
    let end = ContinuousClock.now + .seconds(seconds)
    while ContinuousClock.now < end, state.withLock({ $0.submitting != nil }) {
      do { try await Task.sleep(for: .milliseconds(10)) } catch { return }
    }
  }

  /// Ends what is under way.
  func end() {
    let (asking, submitting) = state.withLock { ($0.asking, $0.submitting) }
    asking?.cancel()
    submitting?.cancel()
  }

  private func perform(_ submission: TaskSubmission) async throws -> String {
    if !submission.lost.isEmpty { await scheduler.cancel(tasks: submission.lost) }
    var unanswered: ClusterError?
    return try await patience.asking(observe) {
      if let error = unanswered, let job = try await known(submission, or: error) { return job }
      try lease()
      do {
        return try await scheduler.submit(
          submission.array, submission.indices, after: submission.after,
          isOfLargeStore: submission.isOfLargeStore)
      } catch let error as ClusterError {
        unanswered = error
        throw error
      }
    }
  }

  /// Whether a submission without an answer came through: names are used once, so the scheduler tells.
  private func known(_ submission: TaskSubmission, or error: ClusterError) async throws -> String? {
    let answer = try? await scheduler.tasks(of: [submission.array.name])
    guard let tasks = answer.flatMap(\.self) else { throw error }
    let states = submission.indices.compactMap { tasks[submission.array.name]?[$0] }
    return states.first { !$0.isLost }.map { String($0.name.prefix { $0 != "_" }) }
  }
}
