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
        worked = coalesce(worked, 0) + max(0, coalesce(?2, (
          SELECT max(a.ended) FROM attempts AS a WHERE a.run = runs.id), resumed) - resumed)
      WHERE name = ?1 AND ended IS NULL AND resumed IS NOT NULL
      """, [.text(run), .optional(end)])
  }

  /// For a query of runs.
  var workedColumn: String {
    has(.workedTime) ? "worked" : "CASE WHEN starts = 1 THEN ended - started END"
  }

  /// Gives runs that earlier versions have written their time, where the ledger tells.
  func addWorkedTime() throws {
    try connection.execute(
      """
      ALTER TABLE runs ADD COLUMN resumed REAL;
      ALTER TABLE runs ADD COLUMN worked REAL;
      UPDATE runs SET worked = ended - started WHERE starts = 1 AND ended IS NOT NULL;
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
  package func backupAges(at now: Double, begun: Double) throws -> BackupAges {
    var starts: [BackupAges.Start] = []
    if has(.starts) {
      try forEach("SELECT time, backups FROM starts ORDER BY id") { row in
        guard let time = row.value(0).time else { return }
        starts.append(BackupAges.Start(time: time, backups: row.int64(1)))
      }
    }
    return BackupAges(starts, at: now, begun: begun)
  }
}

/// How old backups are at least, although the clock of one start may be wrong.
///
/// A single start proves nothing: its clock may be years ahead, or that of the start which made a backup
/// years behind. So a backup's age is the time from the first start after the one that made it to the last
/// start before the one that asks, each half a day or more away from these by the clock: a clock that is
/// wrong may be so for a few starts in a row. Whichever one of the four is wrong, the age is not too great:
///
/// - of the start that made the backup, or asks: neither counts;
/// - of the first one after: behind, it is not later than the backup, and the next one counts; ahead, the age
///   is less;
/// - of the last one before: ahead, it is later than the one that asks, and the one before it counts; behind,
///   the age is less.
package struct BackupAges: Sendable {
  struct Start: Sendable {
    var time: Double
    /// The highest key of a backup that was there.
    var backups: Int64
  }

  /// In the order in which they began.
  private let starts: [Start]
  private let now: Double
  /// When the last start before the one that asks began; nil where there is none.
  package let last: Double?

  /// 12 h. Starts of two nights are further apart, also where one begins late.
  private static let distance = 43_200.0

  init(_ starts: [Start], at now: Double, begun: Double) {
    self.starts = starts
    self.now = now
    let latest = min(now, begun) - Self.distance
    last = starts.lazy.map(\.time).filter { $0 <= latest }.max()
  }

  /// How old a backup is at least, in seconds; nil where nothing shows it.
  package func seconds(of backup: LedgerBackup.Place) -> Double? {
    guard let last else { return nil }
    // A time that is still to come says nothing of when the backup was made.
    let first = backup.made > now ? -.infinity : backup.made + Self.distance
    let known = starts[place(after: backup.key)...].first { $0.time >= first && $0.time <= now }
    return known.map { last - $0.time }
  }

  /// Of the first start that found a backup.
  private func place(after backup: Int64) -> Int {
    var (low, high) = (0, starts.count)
    while low < high {
      let middle = (low + high) / 2
      if starts[middle].backups < backup { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
