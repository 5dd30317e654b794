import GodwitPersistentStore

/// What is done about rows, values and references that a migration would drop.
package enum LossPolicy: String, Codable, Sendable, CaseIterable {
  /// Migrates, and counts every loss, references without room included.
  case allow
  /// Migrates, counts and reports every loss; references without room are refused.
  case warn
  /// Refuses a migration that loses anything.
  case refuse
}

extension MigrationRequest {
  /// Why a migration with these losses is not carried out; none where it is. Core Data's code is
  /// ``LossPolicy/refusalCode``. Whoever finds losses asks here, whether a plan knows them or only rows
  /// show them.
  ///
  /// - Parameter version: The one given that the store is of; nil where it is of none.
  package func refusals(of losses: [Loss], from version: String?) -> [Reason] {
    if guardsUnknownVersions, version == nil || isOfUnknownVersion {
      return losses.map { Reason(loss: $0, forbiddenBy: Reason.unknownVersion) }
    }
    return self.losses == .refuse ? losses.map { Reason(loss: $0) } : []
  }
}

extension LossPolicy {
  /// `NSMigrationError`: Core Data itself never refuses a migration for what it loses.
  package static let refusalCode = 134_110
}

extension Reason {
  static let unknownVersion =
    "The store's version is not among the pipeline's models, and nothing of it may be lost then unless "
    + "the pipeline says losses: warn or allow."

  /// A loss that ``LossPolicy/refuse`` forbids: `lost-entity`, `lost-attribute` and so on.
  init(loss: Loss, forbiddenBy rule: String = "--losses refuse forbids that.") {
    self.init(
      reason: "lost-\(loss.kind.rawValue)", entity: loss.entity, property: loss.property,
      message: "\(loss.message) \(rule)",
      primaryKeys: loss.primaryKeys.isEmpty ? nil : loss.primaryKeys, count: loss.count)
  }
}

extension Loss {
  /// What the source's own model has no place for.
  init(unknown: UnknownContents) {
    let (table, column, count) = (unknown.table, unknown.column, unknown.count)
    self.init(
      column == nil ? .table : .column, entity: table, property: column, count: count,
      message: "The \(column.map { "column \(table).\($0)" } ?? "table \(table)") is none of the "
        + "model's: \(Loss.number(count, column == nil ? "row" : "value")) "
        + "\(count == 1 ? "is" : "are") dropped.")
  }
}

/// Rows, values or references of the source that have no successor in the destination.
package struct Loss: Codable, Sendable, Hashable {
  package enum Kind: String, Codable, Sendable, CaseIterable {
    /// An entity with rows that has no successor: its objects are dropped.
    case entity
    /// An attribute with values that has no successor.
    case attribute
    /// A relationship with references that has no successor.
    case relationship
    /// A to-one reference that becomes NULL because its object is dropped.
    case reference
    /// Objects that every entity mapping of their entity filters, and none takes.
    case leftOut = "left-out"
    /// The places of members in an ordered relationship whose pairs stay and whose order does not.
    case order
    /// A reference without room: several owners share a target that can keep one of them, or an
    /// owner has several targets and can keep one.
    case sharedTarget = "shared-target"
    /// A number that its narrower type cannot hold and that changes.
    case narrowing
    /// A table with rows that is none of the model's, although its name is like theirs.
    case table
    /// A column with values, in a table of the model, that is none of the model's.
    case column
    /// Persistent history, or CloudKit mirroring, that is not carried.
    case history
    /// An object that breaks the destination's rules and was set aside.
    case setAside = "set-aside"
    /// A value that breaks the destination's rules and gave way to the default value.
    case defaulted
  }

  package var kind: Kind
  /// The entity of the source model; the table for ``Kind/table`` and ``Kind/column``; nil for history.
  package var entity: String?
  package var property: String?
  /// Rows, values, references or transactions that are lost.
  package var count: Int64
  /// `Z_PK` of some of the rows, 10 at most.
  package var primaryKeys: [Int64]
  /// What is lost, as a sentence without row data.
  package var message: String

  package init(
    _ kind: Kind, entity: String? = nil, property: String? = nil, count: Int64,
    primaryKeys: [Int64] = [], message: String
  ) {
    self.kind = kind
    self.entity = entity
    self.property = property
    self.count = count
    self.primaryKeys = primaryKeys
    self.message = message
  }
}
