import GodwitObjectModel
import GodwitPersistentStore

/// The account of a repair: what was kept, what was made anew, what is lost, and what may be wrong.
package struct RepairReport: Encodable, Sendable {
  /// What a line of the account is about.
  package enum Subject: String, Codable, Sendable {
    /// Rows of an entity's table.
    case object
    /// The entity that a row belongs to.
    case entity
    /// Values of an attribute.
    case value
    /// A to-one relationship, or membership in a to-many without inverse.
    case reference
    /// Pairs of a many-to-many relationship.
    case pair
    /// Places in ordered relationships.
    case order
    /// Files of external binary data.
    case externalData = "external-data"
    /// `Z_PRIMARYKEY`.
    case primaryKey = "primary-key"
    case metadata
    case modelCache = "model-cache"
    /// Tables and columns.
    case schema
    case index
    /// Tables that are not the model's: history, CloudKit, the application's own.
    case table
    /// The file's header, its WAL or rollback journal.
    case file
  }

  /// One line of the account.
  package struct Item: Encodable, Sendable, Equatable {
    package var subject: Subject
    package var entity: String?
    package var property: String?
    /// Objects, values, pairs or files; nil where nobody knows how many.
    package var count: Int64?
    /// `Z_PK` of all objects concerned, as ranges; row ids of tables that are not the model's.
    package var primaryKeys: KeyRanges?
    /// False where objects may have had these keys, and nothing tells which did.
    package var isCertain = true
    /// Names of files or tables.
    package var names: [String]?
    /// What became of it, as a sentence without row data.
    package var message: String

    package init(
      _ subject: Subject, entity: String? = nil, property: String? = nil, count: Int64? = nil,
      keys: KeyRanges? = nil, isCertain: Bool = true, names: [String]? = nil, _ message: String
    ) {
      self.subject = subject
      self.entity = entity
      self.property = property
      self.count = count ?? (isCertain ? keys?.count : nil)
      primaryKeys = keys
      self.isCertain = isCertain
      self.names = names
      self.message = message
    }
  }

  /// The objects of one entity that the output has.
  package struct Kept: Encodable, Sendable, Equatable {
    package var entity: String
    package var count: Int64
    package var primaryKeys: KeyRanges
  }

  package private(set) var event = "result"
  package var store: String
  package var output: String
  package private(set) var verdict = "repaired"
  /// The model by which the store was repaired.
  package var version: String
  /// Objects of each entity that has some.
  package var kept: [Kept] = []
  /// Pairs of many-to-many relationships.
  package var keptPairs: Int64 = 0
  /// Rows of tables that are not the model's.
  package var keptForeignRows: Int64 = 0
  package var keptExternalFiles = 0
  /// What was made again from what there is, without loss.
  package var rebuilt: [Item] = []
  package var lost: [Item] = []
  /// What was kept and may be wrong.
  package var doubtful: [Item] = []

  package init(store: String, output: String, version: String) {
    self.store = store
    self.output = output
    self.version = version
  }

  package var keptObjects: Int64 { kept.reduce(0) { $0 + $1.count } }
}

extension RepairReport.Item: CustomStringConvertible {
  package var description: String {
    let place = [entity, property].compactMap { $0 }.joined(separator: ".")
    var text = place.isEmpty ? subject.rawValue + ":" : place
    text += " " + message
    if let primaryKeys, !primaryKeys.isEmpty {
      let word = subject == .table ? "row id" : "Z_PK"
      text += isCertain ? " (\(counted)\(word) \(primaryKeys))" : " (\(word) \(primaryKeys))"
    } else if let count, count != 1 {
      text += " (\(count))"
    }
    if let names, !names.isEmpty { text += ": " + names.joined(separator: ", ") }
    return text
  }

  private var counted: String { count.map { $0 == 1 ? "" : "\($0): " } ?? "" }
}
