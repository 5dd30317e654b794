import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitPlanning
import GodwitSQLite
import SystemPackage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#endif

/// Puts the rows of entity mappings into one destination table, in the order of their keys.
///
/// Where keys are given out again, shards follow each other: a plain concatenation. Where they are
/// kept, rows of several mappings lie between one another and are merged. What policies made beside
/// their mapping's table has the last keys.
struct MappedRows {
  /// Mappings that are merged at most: each costs two open checkpoints. Beyond it rows go in
  /// mapping by mapping, and SQLite finds their places.
  static let mostStreams = 12

  private let plan: MigrationPlan
  private let run: RunDirectory
  private let fingerprint: [UInt8]
  let offsets: MappedOffsets

  init(plan: MigrationPlan, run: RunDirectory) throws {
    self.plan = plan
    self.run = run
    fingerprint = Hexadecimal.bytes(of: plan.fingerprint) ?? []
    guard let offsets = try MappedOffsets.read(in: run, of: plan) else {
      throw CommitError.missingCheckpoint(stage: "offsets", unit: 0)
    }
    self.offsets = offsets
  }

  /// `Z_PRIMARYKEY` with the highest key that each root entity's table was given.
  func primaryKeys() -> [Int64: Int64] {
    var highest: [Int64: Int64] = [:]
    for (index, table) in plan.tables.enumerated() {
      guard let key = offsets.highest[index] else { continue }
      for row in plan.control.primaryKeys where row.name == table.root.rawValue {
        highest[row.number] = key
      }
    }
    return highest
  }

  /// The entity mappings whose rows a table holds, by number.
  private func makers(of index: Int) -> [(number: Int, mapping: EntityMappingPlan)] {
    (plan.mapped?.mappings ?? []).enumerated().filter { $0.element.table == index }
      .map { ($0.offset, $0.element) }
  }

  private func isMerged(_ index: Int) -> Bool {
    let makers = makers(of: index)
    return makers.count > 1 && makers.count <= Self.mostStreams
      && !makers.contains { $0.mapping.assignsKeys }
  }

  /// True when ``forEach(table:_:)`` gives the rows by ascending key.
  func ascends(table index: Int) -> Bool {
    let makers = makers(of: index)
    return makers.count <= 1 || isMerged(index) || makers.allSatisfy { $0.mapping.assignsKeys }
  }

  /// Inserts all rows of a table.
  ///
  /// - Parameter statement: Takes `Z_PK`, `Z_ENT`, `Z_OPT` and then the table's columns.
  func insert(table index: Int, by statement: Statement, _ rows: inout RowCounter) throws {
    let count = plan.tables[index].columns.count + 3
    try forEach(table: index) { row in
      for place in 0..<count { try statement.bind(Int32(place + 1), row[place]) }
      try statement.run()
      try rows.add()
    }
  }

  /// Gives all rows of a table: `Z_PK`, `Z_ENT`, `Z_OPT` and then the table's columns. Values are
  /// valid until the body returns, which may change them.
  func forEach(
    table index: Int, _ body: (UnsafeMutablePointer<RawValue>) throws -> Void
  ) throws {
    let table = plan.tables[index]
    let row = UnsafeMutablePointer<RawValue>.allocate(capacity: table.columns.count + 3)
    row.initialize(repeating: .null, count: table.columns.count + 3)
    defer { row.deallocate() }
    func stream(_ subject: Shard.Subject, _ content: Stream.Content) -> Stream {
      let units = plan.units.indices.filter { plan.units[$0].subject == subject }
      return Stream(
        table: table, content, units: units, offsets: offsets, run: run, fingerprint: fingerprint)
    }
    func take(_ stream: Stream) throws {
      while try stream.advance() {
        stream.fill(row)
        try body(row)
      }
    }
    let streams = makers(of: index).map { number, mapping in
      stream(.mapping(number), Stream.Content(mapping))
    }
    let inserted = stream(.inserted(index), .whole)
    guard isMerged(index) else {
      for stream in streams { try take(stream) }
      try take(inserted)
      return
    }
    var waiting = try streams.filter { try $0.advance() }
    while !waiting.isEmpty {
      var least = 0
      for place in 1..<waiting.count where waiting[place].key < waiting[least].key { least = place }
      waiting[least].fill(row)
      try body(row)
      if try !waiting[least].advance() { waiting.remove(at: least) }
    }
    try take(inserted)
  }

  /// The rows of one mapping, shard after shard.
  private final class Stream {
    /// Which checkpoints hold the rows.
    enum Content {
      /// Attributes in that of the copy stage, relationship columns in another one's; nil where
      /// all are NULL.
      case split(links: Stage?)
      /// Whole rows with their final keys in that of the validate stage: a policy's.
      case whole

