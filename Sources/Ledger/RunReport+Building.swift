import GodwitDurableFiles
import SystemPackage

// A report out of the ledger.
extension Ledger {
  /// The report of a run.
  ///
  /// - Parameter name: Nil for the last run that is not a rollback.
  /// - Throws: ``LedgerError/noRun(path:name:)``.
  /// - Complexity: O(*n* log *n*) in the stores that the run tried.
  package func report(ofRun name: String? = nil) throws -> RunReport {
    let found = try name.map { try run(named: $0) } ?? lastRun()
    guard let found else { throw LedgerError.noRun(path: path, name: name ?? "at all") }
    var stores: [RunReport.Store] = []
    var lanes: [Int] = []
    var backups: [FilePath: String] = [:]
    // A run that was resumed with another destination has two of a store.
    var (backupCount, backupBytes) = (0, Int64(0))
    try forEachBackup(ofRun: found.name) {
      backups[FilePath($0.store)] = $0.path
      backupCount += 1
      backupBytes = backupBytes.added($0.bytes)
    }
    var standings: [FilePath: LedgerStanding] = [:]
    try forEachNotMigrated(of: found.file, run: found.name) { standings[FilePath($0.store)] = $0 }
    try forEachStore(of: found.name, exceptGone: true) { attempt, tries in
      let place = FilePath(attempt.store)
      var store = RunReport.Store(attempt, backup: backups[place], attempts: tries)
      if let standing = standings.removeValue(forKey: place) { store.take(standing) }
      stores.append(store)
      lanes.append(attempt.lane ?? 0)
    }
    for standing in standings.values {
      stores.append(RunReport.Store(notTried: standing, at: found.ended ?? found.started))
      lanes.append(0)
    }
    var report = RunReport(
      pipeline: found.pipeline, pipelineFile: found.file, run: RunReport.Run(found),
      counts: try counts(of: found))
    report.fleet = try fleet(of: found.file)
    if found.kind == .run {
      // Of those that the run's last start found no more, or left otherwise, the counts say nothing.
      let undone = try storesPutBack(after: found.name)
      let restored = stores.count {
        RunReport.goodVerdicts.contains($0.verdict) && undone.contains(FilePath($0.path))
      }
      report.restored = restored > 0 ? restored : nil
    }
    let order = stores.indices.sorted {
      stores[$0].path.utf8.lexicographicallyPrecedes(stores[$1].path.utf8)
    }
    report.summarise(order.map { stores[$0] }, lanes: order.map { lanes[$0] })
    report.failures = RunReport.joined(
      report.failures, RunReport.notBegun(report.counts, report.failures))
    (report.totals.backups, report.totals.backupBytes) = (backupCount, backupBytes)
    return report
  }

  /// The stores of a run that did not end well, by reason.
  package func failures(of run: String) throws -> [RunReport.Failure] {
    var stores: [RunReport.Store] = []
    try forEachStore(of: run, exceptWell: true, exceptGone: true) { attempt, tries in
      stores.append(RunReport.Store(attempt, attempts: tries))
    }
    let failures = RunReport.failures(stores)
    return try RunReport.joined(
      failures, RunReport.notBegun(counts(of: self.run(named: run)), failures))
  }

  /// The stores of a pipeline that are not migrated, by reason.
  package func failures(ofFleet pipeline: String) throws -> [RunReport.Failure] {
    var stores: [RunReport.Store] = []
    try forEachNotMigrated(of: pipeline) {
      stores.append(RunReport.Store(notTried: $0, at: 0))
    }
    return RunReport.failures(stores)
  }

  /// The counts of a run, as far as it has come where it has not ended.
  package func counts(of run: LedgerRun) throws -> RunReport.Counts {
    if run.ended != nil, var counts = run.counts {
      if run.kind == .run { counts.snapshots = try snapshots(of: run.name) }
      if run.kind == .rollback { (counts.restored, counts.migrated) = (counts.migrated, 0) }
      return counts
    }
    // What is known of the stores holds until a start has come to them.
    if run.kind == .run, let fleet = try fleet(of: run.file, run: run.name),
      fleet.found >= run.counts?.found ?? 0
    {
      return fleet
    }
    let verdicts = try verdicts(of: run.name)
    func count(_ verdict: String) -> Int { verdicts[verdict] ?? 0 }
    var counts = RunReport.Counts(
      migrated: count("migrated"), sameModel: count("same-model"), refused: count("refused"),
      needsMapping: count("needs-mapping"), failed: count("failed"), restored: count("restored"))
    let known =
      counts.migrated + counts.sameModel + counts.refused + counts.needsMapping
      + counts.failed + counts.restored
    counts.found = max(known + count("pending"), run.counts?.found ?? 0)
    counts.pending = counts.found - known
    return counts
  }
}

