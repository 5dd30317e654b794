import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// A relationship of a store that a handler works on: where its pairs lie, and the statements that
/// read and write them.
///
/// Source: `core-data-sqlite-format.md` §4.3, §4.4, §6, §7.
final class StageRelationship {
  let description: RelationshipDescription
  let storage: PairStorage
  /// The inverse with the entity that declares it.
  let inverse: (entity: EntityName, description: RelationshipDescription)?
  /// Its pairs stand in the join table both ways round.
  let isReflexive: Bool
  /// The column beside ``PairStorage/targetColumn``, or ``PairStorage/ownerColumn``, with the
  /// entity of what the key names; in stores with one column for each pair only.
  private let entityColumn: String?
  private let numbers: String
  private let ownerNumbers: String
  private let connection: Connection
  private let ends: ListEnds
  private var statements: [Use: Statement] = [:]

  private enum Use: Hashable {
    case members, owners, pair, connect, disconnect, lastPlace, ownLastPlace, move
  }

  init(
    _ description: RelationshipDescription, declaredBy entity: EntityName, _ store: StageStore
  ) throws {
    guard let storage = store.layout.pairStorage(of: description, declaredBy: entity) else {
      throw store.refused(entity, description.name, "the relationship has no place in the store")
    }
    self.description = description
    self.storage = storage
    inverse = store.model.inverse(of: description).map { ($0.entity, $0.relationship) }
    isReflexive =
      storage.isJoinTable && inverse?.entity == entity
      && inverse?.description.name == description.name
    if description.isToMany {
      entityColumn = inverse.flatMap {
        storage.isJoinTable
          ? nil : store.layout.entityColumn(of: $0.description.name, in: $0.entity)
      }
    } else {
      entityColumn = store.layout.entityColumn(of: description.name, in: entity)
    }
    numbers = store.numbers(of: description.destinationEntity)
    ownerNumbers = store.numbers(of: entity)
    (connection, ends) = (store.connection, store.listEnds)
  }

  /// True where one column of one row holds the pair: that of the owner of a to-one, of the member
  /// of a to-many.
  private var isColumn: Bool { !storage.isJoinTable }

  private func statement(_ use: Use, _ sql: () -> String) throws -> Statement {
    if let known = statements[use] { return known }
    let made = try connection.prepare(sql())
    statements[use] = made
    return made
  }

  private func objects(
    _ statement: Statement, _ key: Int64, _ store: StageStore
  ) throws -> [ObjectReference] {
    try statement.bind(1, key)
    defer { statement.reset() }
    var found: [ObjectReference] = []
    while try statement.step() {
      guard let name = store.entityName(statement.int64(1)) else { continue }
      found.append(ObjectReference(name, statement.int64(0), in: store.settings.side))
    }
    return found
  }
}

// Reading.
extension StageRelationship {
  /// The members of an owner: in their order, or by key.
  func members(of owner: Int64, _ store: StageStore) throws -> [ObjectReference] {
    let order = storage.orderColumn.map { "r.\(quoted($0)), " } ?? ""
    return try objects(
      statement(.members) {
        """
        SELECT y.Z_PK, y.Z_ENT
          FROM \(quoted(storage.table)) AS r
          JOIN \(quoted(storage.targetTable)) AS y
               ON y.Z_PK = r.\(quoted(storage.targetColumn))
         WHERE r.\(quoted(storage.ownerColumn)) = ?1 AND y.Z_ENT IN (\(numbers))
         ORDER BY \(order)y.Z_PK
        """
      }, owner, store)
  }

  func has(_ owner: ObjectReference, _ member: ObjectReference) throws -> Bool {
    let statement = try statement(.pair) {
      """
      SELECT 1
        FROM \(quoted(storage.table))
       WHERE \(quoted(storage.ownerColumn)) = ?1 AND \(quoted(storage.targetColumn)) = ?2
      """
    }
    try statement.bind(1, owner.primaryKey)
    try statement.bind(2, member.primaryKey)
    defer { statement.reset() }
    return try statement.step()
  }

  /// The place behind the last member of an owner's list; nil where members have none.
  func nextPlace(of owner: ObjectReference) throws -> Int64? {
    guard let order = storage.orderColumn else { return nil }
    return try lastPlace(
      .ownLastPlace, order, inList: storage.ownerColumn, of: owner.primaryKey) + StageOrder.step
  }

