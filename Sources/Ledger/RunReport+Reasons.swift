// Why stores failed, and what was lost.
extension RunReport {
  package struct Reason: Codable, Sendable, Equatable {
    /// A word such as `damaged` or `in-use`; `note` for what a person should know of a store that ended well.
    package var reason: String
    package var entity: String?
    package var property: String?
    package var count: Int64?
    /// `Z_PK` of some of the objects; nil where no row is the reason.
    package var primaryKeys: [Int64]?
    /// What happened, where, and what to do.
    package var message: String

    package static let note = "note"

    package init(
      reason: String, entity: String? = nil, property: String? = nil, count: Int64? = nil,
      primaryKeys: [Int64]? = nil, message: String
    ) {
      self.reason = reason
      self.entity = entity
      self.property = property
      self.count = count
      self.primaryKeys = primaryKeys
      self.message = message
    }
  }

  /// Rows, values or references without a successor.
  package struct Loss: Codable, Sendable, Equatable {
    /// `entity`, `attribute`, `relationship`, `reference`, `left-out`, `order`, `shared-target`, `narrowing`, `table`, `column`,
    /// `history`, `set-aside`, `defaulted`.
    package var kind: String
    package var entity: String?
    package var property: String?
    /// How many rows, values or references: of all stores together where it is the report's, and not a store's.
    package var count: Int64
    /// How many stores lost it: 1 where it is a store's.
    package var stores: Int
    package var message: String

    package init(
      kind: String, entity: String? = nil, property: String? = nil, count: Int64, stores: Int = 1,
      message: String
    ) {
      self.kind = kind
      self.entity = entity
      self.property = property
      self.count = count
      self.stores = stores
      self.message = message
    }
  }

  /// Stores that failed for one reason.
  package struct Failure: Codable, Sendable, Equatable {
    package var verdict: String
    package var reason: String
    package var code: Int?
    package var count: Int
    /// Paths of some of the stores, three at most.
    package var examples: [String]
    /// What happened to the first of them, and what to do.
    package var message: String
    /// What to do about all of them.
    package var advice: String

    package init(
      verdict: String, reason: String, code: Int? = nil, count: Int, examples: [String] = [],
      message: String, advice: String
    ) {
      self.verdict = verdict
      self.reason = reason
      self.code = code
      self.count = count
      self.examples = examples
      self.message = message
      self.advice = advice
    }
  }
}
