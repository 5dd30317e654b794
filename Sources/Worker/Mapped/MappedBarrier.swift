import FoundationEssentials
import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// What the coordinator does between the stages of a migration by mapping models: after the copy,
/// the keys of all shards and the association files; after the link, the pairs of relationships,
/// sorted by the rows that they set.
///
/// Everything is made of checkpoints alone, and appears when it is whole, so it may be made again
/// after a crash and comes out the same.
public struct MappedBarrier: Sendable {
  let plan: MigrationPlan
  let run: RunDirectory

  public init(plan: MigrationPlan, run: RunDirectory) {
    self.plan = plan
    self.run = run
  }

  private var mappings: [EntityMappingPlan] { plan.mapped?.mappings ?? [] }

  /// The offsets of this plan; nil where they are not there yet.
  public static func readOffsets(_ run: RunDirectory, _ plan: MigrationPlan) throws
    -> MappedOffsets?
  {
    guard DurableFile.exists(run.offsets) else { return nil }
    let data = try Data(contentsOf: URL(filePath: run.offsets.string))
    guard let found = try? JSONDecoder().decode(MappedOffsets.self, from: data),
      found.fingerprint == plan.fingerprint
    else { return nil }
    return found
  }

  static func associationPath(_ mapping: Int, _ run: RunDirectory) -> FilePath {
    run.associations.appending("\(mapping).pairs")
  }
}

// MARK: - After the copy

extension MappedBarrier {
  /// Gives every shard its keys and writes what source objects became.
  public func associate() throws {
    if try Self.readOffsets(run, plan) != nil { return }
    try run.discardDerived()
    try DurableFile.makeFolder(run.associations)
    var offsets = MappedOffsets(fingerprint: plan.fingerprint)
    var inserted: [Int: [Int: Int64]] = [:]
    var userInfos: [(unit: Int, values: [String: ExpressionValue]?)] = []
    for unit in plan.units(in: .copy) {
      let mapping = try mapping(of: unit)
      let summary = try summary(of: unit)
      if mapping.policy != nil {
        inserted[unit] = summary.inserted ?? [:]
        userInfos.append((unit, summary.userInfo))
      }
      guard let table = mapping.table else { continue }
      if mapping.policy != nil {
        offsets.insert(summary.inserted?[table] ?? 0, into: table, by: unit)
      } else if mapping.assignsKeys {
        offsets.offsets[unit] = offsets.highest[table] ?? 0
        offsets.highest[table, default: 0] += summary.rows
      } else {
        offsets.highest[table] = max(offsets.highest[table] ?? 0, summary.highestKey ?? 0)
      }
    }
    // What policies made in other tables than their mapping's comes after everything else there.
    for (unit, counts) in inserted.sorted(by: { $0.key < $1.key }) {
      for (table, count) in counts.sorted(by: { $0.key < $1.key })
      where offsets.policyOffsets[unit]?[table] == nil && count > 0 {
        offsets.insert(count, into: table, by: unit)
      }
    }
    for (index, mapping) in mappings.enumerated() {
      if mapping.policy != nil {
        try writePolicyAssociation(index, offsets)
      } else if mapping.table != nil, mapping.isAskedFor, !mapping.keepsEveryKey {
        try writeAssociation(index, mapping, offsets)
      }
    }
    if !userInfos.isEmpty {
      try CarriedUserInfo(run: run).write(userInfos.map(\.values), after: .copy) {
        [tables = destinationTables] number, object in
        guard let table = tables[object.entity],
          let offset = offsets.policyOffsets[userInfos[number].unit]?[table]
        else { return object.primaryKey }
        return object.primaryKey + offset
      }
    }
    // The last file: where it is, the others are.
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    try DurableFile.write([UInt8](try encoder.encode(offsets)), to: run.offsets)
  }

  private func writeAssociation(
    _ index: Int, _ mapping: EntityMappingPlan, _ offsets: MappedOffsets
  ) throws {
    var writer = try AssociationWriter(Self.associationPath(index, run))
    try ObjectPairs.forEach(of: index, mapping, offsets, plan, run) {
      try writer.append(source: $0, destination: $1)
    }
    try writer.finish()
  }

  private func writePolicyAssociation(_ index: Int, _ offsets: MappedOffsets) throws {
    let tables = Dictionary(
      (plan.mapped?.destinationEntities ?? []).map { ($0.number, $0.table) },
      uniquingKeysWith: { a, _ in a })
    try PolicyAssociationWriter(index, run).write { body in
      for unit in plan.units.indices where plan.units[unit].subject == .mapping(index) {
        let reader = try reader(.copy, unit)
        while let entry = try reader.next() {
          guard var pair = entry.association, let table = tables[pair.destinationEntity] else {
            continue
          }
          pair.destination += offsets.policyOffsets[unit]?[table] ?? 0
          try body(pair)
        }
      }
    }
  }