  /// Who has the member; one at most unless it is a relationship of many to many.
  func owners(of member: Int64, _ store: StageStore) throws -> [ObjectReference] {
    try objects(
      statement(.owners) {
        """
        SELECT x.Z_PK, x.Z_ENT
          FROM \(quoted(storage.table)) AS r
          JOIN \(quoted(storage.ownerTable)) AS x ON x.Z_PK = r.\(quoted(storage.ownerColumn))
         WHERE r.\(quoted(storage.targetColumn)) = ?1 AND x.Z_ENT IN (\(ownerNumbers))
         ORDER BY x.Z_PK
        """
      }, member, store)
  }
}

// Writing. One side only: the caller keeps inverses that are columns of their own.
extension StageRelationship {
  /// Makes a pair. A member that a column holds loses the owner that it had.
  ///
  /// - Parameter place: In the owner's list, where it is ordered.
  func connect(
    _ owner: ObjectReference, _ member: ObjectReference, place: Int64?, _ store: StageStore
  ) throws {
    if isColumn {
      let (row, target) = description.isToMany ? (member, owner) : (owner, member)
      let order = description.isToMany ? storage.orderColumn : storage.inverseOrderColumn
      try write(row, target, order, place: place, store)
      return
    }
    let columns = [storage.ownerColumn, storage.targetColumn]
    let extra = [storage.orderColumn, storage.inverseOrderColumn]
    let statement = try statement(.connect) {
      let names = columns + extra.compactMap { $0 }
      let marks = ["?1", "?2"] + zip(extra, ["?3", "?4"]).compactMap { $0 == nil ? nil : $1 }
      return """
        INSERT OR IGNORE INTO \(quoted(storage.table))
               (\(names.map(quoted).joined(separator: ", ")))
        VALUES (\(marks.joined(separator: ", ")))
        """
    }
    var pairs = [(owner.primaryKey, member.primaryKey)]
    if isReflexive, owner != member { pairs.append((member.primaryKey, owner.primaryKey)) }
    for (first, second) in pairs {
      try statement.bind(1, first)
      try statement.bind(2, second)
      if let order = extra[0] {
        try statement.bind(3, SQLiteValue(key: place))
        ends.raise(storage.table, order, first, to: place)
      }
      if let order = extra[1] {
        let place = try lastPlace(inListOf: second) + StageOrder.step
        try statement.bind(4, place)
        ends.raise(storage.table, order, second, to: place)
      }
      try statement.run()
    }
  }

  func disconnect(_ owner: ObjectReference, _ member: ObjectReference, _ store: StageStore) throws {
    if isColumn {
      let row = description.isToMany ? member : owner
      let order = description.isToMany ? storage.orderColumn : storage.inverseOrderColumn
      try write(row, nil, order, place: nil, store)
      return
    }
    let statement = try statement(.disconnect) {
      """
      DELETE FROM \(quoted(storage.table))
       WHERE \(quoted(storage.ownerColumn)) = ?1 AND \(quoted(storage.targetColumn)) = ?2
      """
    }
    var pairs = [(owner.primaryKey, member.primaryKey)]
    if isReflexive { pairs.append((member.primaryKey, owner.primaryKey)) }
    for (first, second) in pairs {
      try statement.bind(1, first)
      try statement.bind(2, second)
      try statement.run()
    }
  }

  /// Writes the column that holds a pair, and those beside it.
  private func write(
    _ row: ObjectReference, _ target: ObjectReference?, _ order: String?, place: Int64?,
    _ store: StageStore
  ) throws {
    let key = description.isToMany ? storage.ownerColumn : storage.targetColumn
    let statement = try statement(.connect) {
      var sets = ["\(quoted(key)) = ?1"]
      if let entityColumn { sets.append("\(quoted(entityColumn)) = ?2") }
      if let order { sets.append("\(quoted(order)) = ?3") }
      return """
        UPDATE \(quoted(storage.table)) SET \(sets.joined(separator: ", ")) WHERE Z_PK = ?4
        """
    }
    try statement.bind(1, SQLiteValue(key: target?.primaryKey))
    if entityColumn != nil {
      try statement.bind(2, SQLiteValue(key: target.map { store.number(of: $0.entity) }))
    }
    if let order {
      try statement.bind(3, SQLiteValue(key: place))
      if let target { ends.raise(storage.table, order, target.primaryKey, to: place) }
    }
    try statement.bind(4, row.primaryKey)
    do {
      try statement.run()
    } catch let error as SQLiteError where error.isConstraintUnique {
      // The column belongs to the to-one side, from whichever side it is set.
      let property = description.isToMany ? inverse?.description.name : nil
      throw store.refused(
        row, property ?? description.name, "the object breaks a uniqueness constraint", code: 1551)
    }
  }

