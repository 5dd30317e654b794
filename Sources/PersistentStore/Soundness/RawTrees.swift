import GodwitDigests
import GodwitSQLite

/// The b-trees of a store's file, checked page by page past SQLite.
///
/// What SQLite's `quick_check` proves, this proves: every page is used once and for what the pointer
/// maps say, cells lie within their pages and share no byte, keys ascend, overflow chains and the list
/// of free pages have their length, and each value is of a kind that its column may hold. Beyond that,
/// each index holds exactly its table's rows, in order: order-free digests of (indexed columns, row
/// id), where SQLite's `integrity_check` looks every row up in every index, which costs as much as
/// building them.
///
/// It says yes, or that SQLite must be asked: what is wrong, and where, is SQLite's to say.
///
/// Source: https://sqlite.org/pragma.html#pragma_integrity_check, and what 3.40 does for it.
package struct RawTrees {
  let connection: Connection
  private let descriptor: Int32
  private let pages: DatabasePages
  /// Root pages by the name of the table or index.
  let roots: [String: UInt32]
  /// The b-tree of the schema.
  private static let schema = "sqlite_schema"

  /// - Returns: nil where the file's pages are not to be read past SQLite.
  package init?(_ connection: Connection) throws {
    guard let descriptor = connection.rawDescriptor,
      let pages = DatabasePages(descriptor: descriptor)
    else { return nil }
    self.connection = connection
    self.descriptor = descriptor
    self.pages = pages
    var roots = [Self.schema: UInt32(1)]
    for row in try connection.schemaRows() where row.rootPage > 0 {
      guard let root = UInt32(exactly: row.rootPage),
        roots.updateValue(root, forKey: row.name) == nil
      else { return nil }
    }
    self.roots = roots
  }
}

extension RawTrees {
  /// A table with its indexes, or what SQLite has to say of it.
  private struct Table {
    var name: String
    var kinds: [RecordFormat.Kinds]
    /// Without a row id, generated columns and the like: its rows are for SQLite to check.
    var isPlain: Bool
  }

  /// True when the whole file is proven sound, every index against its table.
  package func areWhole() throws -> Bool {
    try understood {
      let ledger = pages.ledger()
      var left = Set(roots.keys)
      for name in try tableNames() {
        let isChecked = try check(name, ledger) { left.remove($0) }
        guard try isChecked || connection.isWhole(name, by: "integrity_check") else { return false }
      }
      return try areWhole(ledger.digest, without: left)
    } ?? false
  }

  /// True when every index of a table is proven to agree with it.
  func isWhole(table name: String) throws -> Bool {
    try understood { try check(name, pages.ledger()) { _ in } } ?? false
  }

  /// True when the structure of the file is proven sound.
  ///
  /// - Parameters:
  ///   - known: The sum of the ledgers of b-trees that were checked before.
  ///   - names: Those.
  package func isStructureWhole(_ known: RowSetDigest, of names: Set<String>) throws -> Bool {
    try understood {
      var sum = known
      var left = Set(roots.keys).subtracting(names)
      for name in try tableNames() {
        if left.contains(name) {
          guard let digest = try digest(ofRows: name) else { return false }
          sum += digest.pages
          left.remove(name)
        }
        guard
          try table(name)?.isPlain == true || connection.isWhole(name, by: Connection.quickCheck)
        else {
          return false
        }
      }
      return try areWhole(sum, without: left)
    } ?? false
  }

  /// Checks the b-tree of a table of the model's.
  ///
  /// - Returns: The digest of its pages, and how many rows it has; nil where SQLite must be asked.
  package func digest(ofRows name: String) throws -> (pages: RowSetDigest, rows: Int64)? {
    try understood {
      let ledger = pages.ledger()
      var rows: Int64 = 0
      guard try scan(rowsOf: name, ledger, { _ in rows += 1 }) else { return nil }
      return (ledger.digest, rows)
    } ?? nil
  }

