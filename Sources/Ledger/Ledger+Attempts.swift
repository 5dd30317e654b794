import GodwitSQLite

// What became of stores.
extension Ledger {
  var attemptColumns: String {
    """
    runs.name, stores.path, a.started, a.ended, a.verdict, a.source_bytes, a.code, a.reasons,
    a.losses, a.stages, a.source, a.destination, a.rows, a.destination_bytes, a.digest, a.identity,
    a.output, a.lane, a.host, \(uuidColumns)
    """
  }

  static func attempt(_ row: Statement) -> LedgerAttempt {
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

  /// All attempts at a store, the oldest first.
  package func forEachAttempt(at store: String, _ body: (LedgerAttempt) throws -> Void) throws {
    guard let key = try knownKey(ofStore: store) else { return }
    try forEach(
      """
      SELECT \(attemptColumns)
      FROM attempts AS a
      JOIN stores ON stores.id = a.store
      JOIN runs ON runs.id = a.run
      WHERE a.store = ?1 AND a.verdict <> ?2
      ORDER BY a.id
      """, [.integer(key), .text(Self.untried)]
    ) { try body(Self.attempt($0)) }
  }

  /// How each file that runs of the pipeline wrote was left, by the last attempt that wrote it, in the byte
  /// order of the stores' paths. That is a migration in place or a rollback, whichever pipeline's; where a run
  /// wrote elsewhere since, beside the store or of a snapshot of it, that is one more. A file may be the output of one
  /// store and a store itself: it is one, as the later of the two attempts left it.
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
        GROUP BY a.store
      ), written AS (
        SELECT latest AS id FROM last WHERE own IS NOT NULL
        UNION ALL
        SELECT elsewhere FROM last WHERE elsewhere > coalesce(own, 0)
      ), files AS (
        SELECT max(a.id) AS id
        FROM written
        JOIN attempts AS a ON a.id = written.id
        JOIN stores ON stores.id = a.store
        GROUP BY coalesce(a.output, stores.path))
      SELECT \(attemptColumns)
      FROM files
      JOIN attempts AS a ON a.id = files.id
      JOIN stores ON stores.id = a.store
      JOIN runs ON runs.id = a.run
      ORDER BY stores.path, a.id
      """, [.optional(store)]
    ) { try body(Self.attempt($0)) }
  }

  /// Whether a run, whichever pipeline's, has written a file as the destination of a store.
  package func hasWritten(_ output: String, from store: String) throws -> Bool {
    guard let key = try knownKey(ofStore: store) else { return false }
    var isKnown = false
    try forEach(
      "SELECT 1 FROM attempts WHERE store = ?1 AND output = ?2 AND verdict = 'migrated' LIMIT 1",
      [.integer(key), .text(output)]
    ) { _ in isKnown = true }
    return isKnown
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
}
