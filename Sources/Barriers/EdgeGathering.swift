import GodwitPlanning
import GodwitSQLite
import GodwitWorker
import SystemPackage

/// Sorts the pairs of one relationship group and writes them as its table `edges<n>`.
///
/// For columns: one owner for each row; the row's own word counts before the other side's, and
/// of several owners the last one, who took the object from the others. Places go by the
/// position in the owner's collection, members that it does not list at the end by key.
/// For join tables: each pair once. For one-to-one relationships see ``match(_:)``, for those whose
/// sides may contradict each other ``AssignedPairs``. For derived attributes that count: how often each
/// object stands in the finished pairs of another group.
final class EdgeGathering {
  /// Bytes for the pairs of all groups together.
  static let memoryBudget = 48 << 20
  private static let leastMemory = 1 << 20
  /// Stands for a position that no collection gave.
  private static let nowhere = Int64.max

  private let group: RelationshipGroup
  private let number: Int
  private let file: Connection
  private let folder: FilePath
  private let memory: Int
  private let arrivals: LineSort
  private var arrived: Int64 = 0
  /// The objects whose references have no room: another object has theirs.
  private var dropped = RowTally()
  private let set: Statement
  private let clear: Statement?
  /// Keeps every pair of a one-to-one relationship, to find those that lose their objects.
  private let given: Statement?
  /// By side: what a hook says of an object takes the place of what it has.
  private let forget: [Statement]
  /// Where the sides may contradict each other.
  private let assigned: AssignedPairs?

  /// - Parameters:
  ///   - number: The group's, for the table's name.
  ///   - count: How many groups there are, which share the memory.
  ///   - isReplayed: True when hooks have set what others have set, too: see ``HookReplay``.
  init(
    _ group: RelationshipGroup, number: Int, of count: Int, in file: Connection, folder: FilePath,
    isReplayed: Bool = false
  ) throws {
    self.group = group
    self.number = number
    self.file = file
    self.folder = folder
    memory = max(Self.leastMemory, Self.memoryBudget / max(1, count))
    arrivals = LineSort(folder: folder, memory: memory)
    let columns: String
    switch group.target {
    case .columns where group.isOneToOne:
      columns = "a INTEGER PRIMARY KEY, b INTEGER NOT NULL UNIQUE, entity INTEGER, place INTEGER"
    case .columns, .count:
      columns = "a INTEGER PRIMARY KEY, b INTEGER, entity INTEGER, place INTEGER"
    case .join: columns = "a INTEGER, b INTEGER, place0 INTEGER, place1 INTEGER, PRIMARY KEY (a, b)"
    }
    let isJoin = if case .join = group.target { true } else { false }
    try file.execute("CREATE TABLE edges\(number) (\(columns))\(isJoin ? " WITHOUT ROWID" : "")")
    assigned =
      isReplayed || group.isSequential == true
      ? try AssignedPairs(group, number: number, in: file) : nil
    set = try file.prepare("INSERT OR REPLACE INTO edges\(number) VALUES (?1, ?2, ?3, ?4)")
    clear =
      group.isOneToOne
      ? try file.prepare("DELETE FROM edges\(number) WHERE a = ?1 OR b = ?2") : nil
    if group.isOneToOne, !group.isMirror {
      try file.execute(
        "CREATE TABLE given\(number) (a INTEGER, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID")
      given = try file.prepare("INSERT OR IGNORE INTO given\(number) VALUES (?1, ?2)")
      forget = try [("a", "b"), ("b", "a")].map { own, other in
        try file.prepare(
          """
          DELETE FROM given\(number)
           WHERE \(own) = ?1 AND \(other) IN (SELECT \(other) FROM edges\(number) WHERE \(own) = ?1)
          """)
      }
    } else {
      given = nil
      forget = []
    }
  }

  /// Takes a pair; they come in the order of Core Data's assignments.
  ///
  /// - Parameter isInRow: True for objects of policies, whose rows have their to-one relationships already.
  func take(_ edge: Edge, isInRow: Bool = false) throws {
    if group.isOneToOne { return try match(edge) }
    if let assigned { return try assigned.take(edge) }
    if group.isOpen != true || isNeeded(edge, isInRow) { try sort(edge) }
  }

