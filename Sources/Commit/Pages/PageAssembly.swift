import GodwitCheckpoints
import GodwitObjectModel
import GodwitPages
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// The tables of a store that are written by pages, once SQLite has made all the rest.
///
/// SQLite leaves each of them and its indexes as an empty root page. What comes then is a merge of
/// checkpoints, encoded, sorted and appended, or the source's own rows and index entries: no journal,
/// no cache, no page looked at twice.
struct PageAssembly {
  private struct Task {
    enum Source {
      /// With its number in the plan.
      case table(Int)
      case joinTable(JoinTablePlan)
      case carried(CarriedTrees)
    }

    var source: Source
    /// With the indexes that are made of its rows.
    var table: CoveredTable
    /// The other ones, where there are any.
    var indexes: CarriedIndexes?
    /// In the order of their keys.
    var units: [Int]
  }

  /// A smaller store is assembled before a second thread is of use.
  private static let leastThreadedBytes: Int64 = 16 << 20

  private let plan: MigrationPlan
  private let run: RunDirectory
  private let carriesTrees: Bool
  private let carriesIndexes: Bool
  private let tables: DestinationTables
  /// Opened for the first table that is carried, or has an index that is, where it is not.
  private var source: Connection?
  private var tasks: [Task] = []
  private var roots: [NameKey: UInt32] = [:]

  /// - Parameters:
  ///   - source: The source, where it is open.
  ///   - carriesTrees: False where SQLite is to read the source.
  ///   - carriesIndexes: False where the indexes of computed tables are to be made of their rows.
  init(
    plan: MigrationPlan, run: RunDirectory, source: Connection? = nil, carriesTrees: Bool = true,
    carriesIndexes: Bool = true
  ) {
    self.plan = plan
    self.run = run
    self.source = source
    self.carriesTrees = carriesTrees
    self.carriesIndexes = carriesIndexes
    tables = DestinationTables.of(plan)
  }
}

extension PageAssembly {
  var isEmpty: Bool { tasks.isEmpty }

  /// Takes a table over, unless it has something that takes SQLite. Computed rows must come in the
  /// order of their keys.
  mutating func takes(_ table: TablePlan, number: Int, _ units: [Int]) throws -> Bool {
    guard let covered = try tables.covered(table) else { return false }
    switch table.way {
    case .computed:
      var indexes: CarriedIndexes?
      if carriesTrees, carriesIndexes, plan.mapped == nil {
        indexes = try CarriedIndexes(covered, of: table, in: readableSource())
      }
      tasks.append(
        Task(
          source: .table(number), table: indexes?.table ?? covered, indexes: indexes, units: units))
      return true
    case .carried:
      return try carries(
        covered, from: table.sourceTable, key: "Z_PK",
        columns: ["Z_ENT", "Z_OPT"] + table.carriedColumns, units)
    case .empty, .removed: return false
    }
  }

  mutating func takes(_ table: JoinTablePlan, _ units: [Int]) throws -> Bool {
    guard let covered = try tables.covered(table.name, key: nil, columns: table.columns) else {
      return false
    }
    switch table.way {
    case .computed:
      tasks.append(Task(source: .joinTable(table), table: covered, units: units))
      return true
    case .carried:
      return try carries(
        covered, from: table.sourceTable, key: nil, columns: table.carriedColumns, units)
    case .empty, .removed: return false
    }
  }

  private mutating func carries(
    _ table: CoveredTable, from name: String?, key: String?, columns: [String], _ units: [Int]
  ) throws -> Bool {
    guard carriesTrees, let name,
      let trees = try CarriedTrees(
        table, from: name, key: key, columns: columns, in: readableSource())
    else { return false }
    tasks.append(
      Task(
        source: .carried(trees), table: trees.indexes.table, indexes: trees.indexes, units: units))
    return true
  }

  private mutating func readableSource() throws -> Connection {
    let source = try source ?? Connection(path: plan.readPath, mode: .immutable)
    self.source = source
    return source
  }

  /// Finds the root pages, which stay where they are once the schema is whole.
  mutating func findRoots(in file: Connection) throws {
    guard !isEmpty else { return }
    // Pages that dropped indexes left free.
    try file.execute("PRAGMA incremental_vacuum")
    for row in try file.rows("SELECT name, rootpage FROM main.sqlite_master WHERE rootpage > 0") {
      if let name = row[0].text, let page = row[1].integer {
        roots[NameKey(name)] = UInt32(exactly: page)
      }
    }
  }

  /// Writes all tables behind the file that SQLite has closed.
  func write(_ path: FilePath, _ rows: inout RowCounter) throws {
    guard !isEmpty else { return }
    let file = try PageFile(path)
    let bytes = tasks.flatMap(\.units).reduce(0) { $0 + plan.units[$1].estimatedBytes }
    let feed = TreeFeed(file, isThreaded: bytes >= PageAssembly.leastThreadedBytes)
    let filled = Result { try fill(feed, &rows) }
    // What went wrong with the pages comes before what came of it.
    try feed.finish()
    try filled.get()
    try file.finish(isWAL: plan.control.isWAL)
  }

  private func fill(_ feed: TreeFeed, _ rows: inout RowCounter) throws {
    for task in tasks {
      let pages = try TablePages(task.table, roots: roots, to: feed, folder: run.path)
      var source = CheckpointRows(plan: plan, run: run, table: task.table.name)
      switch task.source {
      case .table(let number) where plan.mapped != nil:
        try MappedRows(plan: plan, run: run).forEach(table: number) { row in
          try pages.append(row)
          try rows.add()
        }
      case .table:
        for unit in task.units {
          try source.forEach(unit: unit) { key, record in
            try rows.add()
            return try pages.append(key: key, record)
          }
        }
      case .joinTable(let table):
        var key: Int64 = 0
        for unit in task.units {
          try source.forEach(of: table, unit: unit) { row in
            key += 1
            row[0] = .integer(key)
            try pages.append(row)
            try rows.add()
          }
        }
      case .carried(let trees):
        try trees.forEachRow { row in
          try rows.add()
          return try pages.append(key: row.key, row.record)
        }
      }
      try pages.finish { violation(of: $0, in: task.table, by: $1) }
      if let indexes = task.indexes { try fill(indexes, feed) }
    }
  }

  private func fill(_ indexes: CarriedIndexes, _ feed: TreeFeed) throws {
    try indexes.forEach { index in
      guard let root = roots[NameKey(index.name)] else {
        throw CommitError.unusablePlan("\(index.name) went missing from sqlite_master")
      }
      feed.begin(.index, root: root)
    } entry: {
      try feed.append($0)
    } end: {
      try feed.end()
    }
  }

  private func violation(
    of index: CoveredTable.Index, in table: CoveredTable, by rows: RowTally
  ) -> any Error {
    guard index.isAutomatic else {
      return CommitError.uniqueness(
        entity: plan.entity(ofUniqueIndex: index.name), index: index.name, rows: rows)
    }
    // As SQLite says it: SQLITE_CONSTRAINT_UNIQUE.
    return SQLiteError.failed(
      code: 19 | 8 << 8, message: "UNIQUE constraint failed",
      statement: "\(index.name) of \(table.name)", database: "")
  }
}