  /// Checks the b-tree of an index.
  ///
  /// - Returns: The digests of its entries and its pages; nil where the entries do not ascend, a unique
  ///   one repeats, or SQLite must be asked.
  package func digests(of index: TableIndex) throws -> (entries: RowSetDigest, pages: RowSetDigest)?
  {
    try understood {
      let ledger = pages.ledger()
      guard let entries = try entries(of: index, ledger) else { return nil }
      return (entries, ledger.digest)
    } ?? nil
  }
}

extension RawTrees {
  private func understood<Result>(_ body: () throws -> Result) throws -> Result? {
    do {
      return try body()
    } catch is TreeScan.NotUnderstood {
      return nil
    }
  }

  func tableNames() throws -> [String] {
    try connection.schemaRows().filter { $0.type == "table" && $0.rootPage > 0 }.map(\.name)
      .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  /// Adds the b-trees that nobody has looked at, which are indexes or without row ids, and the free
  /// pages, and compares all with what the file says of itself.
  private func areWhole(_ known: RowSetDigest, without left: Set<String>) throws -> Bool {
    let ledger = pages.ledger()
    let entries = try left.isEmpty ? [:] : entryForms()
    for name in left.sorted() {
      guard let root = roots[name] else { continue }
      let kind: TreeScan.Kind = name == Self.schema ? .table : .index
      let scan = try scan(kind, root, ledger)
      while try scan.nextLeaf() {
        guard let form = entries[name] else { continue }
        for cell in scan.rows where !RecordFormat.isEntry(cell.record, of: form.counts) {
          throw TreeScan.NotUnderstood()
        }
      }
    }
    try pages.addFreePages(to: ledger)
    var sum = known
    sum += ledger.digest
    return try pages.holds(roots: Array(roots.values)) && sum == pages.expected()
  }

  func scan(
    _ kind: TreeScan.Kind, _ root: UInt32, _ ledger: PageLedger? = nil, columns: Int = .max
  ) throws -> TreeScan {
    guard
      let scan = TreeScan(
        kind, descriptor: descriptor, root: root, columns: columns, ledger: ledger)
    else { throw TreeScan.NotUnderstood() }
    return scan
  }

  /// - Returns: False where only SQLite can check the table's indexes or rows.
  private func check(
    _ name: String, _ ledger: PageLedger, _ done: (String) -> Void
  ) throws -> Bool {
    guard let table = try table(name) else { return false }
    guard let indexes = try TableIndex.all(of: name, in: connection) else {
      if try scan(rowsOf: name, ledger, { _ in }) { done(name) }
      return false
    }
    let columns = Set(indexes.flatMap(\.columns)).sorted()
    guard let keys = IndexKeys(indexes, columns: columns, rowID: columns.count) else {
      return false
    }
    let raw =
      indexes.isEmpty ? nil : try RawTable(name, columns: columns + [nil], in: connection)
    try withUnsafeTemporaryAllocation(of: RawValue.self, capacity: columns.count + 1) { values in
      values.initialize(repeating: .null)
      guard let row = values.baseAddress else { return }
      if try scan(
        rowsOf: name, ledger,
        { cell in
          guard let raw else { return }
          try raw.read(cell, into: row)
          keys.add(row)
        })
      {
        done(name)
      }
    }
    if raw == nil, !indexes.isEmpty {
      // Rows that lack columns have values that only SQLite knows.
      try connection.visitRows(
        columns.map(quoted) + ["rowid"], "FROM \(quoted(name)) NOT INDEXED"
      ) { keys.add($0) }
    }
    for (index, digest) in zip(indexes, keys.digests) {
      guard try entries(of: index, ledger) == digest else { throw TreeScan.NotUnderstood() }
      done(index.name)
    }
    return table.isPlain
  }

  /// - Returns: False where the table has no row ids.
  private func scan(
    rowsOf name: String, _ ledger: PageLedger, _ visit: (TreeScan.Cell) throws -> Void
  ) throws -> Bool {
    guard let table = try table(name), let root = roots[name] else { return false }
    let scan = try scan(.table, root, ledger)
    try table.kinds.withUnsafeBufferPointer { kinds in
      while try scan.nextLeaf() {
        for cell in scan.rows {
          guard RecordFormat.holds(cell.record, kinds) else { throw TreeScan.NotUnderstood() }
          try visit(cell)
        }
      }
    }
    return true
  }

  private func entries(of index: TableIndex, _ ledger: PageLedger) throws -> RowSetDigest? {
    guard let root = roots[index.name] else { return nil }
    let scan = try scan(.index, root, ledger)
    var order = EntryOrder(index)
    let count = index.columns.count + 1
    var digest = RowSetDigest()
    while try scan.nextLeaf() {
      for cell in scan.rows {
        let entry = order.entry
        guard RecordFormat.decodeEntry(record: cell.record, into: entry, count: count) else {
          throw TreeScan.NotUnderstood()
        }
        var hash = RowHash(length: count)
        for place in 0..<count { hash.add(kept: entry[place]) }
        digest.add(hash)
        guard entry[count - 1].kind == .integer, order.ascends() else { return nil }
      }
      order.keepLast()
    }
    return digest
  }

  /// - Returns: nil for a table without row ids, or a virtual one.
  private func table(_ name: String) throws -> Table? {
    guard let shape = try connection.shape(of: name), !shape.isWithoutRowID,
      shape.kind != "virtual"
    else { return nil }
    var table = Table(
      name: name, kinds: [],
      isPlain: shape.kind == "table" && !shape.isStrict
        && shape.words.isDisjoint(with: ["CHECK", "GENERATED", "AS"]))
    for column in shape.columns {
      var kinds: RecordFormat.Kinds =
        switch ColumnAffinity(declaredType: column.declaredType) {
        case .blob: .any
        case .text: [.null, .text, .blob]
        // A text that looks like a number is wrong here, which SQLite knows better.
        case .numeric, .integer, .real: [.null, .number, .blob]
        }
      if !column.isNullable { kinds.remove(.null) }
      // The row's key is NULL in the record, whatever is declared.
      if !column.isNullable, column.keyPlace != 0 { table.isPlain = false }
      // Of a default SQLite knows the kind, too.
      if column.isNullable || column.hasDefault { kinds.insert(.missing) }
      if column.isHidden || column.hasDefault { table.isPlain = false }
      table.kinds.append(kinds)
    }
    return table
  }
}

extension Connection {
  /// SQLite's own check of one table.
  ///
  /// Source: https://sqlite.org/pragma.html#pragma_integrity_check, since 3.33.0.
  fileprivate func isWhole(_ table: String, by check: String) throws -> Bool {
    try finding(by: check, of: "(\(quoted(table)))") == nil
  }

