import Foundation
import GodwitDurableFiles
import GodwitSQLite

// The stores of a pipeline, each as the last start that came to it left it. A run over some of the stores
// changes what is known of those, and of no other.
extension Ledger {
  /// Verdicts of the table `fleet` of stores for which nothing has to be done, as far as is known.
  static let done = "'migrated', 'same-model', 'snapshot'"

  /// A start of a run has found its stores. Of those that it takes up, what is known stays until it comes to
  /// them; those that are gone are forgotten, and those that are new are pending. What the run had tried of
  /// those that are gone is not counted any more.
  ///
  /// - Parameters:
  ///   - pipeline: The path of its file.
  ///   - found: All stores of the pipeline.
  ///   - taken: Those that the start takes up.
  ///   - redone: Those of them that wait for the start even where they are done: by other settings than its own.
  ///   - unseen: Folders that could not be searched: what was known of stores below them stays.
  package func beginFleet(
    of pipeline: String, run: String, found: [String], taken: [String],
    redone: Set<String> = [], unseen: [String]
  ) throws {
    guard let run = try knownKey(ofRun: run) else { return }
    let pipeline = fleetFile(pipeline)
    var known: Set<Int64> = []
    for path in taken {
      let key = try key(ofStore: path)
      known.insert(key)
      try take(path, store: key, pipeline, run, waits: redone.contains(path))
    }
    for path in found {
      let key = try key(ofStore: path)
      guard known.insert(key).inserted else { continue }
      try perform(
        """
        INSERT OR IGNORE INTO fleet (pipeline, store, verdict, reason, message)
        VALUES (?1, ?2, 'pending', ?3, ?4)
        """,
        [
          .text(pipeline), .integer(key), .text(LedgerStanding.notBegunReason),
          .text(LedgerStanding.notBegunMessage),
        ])
    }
    try noteDone(of: run, in: pipeline)
    let folders = unseen.map { $0 + "/" }
    var gone: [Int64] = []
    try forEach(
      """
      SELECT fleet.store, stores.path
      FROM fleet JOIN stores ON stores.id = fleet.store
      WHERE pipeline = ?1
      """, [.text(pipeline)]
    ) { row in
      let path = row.value(1).text ?? ""
      if !known.contains(row.int64(0)), !folders.contains(where: { path.begins(with: $0) }) {
        gone.append(row.int64(0))
      }
    }
    for key in gone {
      for table in ["fleet", "quarantine"] {
        try perform(
          "DELETE FROM \(table) WHERE pipeline = ?1 AND store = ?2",
          [.text(pipeline), .integer(key)])
      }
    }
    // A run over some of the stores goes on with one over others, too.
    var counted = taken.count == found.count ? known : []
    for path in unseen { if let key = try knownKey(ofStore: path) { counted.insert(key) } }
    try forEach(
      "SELECT store FROM fleet WHERE pipeline = ?1 AND run = ?2", [.text(pipeline), .integer(run)]
    ) { if taken.count < found.count { counted.insert($0.int64(0)) } }
    try setGone(of: run, allBut: counted)
  }

  /// A start takes a store up. It waits for the start to come to it, unless it is done as far as is known.
  ///
  /// - Parameter waits: It is not done all the same: by other settings, or as the start has seen that has ended
  ///   without it.
  private func take(
    _ path: String, store: Int64, _ pipeline: String, _ run: Int64, waits: Bool
  ) throws {
    let standing = LedgerStanding.notBegun(path)
    try perform(
      """
      INSERT INTO fleet (pipeline, store, verdict, reason, message, run, waiting)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1)
      ON CONFLICT (pipeline, store) DO UPDATE
      SET run = ?6, waiting = ?7 OR verdict NOT IN (\(Self.done))
      """,
      [
        .text(pipeline), .integer(store), .text(standing.verdict), .optional(standing.reason),
        .optional(standing.message), .integer(run), .integer(waits ? 1 : 0),
      ])
  }

  /// What is done is done until the start comes to it, whatever an earlier start of the run says of it.
  private func noteDone(of run: Int64, in pipeline: String) throws {
    let known = try verdictsKnown(of: run)
    if known.isEmpty { return }
    var done: [(store: Int64, standing: LedgerStanding)] = []
    try forEach(
      """
      SELECT fleet.store, stores.path, verdict
      FROM fleet JOIN stores ON stores.id = fleet.store
      WHERE pipeline = ?1 AND run = ?2 AND NOT waiting AND verdict IN (\(Self.done))
      """, [.text(pipeline), .integer(run)]
    ) { row in
      guard known[row.int64(0)] != nil else { return }
      let standing = LedgerStanding(
        store: row.value(1).text ?? "", verdict: row.value(2).text ?? "")
      done.append((row.int64(0), standing))
    }
    for (store, standing) in done {
      try noteEnd(standing, store: store, run, known: known[store])
    }
  }

