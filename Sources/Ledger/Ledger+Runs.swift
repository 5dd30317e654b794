import GodwitSQLite

// Runs and attempts.
extension Ledger {
  /// A run begins, or goes on under its name.
  ///
  /// - Parameters:
  ///   - run: Of how many starts it is at least.
  ///   - isResumed: A start of it may be known.
  /// - Throws: ``LedgerError/nameTaken(path:name:)`` where the name is another's, and is left to that.
  package func begin(_ run: LedgerRun, isResumed: Bool = false) throws {
    let isFree =
      try isResumed
      ? canResume(
        run.name, run.kind, by: RunOwner(pipeline: run.pipeline, file: run.file))
      : !hasRun(named: run.name)
    guard isFree else { throw LedgerError.nameTaken(path: path, name: run.name) }
    try countWork(of: run.name, until: nil)
    try noteStart(at: run.started)
    try perform(
      """
      INSERT INTO runs (
        name, kind, pipeline, file, started, starts, host, workers, options, resumed, worked)
      VALUES (?1, ?2, ?3, ?4, ?5, ?9, ?6, ?7, ?8, ?5, 0)
      ON CONFLICT (name) DO UPDATE
      SET pipeline = ?3, file = ?4, starts = max(starts + 1, ?9), ended = NULL, exit = NULL, host = ?6,
        workers = ?7, options = ?8, resumed = ?5, worked = coalesce(worked, 0), message = NULL
      """,
      [
        .text(run.name), .text(run.kind.rawValue), .text(run.pipeline), .text(run.file),
        .real(run.started), .text(run.host), .optional(run.workers),
        .text(LedgerJSON.text(run.options)), .integer(Int64(run.starts)),
      ])
  }

  /// Whether the ledger lacks the end of a start that it was told of: it is another one, or a copy from before. No
  /// run is lacking whose name is another pipeline's.
  package func lacks(_ run: LedgerRun) throws -> Bool {
    var isLacking = try canResume(
      run.name, run.kind, by: RunOwner(pipeline: run.pipeline, file: run.file))
    try forEach(
      """
      SELECT 1 FROM runs
      WHERE name = ?1 AND (starts > ?2 OR starts = ?2 AND ended IS NOT NULL)
      """, [.text(run.name), .integer(Int64(run.starts))]
    ) { _ in isLacking = false }
    return isLacking
  }

  /// Whose a run is; nil of one of this pipeline's, and where that is not known.
  package func otherOwner(ofRun name: String) throws -> RunOwner? {
    var owner: RunOwner?
    try forEach(
      "SELECT pipeline, file FROM runs WHERE name = ?1 AND file <> '' AND NOT (\(ownRuns))",
      [.text(name)]
    ) { owner = RunOwner(pipeline: $0.value(0).text ?? "", file: $0.value(1).text ?? "") }
    return owner
  }

  /// Whether there is a run, or a rollback, of that name, whichever pipeline's.
  package func hasRun(named name: String) throws -> Bool { try knownKey(ofRun: name) != nil }

  /// Whether a run of that name may go on under it: nobody has the name, or an earlier start of the same
  /// pipeline's.
  package func canResume(
    _ name: String, _ kind: LedgerRun.Kind = .run, by owner: RunOwner
  ) throws -> Bool {
    var isOwn = true
    try forEach("SELECT kind, pipeline, file FROM runs WHERE name = ?1", [.text(name)]) { row in
      isOwn =
        row.value(0).text == kind.rawValue
        && owner.owns(pipeline: row.value(1).text ?? "", file: row.value(2).text ?? "")
    }
    return isOwn
  }

  /// How many stores a run has found; the rest of its counts come with its end.
  package func setFound(_ stores: Int, in run: String) throws {
    try perform(
      "UPDATE runs SET found = ?2 WHERE name = ?1", [.text(run), .integer(Int64(stores))])
  }

  /// A start of a run ends.
  ///
  /// - Parameters:
  ///   - exitCode: Nil for one that was killed, and that another one has brought to its end.
  ///   - counts: Nil where it ended before it had any: what is known by then counts.
  ///   - message: Why it ended then.
  ///   - wasKilled: It was at work no longer than to its last store.
  package func end(
    _ run: String, at time: Double, exitCode: Int?, _ counts: RunReport.Counts?,
    message: String? = nil, wasKilled: Bool = false
  ) throws {
    try countWork(of: run, until: wasKilled ? nil : time)
    let known = try? self.run(named: run)
    guard
      let counts = try counts ?? known.flatMap({ $0.counts == nil ? nil : try self.counts(of: $0) })
    else {
      return try perform(
        "UPDATE runs SET ended = ?2, exit = ?3, message = ?4 WHERE name = ?1",
        [.text(run), .real(time), .optional(exitCode), .optional(message)])
    }
    let numbers = [
      counts.found, counts.migrated, counts.sameModel, counts.refused, counts.needsMapping,
      counts.quarantined, counts.failed, counts.pending, counts.earlier, counts.restored,
    ]
    // There is one column for what ended well.
    try perform(
      """
      UPDATE runs
      SET ended = ?2, exit = ?3, found = ?4,
        migrated = CASE kind WHEN 'rollback' THEN ?13 ELSE ?5 END, same_model = ?6, refused = ?7,
        needs_mapping = ?8, quarantined = ?9, failed = ?10, pending = ?11, earlier = ?12,
        message = ?14
      WHERE name = ?1
      """,
      [.text(run), .real(time), .optional(exitCode)]
        + numbers.map { .integer(Int64($0)) } + [.optional(message)])
  }

