import GodwitSQLite

extension Ledger {
  /// Adds a backup. One of that path is left as it is.
  package func add(_ backup: LedgerBackup) throws {
    let store = try key(ofStore: backup.store)
    let run = try key(ofRun: backup.run, at: backup.made)
    try perform(
      """
      INSERT OR IGNORE INTO backups (
        path, folder, store, run, kind, bytes, made, marks, identity, digest, state, changed)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
      """,
      [
        .text(backup.path), .optional(backup.folder), .integer(store), .integer(run),
        .text(backup.kind.rawValue), .integer(backup.bytes), .real(backup.made),
        .text(LedgerJSON.text(backup.marks)), .optional(backup.identity), .optional(backup.digest),
        .text(backup.state.rawValue), .real(backup.changed),
      ])
  }

  /// Backups of a run were written down by a clock that has been put forward since.
  ///
  /// - Parameter times: What it showed before that, from the start of the run on.
  package func putForward(
    backupsOf run: String, madeWithin times: ClosedRange<Double>, by seconds: Double
  ) throws {
    guard let key = try knownKey(ofRun: run) else { return }
    try perform(
      """
      UPDATE backups SET made = made + ?4, changed = max(changed, made + ?4)
      WHERE run = ?1 AND made BETWEEN ?2 AND ?3
      """,
      [.integer(key), .real(times.lowerBound), .real(times.upperBound), .real(seconds)])
  }

  /// What became of a backup.
  package func set(_ state: LedgerBackup.State, ofBackup path: String, at time: Double) throws {
    try perform(
      "UPDATE backups SET state = ?2, changed = ?3 WHERE path = ?1",
      [.text(path), .text(state.rawValue), .real(time)])
  }

  /// A backup is the store again. Later ones of the same run and store are undone with it.
  package func setRestored(_ path: String, at time: Double) throws {
    try set(.restored, ofBackup: path, at: time)
    var place: (store: Int64, run: Int64, key: Int64)?
    try forEach(
      "SELECT store, run, id FROM backups WHERE path = ?1 AND kind = 'source'", [.text(path)]
    ) { place = ($0.int64(0), $0.int64(1), $0.int64(2)) }
    guard let place else { return }
    try perform(
      """
      UPDATE backups SET state = 'restored', changed = ?4
      WHERE store = ?1 AND run = ?2 AND id > ?3 AND kind = 'source' AND state = 'kept'
      """, [.integer(place.store), .integer(place.run), .integer(place.key), .real(time)])
  }

  /// The version that a store was of when a commit put a backup of it aside; nil where no attempt tells.
  ///
  /// A run that is resumed may migrate a store twice, so the attempt is the one that left the store as
  /// the backup says.
  package func sourceVersion(of backup: LedgerBackup) throws -> String? {
    guard let key = try knownKey(ofStore: backup.store) else { return nil }
    var version: String?
    try forEach(
      """
      SELECT a.source
      FROM attempts AS a
      JOIN stores ON stores.id = a.store
      JOIN runs ON runs.id = a.run
      WHERE a.store = ?1 AND a.verdict = 'migrated' AND \(Self.wroteItself)
        AND (a.identity IS ?2 OR runs.name = ?3)
      ORDER BY a.identity IS ?2 DESC, runs.name = ?3 DESC, a.id DESC
      LIMIT 1
      """, [.integer(key), .optional(backup.identity), .text(backup.run)]
    ) { version = $0.value(0).text }
    return version
  }

  /// The versions that stores were of before they were migrated, in the order of their names.
  package func sourceVersions() throws -> [String] {
    var versions: [String] = []
    try forEach(
      "SELECT DISTINCT source FROM attempts WHERE verdict = 'migrated' AND source NOT NULL ORDER BY 1"
    ) { if let name = $0.value(0).text { versions.append(name) } }
    return versions
  }

  private static let selectBackups = """
    SELECT b.path, b.folder, stores.path, runs.name, b.kind, b.bytes, b.made, b.marks, b.identity,
      b.digest, b.state, b.changed
    FROM backups AS b
    JOIN stores ON stores.id = b.store
    JOIN runs ON runs.id = b.run
    """

  private static func backup(_ row: Statement) -> LedgerBackup {
    let marks = LedgerJSON.value(BackupMark.self, row.value(7).text)
    let kind = row.value(4).text.flatMap(LedgerBackup.Kind.init)
    let state = row.value(10).text.flatMap(LedgerBackup.State.init)
    // A store whose row cannot be read is not one without a backup: whoever looks for it is told.
    let isReadable = marks != nil && kind != nil && state != nil
    var backup = LedgerBackup(
      path: row.value(0).text ?? "", folder: row.value(1).text, store: row.value(2).text ?? "",
      run: row.value(3).text ?? "", kind: kind ?? .source, bytes: row.value(5).amount,
      made: row.value(6).time ?? 0,
      marks: marks ?? BackupMark(main: .init(inode: 0, size: 0, seconds: 0, nanoseconds: 0)),
      identity: row.value(8).text, digest: row.value(9).text,
      state: isReadable ? state ?? .unreadable : .unreadable)
    backup.changed = row.value(11).time ?? 0
    return backup
  }