  private var destinationTables: [EntityName: Int] {
    Dictionary(
      (plan.mapped?.destinationEntities ?? []).map { ($0.entity, $0.table) },
      uniquingKeysWith: { a, _ in a })
  }

  private func mapping(of unit: Int) throws -> EntityMappingPlan {
    guard case .mapping(let index) = plan.units[unit].subject, mappings.indices.contains(index)
    else { throw StageError.outOfOrder("unit \(unit), which is no entity mapping") }
    return mappings[index]
  }

  private func summary(of unit: Int, _ stage: Stage = .copy) throws -> ShardSummary {
    let bytes = try CheckpointReader.summary(
      of: run.path(of: CheckpointName(stage: stage, unit: unit)), fingerprint: fingerprint)
    return try JSONDecoder().decode(ShardSummary.self, from: Data(bytes))
  }

  private var fingerprint: [UInt8] { Hexadecimal.bytes(of: plan.fingerprint) ?? [] }

  private func reader(_ stage: Stage, _ unit: Int) throws -> CheckpointReader {
    try CheckpointReader(
      path: run.path(of: CheckpointName(stage: stage, unit: unit)), fingerprint: fingerprint)
  }
}

/// The source and destination keys of the rows that a shard has copied, ascending.
final class UnitKeys {
  /// Entries that tell the source key where the destination's is another.
  static let associations: UInt8 = 2

  private let reader: CheckpointReader
  private let channel: UInt8

  init(_ reader: CheckpointReader, _ mapping: EntityMappingPlan) {
    self.reader = reader
    channel = mapping.assignsKeys ? Self.associations : 0
  }

  func next() throws -> (source: Int64, destination: Int64)? {
    while let entry = try reader.next() {
      guard entry.channel == channel else { continue }
      if channel == 0 { return (entry.key, entry.key) }
      guard entry.payload.count == 8 else { continue }
      return (entry.key, Int64(littleEndian: entry.payload.loadUnaligned(as: Int64.self)))
    }
    return nil
  }
}

// MARK: - After the link

extension MappedBarrier {
  /// Sorts the pairs that the link shards have given by the rows that they set.
  ///
  /// SQLite does it, on disk, in flat memory: pairs are appended as they come, and sorted once.
  public func gather() throws {
    guard let mapped = plan.mapped, !mapped.groups.isEmpty, !DurableFile.exists(run.edges) else {
      return
    }
    if mapped.policyCode != nil {
      let policies = try plan.units(in: .link).filter { try mapping(of: $0).policy != nil }
      // Keys are final by now.
      try CarriedUserInfo(run: run).write(
        try policies.map { try summary(of: $0, .link).userInfo }, after: .link
      ) { _, object in object.primaryKey }
    }
    let path = FilePath(run.edges.string + ".building")
    try DurableFile.removeIfPresent(path)
    try fill(path, mapped.groups)
    try DurableFile.syncFile(path)
    try DurableFile.rename(path, to: run.edges)
    try DurableFile.syncFolder(run.path)
  }

  private func fill(_ path: FilePath, _ groups: [RelationshipGroup]) throws {
    let file = try Connection(path: path.string, mode: .create)
    try file.execute(
      """
      PRAGMA journal_mode = OFF;
      PRAGMA synchronous = OFF;
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA cache_size = -16384;
      PRAGMA temp_store = FILE;
      BEGIN;
      """)
    for number in groups.indices {
      try file.execute(
        """
        CREATE TABLE raw\(number)
          (seq INTEGER PRIMARY KEY, side INTEGER, a INTEGER, b INTEGER, entity INTEGER,
           position INTEGER)
        """)
    }
    try take(groups, into: file)
    for (number, group) in groups.enumerated() {
      if group.isOneToOne {
        try match(number, in: file)
      } else {
        try file.execute(Self.sorting(number, group))
      }
      try file.execute("DROP TABLE raw\(number)")
    }
    try file.execute("COMMIT")
    try file.close()
  }