  /// The key of a store, which gets a row if it has none.
  func key(ofStore path: String) throws -> Int64 {
    if let known = try knownKey(ofStore: path) { return known }
    try perform("INSERT INTO stores (path) VALUES (?1)", [.text(path)])
    return connection.lastInsertRowID
  }

  func knownKey(ofStore path: String) throws -> Int64? {
    var key: Int64?
    try forEach("SELECT id FROM stores WHERE path = ?1", [.text(path)]) { key = $0.int64(0) }
    return key
  }

  /// The key of a run, which gets a row if it has none: an attempt that is added after its ledger was
  /// lost is still an attempt.
  func key(ofRun name: String, at time: Double) throws -> Int64 {
    if let known = try knownKey(ofRun: name) { return known }
    try perform(
      """
      INSERT INTO runs (name, kind, pipeline, file, started, starts, host, options)
      VALUES (?1, 'run', '', '', ?2, 1, '', '[]')
      """, [.text(name), .real(time)])
    return connection.lastInsertRowID
  }

  func knownKey(ofRun name: String) throws -> Int64? {
    var key: Int64?
    try forEach("SELECT id FROM runs WHERE name = ?1", [.text(name)]) { key = $0.int64(0) }
    return key
  }

  /// Adds an attempt. One that is there already is left as it is, by run, store and end, or by the
  /// state that a migration has left: a process that ended before it could say so found its commit
  /// again.
  package func add(_ attempt: LedgerAttempt) throws {
    let store = try key(ofStore: attempt.store)
    let run = try key(ofRun: attempt.run, at: attempt.started)
    try perform(
      """
      INSERT OR IGNORE INTO attempts (
        run, store, started, ended, verdict, code, reason, reasons, losses, source, destination,
        rows, source_bytes, destination_bytes, stages, digest, identity, output, lane, host, uuid,
        source_uuid)
      SELECT
        ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
        ?21, ?22
      WHERE ?5 <> 'migrated' OR NOT EXISTS (
        SELECT 1 FROM attempts WHERE store = ?2 AND verdict = 'migrated' AND identity = ?17)
      """,
      [
        .integer(run), .integer(store), .real(attempt.started), .real(attempt.ended),
        .text(attempt.verdict), .optional(attempt.code), .optional(attempt.reasons.first?.reason),
        attempt.reasons.isEmpty ? .null : .text(LedgerJSON.text(attempt.reasons)),
        attempt.losses.isEmpty ? .null : .text(LedgerJSON.text(attempt.losses)),
        .optional(attempt.source), .optional(attempt.destination), .optional(attempt.rows),
        .integer(attempt.sourceBytes), .optional(attempt.destinationBytes),
        attempt.stages.isEmpty ? .null : .text(LedgerJSON.text(attempt.stages)),
        .optional(attempt.digest), .optional(attempt.identity), .optional(attempt.output),
        .optional(attempt.lane), .optional(attempt.host), .optional(attempt.uuid),
        .optional(attempt.sourceUUID),
      ])
    if connection.changes > 0 { try settle(attempt, store: store, run: run) }
    let isLeft = attempt.leavesStore
    try perform(
      """
      UPDATE stores
      SET uuid = CASE WHEN ?5 THEN coalesce(?2, uuid) ELSE coalesce(uuid, ?2) END,
        version = coalesce(?3, version), bytes = coalesce(nullif(?4, 0), bytes)
      WHERE id = ?1
      """,
      [
        .integer(store), .optional(isLeft ? attempt.uuid : attempt.sourceUUID),
        .optional(isLeft ? attempt.destination : attempt.source),
        .integer((isLeft ? attempt.destinationBytes : nil) ?? attempt.sourceBytes),
        .integer(isLeft ? 1 : 0),
      ])
  }
}

extension Ledger {
  private var runColumns: String {
    """
    name, kind, pipeline, file, started, ended, exit, starts, host, workers, options, found,
    migrated, same_model, refused, needs_mapping, quarantined, failed, pending, earlier,
    \(workedColumn), \(has(.startMessage) ? "message" : "NULL")
    """
  }