  /// Whether nothing is wrong with the file's pages, and every index holds what its table does.
  ///
  /// - Throws: `SQLiteError` for a file that cannot be read.
  package func isWhole() throws -> Bool {
    let trees = try RawTrees(self)
    if try trees?.areWhole() == true { return true }
    do {
      guard try finding(by: "integrity_check", of: "(1)") == nil else { return false }
      return try trees?.oddEntries().isEmpty ?? true
    } catch let error as SQLiteError where error.isRefused {
      // An index by the application's own collation or function.
      return true
    }
  }

  /// The first thing that SQLite's quick check finds in the file; nil for none.
  package func quickFinding() throws -> String? { try finding(by: Self.quickCheck, of: "(1)") }

  fileprivate static let quickCheck = "quick_check"

  private func finding(by check: String, of what: String) throws -> String? {
    let found = try rows("PRAGMA main.\(check)\(what)").compactMap { $0.first?.text }
    try requireEveryPageRead(in: "PRAGMA \(check)")
    if found == ["ok"] { return nil }
    // 3.40 takes columns of a table WITHOUT ROWID for each other where its key has another order than
    // they have, and calls a whole table damaged. The full check does not.
    if check == Self.quickCheck, try finding(by: "integrity_check", of: what) == nil { return nil }
    return found.first ?? "no answer"
  }
}
