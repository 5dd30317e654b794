import FoundationEssentials
import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import GodwitWorker
import SystemPackage

/// What the coordinator does between the stages of a migration by mapping models: after the copy,
/// the keys of all shards and the association files; after the link, the pairs of relationships,
/// sorted by the rows that they set.
///
/// Everything is made of checkpoints alone, and appears when it is whole, so it may be made again
/// after a crash and comes out the same.
package struct MappedBarrier: Sendable {
  let plan: MigrationPlan
  let run: RunDirectory

  package init(plan: MigrationPlan, run: RunDirectory) {
    self.plan = plan
    self.run = run
  }

  private var mappings: [EntityMappingPlan] { plan.mapped?.mappings ?? [] }
}

// MARK: - After the copy

extension MappedBarrier {
  /// Gives every shard its keys and writes what source objects became; nothing where an earlier process has,
  /// and the disk still has just that.
  package func associate() throws {
    var (offsets, userInfos) = try keys()
    if let known = try MappedOffsets.read(in: run, of: plan) {
      offsets.files = known.files
      if known == offsets, try areAsWritten(known.files.filter { $0.key != edges }) { return }
      offsets.files = [:]
    }
    try run.discardDerived()
    try DurableFile.makeFolder(run.associations)
    for (index, mapping) in mappings.enumerated() {
      if mapping.policy != nil {
        try writePolicyAssociation(index, offsets)
      } else if mapping.table != nil, mapping.isReferenced, !mapping.keepsEveryKey {
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
    for name in try DurableFile.names(in: run.associations) {
      let path = run.associations.appending(name)
      offsets.files["\(run.associations.lastComponent?.string ?? "")/\(name)"] =
        try FileDigest.text(of: path)
    }
    // The last file: where it is, the others are.
    try write(offsets)
  }

  private typealias UserInfos = [(unit: Int, values: [String: ExpressionValue]?)]

  /// The keys of all shards, as their checkpoints give them.
  private func keys() throws -> (MappedOffsets, UserInfos) {
    var offsets = MappedOffsets(fingerprint: plan.fingerprint)
    var inserted: [Int: [Int: Int64]] = [:]
    var userInfos: UserInfos = []
    for unit in plan.units(in: .copy) {
      let mapping = try mapping(of: unit)
      let summary = try summary(of: unit)
      if mapping.policy != nil {
        inserted[unit] = summary.inserted ?? [:]
        userInfos.append((unit, summary.userInfo))
      }
      guard let table = mapping.table else { continue }
      if mapping.policy != nil {
        guard offsets.insert(summary.inserted?[table] ?? 0, into: table, by: unit) else {
          throw noKeysLeft(table)
        }
      } else if mapping.assignsKeys {
        guard offsets.renumber(summary.rows, of: table, in: unit) else { throw noKeysLeft(table) }
      } else {
        offsets.highest[table] = max(offsets.highest[table] ?? 0, summary.highestKey ?? 0)
      }
    }
    // What policies made in other tables than their mapping's comes after everything else there.
    for (unit, counts) in inserted.sorted(by: { $0.key < $1.key }) {
      for (table, count) in counts.sorted(by: { $0.key < $1.key })
      where offsets.policyOffsets[unit]?[table] == nil && count > 0 {
        guard offsets.insert(count, into: table, by: unit) else { throw noKeysLeft(table) }
      }
    }
    return (offsets, userInfos)
  }

  private func write(_ offsets: MappedOffsets) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    try DurableFile.write([UInt8](try encoder.encode(offsets)), to: run.offsets)
  }

  private var edges: String { run.edges.lastComponent?.string ?? "" }

  private func areAsWritten(_ files: [String: String]) throws -> Bool {
    try files.allSatisfy { name, digest in
      let path = run.path.appending(name)
      return try DurableFile.exists(path) && FileDigest.text(of: path) == digest
    }
  }

  /// What no entity mapping has taken, see ``LeftOutObjects``.
  package func leftOut() throws -> [Loss] { try LeftOutObjects(plan: plan, run: run).losses() }

  private func noKeysLeft(_ table: Int) -> PlanError {
    .unsupported(
      store: plan.sourcePath,
      what: "\(plan.tables[table].name) has no primary keys left for the objects that are made")
  }

  private func writeAssociation(
    _ index: Int, _ mapping: EntityMappingPlan, _ offsets: MappedOffsets
  ) throws {
    var writer = try AssociationWriter(run.association(of: index))
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
    else { throw StageError.outOfOrder("unit \(unit), which is not an entity mapping") }
    return mappings[index]
  }

  private func summary(of unit: Int, _ stage: Stage = .copy) throws -> ShardSummary {
    try CheckpointReader.summary(
      ShardSummary.self, of: CheckpointName(stage: stage, unit: unit), in: run,
      fingerprint: fingerprint)
  }

  private var fingerprint: [UInt8] { Hexadecimal.bytes(of: plan.fingerprint) ?? [] }

  private func reader(_ stage: Stage, _ unit: Int) throws -> CheckpointReader {
    try run.reader(stage, unit, fingerprint: fingerprint)
  }
}

// MARK: - After the link

extension MappedBarrier {
  /// Sorts the pairs that the link shards have given by the rows that they set.
  ///
  /// In flat memory, see ``EdgeGathering``. SQLite's file is what shards look their rows up in.
  ///
  /// - Returns: The pairs for which there is no room, also where an earlier run has sorted them.
  package func gather() throws -> [Loss] {
    guard let mapped = plan.mapped else { return [] }
    if mapped.policyCode != nil {
      let policies = try plan.units(in: .link).filter { try mapping(of: $0).policy != nil }
      // Keys are final by now.
      try CarriedUserInfo(run: run).write(
        try policies.map { try summary(of: $0, .link).userInfo }, after: .link
      ) { _, object in object.primaryKey }
    }
    if mapped.groups.isEmpty { return [] }
    guard var offsets = try MappedOffsets.read(in: run, of: plan) else {
      throw StageError.outOfOrder("pairs of relationships before every shard was copied")
    }
    if let digest = offsets.files[edges], try areAsWritten([edges: digest]) { return try losses() }
    let path = FilePath(run.edges.string + ".building")
    for suffix in ["", "-journal", "-wal", "-shm"] {
      try DurableFile.removeIfPresent(FilePath(path.string + suffix))
    }
    try fill(path, mapped.groups)
    try DurableFile.syncFile(path)
    try DurableFile.rename(path, to: run.edges)
    try DurableFile.syncFolder(run.path)
    offsets.files[edges] = try FileDigest.text(of: run.edges)
    try write(offsets)
    return try losses()
  }

