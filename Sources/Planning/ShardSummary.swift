import GodwitDigests
import GodwitMapping
import GodwitPersistentStore

/// What a stage found out about one shard: the summary at the end of its checkpoint.
public struct ShardSummary: Codable, Sendable, Equatable {
  /// Rows that the stage went over.
  public var rows: Int64
  /// Validate and verify: order-free digest of the rows of each destination entity, by its
  /// `Z_ENT`; join tables and foreign tables stand under 0. Keys are `Int`, not `Int64`, since
  /// only those encode in a fixed order.
  public var digests: [Int: RowSetDigest]
  /// What is wrong with the rows, of one kind, entity and property each.
  public var findings: [StoreFinding]
  /// Bytes of row data that went through.
  public var bytes: Int64
  /// The highest key of the shard's rows, where the plan cannot know it.
  public var highestKey: Int64?
  /// What copy and link did and found, where one pass did all three stages.
  public var copied: StageShare?
  public var linked: StageShare?
  /// Copy stage of a policy's mapping: objects made, by number in ``MigrationPlan/tables``.
  public var inserted: [Int: Int64]?
  /// Link stage of a mapping: references for which its relationships have no room.
  public var losses: [Loss]?
  /// What a policy has changed in the manager's `userInfo`; null for an entry that it removed.
  public var userInfo: [String: ExpressionValue]?
  /// Verify: what the rows and index entries of the unit say beyond the digests of rows.
  package var soundness: SoundnessEvidence?

  public init(
    rows: Int64 = 0, digests: [Int: RowSetDigest] = [:], findings: [StoreFinding] = [],
    bytes: Int64 = 0
  ) {
    self.rows = rows
    self.digests = digests
    self.findings = findings
    self.bytes = bytes
  }
}

/// What one stage did of a unit that was done in one pass.
public struct StageShare: Codable, Sendable, Equatable {
  public var rows: Int64
  public var findings: [StoreFinding]

  public init(rows: Int64, findings: [StoreFinding]) {
    self.rows = rows
    self.findings = findings
  }
}

/// What a look at rows and index entries of the assembled destination shows.
package struct SoundnessEvidence: Codable, Sendable, Equatable {
  /// What each index of the table must hold for these rows, by its name.
  package var keys: [String: RowSetDigest] = [:]
  /// What a part of each index holds; missing where its entries are out of order.
  package var entries: [String: RowSetDigest] = [:]
  /// Numbers of the soundness jobs that would find nothing in these rows.
  package var answered: [Int] = []

  package init() {}

  /// Adds the evidence of another part of the same table. What either lacks, the whole lacks.
  package mutating func add(_ other: SoundnessEvidence) {
    keys = Self.sum(keys, other.keys)
    entries = Self.sum(entries, other.entries)
    answered = answered.filter(other.answered.contains)
  }

  private static func sum(_ a: [String: RowSetDigest], _ b: [String: RowSetDigest]) -> [String:
    RowSetDigest]
  {
    var sums: [String: RowSetDigest] = [:]
    for (name, digest) in a {
      guard let other = b[name] else { continue }
      sums[name] = digest
      sums[name]? += other
    }
    return sums
  }
}