  /// Puts a member at a place of its owner's list.
  func move(
    _ member: ObjectReference, of owner: ObjectReference, to place: Int64
  ) throws -> Bool {
    guard let order = storage.orderColumn else { return false }
    let statement = try statement(.move) {
      """
      UPDATE \(quoted(storage.table)) SET \(quoted(order)) = ?1
       WHERE \(quoted(storage.ownerColumn)) = ?2 AND \(quoted(storage.targetColumn)) = ?3
         AND \(quoted(order)) IS NOT ?1
      """
    }
    try statement.bind(1, place)
    try statement.bind(2, owner.primaryKey)
    try statement.bind(3, member.primaryKey)
    try statement.run()
    ends.raise(storage.table, order, owner.primaryKey, to: place)
    return connection.changes > 0
  }

  /// The highest place in the list that a member of this relationship has of its own: the ordered
  /// inverse. 1024 where the list is empty, so that the first place is 2048.
  func lastPlace(inListOf member: Int64) throws -> Int64 {
    guard let order = storage.inverseOrderColumn else { return 0 }
    return try lastPlace(.lastPlace, order, inList: storage.targetColumn, of: member)
  }

  /// Where no number is left behind the last place, the list is numbered anew.
  private func lastPlace(
    _ use: Use, _ order: String, inList column: String, of key: Int64
  ) throws -> Int64 {
    if let known = ends.last(storage.table, order, key), known <= Int64.max - StageOrder.step {
      return known
    }
    let statement = try statement(use) {
      """
      SELECT max(\(quoted(order))) FROM \(quoted(storage.table)) WHERE \(quoted(column)) = ?1
      """
    }
    func highest() throws -> Int64 {
      try statement.bind(1, key)
      defer { statement.reset() }
      let found = try statement.step() ? statement.value(0).integer : nil
      return max(StageOrder.step, found ?? StageOrder.step)
    }
    let last = try highest()
    guard last > Int64.max - StageOrder.step else {
      ends.keep(storage.table, order, key, last)
      return last
    }
    _ = try connection.rows(
      """
      UPDATE \(quoted(storage.table)) AS t SET \(quoted(order)) = n.place
        FROM (SELECT rowid AS number,
                     \(StageOrder.step) * (1 + row_number() OVER (ORDER BY \(quoted(order)), rowid)) AS place
                FROM \(quoted(storage.table)) WHERE \(quoted(column)) = ?1) AS n
       WHERE t.rowid = n.number
      """, [.integer(key)])
    let renewed = try highest()
    ends.keep(storage.table, order, key, renewed)
    return renewed
  }
}

/// Where lists end to which members are added: no list is read for each of them. A member that goes leaves a gap.
final class ListEnds {
  private struct List: Hashable {
    var table: String
    /// Of the places.
    var column: String
    /// Whose list it is.
    var key: Int64
  }

  private var places: [List: Int64] = [:]
  private static let mostKept = 1_024

  /// For when changes are taken back.
  func forget() { places.removeAll(keepingCapacity: true) }

  func last(_ table: String, _ column: String, _ key: Int64) -> Int64? {
    places[List(table: table, column: column, key: key)]
  }

  func keep(_ table: String, _ column: String, _ key: Int64, _ place: Int64) {
    if places.count >= Self.mostKept { places.removeAll(keepingCapacity: true) }
    places[List(table: table, column: column, key: key)] = place
  }

  /// A member gets a place in a list. Of one that is not kept nothing is known.
  func raise(_ table: String, _ column: String, _ key: Int64, to place: Int64?) {
    let list = List(table: table, column: column, key: key)
    guard let place, let known = places[list], place > known else { return }
    places[list] = place
  }
}

/// Places in ordered relationships: 2048, 3072 … Source: `core-data-sqlite-format.md` §6.
enum StageOrder {
  static let step: Int64 = 1024

  static func place(_ index: Int) -> Int64 { (Int64(index) + 2) * step }
}

extension SQLiteValue {
  /// A key, an entity number or a place; NULL for none.
  fileprivate init(key: Int64?) {
    self = key.map { .integer($0) } ?? .null
  }
}
