import GodwitSQLite

// How long runs were at work.
extension Ledger {
  /// Adds the time of the last start of a run that has not ended yet.
  ///
  /// - Parameter end: Nil for one that was killed: it was at work to its last store at least.
  func countWork(of run: String, until end: Double?) throws {
    try perform(
      """
      UPDATE runs
      SET resumed = NULL,
        worked = coalesce(worked, 0) + max(0, coalesce(?2, \(Self.lastStore), resumed) - resumed)
      WHERE name = ?1 AND ended IS NULL AND resumed IS NOT NULL
      """, [.text(run), .optional(end)])
  }

  /// A start has left a run to others, which goes on: from now on nobody is at work here.
  package func leave(_ run: String, at time: Double) throws {
    try countWork(of: run, until: time)
  }

  /// When a run came to the end of its last store, in SQL.
  private static let lastStore = """
    (SELECT max(a.ended) FROM attempts AS a
     WHERE a.run = runs.id AND a.verdict NOT IN ('gone', '\(untried)'))
    """

  /// For a query of runs: NULL while a start may be at work. None is where it has left the run to others. One without
  /// an end was killed where another start, whichever pipeline's, has begun after it: nobody else is at work then.
  var workedColumn: String {
    guard has(.workedTime), has(.starts) else {
      return "CASE WHEN starts = 1 THEN max(0, ended - started) END"
    }
    return """
      CASE
        WHEN ended IS NOT NULL OR resumed IS NULL THEN worked
        WHEN (SELECT max(id) FROM starts) > (SELECT max(id) FROM starts WHERE time = runs.resumed)
        THEN coalesce(worked, 0) + max(0, coalesce(\(Self.lastStore), resumed) - resumed)
      END
      """
  }

  /// Gives runs that earlier versions have written their time, where the ledger tells.
  func addWorkedTime() throws {
    try connection.execute(
      """
      ALTER TABLE runs ADD COLUMN resumed REAL;
      ALTER TABLE runs ADD COLUMN worked REAL;
      UPDATE runs SET worked = max(0, ended - started) WHERE starts = 1 AND ended IS NOT NULL;
      """)
  }
}

// What clocks have shown.
extension Ledger {
  /// A run, a rollback or a removal of backups begins.
  package func noteStart(at time: Double) throws {
    try perform(
      """
      INSERT INTO starts (time, backups)
      SELECT ?1, coalesce(max(id), 0) FROM backups
      """, [.real(time)])
  }

  /// Whether a start has begun in the ledger. It is known by when it began: which of two is the later one their
  /// times do not tell.
  package func knowsStart(at time: Double) throws -> Bool {
    var isKnown = false
    try forEach("SELECT 1 FROM starts WHERE time = ?1 LIMIT 1", [.real(time)]) { _ in
      isKnown = true
    }
    return isKnown
  }

  /// Whether that start is the last one of its run, and has no end in the ledger.
  package func isOpen(_ run: String, begunAt time: Double) throws -> Bool {
    var isOpen = false
    try forEach(
      "SELECT 1 FROM runs WHERE name = ?1 AND resumed = ?2 AND ended IS NULL",
      [.text(run), .real(time)]
    ) { _ in isOpen = true }
    return isOpen
  }

  /// Fills the table from the runs that earlier versions have written.
  func addStarts() throws {
    try connection.execute(
      """
      \(LedgerFormat.starts)
      INSERT INTO starts (time, backups)
      SELECT r.started, coalesce(
        max(made.id) OVER (ORDER BY r.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
      FROM runs AS r
      LEFT JOIN (SELECT run, max(id) AS id FROM backups GROUP BY run) AS made ON made.run = r.id
      ORDER BY r.id;
      """)
  }

  /// What tells how old backups are, whichever pipeline's.
  ///
  /// - Parameters:
  ///   - now: Seconds since 1970-01-01 UTC.
  ///   - begun: When the start began that asks.
  ///   - keep: Seconds for which backups are kept.
  package func backupAges(at now: Double, begun: Double, keep: Double) throws -> BackupAges {
    var starts: [BackupAges.Start] = []
    if has(.starts) {
      try forEach("SELECT time, backups FROM starts ORDER BY id") { row in
        guard let time = row.value(0).time else { return }
        starts.append(BackupAges.Start(time: time, backups: row.int64(1)))
      }
    }
    return BackupAges(starts, at: now, begun: begun, keep: keep)
  }
}

/// How old backups are, although the clock of one start may have been wrong by months.
///
/// Such a clock shows as a jump: two starts in a row that are further apart than a pipeline is left alone. It
/// may have been a pause all the same, which the next start shows. So the time that a jump spans counts for no
/// backup that was made before it, until a later start has begun on this side of it:
///
/// - where the start that asks comes by a jump, all are as old as they were at the start before it;
/// - where the first start after the one that made a backup came by a jump, the backup is as old as that start.
package struct BackupAges: Sendable {
  struct Start: Sendable {
    var time: Double
    /// The highest key of a backup that was there.
    var backups: Int64
  }

  /// In the order in which they began, without the one that asks.
  private let starts: ArraySlice<Start>
  private let now: Double
  private let begun: Double
  private let jump: Double
  /// When the start before the one that asks began.
  private let last: Double?

  /// 60 d. A clock that is wrong by months has jumped, however long backups are kept.
  private static let longestPause = 60 * 86_400.0
  /// 8 d. What runs every week removes backups each time, however short they are kept.
  private static let shortestJump = 8 * 86_400.0

  init(_ starts: [Start], at now: Double, begun: Double, keep: Double) {
    // It is written down somewhat later than it began, and not at all by a dry run.
    let isLast = starts.last.map { $0.time >= begun && $0.time <= now } ?? false
    self.starts = isLast ? starts.dropLast() : starts[...]
    self.now = now
    self.begun = begun
    jump = min(Self.longestPause, max(Self.shortestJump, 4 * keep))
    last = self.starts.lazy.map(\.time).filter { $0 <= begun }.max()
  }

  /// Seconds since the start before the one that asks, where those are a jump.
  package var jumped: Double? { last.map { begun - $0 }.flatMap { $0 > jump ? $0 : nil } }

  /// How old a backup is, in seconds; nil where nothing shows it.
  package func seconds(of backup: LedgerBackup.Place) -> Double? {
    let isAhead = backup.made > now
    let next = starts[place(after: backup.key)...].first {
      $0.time <= now && (isAhead || $0.time >= backup.made)
    }
    let end = jumped == nil ? now : last ?? now
    guard let next else {
      // The start that asks is the first one after, or made it itself.
      return isAhead || begun - backup.made > jump ? nil : end - backup.made
    }
    return end - (isAhead || next.time - backup.made > jump ? next.time : backup.made)
  }

  /// Of the first start that found a backup.
  private func place(after backup: Int64) -> Int {
    var (low, high) = (starts.startIndex, starts.endIndex)
    while low < high {
      let middle = (low + high) / 2
      if starts[middle].backups < backup { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
