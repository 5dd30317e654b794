import GodwitSQLite

// What SQLite's own check does not see. It is asked of a file that the check calls sound, and whose b-trees
// are not proven.
extension RawTrees {
  /// The entries of an index, or the rows of a table without row ids.
  struct EntryForm {
    var table: String
    /// How many values each has.
    var counts: ClosedRange<Int>
  }

  /// By the name of the index or table.
  func entryForms() throws -> [String: EntryForm] {
    var forms: [String: EntryForm] = [:]
    for name in try tableNames() {
      guard let shape = try connection.shape(of: name) else { continue }
      // Rows that were there before its last columns lack them.
      if shape.isWithoutRowID {
        forms[name] = EntryForm(table: name, counts: 0...shape.columns.count)
      }
      for index in shape.indexes {
        let count = index.fields.count
        forms[index.name] = EntryForm(table: name, counts: count...count)
      }
    }
    return forms
  }

  /// Indexes, and tables without row ids, with entries that SQLite does not write, and how many: it may
  /// find another row by such an entry, or none.
  ///
  /// - Parameter table: The one whose indexes are looked at; nil for all.
  func oddEntries(of table: String? = nil) throws -> [(name: String, table: String, count: Int64)] {
    try entryForms().sorted { $0.key.precedesInBytes($1.key) }.compactMap { name, form in
      if let table, !form.table.isSameName(as: table) { return nil }
      let count = try count(.index, name) { !RecordFormat.isEntry($0.record, of: form.counts) }
      return count == 0 ? nil : (name, form.table, count)
    }
  }

  /// Tables with rows that have more values than there are columns, and how many. Nobody reads those.
  func surplusValues() throws -> [(table: String, count: Int64)] {
    try tableNames().compactMap { name in
      guard let shape = try connection.shape(of: name), !shape.isWithoutRowID else { return nil }
      let columns = shape.columns.count
      // The number of values is in front of them.
      let count = try count(.table, name, columns: 0) {
        RecordFormat.hasMore($0.record, than: columns)
      }
      return count == 0 ? nil : (name, count)
    }
  }

  /// - Returns: 0 for a b-tree that only SQLite reads.
  private func count(
    _ kind: TreeScan.Kind, _ name: String, columns: Int = .max, _ isOdd: (TreeScan.Cell) -> Bool
  ) throws -> Int64 {
    guard let root = roots[name] else { return 0 }
    var count: Int64 = 0
    do {
      let scan = try scan(kind, root, columns: columns)
      while try scan.nextLeaf() { for cell in scan.rows where isOdd(cell) { count += 1 } }
    } catch is TreeScan.NotUnderstood {
      return 0
    }
    return count
  }
}

extension StoreSoundness {
  /// What is wrong with the entries of indexes, though SQLite's check calls them sound.
  static func oddEntries(
    _ question: Question, of table: String? = nil, _ trees: RawTrees?
  ) throws -> [StoreFinding] {
    try (trees?.oddEntries(of: table) ?? []).map { odd in
      var finding = question.finding(odd.count)
      finding.message =
        "\(odd.name)\(odd.name == odd.table ? "" : ", an index of \(odd.table),") has entries that are not "
        + "as SQLite writes them, and by which it finds a wrong row or none"
      return finding
    }
  }

  /// Values that neither SQLite nor Core Data reads.
  static func surplusValues(_ trees: RawTrees?) throws -> [StoreFinding] {
    try (trees?.surplusValues() ?? []).map { found in
      StoreFinding(
        kind: .note,
        message:
          "\(found.table) has rows with more values than it has columns; nobody reads those, and a migration "
          + "does not carry them on",
        count: found.count)
    }
  }
}
