/// A piece of one table: the rows whose key lies in ``keys``. The unit of retry.
///
/// Running it twice gives the same checkpoint. It takes in every entity of the table, since they
/// share one key space and their rows lie side by side in its b-tree.
package struct Shard: Codable, Sendable, Equatable {
  package enum Subject: Codable, Sendable, Hashable {
    /// Number in ``MigrationPlan/tables``.
    case table(Int)
    /// Number in ``MigrationPlan/joinTables``; keys are those of the first column.
    case joinTable(Int)
    /// Number in ``MigrationPlan/foreignTables``; keys are row ids.
    case foreignTable(Int)
    /// Number in ``MappedPlan/mappings``; keys are those of the source entity's table. In a plan
    /// with mapping models, units of tables are there to be verified only.
    case mapping(Int)
    /// Number in ``MigrationPlan/tables``: objects that policies made in it beside those of their
    /// own mapping's table.
    case inserted(Int)
  }

  package var subject: Subject
  /// Both ends included. Gaps are allowed; overlaps are not.
  package var keys: ClosedRange<Int64>
  /// Bytes of row data expected, from the census. Not a limit.
  package var estimatedBytes: Int64

  package init(subject: Subject, keys: ClosedRange<Int64>, estimatedBytes: Int64) {
    self.subject = subject
    self.keys = keys
    self.estimatedBytes = estimatedBytes
  }
}

/// The stages that go over shards.
package enum PlanStage: String, Codable, Sendable, CaseIterable {
  case copy, link, validate, verify
}