extension RunReport.Run {
  package init(_ run: LedgerRun) {
    self.init(
      kind: run.kind.rawValue, name: run.name, started: run.started, ended: run.ended,
      seconds: run.ended.map { max(0, $0 - run.started) }, exitCode: run.exitCode,
      starts: run.starts,
      host: run.host, workers: run.workers, options: run.options)
    workedSeconds = run.workedSeconds
    message = run.message
  }
}

extension RunReport.Store {
  package init(_ attempt: LedgerAttempt, backup: String? = nil, attempts: Int = 1) {
    self.init(
      path: attempt.store, verdict: attempt.verdict, code: attempt.code,
      sourceVersion: attempt.source, destinationVersion: attempt.destination,
      started: attempt.started, seconds: max(0, attempt.ended - attempt.started),
      rows: attempt.rows,
      sourceBytes: attempt.sourceBytes, destinationBytes: attempt.destinationBytes,
      output: attempt.output, backup: backup, reasons: attempt.reasons, losses: attempt.losses,
      stages: attempt.stages, attempts: attempts)
  }

  /// A store that a run found and did not try.
  init(notTried standing: LedgerStanding, at time: Double) {
    self.init(
      path: standing.store, verdict: standing.verdict, code: standing.code, started: time,
      seconds: 0, sourceBytes: 0, reasons: standing.reasons, attempts: 0)
  }

  /// Takes what the last start of the run knows of the store: an earlier start may have tried it.
  mutating func take(_ standing: LedgerStanding) {
    guard standing.verdict != verdict else { return }
    (verdict, code, reasons, losses) = (standing.verdict, standing.code, standing.reasons, [])
    (rows, destinationBytes, output) = (nil, nil, nil)
  }
}

extension RunReport {
  /// The verdicts of stores that ended well.
  package static let goodVerdicts: Set<String> = ["migrated", "same-model", "restored"]

  /// Fills in what follows from the stores.
  mutating func summarise(_ stores: [Store], lanes: [Int]) {
    self.stores = stores
    // Of any other store a loss is what would be lost.
    let migrated = stores.filter { $0.verdict == "migrated" }
    totals = Totals(
      rows: migrated.reduce(0) { $0.added($1.rows ?? 0) },
      sourceBytes: stores.reduce(0) { $0.added($1.sourceBytes) },
      destinationBytes: stores.reduce(0) { $0.added($1.destinationBytes ?? 0) },
      storesWithLosses: migrated.count { !$0.losses.isEmpty })
    destinationVersion = stores.lazy.compactMap(\.destinationVersion).first
    sourceVersions = Self.versions(stores)
    failures = Self.failures(stores)
    losses = Self.losses(migrated)
    stages = Self.stages(stores)
    let tried = stores.indices.filter { stores[$0].attempts > 0 }
    spans = tried.map { place in
      Span(
        lane: lanes[place], store: place, start: stores[place].started,
        end: stores[place].started + stores[place].seconds, verdict: stores[place].verdict)
    }
    spans.sort { ($0.lane, $0.start) < ($1.lane, $1.start) }
    func first(_ isBefore: (Store, Store) -> Bool) -> [Int] {
      Array(tried.sorted { isBefore(stores[$0], stores[$1]) }.prefix(Self.mostExamples))
    }
    slowest = first { $0.seconds > $1.seconds }
    largest = first { $0.sourceBytes > $1.sourceBytes }
  }

  private static func versions(_ stores: [Store]) -> [Version] {
    var found: [String: Version] = [:]
    for store in stores {
      guard let name = store.sourceVersion else { continue }
      var version = found[name] ?? Version(name: name, stores: 0, bytes: 0)
      version.stores += 1
      version.bytes = version.bytes.added(store.sourceBytes)
      found[name] = version
    }
    return found.values.sorted { ($1.stores, $0.name) < ($0.stores, $1.name) }
  }

