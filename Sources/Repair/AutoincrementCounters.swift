import GodwitObjectModel
import GodwitSQLite

/// The highest row id that each table with `AUTOINCREMENT` ever had, as far as it can be read: numbers of
/// deleted rows must not be given out again.
struct AutoincrementCounters {
  /// Where SQLite keeps them.
  static let table = "sqlite_sequence"

  private var highest: [NameKey: Int64] = [:]
  /// Whether no other can have been there.
  private(set) var isWhole = false

  /// Those of a store that has none, or whose table of them is lost.
  init() {}

  /// - Parameter tree: What its pages are claimed for.
  init(
    root: UInt32, tree: Int32, _ file: DamagedFile, _ values: UnsafeMutablePointer<RawValue>
  ) throws {
    var reader = DamagedTreeReader(file, .table, tree: tree)
    var lost: [Int] = []
    var (found, isReadable): ([NameKey: Int64], Bool) = ([:], true)
    try reader.read(root: root) { cell in
      guard let (count, condition) = cell.record.decode(into: values, count: 2, lost: &lost),
        count == 2, condition == .whole, values[1].kind == .integer,
        let name = SQLiteValue(values[0]).text
      else {
        isReadable = false
        return
      }
      let key = NameKey(name)
      found[key] = max(found[key] ?? .min, values[1].bits)
    }
    (highest, isWhole) = (found, isReadable && reader.gaps.isEmpty)
  }

  subscript(_ table: String) -> Int64? { highest[NameKey(table)] }
}

extension OutputStore {
  /// The counter that a carried table has by its rows.
  func counter(of table: String) throws -> Int64? {
    try connection.rows(
      "SELECT max(seq) FROM main.sqlite_sequence WHERE name = ?1", [.text(table)]
    ).first?.first?.integer
  }

  /// Gives a carried table the counter that it had.
  func setCounter(of table: String, to value: Int64) throws {
    _ = try connection.rows("DELETE FROM main.sqlite_sequence WHERE name = ?1", [.text(table)])
    _ = try connection.rows(
      "INSERT INTO main.sqlite_sequence (name, seq) VALUES (?1, ?2)",
      [.text(table), .integer(value)])
  }
}

extension RepairAccount {
  /// Carries the counter of a table with `AUTOINCREMENT`, which is at least its highest row id.
  mutating func carryCounter(of table: String, into store: OutputStore) throws {
    let highest = max(0, try store.counter(of: table) ?? 0)
    guard let stored = salvage.counters[table] else {
      // A table that never had a row has none.
      guard highest > 0 || !salvage.counters.isWhole else { return }
      report.lost.append(
        .init(
          .table, isCertain: false, names: [table],
          "a counter of AUTOINCREMENT that cannot be read: it now follows from the rows that are "
            + "there, and numbers of deleted ones may be given out again"))
      return
    }
    if stored > highest {
      try store.setCounter(of: table, to: stored)
    } else if stored < highest {
      report.rebuilt.append(
        .init(
          .table, names: [table],
          "a counter of AUTOINCREMENT that was lower than the highest row id"))
    }
  }
}
