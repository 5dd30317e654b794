import FoundationEssentials
import GodwitCheckpoints
import GodwitDurableFiles

/// Where the keys of each shard begin, known once every shard has been copied.
///
/// A shard that gives out new keys counts its rows from 1. What is added follows from the rows of
/// the shards before it, so the keys are the same however the store was cut: those of Core Data,
/// which inserts by entity mapping and then in the order of the fetch.
package struct MappedOffsets: Codable, Sendable, Equatable {
  /// The plan's.
  package var fingerprint: String
  /// Shard → what to add to its keys; only those that give out new ones.
  package var offsets: [Int: Int64]
  /// Shard of a policy's mapping → table → what to add to the ordinals of its objects there.
  package var policyOffsets: [Int: [Int: Int64]] = [:]
  /// Number in ``MigrationPlan/tables`` → the highest key given, for `Z_PRIMARYKEY.Z_MAX`.
  package var highest: [Int: Int64]
  /// Path in the run directory → `FileDigest` of what was made of checkpoints between the stages, so that a
  /// later process takes none for it that a disk or somebody has changed.
  package var files: [String: String] = [:]

  package init(fingerprint: String, offsets: [Int: Int64] = [:], highest: [Int: Int64] = [:]) {
    self.fingerprint = fingerprint
    self.offsets = offsets
    self.highest = highest
  }

  /// Gives keys to objects that a policy's shard made in a table: after those that are there.
  ///
  /// - Returns: False when the table has not so many keys left.
  package mutating func insert(_ count: Int64, into table: Int, by unit: Int) -> Bool {
    policyOffsets[unit, default: [:]][table] = highest[table] ?? 0
    return give(count, keysOf: table)
  }

  /// Gives new keys to the rows of a shard, after those that are there.
  ///
  /// - Returns: False when the table has not so many keys left.
  package mutating func renumber(_ count: Int64, of table: Int, in unit: Int) -> Bool {
    offsets[unit] = highest[table] ?? 0
    return give(count, keysOf: table)
  }

  private mutating func give(_ count: Int64, keysOf table: Int) -> Bool {
    let (sum, isTooLarge) = (highest[table] ?? 0).addingReportingOverflow(count)
    highest[table] = sum
    return !isTooLarge
  }

  package func offset(of unit: Int) -> Int64 { offsets[unit] ?? 0 }

  /// Those of a plan in its run directory; nil where they are not there yet.
  package static func read(in run: RunDirectory, of plan: MigrationPlan) throws -> MappedOffsets? {
    try kept(in: run).flatMap { $0.fingerprint == plan.fingerprint ? $0 : nil }
  }

  /// Those in a run directory, of whichever plan; nil where nothing there is any.
  package static func kept(in run: RunDirectory) throws -> MappedOffsets? {
    let bytes = try RegularFile.bytesIfPresent(
      of: run.offsets, limit: RunDirectory.largestFileBytes, isPrivate: true)
    return bytes.flatMap { try? JSONDecoder().decode(MappedOffsets.self, from: Data($0)) }
  }
}
