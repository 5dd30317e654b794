import GodwitCheckpoints
import GodwitExpressions
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite

/// Attributes of destination objects that other shards made, by key.
///
/// Checkpoints are read in one go only; those that are asked for are laid out, some of them at a time.
final class CopiedRows {
  private final class Unit {
    let rows: ScratchRows
    /// The number of the question that it answered last.
    var lastUse = 0
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

  /// The shards that made objects of a table.
  private struct Makers {
    /// Those that gave keys out, in the order of these: what was added to their ordinals.
    var given: [(offset: Int64, unit: Int)] = []
    /// Those whose objects have the source's keys.
    var kept: [(entity: EntityName, unit: Int)] = []
  }

  /// Shards at hand at a time.
  private static let mostUnits = 8

  private let context: ShardContext
  private var units: [Name: Unit] = [:]
  /// By table.
  private var makers: [Int: Makers] = [:]
  private var questions = 0

  init(_ context: ShardContext) { self.context = context }

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
    let (table, key) = (kind.plan.table, object.primaryKey)
    func look(_ number: Int, _ offset: Int64) throws -> ExpressionValue? {
      let unit = try unit(Name(unit: number, table: table, channel: channel))
      guard let found = Self.search(unit.keys, key - offset) else { return nil }
      let extent = unit.places[found]
      return try unit.rows.read(extent.start, count: extent.count, body)
    }
    let makers = try makers(of: table)
    // Keys that are given out go on from shard to shard: the last that begins before the key has it.
    // One that made nothing begins where the next does.
    let given = makers.given
    var (low, high) = (0, given.count)
    while low < high {
      let middle = (low + high) / 2
      if given[middle].offset < key { low = middle + 1 } else { high = middle }
    }
    while low > 0 {
      low -= 1
      if let found = try look(given[low].unit, given[low].offset) { return found }
      guard low > 0, given[low - 1].offset == given[low].offset else { break }
    }
    for (entity, unit) in makers.kept
    where entity == object.entity && context.plan.units[unit].keys.contains(key) {
      if let found = try look(unit, 0) { return found }
    }
    return .null
  }

  private func makers(of table: Int) throws -> Makers {
    if let known = makers[table] { return known }
    let offsets = try context.mapped.offsets()
    var found = Makers()
    for number in context.plan.units(in: .copy) {
      guard case .mapping(let index) = context.plan.units[number].subject,
        context.mapped.mappings.indices.contains(index)
      else { continue }
      let mapping = context.mapped.mappings[index]
      if mapping.policy != nil {
        if let offset = offsets.policyOffsets[number]?[table] {
          found.given.append((offset, number))
        }
      } else if mapping.table == table, let entity = mapping.destination {
        if mapping.assignsKeys {
          found.given.append((offsets.offset(of: number), number))
        } else {
          found.kept.append((entity, number))
        }
      }
    }
    found.given.sort { ($0.offset, $0.unit) < ($1.offset, $1.unit) }
    makers[table] = found
    return found
  }

  private func unit(_ name: Name) throws -> Unit {
    questions += 1
    if let known = units[name] {
      known.lastUse = questions
      return known
    }
    if units.count >= Self.mostUnits,
      let oldest = units.min(by: { $0.value.lastUse < $1.value.lastUse })
    {
      units[oldest.key] = nil
    }
    let unit = Unit(ScratchRows(in: context.run.path))
    unit.lastUse = questions
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
