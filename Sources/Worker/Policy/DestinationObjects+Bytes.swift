import GodwitCheckpoints
import GodwitExpressions
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite

// Objects as bytes in the scratch rows, and whole shards of them.
extension DestinationObjects {
  /// Turns all objects at work into bytes.
  func settle() throws {
    for place in working.indices {
      let object = working[place]
      let table = use(object.kind.plan.table)
      let index = Int(object.ordinal) - 1
      // An error of one that follows left it here when it was written.
      guard table.places[index] == -1 - place else { continue }
      table.places[index] = object.isDirty ? try write(object) : object.home
      spare.append(object)
    }
    working.removeAll(keepingCapacity: true)
    recent = nil
  }

  /// Bytes of the whole, of the record, of the transient values; then these, and the relationships.
  ///
  /// - Returns: Their place.
  private func write(_ object: WorkingObject) throws -> Int {
    if object.isUnderived, !object.kind.derivations.isEmpty, let derive {
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
    // By number: a change that is copied is retained.
    for index in object.changes.indices {
      let place = object.changes[index].place
      let number = kind.numbers[place]
      guard number >= 0 else { continue }
      let column = kind.columns[number]
      let start = bytes.count
      switch object.changes[index].value.stored() {
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

  func read<Result>(
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
            let hub = Hub(table: table, ordinal: ordinal, relationship: links[number].relationship)
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
      hubs[Hub(table: table, ordinal: ordinal, relationship: link.relationship)] =
        link.targets
      return (link.relationship, [])
    }
    output.removeAll()
    _ = output.appendUninitialized(Self.headBytes)
    output.append(record)
    rows.places.append(try append(transients, links))
  }
}