  /// Notes which of the stores that a run has tried are not counted by it any more.
  private func setGone(of run: Int64, allBut counted: Set<Int64>) throws {
    try perform("DELETE FROM attempts WHERE run = ?1 AND verdict = 'gone'", [.integer(run)])
    var gone: [Int64] = []
    try forEach("SELECT DISTINCT store FROM attempts WHERE run = ?1", [.integer(run)]) {
      if !counted.contains($0.int64(0)) { gone.append($0.int64(0)) }
    }
    for store in gone {
      try perform(
        """
        INSERT OR IGNORE INTO attempts (run, store, started, ended, verdict, source_bytes)
        VALUES (?1, ?2, ?3, ?3, 'gone', 0)
        """, [.integer(run), .integer(store), .real(Date().timeIntervalSince1970)])
    }
  }

  /// Makes the table `fleet` of a ledger that has none, and fills it with what the last attempts say.
  func makeFleet() throws {
    try connection.execute(LedgerFormat.fleet)
    var last: [(file: String, store: Int64, run: Int64, standing: LedgerStanding)] = []
    try forEach(
      """
      SELECT runs.file, a.store, a.run, stores.path, a.verdict, a.output, a.code, a.reasons
      FROM (
        SELECT max(a.id) AS id
        FROM attempts AS a JOIN runs ON runs.id = a.run
        WHERE runs.file <> '' AND (runs.kind = 'run' OR a.verdict = 'restored')
        GROUP BY runs.file, a.store
      ) AS last
      JOIN attempts AS a ON a.id = last.id
      JOIN stores ON stores.id = a.store
      JOIN runs ON runs.id = a.run
      """
    ) { row in
      let reasons = LedgerJSON.value([RunReport.Reason].self, row.value(7).text) ?? []
      last.append(
        (
          row.value(0).text ?? "", row.int64(1), row.int64(2),
          LedgerStanding(
            store: row.value(3).text ?? "", verdict: row.value(4).text ?? "",
            output: row.value(5).text, code: row.value(6).integer.map(Int.init),
            reason: reasons.first?.reason, message: reasons.first?.message)
        ))
    }
    for found in last { try set(found.standing, store: found.store, found.file, found.run) }
  }

  /// What a start of a run knows of stores at its end. One that it has not come to, or was stopped in, keeps
  /// what is known of it, and is pending in the run.
  package func settle(_ stores: [LedgerStanding], of pipeline: String, run: String) throws {
    guard let run = try knownKey(ofRun: run) else { return }
    let pipeline = fleetFile(pipeline)
    let known = try verdictsKnown(of: run)
    for store in stores {
      let key = try key(ofStore: store.store)
      if store.isNotBegun {
        try take(store.store, store: key, pipeline, run, waits: true)
      } else {
        try set(store, store: key, pipeline, run)
      }
      try noteEnd(store, store: key, run, known: known[key])
    }
  }

  /// Takes what an attempt says of its store.
  func settle(_ attempt: LedgerAttempt, store: Int64, run: Int64) throws {
    // One that is pending is so already, or somebody else has it by now.
    guard attempt.verdict != "pending" else { return }
    var place: (pipeline: String, kind: String)?
    try forEach("SELECT file, kind FROM runs WHERE id = ?1", [.integer(run)]) {
      place = ($0.value(0).text ?? "", $0.value(1).text ?? "")
    }
    guard let place, !place.pipeline.isEmpty else { return }
    // What a rollback does not put back is as it was.
    guard place.kind == LedgerRun.Kind.run.rawValue || attempt.verdict == "restored" else { return }
    let standing = LedgerStanding(
      store: attempt.store, verdict: attempt.verdict, output: attempt.output, code: attempt.code,
      reason: attempt.reasons.first?.reason, message: attempt.reasons.first?.message)
    try set(standing, store: store, fleetFile(place.pipeline), run)
  }

  /// A row that says the same already is left alone.
  ///
  /// A rollback takes nothing up: whose the store is, and what it was there, stays for that run's report.
  private func set(
    _ standing: LedgerStanding, store: Int64, _ pipeline: String, _ run: Int64
  ) throws {
    try perform(
      """
      INSERT INTO fleet (pipeline, store, verdict, code, reason, message, run)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
      ON CONFLICT (pipeline, store) DO UPDATE
      SET verdict = ?3, code = ?4, message = ?6,
        reason = CASE WHEN ?3 <> 'restored' THEN ?5 WHEN verdict = 'restored' THEN reason ELSE verdict END,
        run = iif(?3 = 'restored', run, ?7), waiting = iif(?3 = 'restored', waiting, 0)
      WHERE verdict <> ?3 OR code IS NOT ?4 OR reason IS NOT ?5 OR message IS NOT ?6 OR run IS NOT ?7
        OR waiting
      """,
      [
        .text(pipeline), .integer(store), .text(standing.verdict), .optional(standing.code),
        .optional(standing.reason), .optional(standing.message), .integer(run),
      ])
  }