  private func take(_ groups: [RelationshipGroup], into file: Connection) throws {
    let inserts = try groups.indices.map {
      try file.prepare(
        "INSERT INTO raw\($0) (side, a, b, entity, position) VALUES (?1, ?2, ?3, ?4, nullif(?5, -1))"
      )
    }
    for unit in plan.units(in: .link) {
      let reader = try reader(.link, unit)
      while let entry = try reader.next() {
        guard entry.channel == Edge.channel else { continue }
        guard let edge = Edge(entry.payload), inserts.indices.contains(Int(entry.key)) else {
          throw StageError.checkpointMismatch(
            table: "edges", unit: unit, what: "a pair is malformed")
        }
        let insert = inserts[Int(entry.key)]
        try insert.bind(1, edge.side)
        try insert.bind(2, edge.row)
        try insert.bind(3, edge.other)
        try insert.bind(4, edge.entity)
        try insert.bind(5, edge.position)
        try insert.run()
      }
    }
  }

  /// Pairs up the objects of a one-to-one relationship.
  ///
  /// Assignments follow each other as in Core Data: by entity mapping, then by object. Each takes
  /// both objects from whom they belonged to, and nil takes an object from its partner.
  private func match(_ number: Int, in file: Connection) throws {
    try file.execute(
      """
      CREATE TABLE edges\(number)
        (a INTEGER PRIMARY KEY, b INTEGER NOT NULL UNIQUE, entity INTEGER, place INTEGER)
      """)
    let raw = try file.prepare("SELECT a, b, entity FROM raw\(number) ORDER BY seq")
    let set = try file.prepare(
      "INSERT OR REPLACE INTO edges\(number) (a, b, entity) VALUES (?1, ?2, ?3)")
    let clear = try file.prepare("DELETE FROM edges\(number) WHERE a = ?1 OR b = ?2")
    while try raw.step() {
      let (a, b) = (raw.int64(0), raw.int64(1))
      let statement = a == Edge.nobody || b == Edge.nobody ? clear : set
      try statement.bind(1, a)
      try statement.bind(2, b)
      if statement === set { try statement.bind(3, raw.int64(2)) }
      try statement.run()
    }
  }

  /// How the pairs of a group become its sorted table `edges<n>`.
  ///
  /// For columns: one owner for each row; the row's own word counts before the other side's, and
  /// of several owners the last one, who took the object from the others. Places go by the
  /// position in the owner's collection, members that it does not list at the end by key.
  /// For join tables: each pair once.
  static func sorting(_ number: Int, _ group: RelationshipGroup) -> String {
    switch group.target {
    case .columns(_, let isOrdered):
      let chosen = """
        SELECT a, b, entity, p
          FROM (SELECT a, b, entity, max(position) OVER (PARTITION BY a, b) AS p,
                       row_number() OVER (PARTITION BY a ORDER BY side, seq DESC) AS n
                  FROM raw\(number))
         WHERE n = 1 AND b <> \(Edge.nobody)
        """
      let place =
        isOrdered
        ? "2048 + 1024 * (row_number() OVER (PARTITION BY b ORDER BY p IS NULL, p, a) - 1)" : "NULL"
      return """
        CREATE TABLE edges\(number)
          (a INTEGER PRIMARY KEY, b INTEGER, entity INTEGER, place INTEGER);
        INSERT INTO edges\(number)
        SELECT a, b, entity, \(place) AS place FROM (\(chosen)) ORDER BY a;
        """
    case .join(_, let firstIsOrdered, let secondIsOrdered, _):
      let first =
        firstIsOrdered
        ? "2048 + 1024 * (row_number() OVER (PARTITION BY b ORDER BY p1 IS NULL, p1, a) - 1)"
        : "NULL"
      let second =
        secondIsOrdered
        ? "2048 + 1024 * (row_number() OVER (PARTITION BY a ORDER BY p0 IS NULL, p0, b) - 1)"
        : "NULL"
      return """
        CREATE TABLE edges\(number)
          (a INTEGER, b INTEGER, place0 INTEGER, place1 INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID;
        INSERT INTO edges\(number)
        SELECT a, b, \(first) AS place0, \(second) AS place1
          FROM (SELECT a, b, min(CASE side WHEN 0 THEN position END) AS p0,
                       min(CASE side WHEN 1 THEN position END) AS p1
                  FROM raw\(number)
                 GROUP BY a, b)
         ORDER BY a, b;
        """
    case .count(let group, let side):
      let key = side == 0 ? "a" : "b"
      let counted = group.map {
        "INSERT INTO edges\(number) SELECT \(key), count(*), NULL, NULL FROM edges\($0) "
          + "GROUP BY \(key) ORDER BY \(key);"
      }
      return """
        CREATE TABLE edges\(number)
          (a INTEGER PRIMARY KEY, b INTEGER, entity INTEGER, place INTEGER);
        \(counted ?? "")
        """
    }
  }
}
