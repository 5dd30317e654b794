import GodwitMapping
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite

/// Attributes of the objects that to-one relationships of the source object lead to, for compiled
/// expressions: `$source.customer.name`. One look-up a relationship and row gives all of them.
///
/// They stand behind the columns of the row at hand.
final class RelatedAttributes {
  /// One relationship, with the attributes that expressions have asked for.
  private struct Relationship {
    let access: SourceRelationship
    /// The entities of its objects: they share a table.
    let entities: [SourceEntityAccess]
    var columns: [(name: String, place: Int)] = []
    var statement: Statement?
    /// The source object whose values are in the row.
    var owner: Int64?
    var isUsual = false
  }

  private let connection: Connection
  private let first: Int
  @exclusivity(unchecked) private var relationships: [Relationship] = []
  /// The number of values behind the row's own.
  private(set) var count = 0
  /// Those that were asked for since it was emptied.
  var used: Set<Int> = []

  /// - Parameter first: Where the row's own values end.
  init(of source: EntityName?, behind first: Int, _ context: MappedContext) {
    connection = context.source
    self.first = first
    let known = context.plan.mapped?.sourceEntities ?? []
    let own = known.first { $0.entity == source }
    for access in own?.relationships ?? [] where !access.isToMany {
      let entities = known.filter { access.destinationEntities.contains($0.entity) }
      guard let table = entities.first?.table,
        entities.allSatisfy({ $0.table.isSameName(as: table) })
      else { continue }
      relationships.append(Relationship(access: access, entities: entities))
    }
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
    relationships[number].statement = nil
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
}