  /// Whether a store waits for the run that it is asked for, parameter 2: then it is pending there, whatever
  /// is known of it.
  var waits: String { has(.waiting) ? "(?2 IS NOT NULL AND waiting)" : "0" }

  /// The verdict of a store: as that run left it, whatever rollbacks did since, or as it is known.
  private var standing: String {
    """
    CASE
      WHEN \(waits) THEN 'pending'
      WHEN ?2 IS NOT NULL AND verdict = 'restored' THEN coalesce(reason, 'migrated')
      ELSE verdict
    END
    """
  }

  /// Every store of a pipeline by what is known of it; nil where nothing is.
  ///
  /// - Parameter run: Only those that it was the last to take up. Those that it has not come to are pending.
  package func fleet(of pipeline: String, run: String? = nil) throws -> RunReport.Counts? {
    guard has(.fleet) else { return nil }
    var verdicts: [String: Int] = [:]
    try forEach(
      """
      SELECT \(standing) AS standing, count(*)
      FROM fleet
      WHERE pipeline = ?1 AND (?2 IS NULL OR run = (SELECT id FROM runs WHERE name = ?2))
      GROUP BY standing
      """, [.text(fleetFile(pipeline)), .optional(run)]
    ) { verdicts[$0.value(0).text ?? ""] = Int($0.int64(1)) }
    if verdicts.isEmpty { return nil }
    func count(_ verdict: String) -> Int { verdicts[verdict] ?? 0 }
    return RunReport.Counts(
      found: verdicts.values.reduce(0, +), migrated: count("migrated") + count("snapshot"),
      sameModel: count("same-model"), refused: count("refused"),
      needsMapping: count("needs-mapping"), quarantined: count("quarantined"),
      failed: count("failed"), pending: count("pending"), restored: count("restored"),
      snapshots: count("snapshot"))
  }

  /// The stores of a pipeline that are not migrated, in the byte order of their paths.
  ///
  /// - Parameter run: Only those that it was the last to take up. Those that it has not come to are pending.
  package func forEachNotMigrated(
    of pipeline: String, run: String? = nil, _ body: (LedgerStanding) throws -> Void
  ) throws {
    guard has(.fleet) else { return }
    try forEach(
      """
      SELECT stores.path, \(standing) AS standing, code, iif(verdict = 'restored', NULL, reason), message,
        \(waits)
      FROM fleet JOIN stores ON stores.id = fleet.store
      WHERE pipeline = ?1 AND (?2 IS NULL OR run = (SELECT id FROM runs WHERE name = ?2))
        AND standing NOT IN (\(Self.done), 'restored')
      ORDER BY stores.path
      """, [.text(fleetFile(pipeline)), .optional(run)]
    ) { row in
      let store = row.value(0).text ?? ""
      try body(
        row.int64(5) != 0
          ? .notBegun(store)
          : LedgerStanding(
            store: store, verdict: row.value(1).text ?? "",
            code: row.value(2).integer.map(Int.init), reason: row.value(3).text,
            message: row.value(4).text))
    }
  }

  /// The stores of a pipeline that are migrated, as the last run that came to each left it; snapshots are among them.
  package func forEachMigratedStore(
    of pipeline: String, _ body: (_ path: String) throws -> Void
  ) throws {
    guard has(.fleet) else { return }
    try forEach(
      """
      SELECT stores.path
      FROM fleet JOIN stores ON stores.id = fleet.store
      WHERE pipeline = ?1 AND verdict IN (\(Self.done))
      """, [.text(fleetFile(pipeline))]
    ) { try body($0.value(0).text ?? "") }
  }

  /// How many stores of a pipeline are known below a folder. Folders that count as one are none.
  package func knownStores(of pipeline: String, below folder: String) throws -> Int {
    guard has(.fleet) else { return 0 }
    var count = 0
    // "0" is the byte after "/".
    try forEach(
      """
      SELECT count(*)
      FROM fleet JOIN stores ON stores.id = fleet.store
      WHERE pipeline = ?1 AND stores.path > ?2 || '/' AND stores.path < ?2 || '0'
        AND (fleet.reason IS NULL OR fleet.reason NOT IN ('unreadable-folder', 'empty-root', 'no-stores'))
      """, [.text(fleetFile(pipeline)), .text(folder)]
    ) { count = Int($0.int64(0)) }
    return count
  }
}
