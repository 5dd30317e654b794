import GodwitSQLite

/// The states in which godwit left a store at its own path, the oldest first: by migrations in place and by
/// rollbacks, whichever pipeline's. What was written elsewhere, beside the store or of a snapshot of it, is
/// another file and none of them.
///
/// They are a chain: a store that nobody exchanged is, at every migration, what the one before it had left,
/// with an application's changes. Where it was not, another store was in its place, and a backup that was
/// made before may be all that is left of the first.
package struct LedgerStates: Sendable {
  package struct State: Sendable, Equatable {
    package var run: String
    /// False for one that a rollback put back.
    package var isMigration: Bool
    /// The version and the UUID that the migration found; nil where they are not known.
    package var source: String?
    package var sourceUUID: String?
    /// What the store was left as; nil likewise.
    package var version: String?
    package var uuid: String?
    /// The name of the state, and the digest of its main file.
    package var identity: String?
    package var digest: String?
  }

  /// A store that was in another one's place when a run migrated it.
  package enum Exchange: Sendable, Equatable {
    /// By its UUID.
    case otherStore(run: String)
    /// By its version, which the store had left before.
    case otherVersion(String, run: String)
  }

  private var states: [State] = []
  /// By the place of the state whose migration found it.
  private var exchanges: [(place: Int, exchange: Exchange)] = []
  /// The versions of the store, each before the one that it became.
  private var line: [String] = []
  /// The UUIDs that it had.
  private var uuids: Set<String> = []
  /// Versions that the store had before the last one.
  package private(set) var olderVersions: Set<String> = []

  /// How godwit left the store; nil where it never did.
  package var last: State? { states.last }

  package init() {}

  package mutating func add(_ state: State) {
    if state.isMigration, let exchange = exchange(in: state) {
      exchanges.append((states.count, exchange))
      if case .otherStore = exchange { (line, uuids) = ([], []) }
    }
    uuids.formUnion([state.sourceUUID, state.uuid].compactMap(\.self))
    if state.isMigration {
      reach(state.source)
      reach(state.version)
    } else if state.version != nil {
      reach(state.version)
    } else {
      // A rollback of an earlier version, which did not say what it put back.
      line = []
    }
    olderVersions = Set(line.dropLast())
    if let source = state.source, source != state.version { olderVersions.insert(source) }
    states.append(state)
  }

  /// The UUID that the ledger has of the store, where its last attempt has none.
  mutating func setUUID(_ uuid: String?) {
    guard let place = states.indices.last, states[place].uuid == nil else { return }
    states[place].uuid = uuid
  }

  private func exchange(in state: State) -> Exchange? {
    guard let last = states.last else { return nil }
    let older = state.source.flatMap { line.dropLast().contains($0) ? $0 : nil }
    // By a mapping model the destination has a UUID of its own, and the source's is that of an older store.
    if let left = last.uuid, let found = state.sourceUUID, left != found,
      older == nil || !uuids.contains(found)
    {
      return .otherStore(run: state.run)
    }
    return older.map { .otherVersion($0, run: state.run) }
  }

  private mutating func reach(_ version: String?) {
    guard let version else { return }
    if let place = line.firstIndex(of: version) {
      line.removeSubrange((place + 1)...)
    } else {
      line.append(version)
    }
  }

  /// The first exchange of the store since a backup of it was made; nil where what is at its path today
  /// came out of what the backup holds.
  package func exchange(since backup: LedgerBackup) -> Exchange? {
    let place =
      states.firstIndex { $0.identity != nil && $0.identity == backup.identity }
      ?? states.firstIndex { $0.run == backup.run } ?? -1
    return exchanges.first { $0.place > place }?.exchange
  }
}

extension Ledger {
  /// True of attempts that wrote the store itself, and no file elsewhere.
  static let wroteItself = "nullif(a.output, stores.path) IS NULL"

  /// How godwit left a store, each time.
  ///
  /// - Complexity: O(*n*) in the attempts at the store.
  package func states(of store: String) throws -> LedgerStates {
    var states = LedgerStates()
    guard let key = try knownKey(ofStore: store) else { return states }
    var known: String?
    try forEach(
      """
      SELECT runs.name, a.verdict = 'migrated', a.source, \(uuidColumns), a.destination, a.identity,
        a.digest, stores.uuid
      FROM attempts AS a
      JOIN stores ON stores.id = a.store
      JOIN runs ON runs.id = a.run
      WHERE a.store = ?1 AND a.verdict IN ('migrated', 'restored') AND \(Self.wroteItself)
      ORDER BY a.id
      """, [.integer(key)]
    ) { row in
      states.add(
        LedgerStates.State(
          run: row.value(0).text ?? "", isMigration: row.int64(1) != 0,
          source: row.value(2).text, sourceUUID: row.value(4).text, version: row.value(5).text,
          uuid: row.value(3).text, identity: row.value(6).text, digest: row.value(7).text))
      known = row.value(8).text
    }
    states.setUUID(known)
    return states
  }

  /// The UUIDs that an attempt left and found. A ledger that only earlier versions have written has neither.
  var uuidColumns: String { has(.uuids) ? "a.uuid, a.source_uuid" : "NULL, NULL" }

  /// Gives a ledger of an earlier version the columns for UUIDs. What is known of a store is of its last
  /// attempt, where that left it.
  func addUUIDs() throws {
    try connection.execute(
      """
      ALTER TABLE attempts ADD COLUMN uuid TEXT;
      ALTER TABLE attempts ADD COLUMN source_uuid TEXT;
      UPDATE attempts AS a
      SET uuid = stores.uuid
      FROM stores
      WHERE stores.id = a.store AND a.verdict = 'migrated' AND \(Self.wroteItself)
        AND a.id = (SELECT max(id) FROM attempts WHERE store = stores.id)
      """)
  }
}