  /// Stores that did not end well, by verdict, first reason and code.
  static func failures(_ stores: [Store]) -> [Failure] {
    struct Key: Hashable {
      var verdict: String
      var reason: String
      var code: Int?
    }
    var groups: [Key: Failure] = [:]
    for store in stores where !goodVerdicts.contains(store.verdict) {
      let first = store.reasons.first
      let key = Key(
        verdict: store.verdict, reason: first?.reason ?? store.verdict, code: store.code)
      if groups[key] == nil {
        groups[key] = Failure(
          verdict: key.verdict, reason: key.reason, code: key.code, count: 0,
          message: first?.message ?? "",
          advice: FailureAdvice.text(verdict: key.verdict, reason: key.reason))
      }
      groups[key]?.count += 1
      if groups[key]?.examples.count ?? 3 < 3 { groups[key]?.examples.append(store.path) }
    }
    return groups.values.sorted {
      ($1.count, $0.reason, $0.verdict, $0.code ?? 0)
        < ($0.count, $1.reason, $1.verdict, $1.code ?? 0)
    }
  }

  /// Stores that a run did not come to before it was stopped.
  static func notBegun(_ counts: Counts, _ failures: [Failure]) -> [Failure] {
    let known = failures.reduce(0) { $0.added($1.verdict == "pending" ? $1.count : 0) }
    guard counts.pending > known else { return [] }
    return [
      Failure(
        verdict: "pending", reason: LedgerStanding.notBegunReason, count: counts.pending - known,
        message: LedgerStanding.notBegunMessage,
        advice: FailureAdvice.text(verdict: "pending", reason: LedgerStanding.notBegunReason))
    ]
  }

  /// Stores that a run has not come to are still to come, where it goes on.
  package mutating func goOn() {
    failures.removeAll { $0.verdict == "pending" && $0.reason == LedgerStanding.notBegunReason }
    for place in stores.indices {
      guard stores[place].verdict == "pending",
        stores[place].reasons.first?.message == LedgerStanding.notBegunMessage
      else { continue }
      stores[place].reasons[0].message = LedgerStanding.toComeMessage
    }
  }

  /// One list, in which what failed for the same reason is together.
  static func joined(_ failures: [Failure], _ more: [Failure]) -> [Failure] {
    more.reduce(into: failures) { all, failure in
      let place = all.firstIndex {
        ($0.verdict, $0.reason, $0.code) == (failure.verdict, failure.reason, failure.code)
      }
      guard let place else { return all.append(failure) }
      all[place].count = all[place].count.added(failure.count)
    }
  }

  private static func losses(_ stores: [Store]) -> [Loss] {
    struct Key: Hashable {
      var kind: String
      var entity: String?
      var property: String?
    }
    var groups: [Key: Loss] = [:]
    for store in stores {
      // One store may lose the same in several ways.
      var counted: Set<Key> = []
      for loss in store.losses {
        let key = Key(kind: loss.kind, entity: loss.entity, property: loss.property)
        guard var group = groups[key] else {
          groups[key] = loss
          groups[key]?.stores = 1
          counted.insert(key)
          continue
        }
        group.count = group.count.added(loss.count)
        if counted.insert(key).inserted { group.stores += 1 }
        // A loss's own message has its own count.
        group.message = LossWords.message(of: group)
        groups[key] = group
      }
    }
    return groups.values.sorted {
      ($0.entity ?? "", $0.property ?? "", $0.kind) < ($1.entity ?? "", $1.property ?? "", $1.kind)
    }
  }

  /// The order in which stages are run; others come after them.
  private static let stageOrder = [
    "copy", "link", "validate", "audit", "assemble", "verify", "uri-table", "commit",
  ]

  private static func stages(_ stores: [Store]) -> [Stage] {
    var sums: [String: Stage] = [:]
    for stage in stores.lazy.flatMap(\.stages) {
      var sum =
        sums[stage.stage] ?? Stage(stage: stage.stage, seconds: 0, rows: 0, bytes: 0)
      sum.seconds += stage.seconds
      sum.rows = sum.rows.added(stage.rows)
      sum.bytes = sum.bytes.added(stage.bytes)
      sums[stage.stage] = sum
    }
    func place(_ stage: Stage) -> Int {
      stageOrder.firstIndex(of: stage.stage) ?? stageOrder.count
    }
    return sums.values.sorted { (place($0), $0.stage) < (place($1), $1.stage) }
  }
}