  /// Backups, the oldest first.
  ///
  /// - Parameters:
  ///   - run: Nil for those of all runs.
  ///   - all: Those too whose files are gone.
  package func forEachBackup(
    ofRun run: String?, all: Bool = false, _ body: (LedgerBackup) throws -> Void
  ) throws {
    try forEach(
      """
      \(Self.selectBackups)
      WHERE (?2 OR b.state NOT IN (\(Self.gone))) AND (?1 IS NULL OR runs.name = ?1) AND \(ownRuns)
      ORDER BY b.made, b.id
      """, [.optional(run), .integer(all ? 1 : 0)]
    ) { try body(Self.backup($0)) }
  }

  /// The same, of each no more than says whether it is to go, as far as the order tells in which runs began
  /// and backups were written down.
  ///
  /// A time may be of a clock that was wrong, on another machine or on this one before it was set: a backup is
  /// no older than its run, nor than any run, or backup, that the ledger had before it. What would be later
  /// than now says nothing of what came after it.
  ///
  /// - Parameter now: Seconds since 1970-01-01 UTC.
  package func forEachBackupPlace(
    at now: Double, _ body: (LedgerBackup.Place) throws -> Void
  ) throws {
    try forEach(
      """
      WITH begun AS (
        SELECT id, max(CASE WHEN started <= ?1 THEN started END) OVER (ORDER BY id) AS time
        FROM runs
      ), placed AS (
        SELECT b.id, b.bytes, b.state, b.run, max(b.made, coalesce(begun.time, b.made)) AS made,
          max(CASE WHEN b.made <= ?1 THEN b.made END) OVER (ORDER BY b.id) AS known
        FROM backups AS b
        JOIN begun ON begun.id = b.run
      )
      SELECT b.id, b.bytes, max(b.made, coalesce(b.known, b.made)) AS made, b.state = 'pruning'
      FROM placed AS b
      JOIN runs ON runs.id = b.run
      WHERE b.state NOT IN (\(Self.gone)) AND \(ownRuns)
      ORDER BY 3, b.id
      """, [.real(now)]
    ) { row in
      try body(
        LedgerBackup.Place(
          key: row.int64(0), bytes: row.value(1).amount, made: row.value(2).time ?? 0,
          isBeingRemoved: row.int64(3) != 0))
    }
  }

  /// Nil for a key that is nobody's.
  package func backup(_ key: Int64) throws -> LedgerBackup? {
    var backup: LedgerBackup?
    try forEach(
      """
      \(Self.selectBackups)
      WHERE b.id = ?1
      """, [.integer(key)]
    ) { backup = Self.backup($0) }
    return backup
  }

  /// Whether the backup of that main file is listed, whichever pipeline's.
  package func lists(backup path: String) throws -> Bool {
    var isListed = false
    try forEach(
      "SELECT 1 FROM backups WHERE path = ?1 AND state NOT IN (\(Self.gone))", [.text(path)]
    ) { _ in isListed = true }
    return isListed
  }

  /// The states of backups that are not there any more, in SQL.
  private static let gone = "'pruned', 'missing'"

  /// All backups of a store, the newest first, those that are gone included, whichever pipeline's.
  package func backups(of store: String) throws -> [LedgerBackup] {
    guard let key = try knownKey(ofStore: store) else { return [] }
    var backups: [LedgerBackup] = []
    try forEach(
      """
      \(Self.selectBackups)
      WHERE b.store = ?1
      ORDER BY b.id DESC
      """, [.integer(key)]
    ) { backups.append(Self.backup($0)) }
    return backups
  }

  /// Whether a store had files of external data before or after one of its backups was made, and the last
  /// backup that is kept and has some.
  package func externalData(
    of store: String
  ) throws -> (wasThere: Bool, backup: LedgerBackup?) {
    let backups = try backups(of: store)
    return (
      backups.contains { $0.marks.externalFiles > 0 || $0.marks.isExternalInStore == true },
      backups.first { $0.state == .kept && $0.marks.externalFiles > 0 }
    )
  }

  /// How many backups there are, and their bytes.
  package func backupTotals() throws -> (count: Int, bytes: Int64) {
    var totals = (count: 0, bytes: Int64(0))
    try forEach(
      """
      SELECT count(*), CAST(total(b.bytes) AS INTEGER)
      FROM backups AS b
      JOIN runs ON runs.id = b.run
      WHERE b.state NOT IN (\(Self.gone)) AND \(ownRuns)
      """
    ) { totals = (Int($0.int64(0)), $0.int64(1)) }
    return totals
  }
}