  /// What is set to nothing, and what rows have already, is there for ``AssignedPairs`` and for counts.
  private func isNeeded(_ edge: Edge, _ isInRow: Bool) -> Bool {
    guard case .columns(_, let isOrdered) = group.target, edge.side == 0 else {
      return edge.row != Edge.nobody && edge.other != Edge.nobody
    }
    return group.isCounted || (edge.other != Edge.nobody && (isOrdered || !isInRow))
  }

  private func sort(_ edge: Edge) throws {
    arrived += 1
    switch group.target {
    case .columns:
      // Of one side, the last comes first.
      try arrivals.append(
        SortLine(
          edge.row, edge.side, -arrived, edge.other, values: (edge.entity, edge.position)))
    case .join:
      try arrivals.append(
        SortLine(edge.row, edge.other, edge.side, arrived, values: (0, edge.position)))
    case .count: break
    }
  }

  /// Writes the table. The groups before it must have been finished: pairs are counted last.
  func finish() throws {
    if group.isOneToOne { return try finishMatches() }
    try assigned?.finish { try sort($0) }
    try assigned?.forEachLost { dropped.add($0) }
    switch group.target {
    case .columns(_, let isOrdered): try finishColumns(isOrdered: isOrdered)
    case .join(_, let first, let second, _): try finishJoin(first, second)
    case .count(let other, let side): try count(other, side)
    }
  }

  /// What ``finish()`` left out.
  var loss: Loss? {
    Loss(withoutRoomIn: group.relationship, of: group.entity.rawValue, dropped)
  }

  // MARK: One to one

  /// Pairs up the objects of a one-to-one relationship.
  ///
  /// Assignments follow each other as in Core Data: by entity mapping, then by object. Each takes
  /// both objects from whom they belonged to, and nil takes an object from its partner.
  private func match(_ edge: Edge) throws {
    if edge.manner.contains(.hook), !forget.isEmpty, edge.side != Edge.withoutRoom {
      let statement = forget[Int(edge.side)]
      try statement.bind(1, edge.side == 0 ? edge.row : edge.other)
      try statement.run()
    }
    if edge.row == Edge.nobody || edge.other == Edge.nobody {
      try clear?.bind(1, edge.row)
      try clear?.bind(2, edge.other)
      try clear?.run()
    } else {
      let (a, b) = pair(edge.row, edge.other)
      try given?.bind(1, a)
      try given?.bind(2, b)
      try given?.run()
      if edge.side != Edge.withoutRoom {
        try insert(edge.row, edge.other, edge.entity, nil)
      }
    }
  }

  /// As it is counted: once, also where it comes both ways round.
  private func pair(_ a: Int64, _ b: Int64) -> (Int64, Int64) {
    group.isOwnInverse == true ? (min(a, b), max(a, b)) : (a, b)
  }

  private func finishMatches() throws {
    guard given != nil else { return }
    let stand =
      group.isOwnInverse == true
      ? "SELECT min(a, b), max(a, b) FROM edges\(number)" : "SELECT a, b FROM edges\(number)"
    let lost = try file.prepare(
      "SELECT a FROM (SELECT a, b FROM given\(number) EXCEPT \(stand))")
    while try lost.step() { dropped.add(lost.int64(0)) }
  }

  private func insert(_ a: Int64, _ b: Int64, _ third: Int64?, _ fourth: Int64?) throws {
    try set.bind(1, a)
    try set.bind(2, b)
    try set.bind(3, third.map(RawValue.integer) ?? .null)
    try set.bind(4, fourth.map(RawValue.integer) ?? .null)
    try set.run()
  }

  private func count(_ other: Int?, _ side: Int) throws {
    guard let other else { return }
    let key = side == 0 ? "a" : "b"
    try file.execute(
      """
      INSERT INTO edges\(number) (a, b)
      SELECT \(key), count(*) FROM edges\(other) GROUP BY \(key) ORDER BY \(key)
      """)
  }

  // MARK: Columns

