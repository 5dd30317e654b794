import GodwitPlanning
import GodwitSQLite

/// Walks the pairs of a relationship beside the rows of a shard: both ascend by the row's key.
final class PairCursor {
  private let statement: Statement
  private let rankStatement: Statement?
  private var isAtEnd = false
  private var row = Int64.min
  private var other: RawValue = .null
  private var entityNumber: RawValue = .null
  private var place: RawValue = .null
  /// The next place of each owner that this shard has met.
  private var nextRanks: [Int64: Int64] = [:]

  init(_ query: PairQuery, _ connection: Connection, _ keys: ClosedRange<Int64>) throws {
    statement = try connection.prepare(query.sql)
    try statement.bind(1, keys.lowerBound)
    try statement.bind(2, keys.upperBound)
    rankStatement = try query.rankSQL.map(connection.prepare)
    try read()
  }

  /// Moves to the first pair of the row, if it has one. The query gives one of those that there is
  /// room for, and after it at most a reference to an object that does not exist.
  func advance(to key: Int64) throws {
    while !isAtEnd, row < key { try read() }
  }

  func key(for primaryKey: Int64) -> RawValue { isAtEnd || row != primaryKey ? .null : other }

  func entity(for primaryKey: Int64) -> RawValue {
    isAtEnd || row != primaryKey ? .null : entityNumber
  }

  func order(for primaryKey: Int64) throws -> RawValue {
    guard !isAtEnd, row == primaryKey else { return .null }
    guard let rankStatement else { return place }
    let next: Int64
    if let known = nextRanks[other.bits] {
      next = known
    } else {
      try rankStatement.bind(1, other.bits)
      try rankStatement.bind(2, primaryKey)
      next = try rankStatement.step() ? rankStatement.int64(0) : 0
      rankStatement.reset()
    }
    nextRanks[other.bits] = next + 1
    return .integer(OrderPlace.value(at: next))
  }

  private func read() throws {
    guard try statement.step() else {
      isAtEnd = true
      return
    }
    row = statement.int64(0)
    statement.read(into: &other, from: 1, count: 1)
    statement.read(into: &entityNumber, from: 2, count: 1)
    statement.read(into: &place, from: 3, count: 1)
  }
}

/// Counts places in relationships that become ordered, going on where the shard before ended.
final class RankCounter {
  private struct Slot: Hashable {
    var place: Int
    var owner: Int64
  }

  private var statements: [Int: [Int: Statement]] = [:]
  private var next: [Slot: Int64] = [:]

  init(_ connection: Connection, programs: [EntityProgram]) throws {
    for (index, program) in programs.enumerated() {
      for (place, relationship) in program.relationships.enumerated() {
        guard case .rank(_, let sql) = relationship else { continue }
        statements[index, default: [:]][place] = try connection.prepare(sql)
      }
    }
  }

  /// The row's place in its owner's list, from 0.
  func next(_ program: Int, _ place: Int, owner: Int64, before key: Int64) throws -> Int64 {
    // Entities of one table share a list, so the slot is that of the column, not of the program.
    let slot = Slot(place: place, owner: owner)
    let rank: Int64
    if let known = next[slot] {
      rank = known
    } else if let statement = statements[program]?[place] {
      try statement.bind(1, owner)
      try statement.bind(2, key)
      rank = try statement.step() ? statement.int64(0) : 0
      statement.reset()
    } else {
      rank = 0
    }
    next[slot] = rank + 1
    return rank
  }
}
