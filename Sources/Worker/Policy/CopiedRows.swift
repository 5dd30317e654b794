import GodwitCheckpoints
import GodwitExpressions
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite

/// Attributes of destination objects that other shards made, by key.
///
/// Checkpoints are read in one go only; those that are asked for are laid out once, some of them
/// at a time.
final class CopiedRows {
  private final class Unit {
    let rows: ScratchRows
    var keys: [Int64] = []
    var places: [(start: Int, count: Int)] = []

    init(_ rows: ScratchRows) { self.rows = rows }
  }
  private struct Name: Hashable {
    var unit: Int
    var table: Int
    /// Of ``PolicyChannel``; nil for the rows.
    var channel: UInt8?
  }

  /// Shards at hand at a time.
  private static let mostUnits = 8

  private let context: ShardContext
  private var units: [Name: Unit] = [:]
  private let copyUnits: [Int]

  init(_ context: ShardContext) {
    self.context = context
    copyUnits = context.plan.units(in: .copy)
  }

  func value(
    of object: ObjectReference, _ kind: DestinationKind, _ attribute: DestinationAttribute,
    _ stored: SourceObjects
  ) throws -> ExpressionValue {
    guard let place = attribute.place else { return try transient(attribute.name, object, kind) }
    return try find(object, kind, nil) { record in
      let row = RowValues(count: 3 + place)
      guard RecordFormat.decode(record: record, into: row.values, count: row.count),
        row.values[0].bits == kind.plan.number
      else { return .null }
      return try stored.value(
        row.values[2 + place], type: attribute.type, isExternal: attribute.isExternal, object)
    }
  }

  private func transient(_ key: String, _ object: ObjectReference, _ kind: DestinationKind) throws
    -> ExpressionValue
  {
    try find(object, kind, PolicyChannel.transients) { bytes in
      try kind.attributes[key].flatMap { try TransientValues.values(bytes)[$0] } ?? .null
    }
  }

  /// Calls the body with what a copy stage has of an object.
  private func find(
    _ object: ObjectReference, _ kind: DestinationKind, _ channel: UInt8?,
    _ body: (UnsafeRawBufferPointer) throws -> ExpressionValue
  ) throws -> ExpressionValue {
    let offsets = try context.mapped.offsets()
    for number in copyUnits {
      guard let offset = offset(of: number, object, kind, offsets) else { continue }
      let unit = try unit(Name(unit: number, table: kind.plan.table, channel: channel))
      guard let found = Self.search(unit.keys, object.primaryKey - offset) else { continue }
      let extent = unit.places[found]
      return try unit.rows.read(extent.start, count: extent.count, body)
    }
    return .null
  }

  /// What was added to the ordinals of a unit that may have made the object; nil for one that
  /// cannot.
  private func offset(
    of number: Int, _ object: ObjectReference, _ kind: DestinationKind, _ offsets: MappedOffsets
  ) -> Int64? {
    guard case .mapping(let index) = context.plan.units[number].subject,
      context.mapped.mappings.indices.contains(index)
    else { return nil }
    let mapping = context.mapped.mappings[index]
    if mapping.policy != nil {
      let offset = offsets.policyOffsets[number]?[kind.plan.table]
      return offset.flatMap { object.primaryKey > $0 ? $0 : nil }
    }
    guard mapping.destination == object.entity else { return nil }
    if mapping.assignsKeys {
      let offset = offsets.offset(of: number)
      return object.primaryKey > offset ? offset : nil
    }
    return context.plan.units[number].keys.contains(object.primaryKey) ? 0 : nil
  }

  private func unit(_ name: Name) throws -> Unit {
    if let known = units[name] { return known }
    if units.count >= Self.mostUnits { units.removeAll() }
    let unit = Unit(ScratchRows(in: context.run.path))
    guard case .mapping(let index) = context.plan.units[name.unit].subject else { return unit }
    let cursor = PolicyRowCursor(
      try context.reader(.copy, name.unit), table: name.table,
      ownTable: try context.mapped.mapping(index).table, channel: name.channel)
    while try cursor.next() {
      unit.keys.append(cursor.key)
      unit.places.append((try unit.rows.append(cursor.record), cursor.record.count))
    }
    units[name] = unit
    return unit
  }

  private static func search(_ keys: [Int64], _ key: Int64) -> Int? {
    var (low, high) = (0, keys.count)
    while low < high {
      let middle = (low + high) / 2
      if keys[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low < keys.count && keys[low] == key ? low : nil
  }
}
