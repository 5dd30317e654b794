import GodwitKeyedArchive
import GodwitObjectModel

/// What a generated store should be like. Equal options and seed give equal bytes.
package struct StoreOptions: Sendable {
  package var seed: UInt64
  /// Objects of each concrete entity that ``rowsByEntity`` does not name.
  package var rows: Int
  package var rowsByEntity: [EntityName: Int] = [:]
  /// How many optional values are NULL, 0 … 1.
  package var nullFraction = 0.15
  /// Text in many scripts, with combining characters, emoji and quotes; else ASCII words.
  package var unicodeText = true
  /// UTF-8 bytes of a string, where no rule of the model says otherwise.
  package var textBytes = 0...60
  /// Bytes of a binary value that lies in its row.
  package var binaryBytes = 0...300
  /// How many values of an attribute that allows external storage lie in a file of their own.
  package var externalFraction = 0.0
  /// Bytes of such a file. Core Data puts values above about 100 KB there.
  package var externalBytes = 100_001...180_000
  /// Rows deleted before the store was closed: gaps in `Z_PK`, and a `Z_MAX` above the last key.
  package var deletedFraction = 0.05
  /// Rows updated since they were inserted: `Z_OPT` above 1.
  package var updatedFraction = 0.22
  /// Average number of members of a many-to-many list.
  package var joinDegree = 2
  /// Tables of persistent history.
  package var history = false
  /// The last rows are only in the write-ahead log, as when an application was killed.
  package var leavesWAL = false
  /// A second model whose rules the values keep, too, where it has an entity and a property of the
  /// same name: that of the destination, whose rules a migration by a mapping model enforces.
  package var validFor: EntityHierarchy?
  /// Integers lie between this number and its negative, where the models allow it; nil for the
  /// whole range of their type.
  package var largestInteger: Int64?
  /// Application metadata of its own kind, added to the standard keys.
  package var metadata: [String: PropertyList] = [:]
  package var frameworkVersion = 1447

  package init(seed: UInt64 = 1, rows: Int = 100) {
    self.seed = seed
    self.rows = rows
  }

  /// How many objects of a concrete entity are asked for.
  func count(of entity: EntityName) -> Int { rowsByEntity[entity] ?? rows }
}

/// What was written.
package struct StoreReport: Sendable, Equatable {
  package var path: String
  /// Objects of each concrete entity.
  package var objects: [EntityName: Int]
  /// Rows of many-to-many tables.
  package var joinRows: Int
  package var externalFiles: Int
  /// Bytes of the store file and its write-ahead log.
  package var bytes: Int
  /// What is kept neither of the model's rules nor of the numbers of objects that were asked for.
  package var notes: [String] = []

  package var totalObjects: Int { objects.values.reduce(0, +) }
}

/// Why a fixture cannot be made.
package enum FixtureError: Error, Sendable, Equatable {
  case alreadyThere(path: String)
  case notWritable(path: String, reason: String)
  /// More objects of an entity and of those below it, which share a table, than a generator can number.
  case tooManyRows(entity: String)
  /// The model's rules leave a property that must differ everywhere too few values: for the rows of all
  /// `entities` that have it, of which each may have `most`.
  case tooFewValues(property: String, rows: Int, most: Int, entities: Int)
  /// A derived attribute counts more members of an object than its type can hold.
  case tooManyMembers(property: String, relationship: String, most: Int64)
  /// The two models of a hand-written migration differ in more than it writes down.
  case notExpressible(String)
}

extension FixtureError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .alreadyThere(let path):
      "\(path) already exists and is not overwritten. Remove it or choose another name."
    case .notWritable(let path, let reason): "\(path) cannot be written: \(reason)."
    case .tooManyRows(let entity):
      "The table of \(entity) would have more rows than the generator's arithmetic allows: ask for at most "
        + "\(KeySpace.largestCount), objects of all entities below it together."
    case .tooFewValues(let property, let rows, let most, let entities):
      "\(property), which is in a uniqueness constraint, gets a different value in every row, and "
        + "\(rows) rows need more values than the model's rules leave it. "
        + (most == 0
          ? "Give some of the \(entities) entities that have it no rows."
          : "Ask for at most \(most) \(most == 1 ? "row" : "rows")"
            + (entities > 1 ? " of each of the \(entities) entities that have it." : "."))
    case .tooManyMembers(let property, let relationship, let most):
      "\(property) counts \(relationship), and an object would have more than \(most) members there, which the "
        + "attribute's type cannot hold. Ask for fewer members, or for more objects that have some."
    case .notExpressible(let what):
      "The SQL script cannot say this change: \(what). Use simpler models."
    }
  }
}