      init(_ mapping: EntityMappingPlan) {
        self =
          mapping.policy != nil
          ? .whole
          : .split(
            links: !mapping.fills.isEmpty ? .validate : !mapping.links.isEmpty ? .link : nil)
      }
    }

    private let table: TablePlan
    private let units: [Int]
    private let offsets: MappedOffsets
    private let run: RunDirectory
    private let fingerprint: [UInt8]
    private let firstStage: Stage
    /// Where the finished relationship columns are; nil where they are no others.
    private let linkStage: Stage?
    private let hasFinalKeys: Bool
    /// Places in a row that begins with `Z_PK`, `Z_ENT` and `Z_OPT`.
    private let copyPlaces: [Int]
    private let linkPlaces: [Int]
    private let copied: UnsafeMutableBufferPointer<RawValue>
    private let linked: UnsafeMutableBufferPointer<RawValue>
    private var next = 0
    private var unit = 0
    private var copies: CheckpointReader?
    private var links: CheckpointReader?
    private(set) var key = Int64.min

    init(
      table: TablePlan, _ content: Content, units: [Int], offsets: MappedOffsets,
      run: RunDirectory, fingerprint: [UInt8]
    ) {
      self.table = table
      self.units = units
      self.offsets = offsets
      self.run = run
      self.fingerprint = fingerprint
      let attributes = [1, 2] + table.attributePlaces.map { $0 + 3 }
      let relationships = table.relationshipPlaces.map { $0 + 3 }
      switch content {
      case .split(let links):
        (firstStage, linkStage, hasFinalKeys) = (.copy, links, false)
        (copyPlaces, linkPlaces) = (attributes, relationships)
      case .whole:
        (firstStage, linkStage, hasFinalKeys) = (.validate, nil, true)
        (copyPlaces, linkPlaces) = (attributes + relationships, [])
      }
      copied = .allocate(capacity: copyPlaces.count)
      copied.initialize(repeating: .null)
      linked = .allocate(capacity: max(1, linkPlaces.count))
      linked.initialize(repeating: .null)
    }

    deinit {
      copied.deallocate()
      linked.deallocate()
    }

    /// Goes on to the next row. Its values are valid until the next call.
    func advance() throws -> Bool {
      while true {
        if let copies, let copy = try row(copies) {
          let before = key
          key = copy.key + (hasFinalKeys ? 0 : offsets.offset(of: unit))
          try decode(copy.payload, into: copied, copyPlaces.count)
          if let links {
            guard let link = try row(links), link.key == copy.key else {
              throw CommitError.unequalStages(table: table.name, unit: unit, row: key)
            }
            try decode(link.payload, into: linked, linkPlaces.count)
          }
          guard key > before else {
            throw CommitError.damagedRow(table: table.name, unit: unit, row: key)
          }
          return true
        }
        if let links, let extra = try row(links) {
          throw CommitError.unequalStages(table: table.name, unit: unit, row: extra.key)
        }
        guard next < units.count else {
          (copies, links) = (nil, nil)
          return false
        }
        unit = units[next]
        next += 1
        copies = try reader(firstStage)
        links = try linkStage.map(reader)
      }
    }

    /// Writes the row at hand; see ``MappedRows/forEach(table:_:)``.
    func fill(_ row: UnsafeMutablePointer<RawValue>) {
      row[0] = .integer(key)
      for index in 0..<copyPlaces.count { row[copyPlaces[index]] = copied[index] }
      for index in 0..<linkPlaces.count { row[linkPlaces[index]] = linked[index] }
    }

    private func decode(
      _ record: UnsafeRawBufferPointer, into values: UnsafeMutableBufferPointer<RawValue>,
      _ count: Int
    ) throws {
      guard let first = values.baseAddress,
        RecordFormat.decode(record: record, into: first, count: count)
      else { throw CommitError.damagedRow(table: table.name, unit: unit, row: key) }
    }

    private func row(_ reader: CheckpointReader) throws -> CheckpointReader.Entry? {
      while let entry = try reader.next() {
        if entry.channel == 0 { return entry }
      }
      return nil
    }

    private func reader(_ stage: Stage) throws -> CheckpointReader {
      do {
        return try run.reader(stage, unit, fingerprint: fingerprint)
      } catch CheckpointError.unreadable(_, .noSuchFileOrDirectory) {
        throw CommitError.missingCheckpoint(stage: stage.rawValue, unit: unit)
      }
    }
  }
}
