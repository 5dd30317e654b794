import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The second stage: relationship columns of one shard's rows.
///
/// Keys are kept, so a to-one column is its source column; what this stage adds is the look at
/// the target: whether it exists, what entity it is, and what number that entity has now.
final class LinkStage {
  private let finder: TargetFinder
  private let entities: [EntityLinks]
  private let queries: [PairCursor]
  private let ranks: RankCounter
  private let isLinked: Bool
  private let isWritten: Bool
  private let place: Int
  private var tally = FindingTally()
  private var rowCount: Int64 = 0

  init(_ table: TablePlan, _ context: ShardContext, _ keys: ClosedRange<Int64>) throws {
    let finder = context.targets
    self.finder = finder
    isLinked = table.isLinked
    isWritten = table.way == .computed && !table.relationshipPlaces.isEmpty
    place = table.linkPlace
    // Other workers take their share of the shards.
    let lookups = table.expectedRows / 4
    entities = try table.entities.map {
      try EntityLinks($0, finder: finder, lookups: lookups)
    }
    queries = try table.pairQueries.map { try PairCursor($0, context.source, keys) }
    ranks = try RankCounter(context.source, programs: table.entities)
  }

  func run(_ rows: SourceRows, _ piece: borrowing RowPiece) throws {
    guard isLinked else { return }
    for number in 0..<rows.count {
      let index = Int(piece.programs[number])
      guard index >= 0 else { continue }
      let row = rows.row(number)
      let (links, key) = (entities[index], row[0].bits)
      try links.look(at: row + place, primaryKey: key, finder: finder, into: &tally)
      rowCount &+= 1
      guard isWritten, links.isMapped else { continue }
      for query in queries { try query.advance(to: key) }
      try links.fill(
        piece.relationships + number &* piece.relationshipCount, from: row + place,
        primaryKey: key, queries: queries, ranks: ranks, program: index)
    }
  }

  /// What the stage did.
  var share: StageShare {
    StageShare(rows: rowCount, findings: tally.sorted)
  }
}
