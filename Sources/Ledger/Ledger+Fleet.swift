import GodwitSQLite

/// What is known of a store of a pipeline.
package struct LedgerStanding: Sendable, Equatable {
  package var store: String
  package var verdict: String
  package var code: Int?
  /// Of the first reason; nil where it ended well.
  package var reason: String?
  package var message: String?

  package init(
    store: String, verdict: String, code: Int? = nil, reason: String? = nil,
    message: String? = nil
  ) {
    self.store = store
    self.verdict = verdict
    self.code = code
    self.reason = reason
    self.message = message
  }

  /// A store that no start of a run has come to.
  package static func notBegun(_ store: String) -> LedgerStanding {
    LedgerStanding(
      store: store, verdict: "pending", reason: notBegunReason, message: notBegunMessage)
  }

  package static let notBegunReason = "stopped"
  package static let notBegunMessage = "The run ended before it came to the store."
}

// The stores of a pipeline, each as the last start that took it up left it. A run over some of the stores
// changes what is known of those, and of no other.
extension Ledger {
  /// A start of a run has found its stores. Those that it takes up are pending from here on, those that
  /// are gone are forgotten, and those that are new are pending, too.
  ///
  /// - Parameters:
  ///   - pipeline: The path of its file.
  ///   - found: All stores of the pipeline.
  ///   - taken: Those that the start takes up.
  ///   - unseen: Folders that could not be searched: what was known of stores below them stays.
  package func beginFleet(
    of pipeline: String, run: String, found: [String], taken: [String], unseen: [String]
  ) throws {
    guard let run = try knownKey(ofRun: run) else { return }
    var known: Set<Int64> = []
    for path in taken {
      let key = try key(ofStore: path)
      known.insert(key)
      try set(.notBegun(path), store: key, pipeline, run)
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
      if !known.contains(row.int64(0)), !folders.contains(where: path.hasPrefix) {
        gone.append(row.int64(0))
      }
    }
    for key in gone {
      try perform(
        "DELETE FROM fleet WHERE pipeline = ?1 AND store = ?2", [.text(pipeline), .integer(key)])
    }
  }

  /// What a start of a run knows of stores at its end.
  package func settle(_ stores: [LedgerStanding], of pipeline: String, run: String) throws {
    guard let run = try knownKey(ofRun: run) else { return }
    for store in stores { try set(store, store: key(ofStore: store.store), pipeline, run) }
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
    let isGood = RunReport.goodVerdicts.contains(attempt.verdict)
    let first = isGood ? nil : attempt.reasons.first
    let standing = LedgerStanding(
      store: attempt.store, verdict: attempt.verdict, code: isGood ? nil : attempt.code,
      reason: first?.reason, message: first?.message)
    try set(standing, store: store, place.pipeline, run)
  }

  /// A row that says the same already is left alone.
  private func set(
    _ standing: LedgerStanding, store: Int64, _ pipeline: String, _ run: Int64
  ) throws {
    try perform(
      """
      INSERT INTO fleet (pipeline, store, verdict, code, reason, message, run)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
      ON CONFLICT (pipeline, store) DO UPDATE
      SET verdict = ?3, code = ?4, reason = ?5, message = ?6, run = ?7
      WHERE verdict <> ?3 OR code IS NOT ?4 OR reason IS NOT ?5 OR message IS NOT ?6 OR run IS NOT ?7
      """,
      [
        .text(pipeline), .integer(store), .text(standing.verdict), .optional(standing.code),
        .optional(standing.reason), .optional(standing.message), .integer(run),
      ])
  }

  /// Every store of a pipeline by what is known of it; nil where nothing is.
  ///
  /// - Parameter run: Only those that it was the last to take up.
  package func fleet(of pipeline: String, run: String? = nil) throws -> RunReport.Counts? {
    guard try hasFleet else { return nil }
    var verdicts: [String: Int] = [:]
    try forEach(
      """
      SELECT verdict, count(*)
      FROM fleet
      WHERE pipeline = ?1 AND (?2 IS NULL OR run = (SELECT id FROM runs WHERE name = ?2))
      GROUP BY verdict
      """, [.text(pipeline), .optional(run)]
    ) { verdicts[$0.value(0).text ?? ""] = Int($0.int64(1)) }
    if verdicts.isEmpty { return nil }
    func count(_ verdict: String) -> Int { verdicts[verdict] ?? 0 }
    return RunReport.Counts(
      found: verdicts.values.reduce(0, +), migrated: count("migrated") + count("restored"),
      sameModel: count("same-model"), refused: count("refused"),
      needsMapping: count("needs-mapping"), quarantined: count("quarantined"),
      failed: count("failed"), pending: count("pending"))
  }

  /// How many stores of a pipeline a rollback put back, and no run has taken up since.
  package func restoredStores(of pipeline: String) throws -> Int {
    guard try hasFleet else { return 0 }
    var count = 0
    try forEach(
      "SELECT count(*) FROM fleet WHERE pipeline = ?1 AND verdict = 'restored'", [.text(pipeline)]
    ) { count = Int($0.int64(0)) }
    return count
  }

  /// The stores of a pipeline that are not migrated, in the byte order of their paths.
  ///
  /// - Parameter run: Only those that it was the last to take up.
  package func forEachNotMigrated(
    of pipeline: String, run: String? = nil, _ body: (LedgerStanding) throws -> Void
  ) throws {
    guard try hasFleet else { return }
    try forEach(
      """
      SELECT stores.path, verdict, code, reason, message
      FROM fleet JOIN stores ON stores.id = fleet.store
      WHERE pipeline = ?1 AND (?2 IS NULL OR run = (SELECT id FROM runs WHERE name = ?2))
        AND verdict NOT IN ('migrated', 'same-model', 'restored')
      ORDER BY stores.path
      """, [.text(pipeline), .optional(run)]
    ) { row in
      try body(
        LedgerStanding(
          store: row.value(0).text ?? "", verdict: row.value(1).text ?? "",
          code: row.value(2).integer.map(Int.init), reason: row.value(3).text,
          message: row.value(4).text))
    }
  }

  /// The stores of a pipeline that are migrated, as the last run that took each up left it.
  package func forEachMigratedStore(
    of pipeline: String, _ body: (_ path: String) throws -> Void
  ) throws {
    guard try hasFleet else { return }
    try forEach(
      """
      SELECT stores.path
      FROM fleet JOIN stores ON stores.id = fleet.store
      WHERE pipeline = ?1 AND verdict IN ('migrated', 'same-model')
      """, [.text(pipeline)]
    ) { try body($0.value(0).text ?? "") }
  }

  /// How many stores of a pipeline are known below a folder. Folders that count as one are none.
  package func knownStores(of pipeline: String, below folder: String) throws -> Int {
    guard try hasFleet else { return 0 }
    var count = 0
    // "0" is the byte after "/".
    try forEach(
      """
      SELECT count(*)
      FROM fleet JOIN stores ON stores.id = fleet.store
      WHERE pipeline = ?1 AND stores.path > ?2 || '/' AND stores.path < ?2 || '0'
        AND (fleet.reason IS NULL OR fleet.reason NOT IN ('unreadable-folder', 'empty-root', 'no-stores'))
      """, [.text(pipeline), .text(folder)]
    ) { count = Int($0.int64(0)) }
    return count
  }

  /// False for a ledger that only earlier versions have written.
  private var hasFleet: Bool {
    get throws {
      var has = false
      try forEach("SELECT 1 FROM sqlite_schema WHERE name = 'fleet'") { _ in has = true }
      return has
    }
  }
}
