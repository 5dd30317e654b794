import GodwitSQLite

// Stores that fail again and again, each under one pipeline: what fails in one may end well in another.
extension Ledger {
  /// The stores that are quarantined, in the byte order of their paths.
  ///
  /// - Parameters:
  ///   - all: Those too that failed and are not, and those that were released.
  ///   - pipeline: The path under which its fleet is known; nil for the pipeline that the ledger is narrowed
  ///     to, or for all.
  package func quarantine(
    all: Bool = false, of pipeline: String? = nil
  ) throws -> [LedgerQuarantine] {
    // A ledger that only earlier versions have written says nothing of pipelines.
    let owner = has(.quarantineOwners) ? "q.pipeline" : "''"
    var stores: [LedgerQuarantine] = []
    try forEach(
      """
      SELECT
        stores.path, q.reason, q.mark, q.settings, q.attempts, q.first, q.last, q.since, q.released
      FROM quarantine AS q
      JOIN stores ON stores.id = q.store
      WHERE (?1 OR q.since IS NOT NULL) AND \(isOwn(owner))
        AND (?2 IS NULL OR \(owner) IN ('', ?2))
      ORDER BY stores.path
      """, [.integer(all ? 1 : 0), .optional(pipeline)]
    ) { row in
      stores.append(
        LedgerQuarantine(
          store: row.value(0).text ?? "", reason: row.value(1).text ?? "",
          mark: row.value(2).text ?? "", settings: row.value(3).text ?? "",
          attempts: Int(row.value(4).amount), first: row.value(5).time ?? 0,
          last: row.value(6).time ?? 0, since: row.value(7).time, released: row.value(8).time)
      )
    }
    return stores
  }

  /// A condition in SQL: whether a path is one of the pipeline's that the ledger is narrowed to.
  private func isOwn(_ path: String) -> String {
    ownFleet == nil ? "TRUE" : "\(path) IN (SELECT file FROM own_files)"
  }

  /// Counts a failure of a store.
  ///
  /// - Parameters:
  ///   - pipeline: Whose run it was: the path of its file.
  ///   - limit: Quarantines a store that failed so often with the same reason, in the same state, under the
  ///     same settings; 0 for never.
  package func countFailure(
    of store: String, in pipeline: String, reason: String, mark: String, settings: String,
    at time: Double, limit: Int
  ) throws {
    let key = try SQLiteValue.integer(key(ofStore: store))
    try perform(
      """
      INSERT INTO quarantine (pipeline, store, reason, mark, settings, attempts, first, last)
      VALUES (?6, ?1, ?2, ?3, ?4, 1, ?5, ?5)
      ON CONFLICT (pipeline, store) DO UPDATE
      SET attempts =
          CASE
            WHEN reason = ?2 AND mark = ?3 AND settings = ?4 AND released IS NULL
            THEN attempts + 1 ELSE 1
          END,
        first =
          CASE
            WHEN reason = ?2 AND mark = ?3 AND settings = ?4 AND released IS NULL
            THEN first ELSE ?5
          END,
        last = ?5, reason = ?2, mark = ?3, settings = ?4, since = NULL, released = NULL
      """,
      [key, .text(reason), .text(mark), .text(settings), .real(time), .text(pipeline)])
    guard limit > 0 else { return }
    try perform(
      """
      UPDATE quarantine SET since = ?2
      WHERE pipeline = ?4 AND store = ?1 AND attempts >= ?3 AND since IS NULL
      """, [key, .real(time), .integer(Int64(limit)), .text(pipeline)])
  }

  /// A store ended well: what it failed for before in the pipeline is over.
  package func forgetFailures(of store: String, in pipeline: String) throws {
    guard let key = try knownKey(ofStore: store) else { return }
    try perform(
      "DELETE FROM quarantine WHERE pipeline IN ('', ?2) AND store = ?1",
      [.integer(key), .text(pipeline)])
  }

  /// Lets a store be tried again.
  ///
  /// - Returns: False for a store that is not quarantined.
  package func release(_ store: String, at time: Double) throws -> Bool {
    guard let key = try knownKey(ofStore: store) else { return false }
    try perform(
      """
      UPDATE quarantine SET since = NULL, attempts = 0, released = ?2
      WHERE store = ?1 AND since IS NOT NULL AND \(isOwn("pipeline"))
      """, [.integer(key), .real(time)])
    return connection.changes > 0
  }

  /// Gives what earlier versions have written to the pipelines whose runs came to the stores last.
  func addQuarantineOwners() throws {
    try connection.execute(
      """
      ALTER TABLE quarantine RENAME TO quarantine_of_all;
      \(LedgerFormat.quarantine)
      INSERT INTO quarantine
      SELECT
        coalesce(
          (SELECT runs.file
           FROM attempts AS a JOIN runs ON runs.id = a.run
           WHERE a.store = q.store AND runs.kind = 'run'
           ORDER BY a.id DESC LIMIT 1), ''),
        store, reason, mark, settings, attempts, first, last, since, released
      FROM quarantine_of_all AS q;
      DROP TABLE quarantine_of_all
      """)
  }
}