  private func finishColumns(isOrdered: Bool) throws {
    let byOwner = LineSort(folder: folder, memory: memory)
    var chosen: (row: Int64, owner: Int64, entity: Int64, position: Int64, arrival: Int64)?
    var side: Int64 = 0
    func settle() throws {
      // Set to nil is a word, too.
      guard let pair = chosen, pair.owner != Edge.nobody else { return }
      if isOrdered {
        let position = pair.position < 0 ? Self.nowhere : pair.position
        let order = Self.order(pair.row, at: position, pair.arrival)
        try byOwner.append(
          SortLine(pair.owner, position, order, pair.row, values: (pair.entity, 0)))
      } else {
        try insert(pair.row, pair.owner, pair.entity, nil)
      }
    }
    try arrivals.forEach { line in
      if chosen?.row != line.keys.0 {
        try settle()
        chosen = (line.keys.0, line.keys.3, line.values.0, line.values.1, -line.keys.2)
        side = line.keys.1
      } else if let pair = chosen, pair.owner == line.keys.3 {
        chosen?.position = max(pair.position, line.values.1)
      } else if side == 1 {
        // The row itself says nothing, and several owners have it.
        dropped.add(line.keys.0)
      }
    }
    try settle()
    guard isOrdered else { return }
    let byRow = LineSort(folder: folder, memory: memory)
    var places = Places()
    try byOwner.forEach { line in
      let place = places.next(of: line.keys.0)
      try byRow.append(SortLine(line.keys.3, line.keys.0, line.values.0, place))
    }
    try byRow.forEach { try insert($0.keys.0, $0.keys.1, $0.keys.2, $0.keys.3) }
  }

  /// Members without a place come last, as they came; of those with equal places the lowest key first.
  private static func order(_ key: Int64, at position: Int64, _ arrival: Int64) -> Int64 {
    position == nowhere ? arrival : key
  }

  // MARK: Join tables

  private func finishJoin(_ firstIsOrdered: Bool, _ secondIsOrdered: Bool) throws {
    guard firstIsOrdered || secondIsOrdered else {
      try forEachPair { a, b, _, _, _ in try insert(a, b, nil, nil) }
      return
    }
    // By the second column's lists, whose order is the first column's place; then the other way.
    let bySecond = LineSort(folder: folder, memory: memory)
    let byFirst = LineSort(folder: folder, memory: memory)
    let byPair = LineSort(folder: folder, memory: memory)
    try forEachPair { a, b, position0, position1, arrival in
      let order0 = Self.order(b, at: position0, arrival)
      if firstIsOrdered {
        let order1 = Self.order(a, at: position1, arrival)
        try bySecond.append(SortLine(b, position1, order1, a, values: (position0, order0)))
      } else {
        try byFirst.append(SortLine(a, position0, order0, b))
      }
    }
    var places = Places()
    try bySecond.forEach { line in
      let place = places.next(of: line.keys.0)
      if secondIsOrdered {
        try byFirst.append(
          SortLine(line.keys.3, line.values.0, line.values.1, line.keys.0, values: (place, 0)))
      } else {
        try byPair.append(SortLine(line.keys.3, line.keys.0, values: (place, 0)))
      }
    }
    places = Places()
    try byFirst.forEach { line in
      let place = places.next(of: line.keys.0)
      try byPair.append(SortLine(line.keys.0, line.keys.3, values: (line.values.0, place)))
    }
    try byPair.forEach { line in
      try insert(
        line.keys.0, line.keys.1, firstIsOrdered ? line.values.0 : nil,
        secondIsOrdered ? line.values.1 : nil)
    }
  }

  /// Gives each pair once, with the first position that either side named, and when it came first.
  private func forEachPair(
    _ body: (_ a: Int64, _ b: Int64, _ position0: Int64, _ position1: Int64, _ arrival: Int64)
      throws -> Void
  ) throws {
    var pair: (a: Int64, b: Int64, positions: (Int64, Int64), arrival: Int64)?
    func give() throws {
      guard let pair else { return }
      try body(pair.a, pair.b, pair.positions.0, pair.positions.1, pair.arrival)
    }
    try arrivals.forEach { line in
      if pair?.a != line.keys.0 || pair?.b != line.keys.1 {
        try give()
        pair = (line.keys.0, line.keys.1, (Self.nowhere, Self.nowhere), line.keys.3)
      }
      guard let known = pair else { return }
      pair?.arrival = min(known.arrival, line.keys.3)
      guard line.values.1 >= 0 else { return }
      if line.keys.2 == 0 {
        pair?.positions.0 = min(known.positions.0, line.values.1)
      } else {
        pair?.positions.1 = min(known.positions.1, line.values.1)
      }
    }
    try give()
  }
}

/// Places in one list after another, as Core Data gives them: 2048, 3072 …
private struct Places {
  private var owner: Int64?
  private var count: Int64 = 0

  mutating func next(of owner: Int64) -> Int64 {
    count = owner == self.owner ? count + 1 : 0
    self.owner = owner
    return 2048 + 1024 * count
  }
}
