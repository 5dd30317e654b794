import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitExpressions
import GodwitPersistentStore

/// What a stage found out about one shard: the summary at the end of its checkpoint.
package struct ShardSummary: Codable, Sendable, Equatable {
  /// Rows that the stage went over.
  package var rows: Int64
  /// Validate and verify: order-free digest of the rows of each destination entity, by its
  /// `Z_ENT`; join tables and foreign tables stand under 0. Keys are `Int`, not `Int64`, since
  /// only those encode in a fixed order.
  package var digests: [Int: RowSetDigest]
  /// What is wrong with the rows, of one kind, entity and property each.
  package var findings: [StoreFinding]
  /// Bytes of row data that went through.
  package var bytes: Int64
  /// The highest key of the shard's rows, where the plan cannot know it.
  package var highestKey: Int64?
  /// What copy and link did and found, where one pass did all three stages.
  package var copied: StageShare?
  package var linked: StageShare?
  /// Copy stage of a policy's mapping: objects made, by number in ``MigrationPlan/tables``.
  package var inserted: [Int: Int64]?
  /// Link stage of a mapping: references for which its relationships have no room.
  package var losses: [Loss]?
  /// What a policy has changed in the manager's `userInfo`; null for an entry that it removed.
  package var userInfo: [String: ExpressionValue]?
  /// Link stage of a policy's mapping: what its hooks have said of relationships, by group.
  package var hookWords: [Int: HookWords]?
  /// Verify: what the rows and index entries of the unit say beyond the digests of rows.
  package var soundness: SoundnessEvidence?

  package init(
    rows: Int64 = 0, digests: [Int: RowSetDigest] = [:], findings: [StoreFinding] = [],
    bytes: Int64 = 0
  ) {
    self.rows = rows
    self.digests = digests
    self.findings = findings
    self.bytes = bytes
  }
}

extension ShardSummary: CheckpointSummary {
  /// JSON with sorted keys.
  package func encoded() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    return [UInt8](try encoder.encode(self))
  }

  package init(encoded bytes: [UInt8]) throws {
    self = try JSONDecoder().decode(Self.self, from: Data(bytes))
  }
}

/// What the hooks of policies have said of the two sides of a relationship group.
package struct HookWords: OptionSet, Codable, Sendable {
  package let rawValue: Int

  /// Side 0 of ``LinkProgram/Emission/side``.
  package static let first = HookWords(rawValue: 1)
  package static let second = HookWords(rawValue: 2)
  /// A word was taken back, or was about an object that somebody else made.
  package static let revised = HookWords(rawValue: 4)

  package init(rawValue: Int) { self.rawValue = rawValue }

  /// - Parameter side: See ``LinkProgram/Emission/side``.
  package init(side: Int) { self = side == 0 ? .first : .second }
}

/// What one stage did of a unit that was done in one pass.
package struct StageShare: Codable, Sendable, Equatable {
  package var rows: Int64
  package var findings: [StoreFinding]

  package init(rows: Int64, findings: [StoreFinding]) {
    self.rows = rows
    self.findings = findings
  }
}

/// What a look at rows and index entries of the assembled destination shows.
package struct SoundnessEvidence: Codable, Sendable, Equatable {
  /// What each index of the table must hold for these rows, by its name.
  package var keys: [String: RowSetDigest] = [:]
  /// What each index holds, said by the unit that read it; missing where its entries are out of order.
  package var entries: [String: RowSetDigest] = [:]
  /// The b-trees that the unit proved sound, by the name of the table or index.
  package private(set) var trees: [String] = []
  /// Their pages; see `PageLedger`.
  package private(set) var pages = RowSetDigest()
  /// How many rows the table has, wherever their keys lie, said by the unit that read its b-tree.
  package var rows: Int64?
  /// Numbers of the soundness jobs that would find nothing in these rows.
  package var answered: [Int] = []

  package init() {}

  package mutating func add(tree: String, pages digest: RowSetDigest) {
    trees.append(tree)
    pages += digest
  }

  /// Adds the evidence of another part of the same table. References are answered and keys known where
  /// both say so.
  package mutating func add(_ other: SoundnessEvidence) {
    keys = keys.filter { other.keys[$0.key] != nil }
    for name in keys.keys { if let more = other.keys[name] { keys[name]? += more } }
    // Each tree is read by one unit.
    entries.merge(other.entries) { one, _ in one }
    trees += other.trees
    pages += other.pages
    rows = rows ?? other.rows
    answered = answered.filter(other.answered.contains)
  }
}
