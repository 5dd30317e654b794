import GodwitCheckpoints
import GodwitDigests
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import GodwitWorker

/// Objects of the source that no entity mapping has taken, although there are some for their entity: each
/// of these takes a part.
///
/// What a policy does with an object nobody sees: an entity that a policy takes is not looked at, nor one
/// that a mapping takes whole. Everything ascends by key, so memory is flat.
struct LeftOutObjects {
  let plan: MigrationPlan
  let run: RunDirectory

  private var mappings: [EntityMappingPlan] { plan.mapped?.mappings ?? [] }

  func losses() throws -> [Loss] {
    let takers = mappings.indices.filter {
      mappings[$0].source != nil && (mappings[$0].policy != nil || mappings[$0].table != nil)
    }
    let entities = Set(takers.compactMap { mappings[$0].source }).sorted().filter { entity in
      takers.allSatisfy {
        mappings[$0].source != entity || (mappings[$0].policy == nil && !mappings[$0].takesAll)
      }
    }
    guard !entities.isEmpty else { return [] }
    let source = try Connection(path: plan.readPath, mode: .immutable)
    return try entities.compactMap { entity in
      guard let own = takers.first(where: { mappings[$0].source == entity }),
        let table = mappings[own].sourceTable
      else { return nil }
      // A source expression may give objects of other entities of the table.
      return try loss(
        of: entity, mappings[own].sourceNumber, table,
        takers.filter { mappings[$0].sourceTable == table && mappings[$0].policy == nil }, source)
    }
  }

  private func loss(
    of entity: EntityName, _ number: Int64, _ table: String, _ takers: [Int], _ source: Connection
  ) throws -> Loss? {
    let taken = try takers.map { try TakenKeys(of: $0, mappings[$0], plan, run) }
    let rows = try source.prepare(
      "SELECT Z_PK FROM \(quoted(table)) WHERE Z_ENT = ?1 ORDER BY Z_PK")
    try rows.bind(1, number)
    var left = RowTally()
    while try rows.step() {
      let key = rows.int64(0)
      if try !taken.contains(where: { try $0.contains(key) }) { left.add(key) }
    }
    guard left.count > 0 else { return nil }
    let (be, them) = left.count == 1 ? ("object is", "it") : ("objects are", "them")
    return Loss(
      .leftOut, entity: entity.rawValue, count: left.count, primaryKeys: left.primaryKeys,
      message: "\(entity): \(left.count) \(be) selected by no entity mapping, and dropped with the "
        + "references to \(them).")
  }
}

/// The source keys that one entity mapping has copied, asked for in ascending order.
private final class TakenKeys {
  private let mapping: EntityMappingPlan
  private let fingerprint: [UInt8]
  private let run: RunDirectory
  /// Opened one after the other: there may be more than files that may be open.
  private var units: ArraySlice<Int>
  private var keys: UnitKeys?
  private var next: Int64?

  init(
    of index: Int, _ mapping: EntityMappingPlan, _ plan: MigrationPlan, _ run: RunDirectory
  ) throws {
    self.mapping = mapping
    self.run = run
    fingerprint = Hexadecimal.bytes(of: plan.fingerprint) ?? []
    units = plan.units.indices.filter { plan.units[$0].subject == .mapping(index) }[...]
    try advance()
  }

  /// - Parameter key: Never lower than the one before.
  func contains(_ key: Int64) throws -> Bool {
    while let known = next, known < key { try advance() }
    return next == key
  }

  private func advance() throws {
    while true {
      if let found = try keys?.next() {
        next = found.source
        return
      }
      guard let unit = units.popFirst() else {
        next = nil
        return
      }
      keys = UnitKeys(try run.reader(.copy, unit, fingerprint: fingerprint), mapping)
    }
  }
}
