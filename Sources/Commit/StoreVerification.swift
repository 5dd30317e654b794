import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// Shows that the assembled file holds what was validated, before it takes anybody's place.
///
/// Three looks that fail in different ways: a check of every page; the number of rows
/// of each table and entity, which also finds rows outside every shard; and the digests of all
/// values, computed once from the checkpoints and once from the file.
package struct StoreVerification: Sendable {
  let plan: MigrationPlan
  let run: RunDirectory

  package init(plan: MigrationPlan, run: RunDirectory) {
    self.plan = plan
    self.run = run
  }

  /// What the destination holds, as three looks agree.
  package struct RowCounts: Sendable, Equatable {
    /// Rows of each table that has any, control tables apart.
    package var tables: [String: Int64] = [:]
    /// Rows of each entity that has any.
    package var entities: [EntityName: Int64] = [:]
    /// Bytes of row data.
    package var bytes: Int64 = 0
    /// All rows.
    package var rows: Int64 { tables.values.reduce(0, +) }
  }
}

extension StoreVerification {
  /// All three looks. The verify stage must be done.
  package func check(_ path: FilePath) throws -> RowCounts {
    try check(Connection(path: path.string, mode: .immutable))
  }

  /// The same of an open file, which nobody may write to.
  package func check(_ file: Connection) throws -> RowCounts {
    let evidence = try evidence()
    try checkPages(of: file, evidence)
    let counts = try compare()
    try countRows(in: file, evidence)
    return counts
  }

  /// A check of every page and record, out of what the verify stage saw of most b-trees. Where that
  /// does not prove the file sound, SQLite says what is wrong.
  ///
  /// Source: https://sqlite.org/pragma.html#pragma_quick_check.
  private func checkPages(of file: Connection, _ known: [String: SoundnessEvidence]) throws {
    let path = FilePath(file.path)
    do {
      var (names, pages) = (Set<String>(), RowSetDigest())
      for evidence in known.values {
        names.formUnion(evidence.trees)
        pages += evidence.pages
      }
      if try RawTrees(file)?.isStructureWhole(pages, of: names) == true { return }
      if let finding = try file.quickFinding() {
        throw CommitError.damagedDestination(path: path, finding: finding)
      }
    } catch let error as SQLiteError where error.isCorruption {
      throw CommitError.damagedDestination(path: path, finding: error.description)
    }
  }

  /// Compares the digests of the validate stage with those of the verify stage.
  package func compare() throws -> RowCounts {
    let validated = try sums(of: plan.isOnePass ? .rows : .validate)
    let verified = try sums(of: .verify)
    let entities = entitiesByNumber()
    let keys = Set(validated.digests.keys).union(verified.digests.keys)
    for key in keys.sorted(by: {
      ($0.table.name, $0.entity) < ($1.table.name, $1.entity)
    }) {
      let (before, after) = (validated[key], verified[key])
      let entity = entities[key.entity]
      if before.count != after.count {
        throw CommitError.wrongRowCount(
          table: key.table.name, entityNumber: key.entity == 0 ? nil : key.entity,
          expected: Int64(before.count), found: Int64(after.count))
      }
      guard before == after else {
        throw CommitError.digestMismatch(table: key.table.name, entity: entity?.rawValue)
      }
    }
    var counts = RowCounts(bytes: verified.bytes)
    for (key, digest) in verified.digests where digest.count > 0 {
      counts.tables[key.table.name, default: 0] += Int64(digest.count)
      if let entity = entities[key.entity] {
        counts.entities[entity, default: 0] += Int64(digest.count)
      }
    }
    return counts
  }

  /// Counts the rows of the file itself: what lies outside every shard's keys has no digest. Where the
  /// verify stage read a table's b-tree, it counted them; then the digests say of which entities they are.
  private func countRows(in file: Connection, _ known: [String: SoundnessEvidence]) throws {
    let expected = try sums(of: plan.isOnePass ? .rows : .validate).digests
    for table in destinationTables() {
      var byEntity: [Int64: Int64] = [:]
      for (key, digest) in expected where key.table.name.isSameName(as: table.name) {
        byEntity[key.entity, default: 0] += Int64(digest.count)
      }
      if known[table.name]?.rows == byEntity.values.reduce(0, +) { continue }
      let found = try file.rows(
        table.entityNumbers.count > 1
          ? "SELECT Z_ENT, count(*) FROM \(quoted(table.name)) GROUP BY Z_ENT"
          : "SELECT NULL, count(*) FROM \(quoted(table.name))")
      if table.entityNumbers.count > 1 {
        var rest = byEntity.filter { $0.value > 0 }
        // Carried rows of no known entity stand under one number.
        let known = byEntity[-1] == nil ? nil : table.entityNumbers
        var counts: [Int64: Int64] = [:]
        for row in found {
          let number = row[0].integer ?? 0
          counts[known?.contains(number) == false ? -1 : number, default: 0] += row[1].integer ?? 0
        }
        for (number, rows) in counts.sorted(by: { $0.key < $1.key }) {
          let wanted = rest.removeValue(forKey: number) ?? 0
          guard rows == wanted else {
            throw CommitError.wrongRowCount(
              table: table.name, entityNumber: number, expected: wanted, found: rows)
          }
        }
        if let (number, wanted) = rest.min(by: { $0.key < $1.key }) {
          throw CommitError.wrongRowCount(
            table: table.name, entityNumber: number, expected: wanted, found: 0)
        }
      } else {
        let rows = found.first?[1].integer ?? 0
        let wanted = byEntity.values.reduce(0, +)
        guard rows == wanted else {
          throw CommitError.wrongRowCount(
            table: table.name, entityNumber: nil, expected: wanted, found: rows)
        }
      }
    }
  }
}

