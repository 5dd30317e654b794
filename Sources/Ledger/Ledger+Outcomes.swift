import Foundation
import GodwitSQLite

// What became of each store of a run, as the run's last start left it: whatever later runs and rollbacks have made
// of the store since.
//
// Attempts tell it, and where a start ended with another verdict of a store than they do, without having tried it, a
// row of `attempts` that says so. Earlier versions wrote no such row: of their runs the table `fleet` tells it, until
// another run takes the store up.
extension Ledger {
  /// The verdict of such a row; its reason is the verdict with which the start ended.
  static let untried = "untried"

  /// Of attempts that ended well.
  private static let well = "'migrated', 'same-model', 'restored'"

  /// True of a row of `fleet` that the last start of its run came to.
  private var isLeft: String { has(.waiting) ? "NOT waiting" : "TRUE" }

  /// How the run of such a row left its store, whatever rollbacks did since.
  private static let leftAs = "iif(verdict = 'restored', coalesce(reason, 'migrated'), verdict)"

  /// The pipeline under which the table `fleet` has the stores of a run.
  private func fleetFile(ofRun key: Int64) throws -> String {
    var file = ""
    try forEach("SELECT file FROM runs WHERE id = ?1", [.integer(key)]) {
      file = $0.value(0).text ?? ""
    }
    return fleetFile(file)
  }

  /// What a run is known to have left stores as, by their keys.
  func verdictsKnown(of run: Int64) throws -> [Int64: (verdict: String, isTried: Bool)] {
    var verdicts: [Int64: (verdict: String, isTried: Bool)] = [:]
    try forEach(
      """
      SELECT a.store, iif(a.verdict = ?2, a.reason, a.verdict), a.verdict <> ?2
      FROM (SELECT max(id) AS id FROM attempts WHERE run = ?1 GROUP BY store) AS last
      JOIN attempts AS a ON a.id = last.id
      """, [.integer(run), .text(Self.untried)]
    ) { verdicts[$0.int64(0)] = ($0.value(1).text ?? "", $0.int64(2) != 0) }
    return verdicts
  }

  /// Notes what a start of a run knows of a store, where its attempts say otherwise. Of stores without any, those that
  /// were found done, or that it did not come to, are many, and are only counted.
  ///
  /// - Parameter known: Of ``verdictsKnown(of:)``.
  func noteEnd(
    _ standing: LedgerStanding, store: Int64, _ run: Int64,
    known: (verdict: String, isTried: Bool)?
  ) throws {
    func isWell(_ verdict: String) -> Bool {
      verdict == LedgerStanding.snapshot || RunReport.goodVerdicts.contains(verdict)
    }
    let isNews =
      if let known {
        // A store that was migrated is found to be of the destination's version by a later start.
        known.isTried && isWell(known.verdict)
          ? !isWell(standing.verdict) : known.verdict != standing.verdict
      } else {
        [LedgerStanding.snapshot, "quarantined"].contains(standing.verdict)
      }
    guard isNews else { return }
    try perform(
      "DELETE FROM attempts WHERE run = ?1 AND store = ?2 AND verdict = ?3",
      [.integer(run), .integer(store), .text(Self.untried)])
    try perform(
      """
      INSERT OR IGNORE INTO attempts (
        run, store, started, ended, verdict, reason, reasons, code, source_bytes)
      VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7, 0)
      """,
      [
        .integer(run), .integer(store), .real(Date().timeIntervalSince1970), .text(Self.untried),
        .text(standing.verdict),
        standing.reasons.isEmpty ? .null : .text(LedgerJSON.text(standing.reasons)),
        .optional(standing.code),
      ])
  }

