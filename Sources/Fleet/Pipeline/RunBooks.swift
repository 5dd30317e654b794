import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

/// Where a pipeline keeps what it knows.
///
/// Progress lies in a folder, `state/` beside the pipeline's file or the one of `--state`. The ledger
/// lies beside the pipeline's file, or in the folder of `--state`. Everything in the folder but the
/// ledger may be removed while nothing is under way; the ledger outlives that.
package struct PipelinePlaces: Sendable {
  package let state: FilePath
  package let ledger: FilePath
  /// Whose runs are meant where several pipelines keep both in one folder.
  package let owner: RunOwner

  /// - Parameter state: What `--state` says; nil for beside the pipeline.
  package init(_ pipeline: Pipeline, state: FilePath? = nil) {
    owner = RunOwner(pipeline: pipeline.name, file: pipeline.wholeFile.string)
    // A folder that a person names may be a link; the one beside the pipeline may not.
    self.state = state.map { $0.resolved ?? $0.whole } ?? pipeline.stateFolder.whole
    ledger =
      (state == nil ? self.state.removingLastComponent() : self.state)
      .appending(Ledger.fileName)
  }

  /// A log is none of the files that runs keep, whether those are there yet or not.
  ///
  /// - Throws: `PlaceError` for the ledger, what SQLite keeps beside it, and all in the state folder.
  package func checkLog(_ path: FilePath) throws {
    try NewFilePlace(path, beside: [ledger]).check()
    let place = path.absolute
    if place.isSamePlace(as: ledger.absolute) {
      throw PlaceError(path, "it is the ledger of the pipeline's runs")
    }
    if place.starts(with: state.absolute) {
      throw PlaceError(path, "what lies in \(state) is the pipeline's runs' own")
    }
  }

  /// What a run would say of a state folder that is none: every command about the pipeline says it before it reads
  /// there. What is no folder would look like one in which nothing was ever done, or be an error of each file in it.
  ///
  /// - Throws: `DurabilityError.notFolder`.
  package func checkState() throws { try DurableFile.checkFolderPlace(state) }

  /// Whether a run, a rollback or a removal of backups is under way.
  package var isInUse: Bool {
    get throws {
      try FileLock.isHeld(at: state.appending("lock"))
    }
  }
}

/// What the ledger is to know of a start of a run.
package struct RunContext: Sendable {
  /// The arguments of the command line.
  package var options: [String]
  /// Called once nobody else can work in the state folder.
  package var begins: @Sendable () async -> Void = {}
  /// The exit code that a summary leads to.
  package var exitCode: @Sendable (PipelineSummary) -> Int

  /// The command that resumes the run, for a cluster to start; none where nothing is to be started.
  package var follower: [String] = []
  /// Of a start by a cluster: what names it, see ``ClusterFollower``.
  package var followerToken: String?

  package init(
    options: [String] = [], exitCode: @escaping @Sendable (PipelineSummary) -> Int = { _ in 0 }
  ) {
    self.options = options
    self.exitCode = exitCode
  }
}

/// What is written down of the stores of a run, and what is known of them.
protocol StoreBooks: Sendable {
  /// The run's name.
  var run: String { get }
  /// ``PipelineRun/settingsDigest()``.
  var settings: String { get }
  /// `MigrationRequest.ownCodeDigest` of the coordinator.
  var code: String? { get }
  /// What an earlier start has written down of a store.
  func entry(of store: FilePath) -> PipelineLedger.Entry?
  /// What else it has written down of it, for the store's result.
  func detail(of store: FilePath) -> PipelineLedger.Detail?
  /// ``PipelineLedger/ended``.
  var ended: Int { get }
  /// ``PipelineLedger/isFresh``.
  var isFresh: Bool { get }
  /// Whether what is known of a store is from before the start that was to forget it.
  func isForgotten(_ store: FilePath) -> Bool
  /// Forgets what is known of stores, also for the starts that go on with this one.
  func forget() throws
  /// The quarantine of a store that has not changed since it failed, and nothing else either.
  func quarantine(of store: FilePath) -> LedgerQuarantine?
  /// A small store begins: what stores of that kind leave is written down together.
  func enter()
  /// That store has come to its end.
  func leave()
  /// Writes down what became of a store: on return it is on the disk.
  func record(_ result: MigrationResult, _ facts: StoreFacts) async throws
  /// Likewise what is known of a store by now, for the progress alone.
  func keep(_ entry: PipelineLedger.Entry) async throws
  /// Likewise of a snapshot.
  func recordSnapshot(_ result: MigrationResult, of store: FoundStore) async throws
  /// A store failed in an earlier start of the run, which left counting it to this one.
  func recall(_ failure: MigrationResult, _ known: PipelineLedger.Entry)
  /// Adds what is found out again if it is lost.
  func add(_ result: MigrationResult, _ facts: StoreFacts)
}

/// What belongs to a store's result.
struct StoreFacts: Sendable {
  var store: FoundStore
  /// Seconds since 1970-01-01 UTC.
  var started: Double
  /// Nil for now.
  var ended: Double?
  /// Which of the run's processes coordinated the store.
  var lane: Int?
  /// The name of the state of the store's files before it was tried.
  var mark: String
  /// The machine on which it was done; nil for this one.
  var host: String?
  /// Under which settings it was done; nil for the books' own.
  var settings: String?
}

/// The books of a pipeline's own process: progress file and ledger.
struct Books: StoreBooks {
  let ledger: PipelineLedger
  let history: RunHistory
  let owner: RunOwner
  let settings: String
  let code: String?
  /// ``PipelineRun/quarantineSettings(_:)``.
  let quarantineSettings: String
  let quarantined: [FilePath: LedgerQuarantine]

