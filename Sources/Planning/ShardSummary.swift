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
