/// What is known of the bundles of one array, and what is to be submitted again. Time, files and the
/// scheduler's words are given to it.
struct ArrayProgress: Sendable {
  /// What the array's folder and leases say of a bundle.
  struct Sight: Sendable, Equatable {
    var isDone = false
    /// Attempts that have begun.
    var starts = 0
    /// Stores or units that have a result.
    var results = 0
  }

  struct Bundle: Sendable, Equatable {
    var sight = Sight()
    /// How often it was submitted.
    var submissions = 0
    /// What was there at the last submission.
    fileprivate var atSubmission = Sight()
    /// Submissions in a row that led to no further result.
    fileprivate var fruitless = 0
    fileprivate var missingSince: Double?
    /// Whether an attempt holds it that the scheduler has not known for a while.
    fileprivate(set) var isHeldByUnknown = false
    /// Whether an earlier start submitted it, and nobody has been seen yet who has it in hand.
    fileprivate var isUnsure = false
    var state: TaskState?
  }

  /// What is written down of a bundle that was submitted again, for later starts.
  struct Standing: Codable, Sendable, Equatable {
    var bundle: Int
    var submissions: Int
    var fruitless: Int
    /// At the last submission.
    var starts: Int
    var results: Int
  }

  /// What is to be done about a bundle.
  enum Action: Sendable, Equatable {
    /// - Parameter hadBegun: Whether an attempt of the last submission had begun.
    case submit(Int, hadBegun: Bool)
    /// It waits in the scheduler's queue and will not begin: its task is cancelled first.
    case replace(Int)
    /// It gets nowhere.
    case giveUp(Int, submissions: Int)
  }

  private(set) var bundles: [Bundle]

  /// 3 s: a task is on its way between two lists of the scheduler.
  private static let graceSeconds = 3.0
  /// 60 s, for a bundle that got nowhere at several submissions: twice as long after each.
  private static let longestGraceSeconds = 60.0
  /// 60 s, after which it is said who holds a bundle that the scheduler does not know.
  private static let quietSeconds = 60.0
  /// 10. A bundle that is lost by chance is lost once or twice; machines that crash often may take more.
  static let mostFruitless = 10

  init(count: Int) { bundles = Array(repeating: Bundle(), count: count) }

  var isDone: Bool { bundles.allSatisfy(\.sight.isDone) }
  var open: [Int] { bundles.indices.filter { !bundles[$0].sight.isDone } }
  var doneCount: Int { bundles.count { $0.sight.isDone } }
  /// Starts beyond those that were asked for.
  var restarts: Int {
    bundles.reduce(0) { $0 + max(0, $1.sight.starts - $1.submissions) }
  }
  var waiting: Int { bundles.count { !$0.sight.isDone && $0.submissions == 0 } }
  /// Whether what earlier starts submitted is done, or has been found in somebody's hands.
  var isSure: Bool { bundles.allSatisfy { $0.sight.isDone || !$0.isUnsure } }

  mutating func see(_ index: Int, _ sight: Sight) { bundles[index].sight = sight }

  /// What the folder said was not true: the bundle is not done.
  mutating func forget(_ index: Int) { bundles[index].sight.isDone = false }

  mutating func submitted(_ indices: [Int]) {
    for index in indices {
      let isFruitless =
        bundles[index].submissions > 0
        && bundles[index].sight.results <= bundles[index].atSubmission.results
      bundles[index].fruitless = isFruitless ? bundles[index].fruitless + 1 : 0
      bundles[index].submissions += 1
      bundles[index].atSubmission = bundles[index].sight
      bundles[index].missingSince = nil
      bundles[index].isUnsure = false
      bundles[index].state = nil
    }
  }

