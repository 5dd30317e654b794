import ArgumentParser
import GodwitDigests
import GodwitSQLite

/// Reads every table of SQLite databases twice: by `TreeScan` from their pages, and by SQLite.
struct CompareRows: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compare-rows",
    abstract: "Compare the rows that the page reader gives with SQLite's, table by table.",
    discussion:
      "One line a file. Exit code 1 where rows differ, or where SQLite refuses what was read.")

  @Argument(help: "Files that nobody writes to; what a WAL holds is not read.") var files: [String]

  func run() throws {
    var differ = false
    for file in files {
      let found = Comparison(of: file)
      differ = differ || !found.differences.isEmpty
      print(
        """
        \(file)  \(found.tables) tables  \(found.rows) rows  \(found.refused) refused by the page reader\
        \(found.differences.map { "  DIFFERS: \($0)" }.joined())
        """)
    }
    if differ { throw ExitCode.failure }
  }
}

private struct Comparison {
  var tables = 0
  var rows = 0
  var refused = 0
  var differences: [String] = []

  /// A file that SQLite does not open has no rows to compare.
  init(of file: String) {
    guard let connection = try? Connection(path: file, mode: .immutable),
      let schema = try? connection.schemaRows()
    else { return }
    for row in schema where row.type == "table" && row.rootPage > 0 {
      tables += 1
      do {
        try compare(row.name, connection)
      } catch {
        refused += 1
      }
    }
  }

  private mutating func compare(_ table: String, _ connection: Connection) throws {
    guard let names = try connection.shape(of: table)?.columns.map(\.name),
      let raw = try RawTable(table, columns: names + [nil], in: connection),
      let descriptor = connection.rawDescriptor,
      let scan = TreeScan(descriptor: descriptor, root: raw.root)
    else { throw TreeScan.NotUnderstood() }
    let width = names.count + 1
    var (pages, last) = (RowSetDigest(), Int64.min)
    try withUnsafeTemporaryAllocation(of: RawValue.self, capacity: width) { values in
      values.initialize(repeating: .null)
      guard let row = values.baseAddress else { return }
      while try scan.nextLeaf() {
        for cell in scan.rows {
          try raw.read(cell, into: row)
          if cell.key < last { differences.append("\(table) gives keys that do not ascend") }
          last = cell.key
          pages.add(row, count: width)
        }
      }
    }
    var answer = RowSetDigest()
    do {
      try connection.visitRows(
        names.map(quoted) + ["rowid"], "FROM \(quoted(table)) NOT INDEXED"
      ) { answer.add($0, count: width) }
    } catch {
      differences.append("\(table) is read from its pages, and SQLite refuses it: \(error)")
      return
    }
    rows += Int(pages.count)
    if pages != answer {
      differences.append("\(table) has \(pages.count) rows by its pages, \(answer.count) by SQLite")
    }
  }
}
