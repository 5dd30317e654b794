import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

// What the records of `sqlite_master` say.
extension SchemaSalvage {
  /// SQLite tells names apart without the case of their letters, and one bit makes it.
  private static func controlName(_ name: String) -> String {
    LayoutProblem.controlTables.first { $0.columnKey == name.columnKey } ?? name
  }

  /// Whether a record is one of `sqlite_master`, as far as its beginning tells.
  static func isEntry(
    _ record: DamagedRecord, of file: DamagedFile, _ values: UnsafeMutablePointer<RawValue>
  ) -> Bool {
    var lost: [Int] = []
    guard let (count, condition) = record.decode(into: values, count: 5, lost: &lost), count == 5,
      condition != .doubtful, !lost.contains(where: { $0 < 4 }), let entry = entry(values)
    else { return false }
    return entry.root <= file.pageCount
      && (entry.root > 0 || [.view, .trigger].contains(entry.kind))
  }

  /// A row says most things more than once: what one of its values has lost, the others tell.
  static func entry(_ values: UnsafeMutablePointer<RawValue>) -> Entry? {
    let read = (0..<5).map { SQLiteValue(values[$0]) }
    // SQLite reads a blob as the text of its bytes.
    let texts = read.map { $0.text ?? $0.blob.map { String(decoding: $0, as: UTF8.self) } }
    var (name, table) = (texts[1], texts[2])
    let sql = texts[4]
    // SQLite keeps a text as `CREATE`, what it makes, and the name; of an index, `ON` and the table's follow.
    let words = sql.map { TableText.words($0.prefix(4096)) } ?? []
    let head = words.prefix(3)
    let kind = texts[0].flatMap(SchemaObject.Kind.init(rawValue:)) ?? kind(head, name)
    if kind == .table, name != table || !isText(name) {
      let third = head.last.map(unquoted)
      name = third == table ? table : [name, third, table].first(where: isText) ?? nil
      table = name
    }
    if kind == .index, let place = words.firstIndex(where: { $0.uppercased() == "ON" }), place > 0,
      place + 1 < words.count
    {
      if !isText(name) { name = unquoted(words[place - 1]) }
      if !isText(table) { table = unquoted(words[place + 1]) }
    }
    guard let kind, let name, !name.utf8.contains(0), let table,
      !name.isEmpty || isNameless(kind, sql)
    else { return nil }
    return Entry(
      kind: kind, name: controlName(name), table: controlName(table),
      root: (read[3].integer ?? texts[3].flatMap(Int64.init)).flatMap { UInt32(exactly: $0) } ?? 0,
      sql: sql)
  }

  /// False for a name that is lost, or has bytes that no text has.
  private static func isText(_ name: String?) -> Bool {
    name.map { !$0.unicodeScalars.contains("\u{FFFD}") } ?? false
  }

  private static func unquoted(_ word: String) -> String {
    let quotes: Set<Unicode.Scalar> = ["\"", "'", "`", "[", "]"]
    return String(word.unicodeScalars.filter { !quotes.contains($0) })
  }

  /// Whether a statement makes a table or an index with an empty name, as an application may: SQLite allows it.
  private static func isNameless(_ kind: SchemaObject.Kind, _ sql: String?) -> Bool {
    let head = (sql ?? "").prefix(4096).utf8.split(separator: UInt8(ascii: " ")).prefix(4)
    let word = kind.rawValue.uppercased().utf8
    guard let place = head.firstIndex(where: { $0.elementsEqual(word) }) else { return false }
    return head[(place + 1)...].first.map { name in
      [#""""#, "''", "``", "[]"].contains { name.starts(with: $0.utf8) }
    } ?? false
  }

  /// By the beginning of its text, or by a name that SQLite gives.
  private static func kind(_ head: ArraySlice<String>, _ name: String?) -> SchemaObject.Kind? {
    if name?.begins(with: "sqlite_autoindex_") == true { return .index }
    let words = head.prefix(2).map { $0.uppercased() }
    return [.table, .index, .trigger, .view].first { words.contains($0.rawValue.uppercased()) }
      ?? (words.last == "UNIQUE" ? .index : nil)
  }
}
