import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

extension RepairAccount {
  /// The rows of Core Data's own entities in `Z_PRIMARYKEY`, each under a name that no other of them has: of two
  /// rows of one name the one whose number goes with it stays, or else the first, with the higher `Z_MAX` of both.
  ///
  /// Names what is made again of history's, and what is lost of CloudKit's.
  mutating func historyRows() throws -> [PrimaryKeyRow] {
    let keys = try salvage.binding.store.soundHistoryKeys()
    report.rebuilt += keys.faults.map {
      RepairReport.Item(.primaryKey, entity: $0.entity, $0.message)
    }
    try addCloudKitRows()
    var highest: [NameKey: Int64] = [:]
    let rows = keys.rows.map { row in
      var row = row
      row.name = row.knownName
      row.highestKey = max(row.highestKey, highestLostKey(of: row))
      let name = NameKey(row.name)
      highest[name] = max(highest[name] ?? row.highestKey, row.highestKey)
      return row
    }
    var names: Set<NameKey> = []
    func isKnown(_ row: PrimaryKeyRow) -> Bool { PrimaryKeyRow.historyNames[row.number] != nil }
    return (rows.filter(isKnown) + rows.filter { !isKnown($0) })
      .filter { names.insert(NameKey($0.name)).inserted }
      .map { row in
        var row = row
        row.highestKey = highest[NameKey(row.name)] ?? row.highestKey
        return row
      }
      .sorted { $0.number < $1.number }
  }

  /// Of rows of its table that are lost: they had been given out as those that are kept.
  private func highestLostKey(of row: PrimaryKeyRow) -> Int64 {
    let table = NameKey(row.tableName)
    return [salvage.tables[table]?.lostKeys, salvage.evidence[table]?.lostKeys]
      .compactMap { $0?.ranges.last?.upperBound }.max() ?? 0
  }

  /// CloudKit's entities have no fixed numbers, and in what case their names are written no table tells.
  private mutating func addCloudKitRows() throws {
    let store = salvage.binding.store
    let numbers = Set(store.historyKeys.map(\.number))
      .subtracting(PrimaryKeyRow.historyNames.keys)
    let tables = Set(store.historyKeys.map { NameKey($0.tableName) })
    var lost: [String] = []
    for entry in salvage.foreignTables
    where entry.name.isMirroringTable && !tables.contains(NameKey(entry.name)) {
      guard try store.connection.holds(["Z_PK", "Z_ENT"], in: entry.name) else { continue }
      let used = try store.connection.rows("SELECT DISTINCT Z_ENT FROM \(quoted(entry.name))")
        .compactMap { $0.first?.integer }
      // Where there are rows, a number that one of them has in common with Z_PRIMARYKEY tells that it is there.
      guard used.isEmpty ? numbers.isEmpty : numbers.isDisjoint(with: used) else { continue }
      lost.append(entry.name)
    }
    guard !lost.isEmpty else { return }
    report.lost.append(
      .init(
        .primaryKey, count: Int64(lost.count), names: lost.sorted(),
        "rows of Z_PRIMARYKEY, with the names and the highest keys of the entities of tables of CloudKit's"
      ))
  }
}
