/// Something that is wrong, or odd, in a store.
public struct StoreFinding: Codable, Sendable, Equatable {
  /// What kind of rule is broken.
  public enum Kind: String, Codable, Sendable, CaseIterable {
    /// SQLite's own integrity check.
    case file
    /// `Z_PRIMARYKEY`.
    case control
    case metadata
    case modelcache
    /// Missing tables and columns, wrong declared types.
    case schema
    /// Missing indexes.
    case index
    /// Rows of no entity of their table, pairs that occur twice or lack a key.
    case rows
    case required
    /// Storage classes, integer ranges, UUIDs of another length.
    case type
    /// External storage markers and files.
    case external
    /// References to rows that do not exist.
    case dangling
    /// References to rows of an entity that the relationship does not allow.
    case targetEntity
    /// `Z<n>_` columns.
    case entityColumn
    /// One-to-one relationships whose two sides disagree.
    case inverse
    /// `Z_FOK_` columns.
    case order
    case unique
    case derived
    /// Rules of the model editor: bounds, lengths, patterns, counts. No damage.
    case validation
    /// Odd, and seen in sound stores.
    case note

    /// False for what real, sound stores have.
    public var isFailure: Bool { self != .validation && self != .note }
  }

  public var kind: Kind
  public var entity: String?
  public var property: String?
  /// What is wrong, as a sentence without row data.
  public var message: String
  /// Rows, pairs or values concerned.
  public var count: Int64
  /// `Z_PK` of some of the rows, 10 at most; first keys for pairs of a join table.
  public var examples: [Int64]
  /// Core Data's validation error, where it is one.
  public var code: Int?

  public static let mostExamples = 10

  package init(
    kind: Kind, entity: String? = nil, property: String? = nil, message: String, count: Int64 = 1,
    examples: [Int64] = [], code: Int? = nil
  ) {
    self.code = code
    self.kind = kind
    self.entity = entity
    self.property = property
    self.message = message
    self.count = count
    self.examples = Array(examples.prefix(Self.mostExamples))
  }
}

extension StoreFinding {
  static func pairWithoutKeys(in join: JoinTable) -> String {
    "\(join.name) has a pair with a key that is not an integer"
  }
}

extension StoreFinding {
  /// Whether another finding is of the same kind, place and message, of whatever rows.
  package func isSame(as other: StoreFinding) -> Bool {
    kind == other.kind && entity == other.entity && property == other.property
      && message == other.message && code == other.code
  }
}

extension StoreFinding: CustomStringConvertible {
  public var description: String {
    let place = [entity, property].compactMap { $0 }.joined(separator: ".")
    let examples =
      examples.isEmpty
      ? "" : ", for example Z_PK \(examples.map(String.init).joined(separator: ", "))"
    let times = count == 1 && self.examples.isEmpty ? "" : " (\(count)\(examples))"
    return "\(kind.rawValue): \(place.isEmpty ? "" : place + " ")\(message)\(times)"
  }
}

extension [StoreFinding] {
  /// Adds the findings of another shard; those of one kind, place and message become one.
  package mutating func merge(_ others: [StoreFinding]) {
    for other in others {
      guard let same = firstIndex(where: { $0.isSame(as: other) }) else {
        append(other)
        continue
      }
      self[same].count += other.count
      let free = StoreFinding.mostExamples - self[same].examples.count
      self[same].examples += other.examples.prefix(Swift.max(0, free))
    }
  }
}
