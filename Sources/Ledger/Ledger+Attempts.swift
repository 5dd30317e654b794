import GodwitSQLite

// What became of stores.
extension Ledger {
  private var attemptColumns: String {
    """
    runs.name, stores.path, a.started, a.ended, a.verdict, a.source_bytes, a.code, a.reasons,
    a.losses, a.stages, a.source, a.destination, a.rows, a.destination_bytes, a.digest, a.identity,
    a.output, a.lane, a.host, \(uuidColumns)
    """
  }

  private static func attempt(_ row: Statement) -> LedgerAttempt {
    var attempt = LedgerAttempt(
      run: row.value(0).text ?? "", store: row.value(1).text ?? "",
      started: row.value(2).time ?? 0, ended: row.value(3).time ?? 0,
      verdict: row.value(4).text ?? "", sourceBytes: row.value(5).amount,
      code: row.value(6).integer.map(Int.init),
      reasons: LedgerJSON.value([RunReport.Reason].self, row.value(7).text) ?? [],
      losses: LedgerJSON.value([RunReport.Loss].self, row.value(8).text) ?? [],
      stages: (LedgerJSON.value([RunReport.Stage].self, row.value(9).text) ?? []).map(\.possible))
    attempt.source = row.value(10).text
    attempt.destination = row.value(11).text
    attempt.rows = row.value(12).integer.map { _ in row.value(12).amount }
    attempt.destinationBytes = row.value(13).integer
    attempt.digest = row.value(14).text
    attempt.identity = row.value(15).text
    attempt.output = row.value(16).text
    attempt.lane = row.value(17).integer.map(Int.init)
    attempt.host = row.value(18).text
    attempt.uuid = row.value(19).text
    attempt.sourceUUID = row.value(20).text
    return attempt
  }

  /// What became of each store in a run: its last attempt, and how often it was tried. In the byte
  /// order of the paths.
  ///
  /// - Parameters:
  ///   - exceptWell: Only those that did not end well.
  ///   - exceptGone: Only those that its last start counted: not those that were gone by then.
  package func forEachStore(
    of run: String, exceptWell: Bool = false, exceptGone: Bool = false,
    _ body: (LedgerAttempt, _ attempts: Int) throws -> Void
  ) throws {
    guard let key = try knownKey(ofRun: run) else { return }
    try forEach(
      """
      SELECT \(attemptColumns), last.tries
      FROM (
        SELECT max(id) AS id, count(*) AS tries
        FROM attempts
        WHERE run = ?1 AND verdict <> 'gone'
        GROUP BY store
      ) AS last
      JOIN attempts AS a ON a.id = last.id
      JOIN stores ON stores.id = a.store
      JOIN runs ON runs.id = a.run
      WHERE (NOT ?2 OR a.verdict NOT IN ('migrated', 'same-model', 'restored'))
        AND (NOT ?3 OR a.store NOT IN (
          SELECT store FROM attempts WHERE run = ?1 AND verdict = 'gone'))
      ORDER BY stores.path
      """, [.integer(key), .integer(exceptWell ? 1 : 0), .integer(exceptGone ? 1 : 0)]
    ) { try body(Self.attempt($0), Int($0.int64(21))) }
  }

  /// The last attempt of a run at a store that ended well, where a later start of the run found the store as that
  /// had left it; nil elsewhere.
  func lastWell(_ store: String, in run: LedgerRun) throws -> LedgerAttempt? {
    guard has(.fleet) else { return nil }
    var attempt: LedgerAttempt?
    try forEach(
      """
      SELECT \(attemptColumns)
      FROM (
        SELECT max(attempts.id) AS id
        FROM fleet
        JOIN attempts ON attempts.run = fleet.run AND attempts.store = fleet.store
        WHERE fleet.pipeline = ?1 AND fleet.run = (SELECT id FROM runs WHERE name = ?2)
          AND fleet.store = (SELECT id FROM stores WHERE path = ?3)
          AND fleet.verdict IN (\(Self.done)) AND attempts.verdict IN ('migrated', 'same-model')
      ) AS last
      JOIN attempts AS a ON a.id = last.id
      JOIN stores ON stores.id = a.store
      JOIN runs ON runs.id = a.run
      """, [.text(fleetFile(run.file)), .text(run.name), .text(store)]
    ) { attempt = Self.attempt($0) }
    return attempt
  }

  /// All attempts at a store, the oldest first.
  package func forEachAttempt(at store: String, _ body: (LedgerAttempt) throws -> Void) throws {
    guard let key = try knownKey(ofStore: store) else { return }
    try forEach(
      """
      SELECT \(attemptColumns)
      FROM attempts AS a
      JOIN stores ON stores.id = a.store
      JOIN runs ON runs.id = a.run
      WHERE a.store = ?1
      ORDER BY a.id
      """, [.integer(key)]
    ) { try body(Self.attempt($0)) }
  }

  /// How each file that runs of the pipeline wrote was left, by the last attempt that wrote it, in the byte
  /// order of the stores' paths. That is a migration in place or a rollback, whichever pipeline's; where a run
  /// wrote elsewhere since, beside the store or of a snapshot of it, that is one more.
  ///
  /// - Parameter store: Nil for all.
  package func forEachLeft(
    of store: String? = nil, _ body: (LedgerAttempt) throws -> Void
  ) throws {
    try forEach(
      """
      WITH last AS (
        SELECT max(CASE WHEN \(Self.wroteItself) THEN a.id END) AS latest,
          max(CASE WHEN \(Self.wroteItself) AND \(ownRuns) THEN a.id END) AS own,
          max(CASE WHEN NOT \(Self.wroteItself) AND \(ownRuns) THEN a.id END) AS elsewhere
        FROM attempts AS a
        JOIN stores ON stores.id = a.store
        JOIN runs ON runs.id = a.run
        WHERE a.verdict IN ('migrated', 'restored') AND (?1 IS NULL OR stores.path = ?1)
        GROUP BY a.store)
      SELECT \(attemptColumns)
      FROM (
        SELECT latest AS id FROM last WHERE own IS NOT NULL
        UNION ALL
        SELECT elsewhere FROM last WHERE elsewhere > coalesce(own, 0)) AS last
      JOIN attempts AS a ON a.id = last.id
      JOIN stores ON stores.id = a.store
      JOIN runs ON runs.id = a.run
      ORDER BY stores.path, a.id
      """, [.optional(store)]
    ) { try body(Self.attempt($0)) }
  }

  /// How many stores were put back by rollbacks after a run.
  package func storesRestored(since run: String) throws -> Int {
    var count = 0
    try forEach(
      """
      SELECT count(DISTINCT store)
      FROM attempts
      WHERE verdict = 'restored'
        AND run IN (
          SELECT id FROM runs
          WHERE kind = 'rollback' AND \(ownRuns)
            AND id > (SELECT id FROM runs WHERE name = ?1))
      """, [.text(run)]
    ) { count = Int($0.int64(0)) }
    return count
  }

  /// Stores by verdict, as far as a run has come.
  package func verdicts(of run: String) throws -> [String: Int] {
    guard let key = try knownKey(ofRun: run) else { return [:] }
    var counts: [String: Int] = [:]
    try forEach(
      """
      SELECT verdict, count(*)
      FROM attempts
      WHERE id IN (SELECT max(id) FROM attempts WHERE run = ?1 GROUP BY store)
      GROUP BY verdict
      """, [.integer(key)]
    ) { counts[$0.value(0).text ?? ""] = Int($0.int64(1)) }
    return counts
  }
}