  /// Takes over from an earlier start. Whether its bundles were submitted the scheduler knows; those that it does
  /// not know are missing.
  ///
  /// - Parameters:
  ///   - standings: Those of bundles that were submitted again, the last of each.
  ///   - isSameTry: Whether what came to nothing counts on: no person has looked at it since.
  mutating func adopt(_ standings: [Standing], isSameTry: Bool) {
    for index in bundles.indices {
      bundles[index].submissions = 1
      bundles[index].isUnsure = true
    }
    // Numbers of a damaged file are no reason to count on without bound.
    func count(_ number: Int) -> Int { min(max(0, number), Self.mostCounted) }
    for known in standings where bundles.indices.contains(known.bundle) {
      bundles[known.bundle].submissions = max(1, count(known.submissions))
      bundles[known.bundle].fruitless = isSameTry ? count(known.fruitless) : 0
      bundles[known.bundle].atSubmission = Sight(
        starts: count(known.starts), results: count(known.results))
    }
  }

  private static let mostCounted = 1 << 30

  /// What a later start has to know of bundles that were submitted.
  func standings(of indices: [Int]) -> [Standing] {
    indices.filter { bundles[$0].submissions > 1 }.map { index in
      let bundle = bundles[index]
      return Standing(
        bundle: index, submissions: bundle.submissions, fruitless: bundle.fruitless,
        starts: bundle.atSubmission.starts, results: bundle.atSubmission.results)
    }
  }

  /// - Parameters:
  ///   - tasks: Those of the scheduler that are not over; nil where it did not answer, and then nothing
  ///     is known.
  ///   - isHeld: Whether an attempt holds the bundle's lease.
  mutating func actions(
    at time: Double, tasks: [Int: TaskState]?, isHeld: (Int) -> Bool
  ) -> [Action] {
    guard let tasks else { return [] }
    var actions: [Action] = []
    for index in bundles.indices
    where !bundles[index].sight.isDone && bundles[index].submissions > 0 {
      bundles[index].state = tasks[index]
      let isLost = tasks[index]?.isLost == true
      guard tasks[index] == nil || isLost else {
        bundles[index].missingSince = nil
        bundles[index].isHeldByUnknown = false
        bundles[index].isUnsure = false
        continue
      }
      let since = bundles[index].missingSince ?? time
      bundles[index].missingSince = since
      // One that the scheduler does not know may be at work all the same.
      let pause = Self.graceSeconds * Double(1 << min(10, bundles[index].fruitless))
      guard time - since >= min(pause, Self.longestGraceSeconds) else { continue }
      let isHeld = isHeld(index)
      bundles[index].isHeldByUnknown = isHeld && time - since >= Self.quietSeconds
      guard !isHeld else {
        bundles[index].isUnsure = false
        continue
      }
      if bundles[index].fruitless + 1 >= Self.mostFruitless {
        actions.append(.giveUp(index, submissions: bundles[index].submissions))
      } else if isLost {
        actions.append(.replace(index))
      } else {
        let hadBegun = bundles[index].sight.starts > bundles[index].atSubmission.starts
        actions.append(.submit(index, hadBegun: hadBegun))
      }
    }
    return actions
  }
}

extension TaskState {
  /// Held by the scheduler itself after it could not start the task, and for nobody's sake.
  var isLost: Bool { phase == .held && reason.lowercased().contains("launch failed") }

  /// Whether it does not begin for a reason that does not pass without somebody's help.
  var isStuck: Bool {
    guard phase != .running else { return false }
    let lower = reason.lowercased()
    return Self.lastingReasons.contains { lower.contains($0) }
  }

  /// Parts of Slurm's words for what does not pass. What all tasks of a user, an account or a quality of service
  /// have together (`…PerUser`, `…PerAccount`, `…Grp…`, `…JobsLimit`) passes; what one task asks for does not.
  ///
  /// Source: the section "JOB REASON CODES" of squeue(1), and the words of libslurm 22.05.
  private static let lastingReasons = [
    "held", "maxrequeue", "neversatisfied", "down", "drained", "inactive", "notavail", "invalid",
    "badconstraints", "partitionconfig", "partitionnodelimit", "partitiontimelimit", "notallowed",
    "perjob", "pernode", "qosmin", "maxmemperlimit", "reservationdeleted",
  ]
}
