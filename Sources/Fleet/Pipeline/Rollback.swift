import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitLedger
import SystemPackage

/// Puts the backups of a run back.
///
/// A store is only put back while it is in the state in which the commit left it, and while nobody has
/// it open. What it was is kept beside it. Each store is a swap of its own with a journal in
/// `state/rollbacks/ID/`; one that was interrupted is finished by the next `rollback`, or by the next
/// run, whatever that is asked for. A commit that a run was killed in, and that the ledger does not know of, is
/// brought to its end and written down first.
package struct Rollback: Sendable {
  /// What is rolled back.
  package struct Selection: Sendable {
    /// Nil: the last run of which a store is still to be put back; with ``stores``, of each.
    package var run: String?
    /// None: every store of the run.
    package var stores: [FilePath]
    /// Only stores that were of this version before.
    package var version: String?

    package init(run: String? = nil, stores: [FilePath] = [], version: String? = nil) {
      self.run = run
      self.stores = stores
      self.version = version
    }

    /// No store at all: versions have names.
    static let nothing = Selection(version: "")
  }

  /// What became of a store: a line of `--json`.
  package struct Item: Codable, Sendable {
    package enum Verdict: String, Codable, Sendable {
      case restored, refused
      /// The rollback was stopped before it came to the store.
      case pending
    }

    package private(set) var event = "result"
    package var store: String
    package var verdict: Verdict
    /// The run whose migration is undone.
    package var run: String?
    package var backup: String?
    /// Where the store that was replaced is kept.
    package var kept: String?
    package var reasons: [RunReport.Reason] = []
    package var seconds: Double?
  }

  /// The last line of `--json`: found = restored + refused + pending.
  package struct Summary: Codable, Sendable, Equatable {
    package private(set) var event = "summary"
    /// The rollback's own name in the history; of a dry run one that is in none.
    package var rollback: String
    package var run: String?
    package var found = 0
    package var restored = 0
    package var refused = 0
    /// How many it was stopped before, which the same command puts back; nil for none.
    package var pending: Int?

    package init(rollback: String) { self.rollback = rollback }
  }

  let pipeline: Pipeline
  let places: PipelinePlaces
  let selection: Selection
  let isDry: Bool
  let reach: StoreReach
  var options: [String]
  /// Whether commits that were cut off are brought to their end: what a run takes up it finishes itself.
  var finishesCommits = true
  let leases: [LeaseToken]

  package init(
    _ pipeline: Pipeline, places: PipelinePlaces, _ selection: Selection, isDry: Bool,
    lock: PipelineLock, options: [String] = []
  ) {
    self.init(pipeline, places: places, selection, isDry: isDry, lock.lease, options)
  }

  init(
    _ pipeline: Pipeline, places: PipelinePlaces, _ selection: Selection, isDry: Bool,
    _ lease: HeldLease, _ options: [String] = []
  ) {
    leases = [lease.token]
    self.pipeline = pipeline
    self.places = places
    self.selection = selection
    self.isDry = isDry
    reach = StoreReach(pipeline)
    self.options = options
  }

  static func folder(in state: FilePath) -> FilePath { state.appending("rollbacks") }

  /// The run directory of a store's rollback.
  static func directory(of store: FilePath, in state: FilePath) -> RunDirectory {
    RunDirectory(folder(in: state).appending(PipelineRun.name(of: store)))
  }

  /// 16 stores are put back at a time, and written down together.
  private static let groupSize = 16

  /// For the holder of the state folder's lock.
  package func run(observe: (Item) -> Void) async throws -> Summary {
    let now = Date().timeIntervalSince1970
    let ledger =
      try PipelineHistory.writing(places) ?? Ledger(writingAt: places.ledger, now: now)
    // Whoever holds the lock is alone: they were killed.
    let killed = try ledger.openRollbacks()
    let interrupted = try ledger.runOfInterruptedRollback()
    let name = try RunFolder.timestamp(now) { name in
      try ledger.hasRun(named: name) || PipelineLedger.names(name, in: places.state)
    }
    var account = Account(self, ledger, Summary(rollback: name), started: now)
    let ends = try await finishInterrupted(ledger)
    var finished = Set(ends.map { FilePath($0.item.store) })
    var undone = interrupted?.name ?? ends.first { $0.ofOther == nil }?.item.run
    try account.take(ends, observe)
    if finishesCommits {
      let ends = try await finishCommits(ledger)
      finished.formUnion(ends.map { FilePath($0.item.store) })
      if isDry { undone = undone ?? ends.first { $0.item.verdict == .restored }?.item.run }
      try account.take(ends, observe)
    }
    let (stores, missing) = try selected(ledger, undoing: undone, &account.summary)
    // Of one that was cut off and of which nothing is known but its run directory, too.
    func isLeft(_ store: String) -> Bool {
      let path = FilePath(store)
      return !finished.contains(path)
        && !finished.contains(Self.directory(of: path, in: places.state).path)
    }
    try account.take(missing.filter { isLeft($0.item.store) }, observe)
    var rest = stores.filter { isLeft($0.store) }[...]
    try account.expect(rest.count)
    while !rest.isEmpty, !Task.isCancelled {
      let group = rest.prefix(Self.groupSize)
      rest = rest.dropFirst(Self.groupSize)
      let ends = try await putBack(Array(group), name: name)
      try account.take(ends, observe)
    }
    // Stopped where stores are left. What is done is done, however late somebody asks for a stop: whoever
    // repeats a command that has ended would undo an earlier run.
    let left = rest.map { Self.pending($0.oldest) }
    for end in left { observe(end.item) }
    if !killed.isEmpty, !isDry {
      try ledger.writing {
        for rollback in killed {
          try ledger.end(
            rollback.name, at: Date().timeIntervalSince1970, exitCode: nil,
            ledger.counts(of: rollback), wasKilled: true)
        }
      }
    }
    try account.close(leaving: left)
    return account.summary
  }
}
