import GodwitExpressions
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite

/// Attributes of the objects that to-one relationships of the source object lead to, for compiled
/// expressions: `$source.customer.name`. One look-up a relationship and row gives all of them.
///
/// They stand behind the columns of the row at hand, and behind ``keyColumns``.
final class RelatedAttributes {
  /// One relationship, with the attributes that expressions have asked for.
  private struct Relationship {
    let access: SourceRelationship
    /// The entities of its objects: they share a table.
    let entities: [SourceEntityAccess]
    /// Where the row has the object's key; nil where only a statement finds it.
    let keyPlace: Int?
    var columns: [(name: String, place: Int)] = []
    var statement: Statement?
    /// Made with the first look-up; nil within where SQLite has to read the table.
    var reader: RelatedRows??
    /// The source object whose values are in the row.
    var owner: Int64?
    var isUsual = false
  }

  private let connection: Connection
  private let first: Int
  /// What the row must have behind its own columns: keys of related objects.
  private(set) var keyColumns: [String] = []
  @exclusivity(unchecked) private var relationships: [Relationship] = []
  /// The number of values behind the row's own.
  private(set) var count = 0
  /// Those that were asked for since it was emptied.
  var used: Set<Int> = []

  /// - Parameter own: How many values of its own the row has.
  init(of source: EntityName?, behind own: Int, _ context: MappedContext) {
    connection = context.source
    let known = context.plan.mapped?.sourceEntities ?? []
    let owner = known.first { $0.entity == source }
    for access in owner?.relationships ?? [] where !access.isToMany {
      let entities = known.filter { access.destinationEntities.contains($0.entity) }
      guard let table = entities.first?.table,
        entities.allSatisfy({ $0.table.isSameName(as: table) })
      else { continue }
      let keyPlace = access.keyColumn == nil ? nil : own + keyColumns.count
      if let column = access.keyColumn { keyColumns.append(column) }
      relationships.append(
        Relationship(access: access, entities: entities, keyPlace: keyPlace))
    }
    first = own + keyColumns.count
  }

  /// - Returns: nil where only ``SourceObjects`` can tell the value.
  func column(_ relationship: String, _ attribute: String) -> CompiledExpression.Column? {
    guard
      let number = relationships.firstIndex(where: {
        $0.access.name.isSameName(as: relationship)
      })
    else { return nil }
    let entities = relationships[number].entities
    let found = entities.compactMap { entity in
      entity.attributes.first { $0.name.isSameName(as: attribute) }
    }
    guard let one = found.first, found.count == entities.count, !one.isExternal,
      found.allSatisfy({ $0 == one })
    else { return nil }
    used.insert(number)
    let columns = relationships[number].columns
    if let known = columns.first(where: { $0.name.isSameName(as: one.column) }) {
      return CompiledExpression.Column(place: known.place, type: one.type)
    }
    relationships[number].columns.append((one.column, first + count))
    (relationships[number].statement, relationships[number].reader) = (nil, nil)
    count += 1
    return CompiledExpression.Column(place: first + count - 1, type: one.type)
  }

  /// Puts the attributes of the objects behind some relationships into the row, where they stay valid
  /// until those of another source object come.
  ///
  /// - Returns: False where an object is none of the relationship's.
  func read(
    _ numbers: [Int], of key: Int64, into row: UnsafeMutablePointer<RawValue>
  ) throws -> Bool {
    for number in numbers {
      if relationships[number].owner != key {
        relationships[number].isUsual = try read(number, of: key, into: row)
        relationships[number].owner = key
      }
      guard relationships[number].isUsual else { return false }
    }
    return true
  }

  private func read(
    _ number: Int, of key: Int64, into row: UnsafeMutablePointer<RawValue>
  ) throws -> Bool {
    do {
      if let isUsual = try readPages(number, into: row) { return isUsual }
    } catch is TreeScan.NotUnderstood {}
    let statement =
      try relationships[number].statement
      ?? connection.prepare(
        relationships[number].access.sql(relationships[number].columns.map(\.name)))
    relationships[number].statement = statement
    statement.reset()
    try statement.bind(1, key)
    let isFound = try statement.step()
    for (index, column) in relationships[number].columns.enumerated() {
      row[column.place] = .null
      if isFound { statement.read(into: row + column.place, from: Int32(index + 2), count: 1) }
    }
    guard isFound else { return true }
    let entity = statement.int64(1)
    return relationships[number].entities.contains { $0.number == entity }
  }

  /// - Returns: nil where SQLite has to read the object.
  private func readPages(
    _ number: Int, into row: UnsafeMutablePointer<RawValue>
  ) throws -> Bool? {
    guard let place = relationships[number].keyPlace else { return nil }
    let key = row[place]
    if key.kind == .null {
      for column in relationships[number].columns { row[column.place] = .null }
      return true
    }
    if relationships[number].reader == nil {
      let columns = relationships[number].columns
      relationships[number].reader = .some(
        try RelatedRows(
          relationships[number].entities[0].table, columns.map(\.name), columns.map(\.place),
          connection))
    }
    guard key.kind == .integer, let reader = relationships[number].reader ?? nil else { return nil }
    return try reader.read(key.bits, into: row) { entity in
      relationships[number].entities.contains { $0.number == entity }
    }
  }
}

/// Rows of one table by their keys, with the columns that are wanted.
private final class RelatedRows {
  private let seek: TreeSeek
  private let table: RawTable
  private let places: [Int]
  private let values: UnsafeMutablePointer<RawValue>

  /// - Returns: nil where SQLite has to read the table.
  init?(_ name: String, _ columns: [String], _ places: [Int], _ file: Connection) throws {
    guard let descriptor = file.rawDescriptor,
      let table = try RawTable(name, columns: ["Z_ENT"] + columns, in: file),
      let seek = TreeSeek(descriptor: descriptor, root: table.root)
    else { return nil }
    (self.table, self.seek, self.places) = (table, seek, places)
    values = .allocate(capacity: 1 + places.count)
    values.initialize(repeating: .null, count: 1 + places.count)
  }

  deinit { values.deallocate() }

  /// Fills in the columns of a row; they are NULL where there is no row of the key.
  ///
  /// - Returns: nil where SQLite knows better: the row is of an entity that is not expected.
  func read(
    _ key: Int64, into row: UnsafeMutablePointer<RawValue>, expecting isExpected: (Int64) -> Bool
  ) throws -> Bool? {
    guard let cell = try seek.row(key) else {
      for place in places { row[place] = .null }
      return true
    }
    for number in 0...places.count { values[number] = .null }
    try table.read(cell, into: values)
    guard values[0].kind == .integer, isExpected(values[0].bits) else { return nil }
    for (number, place) in places.enumerated() { row[place] = values[number + 1] }
    return true
  }
}
