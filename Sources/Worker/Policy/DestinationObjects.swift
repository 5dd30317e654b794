import GodwitCheckpoints
import GodwitExpressions
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite

/// The destination objects of one shard of a policy's mapping: made in its copy stage, at hand
/// again in its link stage.
///
/// Those at work are in memory, a few hundred; the others are bytes. An object is told by its
/// table and its place among the shard's objects there, so that it can be found again without
/// a search.
final class DestinationObjects {
  /// A to-many relationship of many members, or of members that come one by one.
  struct Hub: Hashable {
    var table: Int
    var ordinal: Int64
    var relationship: Int
  }

  /// As many objects as are kept at hand before they become bytes again.
  private static let mostWorking = 256
  /// Members from which on a relationship stays in memory: to write it again for each further
  /// member would cost the square of their number.
  static let hubMembers = 64

  let kinds: DestinationKinds
  let scratch: ScratchRows
  final class Table {
    let number: Int
    /// By ordinal: where an object's bytes are in the scratch rows; of one at work −1 less its place there.
    @exclusivity(unchecked) var places: [Int] = []

    init(_ number: Int) { self.number = number }
  }

  @exclusivity(unchecked) private var byNumber: [Int: Table] = [:]
  /// Most questions are about the same table as the one before.
  @exclusivity(unchecked) private var recentTable: Table?
  /// Tables in the order in which they came up; the mapping's own is first.
  @exclusivity(unchecked) private(set) var tables: [Int] = []
  @exclusivity(unchecked) var working: [WorkingObject] = []
  /// Objects that became bytes: their memory is used again.
  @exclusivity(unchecked) var spare: [WorkingObject] = []
  @exclusivity(unchecked) var recent: WorkingObject?
  @exclusivity(unchecked) var hubs: [Hub: [LinkTargets.Target]] = [:]
  /// Whether it is remembered whose attributes change: in the link stage they have been written.
  @exclusivity(unchecked) var remembersChanges = false
  @exclusivity(unchecked) var changed: [Int: Set<Int64>] = [:]
  /// What a derived attribute of an object comes to.
  @exclusivity(unchecked) var derive:
    ((DestinationKind.Derivation, WorkingObject) throws -> ExpressionValue)?
  let externalName: String
  let newFiles: NewExternalFiles
  @exclusivity(unchecked) var bytes = RawBuffer(capacity: 4 << 10)
  @exclusivity(unchecked) var output = RawBuffer(capacity: 4 << 10)
  /// Values of the changes at hand in ``bytes``.
  @exclusivity(unchecked) var extents: [(place: Int, offset: Int, count: Int, isText: Bool)] = []

  /// - Parameter unit: The shard's number: part of the names of new external files, as is the stage. What
  ///   the copy stage has written is there to read when the link stage of a shard is done again.
  init(
    _ context: ShardContext, _ kinds: DestinationKinds, ownTable: Int?, unit: Int, _ stage: Stage
  ) {
    self.kinds = kinds
    scratch = ScratchRows(in: context.run.path)
    externalName = "unit \(unit)" + (stage == .copy ? "" : " \(stage.rawValue)")
    newFiles = NewExternalFiles(folder: context.run.external, fingerprint: context.fingerprint)
    if let ownTable { use(ownTable) }
  }

  @discardableResult
  func use(_ number: Int) -> Table {
    if let known = table(number) { return known }
    let table = Table(number)
    byNumber[number] = table
    tables.append(number)
    return table
  }

  func table(_ number: Int) -> Table? {
    if let recentTable, recentTable.number == number { return recentTable }
    guard let found = byNumber[number] else { return nil }
    recentTable = found
    return found
  }

  func count(of number: Int) -> Int64 { Int64(table(number)?.places.count ?? 0) }

  // MARK: Objects

  /// A new object with the defaults, or the given record.
  func insert(_ kind: DestinationKind, _ record: UnsafeRawBufferPointer? = nil) throws
    -> WorkingObject
  {
    if working.count >= Self.mostWorking { try settle() }
    let table = use(kind.plan.table)
    table.places.append(0)
    let object = fresh(kind, Int64(table.places.count))
    if let record { object.record.append(record) } else { object.record.append(kind.template) }
    object.isUnderived = record == nil
    return keep(object, in: table)
  }