extension StoreVerification {
  /// The numbers of the soundness jobs that the verify stage did not make needless.
  ///
  /// A table without units has no evidence, so all of its jobs remain.
  package func remaining(_ jobs: [StoreSoundness.DestinationJob]) throws -> [Int] {
    let evidence = try evidence()
    return jobs.indices.filter { number in
      switch jobs[number].answeredBy {
      case .indexes(let table, let names):
        guard let found = evidence[table] else { return true }
        return !names.allSatisfy { found.keys[$0] != nil && found.keys[$0] == found.entries[$0] }
      case .references(let rule):
        return evidence[rule.table]?.answered.contains(number) != true
      case nil:
        return true
      }
    }
  }

  /// What the verify stage saw of each table beyond the digests of its rows.
  private func evidence() throws -> [String: SoundnessEvidence] {
    var evidence: [String: SoundnessEvidence] = [:]
    try forEachSummary(of: .verify) { _, table, summary in
      let found = summary.soundness ?? SoundnessEvidence()
      guard evidence[table]?.add(found) == nil else { return }
      evidence[table] = found
    }
    return evidence
  }
}

extension StoreVerification {
  /// Rows of one entity in one table; entity 0 for tables that have none.
  private struct Key: Hashable {
    var table: NameKey
    var entity: Int64
  }

  private struct Sums {
    var digests: [Key: RowSetDigest] = [:]
    var bytes: Int64 = 0

    subscript(_ key: Key) -> RowSetDigest { digests[key] ?? RowSetDigest() }
  }

  private struct DestinationTable {
    var name: String
    /// Empty for one that is not an entity's.
    var entityNumbers: Set<Int64> = []
  }

  private func destinationTables() -> [DestinationTable] {
    plan.tables.filter { $0.way != .removed }.map { table in
      let numbers = Set(table.entities.map(\.destinationNumber)).subtracting([0])
      return DestinationTable(name: table.name, entityNumbers: numbers)
    }
      + plan.joinTables.filter { $0.way != .removed }.map {
        DestinationTable(name: $0.name)
      }
      + plan.foreignTables.map { DestinationTable(name: $0.name) }
  }

  /// The destination's table of a unit; nil when its rows have no successors.
  private func table(of unit: Int) throws -> String? {
    switch plan.units[unit].subject {
    case .mapping(let number):
      plan.mapped?.mappings[number].table.map { plan.tables[$0].name }
    case .inserted(let number) where plan.tables.indices.contains(number):
      plan.tables[number].name
    case .table(let number) where plan.tables.indices.contains(number):
      plan.tables[number].way == .removed ? nil : plan.tables[number].name
    case .joinTable(let number) where plan.joinTables.indices.contains(number):
      plan.joinTables[number].way == .removed ? nil : plan.joinTables[number].name
    case .foreignTable(let number) where plan.foreignTables.indices.contains(number):
      plan.foreignTables[number].name
    default: throw CommitError.unusablePlan("unit \(unit) is of no table")
    }
  }

  private func sums(of stage: Stage) throws -> Sums {
    var sums = Sums()
    try forEachSummary(of: stage) { _, table, summary in
      for (entity, digest) in summary.digests {
        sums.digests[Key(table: NameKey(table), entity: Int64(entity)), default: RowSetDigest()] +=
          digest
      }
      sums.bytes += summary.bytes
    }
    return sums
  }

  /// The summary of each unit that has a table in the destination.
  private func forEachSummary(
    of stage: Stage, _ body: (Shard, String, ShardSummary) throws -> Void
  ) throws {
    let fingerprint = Hexadecimal.bytes(of: plan.fingerprint) ?? []
    for unit in plan.units(in: stage == .verify ? .verify : .validate) {
      // There, those of entity mappings are hooks of policies, which may come later.
      if stage == .verify, case .mapping = plan.units[unit].subject { continue }
      guard let table = try table(of: unit) else { continue }
      let summary: ShardSummary
      do {
        summary = try CheckpointReader.knownSummary(
          ShardSummary.self, of: CheckpointName(stage: stage, unit: unit), in: run,
          fingerprint: fingerprint)
      } catch CheckpointError.unreadable(_, .noSuchFileOrDirectory) {
        throw CommitError.missingCheckpoint(stage: stage.rawValue, unit: unit)
      } catch is DecodingError {
        throw CommitError.missingCheckpoint(stage: stage.rawValue, unit: unit)
      }
      try body(plan.units[unit], table, summary)
    }
  }

  private func entitiesByNumber() -> [Int64: EntityName] {
    var names: [Int64: EntityName] = [:]
    for program in plan.tables.flatMap(\.entities) {
      if let destination = program.destination { names[program.destinationNumber] = destination }
    }
    return names
  }
}
