import GodwitObjectModel
import GodwitPersistentStore

/// How the rows of one destination table come to be.
package enum TableStrategy: String, Codable, Sendable {
  /// Nothing in any row changes: the rows move unread by the copy stage.
  case carried
  /// Rows are computed by the entity programs.
  case computed
  /// The table is new and empty.
  case empty
  /// The source's table has no successor: its rows are only looked at, for damage.
  case removed
}

/// One destination entity table: a root entity with everything below it.
package struct TablePlan: Codable, Sendable, Equatable {
  /// The destination's table; the source's for a removed one.
  package var name: String
  package var root: EntityName
  package var way: TableStrategy
  /// Columns after `Z_PK`, `Z_ENT` and `Z_OPT`.
  package var columns: [String]
  /// Nil only for an empty table.
  package var sourceTable: String?
  /// For each of ``columns`` the source's column whose value every row keeps, and every row is kept;
  /// nil where values change. Of a carried table all of them; empty where rows stay behind.
  package var keptColumns: [String?]
  /// Columns of the source that the copy stage reads after `Z_PK`, `Z_ENT` and `Z_OPT`.
  package var copyColumns: [String]
  /// SQL expressions that follow ``copyColumns`` in what the copy stage reads: values of derived
  /// attributes that are new. Made by the planner from quoted names only.
  package var copyExpressions: [String]
  /// Columns of the source that the link stage reads after `Z_PK` and `Z_ENT`.
  package var linkColumns: [String]
  /// Pair queries, each ordered by row key, that give relationship columns their values.
  package var pairQueries: [PairQuery]
  package var entities: [EntityProgram]
  /// `Z_ENT` of source rows that another table plan takes care of.
  package var elsewhere: [Int64]
  /// Rows that the destination table will have, from the census.
  package var expectedRows: Int64

  /// Places in ``columns`` that the copy stage fills, ascending.
  package var attributePlaces: [Int]
  /// Places in ``columns`` that the link stage fills, ascending.
  package var relationshipPlaces: [Int]
}

extension TablePlan {
  /// For a carried table: the source's columns in the order of ``columns``.
  package var carriedColumns: [String] { keptColumns.compactMap { $0 } }

  /// Whether every row keeps its `Z_ENT`.
  package var keepsNumbers: Bool {
    entities.allSatisfy { $0.destination == nil || $0.sourceNumber == $0.destinationNumber }
  }
}

/// What becomes of the objects of one source entity.
package struct EntityProgram: Codable, Sendable, Equatable {
  package var source: EntityName
  /// Nil for an entity without successor: its rows are looked at and left behind.
  package var destination: EntityName?
  /// `Z_ENT` in the source store.
  package var sourceNumber: Int64
  /// `Z_ENT` in the destination store; 0 without a successor.
  package var destinationNumber: Int64
  /// One for each of ``TablePlan/attributePlaces``.
  package var attributes: [AttributeProgram]
  /// One for each of ``TablePlan/relationshipPlaces``.
  package var relationships: [RelationshipProgram]
  /// The source model's rules about a row, by place in ``TablePlan/copyColumns``.
  package var sourceRules: RowRules
  /// The destination model's rules about a row, by place in ``TablePlan/columns``.
  package var destinationRules: RowRules
  /// The to-one relationships of the source entity, whose targets the link stage looks at.
  package var references: [ReferenceCheck]
  /// The model editor's rules, by place in ``TablePlan/columns``, where they decide.
  package var validation: ValidationRules?
  /// The inferred entity mapping's name, as Core Data would give it; nil without a successor.
  package var mapping: String?
}

/// What gives one attribute column its value. Numbers are places in ``TablePlan/copyColumns``.
package enum AttributeProgram: Codable, Sendable, Equatable {
  case null
  case constant(StoredDefault)
  case source(Int)
  /// A place in ``TablePlan/copyExpressions``.
  case expression(Int)
  /// NULL becomes the default.
  case sourceOr(Int, StoredDefault)
  /// Converted to another numeric type; NULL becomes the default where there is one.
  case converted(Int, AttributeType, StoredDefault?)
  /// Binary data that begins to allow external storage: the inline marker goes before it; NULL becomes the
  /// default where there is one.
  case markedInline(Int, StoredDefault?)
  /// Binary data that no longer allows external storage: the marker goes, a file's data comes inline; NULL as
  /// above.
  case unmarked(Int, StoredDefault?)
  /// Binary data that another attribute takes over as it is: a file is copied under a new name,
  /// since Core Data removes a file with the one value that refers to it.
  case refiled(Int)
}