  /// What became of each store in a run: its last attempt, and how often it was tried. Where its last start ended with
  /// another verdict without trying it, that is the last attempt that ended well, if the store was found done, or else
  /// that verdict. In the byte order of the paths.
  ///
  /// - Parameters:
  ///   - exceptWell: Only those that did not end well.
  ///   - exceptGone: Only those that its last start counted: not those that were gone by then.
  package func forEachStore(
    of run: String, exceptWell: Bool = false, exceptGone: Bool = false,
    _ body: (LedgerAttempt, _ attempts: Int) throws -> Void
  ) throws {
    guard let key = try knownKey(ofRun: run) else { return }
    let leftDone =
      has(.fleet)
      ? """
      SELECT \(Self.leftAs) AS leftAs
      FROM fleet
      WHERE pipeline = ?5 AND fleet.store = ends.store AND run = ?1 AND \(isLeft) AND leftAs IN (\(Self.done))
      """ : "NULL"
    try forEach(
      """
      WITH ends AS (
        SELECT store, max(id) AS latest, total(verdict <> ?4) AS tries,
          max(CASE WHEN verdict <> ?4 THEN id END) AS tried,
          max(CASE WHEN verdict IN (\(Self.well)) THEN id END) AS well
        FROM attempts
        WHERE run = ?1 AND verdict <> 'gone'
        GROUP BY store
      ), last AS (
        SELECT ends.*, coalesce(other.reason, (\(leftDone))) AS verdict, other.reasons, other.code
        FROM ends LEFT JOIN attempts AS other ON other.id = latest AND other.verdict = ?4
      ), told AS (
        SELECT last.*, verdict IN (\(Self.done)) AS isDone FROM last
      )
      SELECT \(attemptColumns), CAST(told.tries AS INTEGER),
        iif(isDone AND well NOT NULL, NULL, told.verdict), told.reasons, told.code
      FROM told
      JOIN attempts AS a ON a.id = coalesce(iif(isDone, well, NULL), tried, latest)
      JOIN stores ON stores.id = a.store
      JOIN runs ON runs.id = a.run
      WHERE (tried NOT NULL OR NOT isDone)
        AND (NOT ?2 OR NOT coalesce(isDone, a.verdict IN (\(Self.well))))
        AND (NOT ?3 OR a.store NOT IN (
          SELECT store FROM attempts WHERE run = ?1 AND verdict = 'gone'))
      ORDER BY stores.path
      """,
      [
        .integer(key), .integer(exceptWell ? 1 : 0), .integer(exceptGone ? 1 : 0),
        .text(Self.untried), .text(fleetFile(ofRun: key)),
      ]
    ) { row in
      var attempt = Self.attempt(row)
      if let verdict = row.value(22).text {
        attempt.end(
          with: verdict, row.value(24).integer.map(Int.init),
          LedgerJSON.value([RunReport.Reason].self, row.value(23).text) ?? [])
      }
      try body(attempt, Int(row.int64(21)))
    }
  }

  /// Stores by verdict, as far as a run has come.
  package func verdicts(of run: String) throws -> [String: Int] {
    var counts: [String: Int] = [:]
    try forEachStore(of: run, exceptGone: true) { attempt, _ in
      counts[attempt.verdict, default: 0] += 1
    }
    return counts
  }

  /// How many of the stores that a run left migrated are snapshots, and the stores as they were.
  func snapshots(of run: String) throws -> Int {
    guard let key = try knownKey(ofRun: run) else { return 0 }
    var found: Set<Int64> = []
    try forEach(
      """
      SELECT stores.path, a.output, a.store
      FROM (SELECT max(id) AS id FROM attempts WHERE run = ?1 GROUP BY store) AS last
      JOIN attempts AS a ON a.id = last.id
      JOIN stores ON stores.id = a.store
      WHERE a.verdict = ?3 AND a.reason = ?4
        OR a.verdict = 'migrated' AND a.output LIKE '%' || ?2 || '%'
      """,
      [
        .integer(key), .text(LedgerStanding.snapshotMark), .text(Self.untried),
        .text(LedgerStanding.snapshot),
      ]
    ) { row in
      let verdict = LedgerStanding.verdict(
        "migrated", output: row.value(1).text, ofStore: row.value(0).text ?? "")
      if row.value(1).text == nil || verdict == LedgerStanding.snapshot {
        found.insert(row.int64(2))
      }
    }
    guard has(.fleet) else { return found.count }
    try forEach(
      """
      SELECT store FROM fleet
      WHERE pipeline = ?1 AND run = ?2 AND \(isLeft) AND \(Self.leftAs) = ?3
      """,
      [.text(fleetFile(ofRun: key)), .integer(key), .text(LedgerStanding.snapshot)]
    ) { found.insert($0.int64(0)) }
    return found.count
  }

  /// The stores that a run found as an earlier one, or an earlier start, had left them, and did not try: of those
  /// that no later run has taken up. In the byte order of their paths.
  package func storesFoundDone(of pipeline: String, run: String) throws -> [String] {
    guard has(.fleet) else { return [] }
    var paths: [String] = []
    try forEach(
      """
      SELECT stores.path
      FROM fleet JOIN stores ON stores.id = fleet.store JOIN runs ON runs.id = fleet.run
      WHERE fleet.pipeline = ?1 AND runs.name = ?2 AND NOT \(waits)
        AND iif(verdict = 'restored', coalesce(reason, 'migrated'), verdict) IN (\(Self.done))
        AND NOT EXISTS (
          SELECT 1 FROM attempts AS a
          WHERE a.run = runs.id AND a.store = fleet.store AND a.verdict <> ?3)
      ORDER BY stores.path
      """, [.text(fleetFile(pipeline)), .text(run), .text(Self.untried)]
    ) { paths.append($0.value(0).text ?? "") }
    return paths
  }
}

extension LedgerAttempt {
  /// A later start has ended with another verdict of the store, without trying it.
  fileprivate mutating func end(with verdict: String, _ code: Int?, _ reasons: [RunReport.Reason]) {
    self.verdict = verdict == LedgerStanding.snapshot ? "migrated" : verdict
    (self.code, self.reasons, losses) = (code, reasons, [])
    (rows, destinationBytes, output) = (nil, nil, nil)
  }
}