  func fresh(_ kind: DestinationKind, _ ordinal: Int64) -> WorkingObject {
    guard let object = spare.popLast() else { return WorkingObject(kind, ordinal) }
    object.renew(kind, ordinal)
    return object
  }

  private func keep(_ object: WorkingObject, in table: Table) -> WorkingObject {
    table.places[Int(object.ordinal) - 1] = -1 - working.count
    working.append(object)
    recent = object
    return object
  }

  /// The object that was asked for last, if it is the one: most questions are about it.
  func recent(_ object: ObjectReference) -> WorkingObject? {
    guard let recent, recent.ordinal == object.primaryKey, recent.kind.plan.entity == object.entity
    else { return nil }
    return recent
  }

  /// An object of this shard; nil when it has none of that entity and ordinal.
  func object(_ kind: DestinationKind, _ ordinal: Int64) throws -> WorkingObject? {
    let number = kind.plan.table
    if let recent, recent.ordinal == ordinal, recent.kind.plan.table == number { return recent }
    guard let table = table(number), ordinal >= 1, ordinal <= table.places.count else { return nil }
    let place = table.places[Int(ordinal) - 1]
    if place < 0 {
      recent = working[-1 - place]
      return recent
    }
    if working.count >= Self.mostWorking { try settle() }
    let object = try read(place) { record, transients, links -> WorkingObject? in
      guard let found = Self.kind(of: record, kinds) else { return nil }
      let object = fresh(found, ordinal)
      object.record.append(record)
      object.links = LinkBytes.links(links)
      object.transients = try TransientValues.values(transients)
      object.isDirty = false
      object.home = place
      return object
    }
    return object.map { keep($0, in: table) }
  }

  // MARK: Relationships

  /// The members that were set; nil for none so far.
  func targets(_ object: WorkingObject, _ relationship: Int) -> [LinkTargets.Target]? {
    if let place = object.links.firstIndex(where: { $0.relationship == relationship }) {
      return hubs[hub(object, relationship)] ?? object.links[place].targets
    }
    return nil
  }

  func set(_ targets: [LinkTargets.Target], _ object: WorkingObject, _ relationship: Int) {
    object.isDirty = true
    object.links.removeAll { $0.relationship == relationship }
    hubs[hub(object, relationship)] = nil
    if targets.count >= Self.hubMembers {
      hubs[hub(object, relationship)] = targets
      object.links.append((relationship, []))
    } else {
      object.links.append((relationship, targets))
    }
  }

  func add(_ target: LinkTargets.Target, _ object: WorkingObject, _ relationship: Int) {
    let key = hub(object, relationship)
    if hubs[key] != nil {
      hubs[key]?.append(target)
      return
    }
    set((targets(object, relationship) ?? []) + [target], object, relationship)
  }

  private func hub(_ object: WorkingObject, _ relationship: Int) -> Hub {
    Hub(table: object.kind.plan.table, ordinal: object.ordinal, relationship: relationship)
  }

  // MARK: Attributes

  /// The value of a stored attribute.
  func value(_ object: WorkingObject, _ number: Int) -> RawOrValue {
    guard let place = object.kind.columns[number].place else {
      return .value(object.transients[number] ?? .null)
    }
    if let change = object.changes.last(where: { $0.place == place }) {
      return .value(change.value)
    }
    let row = RowValues(count: 3 + place)
    guard RecordFormat.decode(record: object.record.bytes, into: row.values, count: row.count)
    else { return .value(.null) }
    return .raw(row.values[2 + place])
  }

  /// - Parameter value: As the attribute's type takes it.
  func set(_ value: ExpressionValue, _ object: WorkingObject, attribute number: Int) {
    object.isDirty = true
    guard let place = object.kind.columns[number].place else {
      object.transients[number] = value
      return
    }
    object.isUnderived = true
    change(object, place, value)
  }

  func change(_ object: WorkingObject, _ place: Int, _ value: ExpressionValue) {
    if let known = object.changes.firstIndex(where: { $0.place == place }) {
      object.changes[known].value = value
    } else {
      object.changes.append(WorkingObject.Change(place: place, value: value))
    }
  }

  /// A value of a record, valid until its object changes, or one that was set.
  enum RawOrValue {
    case raw(RawValue)
    case value(ExpressionValue)
  }
}