  private func losses() throws -> [Loss] {
    let file = try Connection(path: run.edges.string, mode: .immutable)
    return try file.rows("SELECT loss FROM losses ORDER BY rowid").map {
      try JSONDecoder().decode(Loss.self, from: Data(($0[0].text ?? "").utf8))
    }
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
    try take(groups, into: file)
    try file.execute("COMMIT")
    try file.close()
  }

  /// On return no statement is left that would keep the file open.
  private func take(_ groups: [RelationshipGroup], into file: Connection) throws {
    let units = try plan.units(in: .link).map { unit in
      let isPolicy = try mapping(of: unit).policy != nil
      return (unit, isPolicy, isPolicy ? try summary(of: unit, .link).hookWords : nil)
    }
    let replay = HookReplay(words: units.compactMap(\.2), mappings, groups)
    try replay.write(to: file)
    let gatherings = try groups.enumerated().map { number, group in
      try EdgeGathering(
        group, number: number, of: groups.count, in: file, folder: run.path,
        isReplayed: replay.groups.contains(number))
    }
    func take(_ entry: CheckpointReader.Entry, _ unit: Int, _ isPolicy: Bool) throws {
      guard let edge = Edge(entry.payload), gatherings.indices.contains(Int(entry.key)) else {
        throw StageError.checkpointMismatch(
          table: "edges", unit: unit, what: "a pair is malformed")
      }
      try gatherings[Int(entry.key)].take(edge, isInRow: isPolicy)
    }
    // The copy stage of every shard comes before the link stage of any.
    for (unit, _, words) in units where words != nil {
      let reader = try reader(.link, unit)
      while let entry = try reader.next(), entry.channel == Edge.earlyChannel {
        try take(entry, unit, true)
      }
    }
    for (unit, isPolicy, _) in units {
      let reader = try reader(.link, unit)
      while let entry = try reader.next() {
        if entry.channel == Edge.channel { try take(entry, unit, isPolicy) }
      }
    }
    try file.execute("CREATE TABLE losses (loss TEXT)")
    let losses = try file.prepare("INSERT INTO losses VALUES (?1)")
    for gathering in gatherings {
      try gathering.finish()
      guard let loss = gathering.loss else { continue }
      try losses.bind(1, .text(String(decoding: try JSONEncoder().encode(loss), as: UTF8.self)))
      try losses.run()
    }
  }
}
