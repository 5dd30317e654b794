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
  private struct Key: Hashable {
    var table: Int
    var ordinal: Int64
  }

  /// A to-many relationship of many members, or of members that come one by one.
  private struct Hub: Hashable {
    var key: Key
    var relationship: Int
  }

  /// As many objects as are kept at hand before they become bytes again.
  private static let mostWorking = 256
  /// Members from which on a relationship stays in memory: to write it again for each further
  /// member would cost the square of their number.
  private static let hubMembers = 64

  let kinds: DestinationKinds
  private let scratch: ScratchRows
  private final class Table {
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
  @exclusivity(unchecked) private var working: [WorkingObject] = []
  /// Objects that became bytes: their memory is used again.
  @exclusivity(unchecked) private var spare: [WorkingObject] = []
  @exclusivity(unchecked) private var recent: WorkingObject?
  @exclusivity(unchecked) private var hubs: [Hub: [LinkTargets.Target]] = [:]
  /// Whether it is remembered whose attributes change: in the link stage they have been written.
  @exclusivity(unchecked) var remembersChanges = false
  @exclusivity(unchecked) private(set) var changed: [Int: Set<Int64>] = [:]
  /// What a derived attribute of an object comes to.
  @exclusivity(unchecked) var derive:
    ((DestinationKind.Derivation, WorkingObject) throws -> ExpressionValue)?
  private let externalName: String
  private let newFiles: NewExternalFiles
  @exclusivity(unchecked) private var bytes = RawBuffer(capacity: 4 << 10)
  @exclusivity(unchecked) private var output = RawBuffer(capacity: 4 << 10)
  /// Values of the changes at hand in ``bytes``.
  @exclusivity(unchecked) private var extents:
    [(place: Int, offset: Int, count: Int, isText: Bool)] = []

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
  private func use(_ number: Int) -> Table {
    if let known = table(number) { return known }
    let table = Table(number)
    byNumber[number] = table
    tables.append(number)
    return table
  }

  private func table(_ number: Int) -> Table? {
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

  private func fresh(_ kind: DestinationKind, _ ordinal: Int64) -> WorkingObject {
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
    Hub(
      key: Key(table: object.kind.plan.table, ordinal: object.ordinal), relationship: relationship)
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

  private func change(_ object: WorkingObject, _ place: Int, _ value: ExpressionValue) {
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

// MARK: - Bytes

extension DestinationObjects {
  /// Turns all objects at work into bytes.
  func settle() throws {
    for (place, object) in working.enumerated() {
      let table = use(object.kind.plan.table)
      // An error of one that follows left it here when it was written.
      guard table.places[Int(object.ordinal) - 1] == -1 - place else { continue }
      table.places[Int(object.ordinal) - 1] = object.isDirty ? try write(object) : object.home
      spare.append(object)
    }
    working.removeAll(keepingCapacity: true)
    recent = nil
  }

  /// Bytes of the whole, of the record, of the transient values; then these, and the relationships.
  ///
  /// - Returns: Their place.
  private func write(_ object: WorkingObject) throws -> Int {
    if object.isUnderived, let derive {
      for derivation in object.kind.derivations {
        change(object, derivation.place, try derive(derivation, object))
      }
      object.isUnderived = false
    }
    output.removeAll()
    _ = output.appendUninitialized(Self.headBytes)
    if object.changes.isEmpty {
      output.append(object.record.bytes)
    } else {
      try encodeChanged(object)
      if remembersChanges {
        changed[object.kind.plan.table, default: []].insert(object.ordinal)
      }
    }
    return try append(TransientValues.bytes(object.transients), object.links)
  }

  /// Of how many bytes the whole, the record and the transient values have.
  private static let headBytes = 12

  /// Completes the record that the output ends with, and appends it to the scratch rows.
  private func append(_ transients: [UInt8], _ links: LinkBytes.Links) throws -> Int {
    let record = output.count - Self.headBytes
    output.append(transients)
    LinkBytes.append(links, to: &output)
    for (number, count) in [output.count, record, transients.count].enumerated() {
      output.base.storeBytes(
        of: UInt32(count).littleEndian, toByteOffset: number * 4, as: UInt32.self)
    }
    return try scratch.append(output.bytes)
  }

  /// Appends the record, with the changes, to the output.
  private func encodeChanged(_ object: WorkingObject) throws {
    let kind = object.kind
    let values = kind.row.values
    guard RecordFormat.decode(record: object.record.bytes, into: values, count: kind.row.count)
    else { throw StageError.outOfOrder("a change of an object without a record") }
    bytes.removeAll()
    // Pointers are made afterwards: the buffer may move while it grows.
    extents.removeAll(keepingCapacity: true)
    for change in object.changes {
      let place = change.place
      let number = kind.numbers[place]
      guard number >= 0 else { continue }
      let column = kind.columns[number]
      let start = bytes.count
      switch change.value.stored(as: column.type) {
      case .integer(let number): values[2 + place] = .integer(number)
      case .real(let number): values[2 + place] = .real(number)
      case .text(var text):
        text.withUTF8 { bytes.append(UnsafeRawBufferPointer($0)) }
        extents.append((place, start, bytes.count - start, true))
      case .blob(let data):
        try append(data, column, object, place)
        extents.append((place, start, bytes.count - start, false))
      case .null, nil: values[2 + place] = .null
      }
    }
    for extent in extents {
      let start = UnsafeRawPointer(bytes.base + extent.offset)
      values[2 + extent.place] =
        extent.isText ? .text(start, count: extent.count) : .blob(start, count: extent.count)
    }
    RecordFormat.encode(values, count: kind.row.count, into: &output)
  }

  private func append(
    _ data: [UInt8], _ column: DestinationKind.AttributeColumn, _ object: WorkingObject,
    _ place: Int
  ) throws {
    guard column.isExternal else {
      bytes.append(data)
      return
    }
    guard data.count > NewExternalFiles.mostInlineBytes else {
      bytes.append(1 as UInt8)
      bytes.append(data)
      return
    }
    let name = try data.withUnsafeBytes {
      try newFiles.write(
        $0, entity: "\(object.kind.plan.entity) \(externalName)", primaryKey: object.ordinal,
        place: place)
    }
    bytes.append([2] + Array(name.utf8) + [0])
  }

  private func read<Result>(
    _ place: Int,
    _ body: (
      _ record: UnsafeRawBufferPointer, _ transients: UnsafeRawBufferPointer,
      _ links: UnsafeRawBufferPointer
    ) throws -> Result
  ) throws -> Result {
    let head = Self.headBytes
    let (total, record, transients) = try scratch.read(place, count: head) { head in
      func number(_ place: Int) -> Int {
        Int(UInt32(littleEndian: head.loadUnaligned(fromByteOffset: place, as: UInt32.self)))
      }
      return (number(0), number(4), number(8))
    }
    return try scratch.read(place, count: total) { bytes in
      let (values, links) = (head + record, head + record + transients)
      return try body(
        UnsafeRawBufferPointer(rebasing: bytes[head..<values]),
        UnsafeRawBufferPointer(rebasing: bytes[values..<links]),
        UnsafeRawBufferPointer(rebasing: bytes[links...]))
    }
  }

  static func kind(of record: UnsafeRawBufferPointer, _ kinds: DestinationKinds)
    -> DestinationKind?
  {
    var entity = RawValue.null
    guard RecordFormat.decode(record: record, into: &entity, count: 1) else { return nil }
    return kinds[entity.bits]
  }
}

// MARK: - Whole shards

extension DestinationObjects {
  /// Calls the body with every object of a table, by ordinal: its record, its transient values as
  /// ``TransientValues``, and its relationships.
  func forEach(
    in table: Int,
    _ body: (
      _ ordinal: Int64, _ record: UnsafeRawBufferPointer, _ transients: UnsafeRawBufferPointer,
      _ links: [(relationship: Int, targets: [LinkTargets.Target])]
    ) throws -> Void
  ) throws {
    try settle()
    for (index, place) in (self.table(table)?.places ?? []).enumerated() {
      let ordinal = Int64(index) + 1
      try read(place) { record, transients, bytes in
        var links = bytes.isEmpty ? [] : LinkBytes.links(bytes)
        if !hubs.isEmpty {
          for number in links.indices {
            let hub = Hub(
              key: Key(table: table, ordinal: ordinal), relationship: links[number].relationship)
            if let members = hubs[hub] { links[number].targets = members }
          }
        }
        try body(ordinal, record, transients, links)
      }
    }
  }

  /// Takes an object over from a checkpoint. Objects come by ascending ordinal.
  func load(
    table: Int, record: UnsafeRawBufferPointer, transients: [UInt8],
    links: [(relationship: Int, targets: [LinkTargets.Target])]
  ) throws {
    let rows = use(table)
    guard Self.kind(of: record, kinds)?.plan.table == table else {
      throw StageError.outOfOrder("an object of an entity that its table does not have")
    }
    let ordinal = Int64(rows.places.count) + 1
    let links = links.map { link in
      guard link.targets.count >= Self.hubMembers else { return link }
      hubs[Hub(key: Key(table: table, ordinal: ordinal), relationship: link.relationship)] =
        link.targets
      return (link.relationship, [])
    }
    output.removeAll()
    _ = output.appendUninitialized(Self.headBytes)
    output.append(record)
    rows.places.append(try append(transients, links))
  }
}
