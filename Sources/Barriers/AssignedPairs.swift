import GodwitPlanning
import GodwitSQLite
import GodwitWorker

/// The pairs of a relationship whose two sides are set, and not to the same, or by the hooks of
/// policies.
///
/// Assignments follow each other as in Core Data: by entity mapping, then by object, then by
/// relationship mapping. Each replaces what the object had; the other side follows, where new
/// members come last in an ordered relationship. So the last assignment stands.
final class AssignedPairs {
  private struct Assignment {
    var side: Int64
    var object: Int64
    /// False when the object keeps what it has.
    var isWhole: Bool
    /// A hook says it, and may say something else than a relationship mapping has said of the object.
    var isHook: Bool
    var members: [(key: Int64, entity: Int64)] = []
  }

  /// The sides of ``Edge``: columns hold one `b` for each `a`.
  private let isColumn: Bool
  private let isReflexive: Bool
  private var current: Assignment?
  /// Places grow from assignment to assignment.
  private var place: Int64 = 0
  private let partners: [Statement]
  private let all: Statement
  private let lost: Statement
  private let known: Statement
  private let move: [Statement]
  private let insert: Statement
  private let remove: Statement
  private let give: Statement
  private let forget: Statement

  init(_ group: RelationshipGroup, number: Int, in file: Connection) throws {
    isColumn = if case .columns = group.target { true } else { false }
    isReflexive = if case .join(_, _, _, true) = group.target { true } else { false }
    let table = "assigned\(number)"
    let given = "given\(number)"
    try file.execute(
      """
      CREATE TABLE \(table) (
        a INTEGER, b INTEGER, entity INTEGER, place0 INTEGER, place1 INTEGER, PRIMARY KEY (a, b)
      ) WITHOUT ROWID;
      CREATE INDEX \(table)_b ON \(table) (b, a);
      CREATE TABLE \(given) (a INTEGER, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID;
      """)
    partners = try [
      file.prepare("SELECT b FROM \(table) WHERE a = ?1 ORDER BY b"),
      file.prepare("SELECT a FROM \(table) WHERE b = ?1 ORDER BY a"),
    ]
    all = try file.prepare("SELECT a, b, entity, place0, place1 FROM \(table) ORDER BY a, b")
    lost = try file.prepare(
      "SELECT a FROM (SELECT a, b FROM \(given) EXCEPT SELECT a, b FROM \(table))")
    known = try file.prepare("SELECT 1 FROM \(table) WHERE a = ?1 AND b = ?2")
    move = try [
      file.prepare("UPDATE \(table) SET place0 = ?3 WHERE a = ?1 AND b = ?2"),
      file.prepare("UPDATE \(table) SET place1 = ?3 WHERE a = ?1 AND b = ?2"),
    ]
    insert = try file.prepare("INSERT INTO \(table) VALUES (?1, ?2, ?3, ?4, ?4)")
    remove = try file.prepare("DELETE FROM \(table) WHERE a = ?1 AND b = ?2")
    give = try file.prepare("INSERT OR IGNORE INTO \(given) VALUES (?1, ?2)")
    forget = try file.prepare("DELETE FROM \(given) WHERE a = ?1 AND b = ?2")
  }

  /// Takes a pair; they come in the order of the assignments, and those of one together.
  func take(_ edge: Edge) throws {
    if edge.side == Edge.withoutRoom { return try run(give, edge.row, edge.other) }
    // The same pair the other way round.
    if isReflexive && edge.side == 1 { return }
    let object = edge.side == 0 ? edge.row : edge.other
    let member = edge.side == 0 ? edge.other : edge.row
    let isHook = edge.manner.contains(.hook)
    if edge.manner.contains(.removal) {
      try settle()
      return try takeAway(edge.row, edge.other, isForgotten: true)
    }
    let begins = member == Edge.nobody
    let isToOne = isColumn && edge.side == 0
    // What was taken away a moment ago, and is added again, comes last in the list of its partner.
    let isAdded = edge.manner.contains(.addition)
    if begins || isToOne || current?.side != edge.side || current?.object != object
      || current?.isHook != isHook || (isAdded && current?.isWhole == true)
    {
      try settle()
      current = Assignment(
        side: edge.side, object: object, isWhole: begins || isToOne, isHook: isHook)
    }
    if !begins { current?.members.append((member, edge.entity)) }
  }

  /// Gives the pairs that stand.
  func finish(_ body: (Edge) throws -> Void) throws {
    try settle()
    while try all.step() {
      let (a, b) = (all.int64(0), all.int64(1))
      for side in isColumn ? [1] : [0, 1] {
        try body(
          Edge(
            side: Int64(side), row: a, other: b, entity: all.int64(2),
            position: all.int64(Int32(3 + side))))
      }
    }
  }

  /// Gives the first objects of the pairs that some assignment set and a later one took away.
  func forEachLost(_ body: (Int64) throws -> Void) throws {
    while try lost.step() { try body(lost.int64(0)) }
  }

  // MARK: One assignment

  private func settle() throws {
    guard let assignment = current else { return }
    current = nil
    func pair(_ member: Int64) -> (a: Int64, b: Int64) {
      assignment.side == 0 ? (assignment.object, member) : (member, assignment.object)
    }
    if assignment.isWhole {
      let wanted = Set(assignment.members.map(\.key))
      for member in try found(partners[Int(assignment.side)], assignment.object)
      where !wanted.contains(member) {
        let (a, b) = pair(member)
        try takeAway(a, b, isForgotten: assignment.isHook)
      }
    }
    var seen: Set<Int64> = []
    for member in assignment.members where seen.insert(member.key).inserted {
      let (a, b) = pair(member.key)
      place += 1
      try run(give, isReflexive ? min(a, b) : a, isReflexive ? max(a, b) : b)
      if isColumn {
        for owner in try found(partners[0], a) where owner != b { try run(remove, a, owner) }
      }
      try put(a, b, member.entity, assignment)
      if isReflexive, a != b { try put(b, a, member.entity, nil) }
    }
  }

  /// - Parameter isForgotten: True for a pair that is not lost: it was taken away on purpose.
  private func takeAway(_ a: Int64, _ b: Int64, isForgotten: Bool) throws {
    try run(remove, a, b)
    if isReflexive { try run(remove, b, a) }
    if isForgotten { try run(forget, isReflexive ? min(a, b) : a, isReflexive ? max(a, b) : b) }
  }

  /// - Parameter assignment: The one that names the pair's place; nil on the other side of it.
  private func put(_ a: Int64, _ b: Int64, _ entity: Int64, _ assignment: Assignment?) throws {
    if try !found(known, a, b).isEmpty {
      // What a to-one says again, and what is added again, stays where it is.
      guard let assignment, assignment.isWhole, !(isColumn && assignment.side == 0) else { return }
      try run(move[Int(assignment.side)], a, b, place)
    } else {
      try run(insert, a, b, entity, place)
    }
  }

  private func found(_ statement: Statement, _ keys: Int64...) throws -> [Int64] {
    statement.reset()
    for (number, key) in keys.enumerated() { try statement.bind(Int32(number + 1), key) }
    var found: [Int64] = []
    while try statement.step() { found.append(statement.int64(0)) }
    statement.reset()
    return found
  }

  private func run(_ statement: Statement, _ numbers: Int64...) throws {
    for (number, value) in numbers.enumerated() { try statement.bind(Int32(number + 1), value) }
    try statement.run()
  }
}