  private static func run(_ row: Statement) -> LedgerRun {
    func count(_ column: Int32) -> Int { Int(row.value(column).amount) }
    var counts: RunReport.Counts?
    if row.value(11).integer != nil {
      counts = RunReport.Counts(
        found: count(11), migrated: count(12), sameModel: count(13), refused: count(14),
        needsMapping: count(15), quarantined: count(16), failed: count(17), pending: count(18),
        earlier: count(19))
    }
    var run = LedgerRun(
      name: row.value(0).text ?? "",
      kind: row.value(1).text.flatMap(LedgerRun.Kind.init) ?? .run,
      pipeline: row.value(2).text ?? "", file: row.value(3).text ?? "",
      started: row.value(4).time ?? 0, ended: row.value(5).time,
      exitCode: row.value(6).integer.map(Int.init), starts: count(7),
      host: row.value(8).text ?? "", workers: row.value(9).integer.map(Int.init),
      options: LedgerJSON.value([String].self, row.value(10).text) ?? [], counts: counts)
    run.workedSeconds = row.value(20).time
    run.message = row.value(21).text
    return run
  }

  /// The runs, the newest first.
  package func runs(limit: Int = .max) throws -> [LedgerRun] {
    var runs: [LedgerRun] = []
    try forEach(
      "SELECT \(runColumns) FROM runs WHERE \(ownRuns) ORDER BY id DESC LIMIT ?1",
      [.integer(Int64(limit))]
    ) { runs.append(Self.run($0)) }
    return runs
  }

  /// - Throws: ``LedgerError/noRun(path:name:)``.
  package func run(named name: String) throws -> LedgerRun {
    var run: LedgerRun?
    try forEach(
      "SELECT \(runColumns) FROM runs WHERE name = ?1 AND \(ownRuns)", [.text(name)]
    ) { run = Self.run($0) }
    guard let run else { throw LedgerError.noRun(path: path, name: name) }
    return run
  }

  /// The last run of a kind; nil where there is none.
  package func lastRun(_ kind: LedgerRun.Kind = .run) throws -> LedgerRun? {
    var run: LedgerRun?
    try forEach(
      """
      SELECT \(runColumns)
      FROM runs
      WHERE kind = ?1 AND \(ownRuns)
      ORDER BY id DESC
      LIMIT 1
      """, [.text(kind.rawValue)]
    ) { run = Self.run($0) }
    return run
  }

  /// The runs that replaced a store which no rollback has put back since, the newest first. Those of
  /// which every backup was removed are among them, whatever became of their stores.
  package func runsToRollBack() throws -> [LedgerRun] {
    var runs: [LedgerRun] = []
    try forEach(
      """
      SELECT \(runColumns)
      FROM runs
      WHERE kind = 'run' AND \(ownRuns)
        AND id IN (SELECT run FROM backups WHERE kind <> 'replaced' AND state <> 'restored')
      ORDER BY id DESC
      """
    ) { runs.append(Self.run($0)) }
    return runs
  }

  /// Rollbacks that have no end: they were killed, or are at work.
  package func openRollbacks() throws -> [LedgerRun] {
    try runs().filter { $0.kind == .rollback && $0.ended == nil }
  }

  /// The run that the last rollback was undoing when it was cut off; nil where it ended, where it restored nothing, and
  /// where a run has begun since.
  package func runOfInterruptedRollback() throws -> LedgerRun? {
    let rollbacks = try runs().prefix { $0.kind == .rollback && $0.ended == nil }
    guard let first = rollbacks.last else { return nil }
    var name: String?
    try forEach(
      """
      SELECT runs.name
      FROM backups AS b
      JOIN runs ON runs.id = b.run
      WHERE b.state = 'restored' AND b.kind = 'source' AND b.changed >= ?1 AND \(ownRuns)
      ORDER BY b.changed DESC, b.id DESC
      LIMIT 1
      """, [.real(first.started)]
    ) { name = $0.value(0).text }
    return try name.map { try run(named: $0) }
  }

  /// The last run, whichever pipeline's, that had begun by a time; where the clock was set back since, the
  /// first there is.
  ///
  /// - Parameter name: Of the run that is meant, if there is one of that name.
  package func lastRun(begunBy time: Double, named name: String? = nil) throws -> LedgerRun? {
    var run: LedgerRun?
    try forEach(
      """
      SELECT \(runColumns)
      FROM runs
      WHERE kind = 'run'
      ORDER BY name IS ?2 DESC, started <= ?1 DESC, CASE WHEN started <= ?1 THEN -id ELSE id END
      LIMIT 1
      """, [.real(time), .optional(name)]
    ) { run = Self.run($0) }
    return run
  }
}
