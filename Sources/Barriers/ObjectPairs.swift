import GodwitCheckpoints
import GodwitDigests
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite
import GodwitWorker
import SystemPackage

/// What became of the source's objects, entity mapping by entity mapping.
///
/// Everything comes from finished checkpoints, or, where the mapping was inferred and every object
/// keeps its key, from the destination itself. The order is the same in every run: with mapping
/// models that of the entity mappings, then ascending by the source's key; else by table and key.
/// Memory is flat.
struct ObjectPairs {
  /// The objects of a run of pairs. Their keys differ, everything else is the same.
  struct Kind: Equatable {
    var mapping: String
    var source: EntityName
    var destination: EntityName
  }

  /// A pair of keys, and what they are keys of.
  typealias Body = (_ kind: Kind, _ source: Int64, _ destination: Int64) throws -> Void

  let plan: MigrationPlan
  let run: RunDirectory
  /// The destination, assembled or in its place.
  let written: FilePath

  /// Gives every pair of the plan. All shards must have been copied.
  func forEach(_ body: Body) throws {
    guard let mapped = plan.mapped else {
      try forEachKept(body)
      return
    }
    guard let offsets = try MappedOffsets.read(in: run, of: plan) else {
      throw StageError.outOfOrder("pairs of objects before every shard was copied")
    }
    for (index, mapping) in mapped.mappings.enumerated() {
      if mapping.policy != nil {
        try forEachAssociated(by: index, mapping.name, mapped, body)
        continue
      }
      guard mapping.table != nil else { continue }
      guard let source = mapping.source, let destination = mapping.destination else { continue }
      let kind = Kind(mapping: mapping.name, source: source, destination: destination)
      try Self.forEach(of: index, mapping, offsets, plan, run) { try body(kind, $0, $1) }
    }
  }

  /// Gives what a policy associated, by source object.
  private func forEachAssociated(
    by index: Int, _ name: String, _ mapped: MappedPlan, _ body: Body
  ) throws {
    let sources = Dictionary(
      mapped.sourceEntities.map { ($0.number, $0.entity) }, uniquingKeysWith: { a, _ in a })
    let destinations = Dictionary(
      mapped.destinationEntities.map { ($0.number, $0.entity) }, uniquingKeysWith: { a, _ in a })
    try PolicyAssociation(index, run).forEach { entity, source, number, destination in
      guard let from = sources[entity], let to = destinations[number] else { return }
      try body(Kind(mapping: name, source: from, destination: to), source, destination)
    }
  }

  /// Gives the pairs of one entity mapping without a policy, ascending by both keys.
  static func forEach(
    of index: Int, _ mapping: EntityMappingPlan, _ offsets: MappedOffsets, _ plan: MigrationPlan,
    _ run: RunDirectory, _ body: (_ source: Int64, _ destination: Int64) throws -> Void
  ) throws {
    let fingerprint = Hexadecimal.bytes(of: plan.fingerprint) ?? []
    for unit in plan.units.indices where plan.units[unit].subject == .mapping(index) {
      let offset = offsets.offset(of: unit)
      let reader = try run.reader(.copy, unit, fingerprint: fingerprint)
      let keys = UnitKeys(reader, mapping)
      while let pair = try keys.next() { try body(pair.source, pair.destination + offset) }
    }
  }

  /// An inferred mapping keeps every key: whoever is there has come over.
  private func forEachKept(_ body: Body) throws {
    let store = try Connection(path: written.string, mode: .immutable)
    try store.execute("PRAGMA cache_size = -8192")
    for table in plan.tables where table.way == .carried || table.way == .computed {
      var kinds: [Kind] = []
      var numbers: [Int64] = []
      for program in table.entities {
        guard let destination = program.destination else { continue }
        kinds.append(
          Kind(mapping: program.mapping ?? "", source: program.source, destination: destination))
        numbers.append(program.destinationNumber)
      }
      let programs = ProgramTable(numbers: numbers, elsewhere: [])
      let statement = try store.prepare(
        "SELECT Z_PK, Z_ENT FROM \(quoted(table.name)) ORDER BY Z_PK")
      let row = RowValues(count: 2)
      while try statement.step() {
        statement.read(into: row.values, from: 0, count: 2)
        let program = Int(programs.program(for: row.values[1]))
        guard kinds.indices.contains(program) else { continue }
        try body(kinds[program], row.values[0].bits, row.values[0].bits)
      }
    }
  }
}
