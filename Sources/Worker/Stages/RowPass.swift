import GodwitCheckpoints
import GodwitPages
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// Copy, link and validate of one shard of a table, back to back, where nothing of one stage has to
/// wait for other shards: every row keeps its key, and link reads the source alone.
///
/// The stages stay three: each goes over the rows of a page before the next does, and has counters,
/// findings and processor time of its own. What is written is finished: the record as it will lie
/// in the destination's file.
struct RowPass {
  let context: ShardContext

  /// - Returns: What the checkpoint says, and how the time of the pass was divided.
  func run(_ unit: Int) throws -> (ShardSummary, StageClock) {
    let shard = try context.shard(unit)
    switch shard.subject {
    case .table(let index):
      let table = context.plan.tables[index]
      do {
        if let done = try run(unit, table, shard.keys, readsPages: true) { return done }
      } catch is TreeScan.NotUnderstood {}
      guard let done = try run(unit, table, shard.keys, readsPages: false) else {
        throw StageError.outOfOrder("rows of \(table.name)")
      }
      return done
    case .joinTable(let index):
      let join = context.plan.joinTables[index]
      var clock = StageClock()
      let summary = try PairPass(context: context).run(join, shard.keys, unit)
      clock.end(of: join.way == .computed ? .link : .validate)
      return (summary, clock)
    case .foreignTable(let index):
      var clock = StageClock()
      let writer = try context.writer(.rows, unit)
      let summary = try PairPass(context: context).digest(
        context.plan.foreignTables[index], shard.keys)
      try writer.finish(summary)
      clock.end(of: .validate)
      return (summary, clock)
    case .mapping, .inserted:
      throw StageError.outOfOrder("rows of a mapping in one pass")
    }
  }

  /// - Returns: nil where the pages are not to be read.
  private func run(
    _ unit: Int, _ table: TablePlan, _ keys: ClosedRange<Int64>, readsPages: Bool
  ) throws -> (ShardSummary, StageClock)? {
    let columns = table.passColumns
    let copy = CopyStage(table, context)
    let rows: SourceRows
    if readsPages {
      // Values that are made anew are settled one row at a time.
      guard !copy.needsScratch, let raw = try context.rawTable(columns),
        let descriptor = context.source.rawDescriptor,
        let scan = TreeScan(descriptor: descriptor, root: raw.root, keys: keys)
      else { return nil }
      rows = SourceRows(columns, raw, scan)
    } else {
      let statements = try columns.queries.map { query in
        let statement = try context.source.prepare(query)
        try statement.bind(1, keys.lowerBound)
        try statement.bind(2, keys.upperBound)
        return statement
      }
      rows =
        copy.needsScratch
        ? SourceRows(columns, statements, mostRows: 1) : SourceRows(columns, statements)
    }
    let writer = try context.writer(.rows, unit)
    let link = try LinkStage(table, context, keys)
    let validate = try ValidateStage(table, context)
    let programs = ProgramTable(table)
    var piece = RowPiece(table)
    var clock = StageClock()
    while try rows.next() {
      piece.reserve(rows.count)
      for number in 0..<rows.count {
        piece.programs[number] = programs.program(for: rows.row(number)[1])
      }
      if table.way == .computed { try copy.run(rows, piece) }
      clock.end(of: .copy)
      try link.run(rows, piece)
      clock.end(of: .link)
      try validate.run(rows, piece, to: writer)
      clock.end(of: .validate)
    }
    var summary = validate.summary
    summary.copied = table.way == .computed ? copy.share : nil
    summary.linked = table.isLinked ? link.share : nil
    try writer.finish(summary)
    clock.end(of: .validate)
    return (summary, clock)
  }
}

/// What the stages of a pass hand on to each other about the rows in hand.
struct RowPiece: ~Copyable {
  /// Which entity program serves a row; see ``ProgramTable``.
  private(set) var programs: UnsafeMutablePointer<Int32>
  /// `Z_ENT`, `Z_OPT` and the attributes of each row.
  private(set) var attributes: UnsafeMutablePointer<RawValue>
  private(set) var relationships: UnsafeMutablePointer<RawValue>
  let attributeCount: Int
  let relationshipCount: Int
  private var capacity = 0

  init(_ table: TablePlan) {
    attributeCount = 2 + table.attributePlaces.count
    relationshipCount = table.relationshipPlaces.count
    (programs, attributes, relationships) = Self.memory(1, attributeCount, relationshipCount)
    capacity = 1
  }

  deinit { free() }

  mutating func reserve(_ rows: Int) {
    guard rows > capacity else { return }
    free()
    capacity = rows
    (programs, attributes, relationships) = Self.memory(rows, attributeCount, relationshipCount)
  }

  private func free() {
    programs.deallocate()
    attributes.deallocate()
    relationships.deallocate()
  }

  private static func memory(_ rows: Int, _ attributes: Int, _ relationships: Int) -> (
    UnsafeMutablePointer<Int32>, UnsafeMutablePointer<RawValue>, UnsafeMutablePointer<RawValue>
  ) {
    func values(_ count: Int) -> UnsafeMutablePointer<RawValue> {
      let place = UnsafeMutablePointer<RawValue>.allocate(capacity: max(1, count))
      place.initialize(repeating: .null, count: max(1, count))
      return place
    }
    let programs = UnsafeMutablePointer<Int32>.allocate(capacity: rows)
    programs.initialize(repeating: 0, count: rows)
    return (programs, values(rows * attributes), values(rows * relationships))
  }
}

extension TablePlan {
  /// Whether the link stage has anything to look at or to write.
  var isLinked: Bool {
    entities.contains { !$0.references.isEmpty }
      || (way == .computed && !relationshipPlaces.isEmpty)
  }

  /// What a pass reads of the source: what copy reads, or what is carried, and behind it what link
  /// reads.
  var passColumns: SourceColumns {
    let first = way == .carried ? carriedColumns : copyColumns
    return SourceColumns(
      table: sourceTable ?? name, names: first + linkColumns,
      expressions: way == .computed ? copyExpressions : [])
  }

  /// Where the columns that link reads begin in such a row.
  var linkPlace: Int { 3 + (way == .carried ? carriedColumns : copyColumns).count }
}