/// What gives one relationship column its value. Numbers are places in ``TablePlan/linkColumns``.
package enum RelationshipProgram: Codable, Sendable, Equatable {
  case null
  /// The key of a to-one relationship; NULL when the target's entity has no successor.
  case key(reference: Int)
  /// `Z_ENT` of that target in the destination.
  case targetEntity(reference: Int)
  /// The place in an ordered relationship, as it was; NULL when the key was lost.
  case order(Int, reference: Int?)
  /// The place in a relationship that becomes ordered: 2048, 3072 … by `Z_PK` among the rows of
  /// the same key. `countSQL` counts the rows of key `?1` whose `Z_PK` is lower than `?2`, so
  /// that a shard goes on counting where the one before it ended.
  case rank(reference: Int, countSQL: String)
  /// A value of ``TablePlan/pairQueries``: the key of the other object.
  case pairedKey(query: Int)
  /// `Z_ENT` of that object in the destination.
  case pairedEntity(query: Int)
  /// Its place: as the source has it, else 2048, 3072 … by `Z_PK` among the rows of the same key.
  case pairedOrder(query: Int)
}

/// A to-one relationship of a source entity and what may be its target.
package struct ReferenceCheck: Codable, Sendable, Equatable {
  package var relationship: String
  /// Place of the key in ``TablePlan/linkColumns``.
  package var key: Int
  /// Place of the `Z<n>_` column, where there is one.
  package var entityColumn: Int?
  /// Place of the `Z_FOK_` column, where the inverse is ordered.
  package var orderColumn: Int?
  /// The table that holds the targets in the source store.
  package var targetTable: String
  /// `Z_ENT` of every entity that may be a target, in the source store.
  package var allowed: [Int64]
  /// Source `Z_ENT` → destination `Z_ENT`, for those that survive as targets; also for entities that may not
  /// be targets and whose rows lie in the targets' table.
  package var surviving: [Int: Int64]

  /// Whether every object that may be a target is one in the destination.
  var keepsTargets: Bool { allowed.allSatisfy { surviving[Int($0)] != nil } }

  /// Whether it is one under the same number.
  var keepsNumbers: Bool {
    keepsTargets && surviving.allSatisfy { Int64($0.key) == $0.value }
  }
}

/// Pairs of keys out of the source store: how a relationship that changes its form is read.
///
/// The text takes the lowest and highest row key as `?1` and `?2` and gives, ordered by the row
/// key, four columns: row key, key of the other object, the other object's `Z_ENT` in the
/// destination or NULL, place or NULL.
package struct PairQuery: Codable, Sendable, Equatable {
  package var relationship: String
  package var sql: String
  /// Counts the rows of one owner (`?1`) whose key is lower than `?2`, so that a shard can go on
  /// counting places where the one before it ended. Nil when places come from the source.
  package var rankSQL: String?
}

/// One destination join table.
package struct JoinTablePlan: Codable, Sendable, Equatable {
  package var name: String
  /// First key, second key, then the order columns there are.
  package var columns: [String]
  package var way: TableStrategy
  /// For a carried one: the source's table and its columns in the order of ``columns``.
  package var sourceTable: String?
  package var carriedColumns: [String]
  /// For a computed one: `?1` and `?2` bound the first key; as many columns as ``columns``,
  /// ordered by the first and second key.
  package var sql: String?
  /// Places in ``columns`` whose value is a rank to be counted by the link stage: the order
  /// columns of a relationship that becomes ordered.
  package var ranks: [JoinRank]
  /// Where the first keys come from, for cutting shards; none for an empty table.
  package var keySources: [KeySource] = []

  /// A column of the source store.
  package struct KeySource: Codable, Sendable, Equatable {
    package var table: String
    package var column: String
  }
}

/// An order column that the source does not have.
package struct JoinRank: Codable, Sendable, Equatable {
  package var place: Int
  /// That of the owner's key.
  package var ownerPlace: Int
  /// Counts the owner's (`?1`) members of lower first keys than `?2`; nil when the owner is the
  /// first column, whose members never lie in two shards.
  package var sql: String?
}

/// A table that is not Core Data's own: carried as it is, but for entity numbers in it.
package struct ForeignTablePlan: Codable, Sendable, Equatable {
  package var name: String
  /// `CREATE TABLE` as the source has it.
  package var sql: String
  package var columns: [String]
  /// What to select from the source for each of ``columns``: a quoted column, or a CASE that
  /// renumbers entities.
  package var expressions: [String]
  /// What the table's row id can be called by; nil for a table WITHOUT ROWID, which is one shard.
  package var rowIDName: String?
}
