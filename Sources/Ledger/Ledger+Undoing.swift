import GodwitSQLite
import SystemPackage

// What rollbacks have taken back.
//
// Rollbacks take back what replaced a store last and stands, so the attempts tell, also where the backup was removed
// and its state with it, and whatever runs have found since. A run that is resumed may migrate a store twice, and a
// rollback take one of the two back.
extension Ledger {
  /// Whether what a run made of a store was taken back since.
  ///
  /// - Parameter identity: Of the state in which the migration left the store that is asked for; nil for all
  ///   that the run made of it.
  package func isUndone(
    _ run: String, of store: String, leaving identity: String? = nil
  ) throws -> Bool {
    guard let key = try knownKey(ofStore: store) else { return false }
    var isUndone = true
    try forEachHistory(ofStores: "= ?1", .integer(key)) { _, writes in
      isUndone = writes.isUndone(run, leaving: identity)
    }
    return isUndone
  }

  /// The stores that a run replaced, and that a rollback has put back to what they were before it; nobody has migrated
  /// them since.
  func storesPutBack(after run: String) throws -> Set<FilePath> {
    guard let key = try knownKey(ofRun: run) else { return [] }
    var paths: Set<FilePath> = []
    try forEachHistory(
      ofStores: """
        IN (
          SELECT a.store
          FROM attempts AS a JOIN stores ON stores.id = a.store
          WHERE a.run = ?1 AND a.verdict = 'migrated' AND \(Self.wroteItself)
            AND EXISTS (
              SELECT 1 FROM attempts AS later
              WHERE later.store = a.store AND later.id > a.id AND later.verdict = 'restored'))
        """, .integer(key)
    ) { path, writes in
      if writes.lastIsRollback, writes.isUndone(run) { paths.insert(FilePath(path)) }
    }
    return paths
  }

  /// What wrote a store itself, in its order, as far as it stands.
  private struct Writes {
    private var standing: [(run: String, source: String?, identity: String?)] = []
    private(set) var lastIsRollback = false

    mutating func restore(to version: String?) {
      lastIsRollback = true
      guard let last = standing.last?.run else { return }
      let first = standing.lastIndex {
        $0.run == last && $0.source != nil && $0.source == version
      }
      // Where nothing says how far back it went, all of the run.
      let others = standing.lastIndex { $0.run != last }.map { $0 + 1 } ?? 0
      standing.removeSubrange((first ?? others)...)
    }

    /// - Parameter hasBackup: Whether the run has one of the store: there is nothing else that can be put back.
    mutating func migrate(_ run: String, from source: String?, _ identity: String?, hasBackup: Bool)
    {
      lastIsRollback = false
      guard hasBackup, standing.last?.run != run || standing.last?.source != source else { return }
      standing.append((run, source, identity))
    }

    func isUndone(_ run: String, leaving identity: String? = nil) -> Bool {
      !standing.contains {
        $0.run == run && (identity == nil || $0.identity == nil || $0.identity == identity)
      }
    }
  }

  /// - Parameter stores: A condition in SQL on their keys, with a parameter.
  private func forEachHistory(
    ofStores stores: String, _ argument: SQLiteValue,
    _ body: (_ path: String, Writes) throws -> Void
  ) throws {
    var key: Int64?
    var path = ""
    var writes = Writes()
    try forEach(
      """
      SELECT a.store, stores.path, runs.name, a.verdict, a.source, a.identity, a.destination,
        EXISTS (
          SELECT 1 FROM backups AS b
          WHERE b.store = a.store AND b.run = a.run AND b.kind <> 'replaced')
      FROM attempts AS a
      JOIN stores ON stores.id = a.store
      JOIN runs ON runs.id = a.run
      WHERE a.store \(stores)
        AND (a.verdict = 'restored' OR a.verdict = 'migrated' AND \(Self.wroteItself))
      ORDER BY a.store, a.id
      """, [argument]
    ) { row in
      if row.int64(0) != key {
        if key != nil { try body(path, writes) }
        (key, path, writes) = (row.int64(0), row.value(1).text ?? "", Writes())
      }
      if row.value(3).text == "restored" {
        writes.restore(to: row.value(6).text)
      } else {
        writes.migrate(
          row.value(2).text ?? "", from: row.value(4).text, row.value(5).text,
          hasBackup: row.int64(7) != 0)
      }
    }
    if key != nil { try body(path, writes) }
  }
}
