import GodwitPersistentStore
import GodwitSQLite

/// What the rows of a table look like: for pages of which nothing else tells whose they are.
struct TableShape {
  enum Rows {
    /// Objects of the model, with the `Z_ENT` of the table's entities.
    case objects(Set<Int64>)
    /// Pairs of a many-to-many relationship.
    case pairs
    /// Those of a table that is not the model's, and what `Z_ENT` they have not.
    case others(not: Set<Int64>)
  }

  let columns: [SchemaSalvage.Column]
  let rows: Rows
  private let kinds: [ValueKinds]
  /// Whether its rows are those of entities, of the model's or of Core Data's own, and their columns typed.
  private let hasObjects: Bool

  /// - Parameter mayHaveObjects: Whether a table with the columns of entities has rows like theirs.
  init(_ columns: [SchemaSalvage.Column], _ rows: Rows, mayHaveObjects: Bool = true) {
    (self.columns, self.rows) = (columns, rows)
    kinds = columns.map(ValueKinds.init)
    hasObjects =
      mayHaveObjects && columns.contains { $0.isRowID && $0.name == "Z_PK" }
      && columns.contains { $0.name == "Z_ENT" }
  }

  /// Whether its rows may say what entity they are of.
  var hasEntityColumn: Bool { columns.contains { $0.name == "Z_ENT" } }

  /// `Z_ENT` of the table's entities; nil for one that has no objects of the model.
  var entityNumbers: Set<Int64>? { if case .objects(let numbers) = rows { numbers } else { nil } }
  var isPairs: Bool { if case .pairs = rows { true } else { false } }
  var isOthers: Bool { if case .others = rows { true } else { false } }

  private static let mostSamples = 40

  /// Whether a row can be one of this table.
  private func fits(
    _ record: DamagedRecord, _ values: UnsafeMutablePointer<RawValue>, _ lost: inout [Int]
  ) -> Bool {
    if case .others(let foreign) = rows {
      return fitsOthers(record, not: foreign, isTyped: hasObjects, values, &lost) == true
    }
    guard let (count, condition) = record.decode(into: values, count: columns.count, lost: &lost),
      condition != .doubtful, count <= columns.count, entityNumbers != nil || count == columns.count
    else { return false }
    for (place, column) in columns.enumerated() where !lost.contains(place) {
      let kind = values[place].kind
      if column.isRowID {
        if kind != .null { return false }
      } else if column.name == "Z_ENT", let entityNumbers {
        // A number that is missing is mended; another table's tells whose rows these are.
        guard kind == .null || kind == .integer && entityNumbers.contains(values[place].bits)
        else { return false }
      } else if entityNumbers == nil {
        if kind != .integer, place < 2 || kind != .null { return false }
      } else if kind != .null, !Self.allows(column.type, kind) {
        return false
      }
    }
    return true
  }

  /// The same of a table that is not the model's; nil where the record does not tell.
  private func fitsOthers(
    _ record: DamagedRecord, not foreign: Set<Int64>, isTyped: Bool,
    _ values: UnsafeMutablePointer<RawValue>, _ lost: inout [Int]
  ) -> Bool? {
    guard let (count, condition) = record.decode(into: values, count: columns.count, lost: &lost),
      condition != .doubtful
    else { return nil }
    guard count <= columns.count else { return false }
    for (place, column) in columns.enumerated() where !lost.contains(place) {
      let value = values[place]
      if column.isRowID {
        if value.kind != .null { return false }
      } else if !kinds[place].contains(value.kind) {
        return false
      } else if column.name == "Z_ENT", value.kind == .integer, foreign.contains(value.bits) {
        return false
      } else if hasObjects, column.name == "Z_ENT", value.kind != .integer, value.kind != .null {
        return false
      } else if isTyped, value.kind != .null, !Self.allows(column.type, value.kind) {
        return false
      }
    }
    return true
  }

  /// Whether a row has a value for each column.
  private func isFull(
    _ record: DamagedRecord, _ values: UnsafeMutablePointer<RawValue>, _ lost: inout [Int]
  ) -> Bool {
    record.decode(into: values, count: 0, lost: &lost)?.count == columns.count
  }

  /// Whether a row can be one of this table at all, whatever its values; nil where its record does
  /// not tell.
  private func allows(
    _ record: DamagedRecord, _ values: UnsafeMutablePointer<RawValue>, _ lost: inout [Int]
  ) -> Bool? {
    if case .others(let foreign) = rows {
      return fitsOthers(record, not: foreign, isTyped: false, values, &lost)
    }
    guard let (count, condition) = record.decode(into: values, count: columns.count, lost: &lost),
      condition != .doubtful
    else { return nil }
    guard let entityNumbers else { return count == columns.count }
    for (place, column) in columns.enumerated() where !lost.contains(place) {
      if column.isRowID, values[place].kind != .null { return false }
      guard column.name == "Z_ENT", count != columns.count, values[place].kind != .null else {
        continue
      }
      if values[place].kind != .integer || !entityNumbers.contains(values[place].bits) {
        return false
      }
    }
    return true
  }

  /// What the rows of a leaf say of whose they are.
  enum Ownership {
    /// One of them fits, or cannot be read.
    case own
    /// None fits, and some have as many values as this table's.
    case odd
    /// None can be of this table.
    case foreign
  }

  func ownership(
    of leaf: UInt32, _ file: DamagedFile, _ values: UnsafeMutablePointer<RawValue>
  ) -> Ownership {
    struct Fits: Error {}
    var (rows, foreign, odd) = (0, 0, 0)
    var lost: [Int] = []
    do {
      try DamagedTreeReader(file, .table, tree: 0).sample(below: leaf) { cell in
        // Of a table whose columns take any value, a shorter row says little.
        if fits(cell.record, values, &lost), !isOthers || isFull(cell.record, values, &lost) {
          throw Fits()
        }
        rows += 1
        switch allows(cell.record, values, &lost) {
        case true?: odd += 1
        case false?: foreign += 1
        case nil: break
        }
      }
    } catch { return .own }
    // A single row may be a damaged one.
    if odd > 0 { return odd > 1 ? .odd : .own }
    return foreign > 0 && foreign * 2 >= rows ? .foreign : .own
  }

  /// Whether such a value lies in a column of such a type where Core Data writes it.
  static func allows(_ type: String, _ kind: RawValue.Kind) -> Bool {
    switch type {
    case "INTEGER": kind == .integer
    case "VARCHAR": kind == .text
    case "BLOB": kind == .blob
    // Whole numbers lie there as integers.
    case "DECIMAL", "FLOAT", "TIMESTAMP": kind == .integer || kind == .real
    // No column of Core Data's: anything may lie there.
    default: true
    }
  }

  /// How many rows of a leaf below a page fit, of how many; zeros without rows.
  ///
  /// - Parameters:
  ///   - atEnd: Whether it is the leaf with the highest keys, and not the one with the lowest.
  ///   - keyed: Whether a row with such a key may be the table's.
  func share(
    below page: UInt32, atEnd: Bool = false, _ file: DamagedFile,
    _ values: UnsafeMutablePointer<RawValue>,
    keyed: (Int64) -> Bool = { _ in true }
  ) -> (fitting: Int, rows: Int) {
    var (fitting, rows) = (0, 0)
    var lost: [Int] = []
    DamagedTreeReader(file, .table, tree: 0).sample(below: page, atEnd: atEnd) { cell in
      guard keyed(cell.key) else {
        rows += 1
        return
      }
      guard rows < Self.mostSamples else { return }
      rows += 1
      if fits(cell.record, values, &lost) { fitting += 1 }
    }
    return (fitting, rows)
  }
}
