import GodwitSQLite

/// What rows have in columns that were added behind their last value (`ALTER TABLE … ADD COLUMN … DEFAULT …`).
///
/// SQLite's own answer, for a row of one value in a table of the same text: a literal may be a number, a text in
/// either kind of quotes or none, bytes, TRUE, or a CAST of these, and the column's affinity converts some of them
/// otherwise than where a row is inserted (`.5` in a column of texts is `.5`, and not `0.5`). Nothing of the text is
/// run by this: SQLite takes a default that has to be computed for NULL, and asks no constraint where it reads.
///
/// Source: https://sqlite.org/lang_altertable.html#alter_table_add_column
final class ColumnDefaults {
  /// A value that owns its bytes, which need not be valid UTF-8.
  final class Value: Equatable {
    /// Valid as long as this object.
    let raw: RawValue
    private let bytes: UnsafeMutableRawBufferPointer

    init(copying value: RawValue) {
      bytes = .allocate(byteCount: value.buffer.count, alignment: 1)
      bytes.copyMemory(from: value.buffer)
      raw = RawValue(
        kind: value.kind, bits: value.bits, bytes: UnsafeRawPointer(bytes.baseAddress),
        count: value.count)
    }

    deinit { bytes.deallocate() }

    static func == (one: Value, other: Value) -> Bool {
      one.raw.kind == other.raw.kind && one.raw.bits == other.raw.bits
        && one.bytes.elementsEqual(other.bytes)
    }
  }

  private let model: Connection
  private var known: [[UInt8]: [[UInt8]: Value]] = [:]

  private static let mostColumns = 500

  /// - Parameter model: Has the tables, without rows.
  init(_ model: Connection) { self.model = model }

  /// Something has been defined otherwise.
  func forget() { known = [:] }

  /// By the keys of the columns' names; those that are NULL are left out.
  ///
  /// - Parameters:
  ///   - columns: Those that are declared with a default, the key of a table without row ids left out.
  ///   - keyColumns: How many columns the primary key of a table without row ids has; nil for one with row ids.
  func values(of table: String, columns: [String], keyColumns: Int?) -> [[UInt8]: Value] {
    guard !columns.isEmpty else { return [:] }
    if let values = known[table.columnKey] { return values }
    let values = (try? read(table, columns, keyColumns)) ?? [:]
    known[table.columnKey] = values
    return values
  }

  private func read(
    _ table: String, _ columns: [String], _ keyColumns: Int?
  ) throws -> [[UInt8]: Value] {
    let row = try model.rows(
      "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE",
      [.text(table)]
    ).first
    guard let name = row?[0].text, let sql = row?[1].text else { return [:] }
    let trial = try Connection(path: ":memory:", mode: .create)
    try trial.define(.table, sql)
    let short = name.columnKey == "short".columnKey ? "shorter" : "short"
    // Where there are no row ids, a row has at least the values of its key.
    let keys = (0..<(keyColumns ?? 1)).map { "k\($0)" }.joined(separator: ", ")
    let values = keyColumns.map { (0..<$0).map { _ in "0" }.joined(separator: ", ") } ?? "NULL"
    let constraint = keyColumns == nil ? "" : ", PRIMARY KEY (\(keys))"
    try trial.execute(
      """
      CREATE TABLE \(short) (\(keys)\(constraint)) \(keyColumns == nil ? "" : "WITHOUT ROWID");
      INSERT INTO \(short) VALUES (\(values));
      PRAGMA writable_schema = ON
      """)
    // The row becomes one of the table.
    _ = try trial.rows(
      """
      UPDATE sqlite_master
         SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = ?1)
       WHERE type = 'table' AND name = ?2
      """, [.text(short), .text(name)])
    _ = try trial.rows("DELETE FROM sqlite_master WHERE name = ?1", [.text(short)])
    try trial.execute("PRAGMA writable_schema = RESET")
    var found: [[UInt8]: Value] = [:]
    for start in stride(from: 0, to: columns.count, by: Self.mostColumns) {
      let part = columns[start..<min(start + Self.mostColumns, columns.count)]
      // An index of the table has no row.
      let statement = try trial.prepare(
        "SELECT \(part.map(quoted).joined(separator: ", ")) FROM \(quoted(name)) NOT INDEXED")
      guard try statement.step() else { continue }
      for (place, column) in part.enumerated() {
        var value = RawValue.null
        statement.read(into: &value, from: Int32(place), count: 1)
        if !value.isNull { found[column.columnKey] = Value(copying: value) }
      }
    }
    return found
  }
}