  var run: String { ledger.run }

  func entry(of store: FilePath) -> PipelineLedger.Entry? { ledger.entry(of: store) }
  func detail(of store: FilePath) -> PipelineLedger.Detail? { ledger.detail(of: store) }
  var ended: Int { ledger.ended }
  var isFresh: Bool { ledger.isFresh }
  func isForgotten(_ store: FilePath) -> Bool { ledger.isForgotten(store) }
  func forget() throws { try ledger.forget() }
  func quarantine(of store: FilePath) -> LedgerQuarantine? {
    quarantined[store].flatMap { known in
      let mark = StoreFiles(store).markName
      return known.isOf(quarantineSettings, mark: mark) ? known : nil
    }
  }

  func enter() { ledger.enter() }
  func leave() { ledger.leave() }

  func record(_ result: MigrationResult, _ facts: StoreFacts) async throws {
    guard !result.isTakenOver else { return }
    // The destination of an earlier commit, or of other settings, is not what these ask for.
    var entry = PipelineLedger.Entry(
      result, of: facts.store, run: run,
      result.isOfEarlierCommit ? "" : facts.settings ?? settings)
    entry.time = facts.ended ?? entry.time
    // One that was replaced, or was as it is to be, may be put back: it is looked at once more.
    let before = ledger.entry(of: facts.store.path)
    let mayBePutBack =
      switch result.verdict {
      case .migrated: result.backup != nil
      case .sameModel: before?.run != run || before?.verdict != .sameModel
      default: false
      }
    if !mayBePutBack { entry.ended = ledger.ended }
    if result.isFailure {
      entry.mark = facts.mark
      if case .passing = outcome(result, facts) { entry.passes = true }
      if let earlier = before, earlier.run == run {
        entry.failures = (earlier.failures ?? 1).added(1)
      }
    }
    let committed = result.committingRun(run, of: owner)
    let attempt = LedgerAttempt(result, facts, run: committed, ended: entry.time)
    entry.attempt = attempt
    // The time may be another machine's.
    entry.backupRecord = try LedgerBackup(result, of: facts.store, run: committed, at: entry.time)?
      .notLater(than: Date().timeIntervalSince1970)
    try await ledger.record(entry, PipelineLedger.Detail(result))
    history.add(attempt, entry.backupRecord, outcome(result, facts))
  }

  func keep(_ entry: PipelineLedger.Entry) async throws {
    // The line takes the place of the one that is known.
    try await ledger.record(entry, detail(of: FilePath(entry.store)))
  }

  func recordSnapshot(_ result: MigrationResult, of store: FoundStore) async throws {
    try await ledger.record(
      .init(result, of: store, run: run, result.isOfEarlierCommit ? "" : settings),
      PipelineLedger.Detail(result))
  }

  func add(_ result: MigrationResult, _ facts: StoreFacts) {
    guard !result.isTakenOver else { return }
    let ended = facts.ended ?? Date().timeIntervalSince1970
    history.add(
      LedgerAttempt(result, facts, run: run, ended: ended), nil, outcome(result, facts))
  }

  func recall(_ failure: MigrationResult, _ known: PipelineLedger.Entry) {
    guard known.passes != true else { return }
    let outcome = RunHistory.Outcome(
      failure, mark: known.mark ?? "", settings: quarantineSettings)
    history.recall(outcome, of: FilePath(known.store), at: known.time)
  }

  private func outcome(_ result: MigrationResult, _ facts: StoreFacts) -> RunHistory.Outcome {
    RunHistory.Outcome(result, mark: facts.mark, settings: quarantineSettings)
  }
}

extension LedgerQuarantine {
  /// Whether neither the store nor what it is migrated by, or may lose, has changed since it failed.
  ///
  /// - Parameter settings: ``PipelineRun/quarantineSettings(_:)``.
  func isOf(_ settings: String, mark: String) -> Bool {
    self.mark == mark && self.settings == settings
  }
}

extension MigrationResult {
  /// The run of which a result is written down: its own, unless another pipeline's began the commit. The backup is
  /// that pipeline's then, to put back and to keep.
  func committingRun(_ run: String, of owner: RunOwner) -> String {
    guard let committedBy, committedBy.run != run,
      !owner.owns(pipeline: committedBy.pipeline, file: committedBy.file)
    else { return run }
    return committedBy.run
  }

  /// Whether another start has taken the store over: what becomes of it is that one's to write down.
  fileprivate var isTakenOver: Bool {
    verdict == .pending && reasons.contains { $0.reason == RetryPolicy.leaseLost }
  }

  /// A store that is not tried.
  init(quarantined known: LedgerQuarantine) {
    self.init(
      store: known.store, verdict: .quarantined, ending: .badInput,
      reasons: [
        Reason(
          reason: known.reason,
          message:
            "\(known.store) is quarantined: it failed "
            + (known.attempts == 1 ? "" : "\(known.attempts) times ") + "with the reason "
            + "\(known.reason) and has not changed since. Change it, or release it with "
            + "`godwit quarantine release`.")
      ])
    attempts = known.attempts
  }
}

extension LedgerQuarantine {
  /// Whether a store that was quarantined is so by what the pipeline says now.
  ///
  /// - Parameter limit: ``Pipeline/quarantineAfter``.
  package func isQuarantined(after limit: Int) -> Bool {
    limit > 0 && since != nil && attempts >= limit
  }
}
