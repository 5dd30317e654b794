import GodwitObjectModel
import GodwitPersistentStore

/// What a migration by mapping models adds to a plan: the entity mappings, and how the
/// relationships that they set reach the other side.
///
/// Source: `core-data-migration.md` §5.
public struct MappedPlan: Codable, Sendable, Equatable {
  /// In the order in which they are processed; those of the first mapping model come first.
  public var mappings: [EntityMappingPlan]
  /// Columns and join tables that are set from the other side of a relationship.
  public var groups: [RelationshipGroup]
  /// How the objects of the source are read, for expressions that are evaluated as they are.
  public var sourceEntities: [SourceEntityAccess]
  /// Questions about the written destination: numbers of members of to-many relationships.
  public var countRules: [CountRule]
  /// The source store's UUID, for the URIs of its objects.
  public var sourceUUID = ""
  /// The mapping models, by the last parts of their paths, in the order in which they are run.
  public var files: [String] = []
  /// What policies may make; empty where no mapping has one.
  public var destinationEntities: [DestinationEntityPlan] = []
  /// How the objects of the written destination are read, by policies that validate it.
  public var writtenEntities: [SourceEntityAccess] = []
  /// SHA-256 of the code of the policies, so that another build's checkpoints are not this one's.
  public var policyCode: String?
}

/// One entity mapping, with everything that its three stages need.
public struct EntityMappingPlan: Codable, Sendable, Equatable {
  public var name: String
  /// Number of the mapping model. Mappings find each other by name within one model only.
  public var pass: Int
  public var source: EntityName?
  public var destination: EntityName?
  /// `Z_ENT` in the source store; 0 without a source.
  public var sourceNumber: Int64
  /// `Z_ENT` in the destination; 0 without a destination.
  public var destinationNumber: Int64
  /// The source entity's table.
  public var sourceTable: String?
  /// The destination's, as a number in ``MigrationPlan/tables``.
  public var table: Int?
  /// The class of the entity migration policy.
  public var policy: String?
  /// True when the policy must see the whole entity: one shard.
  public var isWhole = false
  public var userInfo: [String: String]
  /// The predicate that source objects must fulfil, as text; nil takes all.
  public var filter: String?
  /// The source expression that yields the source objects, as text; nil takes all.
  public var selection: String?
  /// True when the destination's keys are given out again: the copy stage writes ordinals from 1,
  /// and ``MappedOffsets`` says what to add.
  public var assignsKeys: Bool
  /// True when somebody asks what became of this mapping's source objects.
  public var isReferenced: Bool
  /// The source columns that are read after `Z_PK`.
  public var copyColumns: [String]
  /// What attributes the places of ``copyColumns`` hold, for compiling expressions.
  public var copyAttributes: [SourceAttribute]
  /// One for each of the table's attribute places.
  public var attributes: [AttributeProgram]
  /// Attributes whose program is a place holder: an expression gives them their values.
  public var expressions: [AttributeExpression]
  /// `$destination`, where expressions of the mapping speak of it.
  public var destinationAccess: DestinationAccess?
  public var sourceRules: RowRules
  /// To-one columns of the source that the link stage reads after `Z_PK`.
  public var linkColumns: [String]
  public var links: [LinkProgram]
  /// Relationship columns that are, or may be, set from the other side.
  public var fills: [RelationshipFill]
}

/// An attribute of the source as it lies in a row that is read.
public struct SourceAttribute: Codable, Sendable, Equatable {
  public var name: String
  public var type: AttributeType
  public var column: String
  /// True when values begin with a storage marker.
  public var isExternal: Bool
}

/// An attribute that an expression gives its value.
public struct AttributeExpression: Codable, Sendable, Equatable {
  public var property: String
  /// Number among the table's attribute places.
  public var place: Int
  public var type: AttributeType
  /// True when values begin with a storage marker.
  public var isExternal: Bool
  public var expression: String
  /// Number of the attribute mapping: expressions are evaluated by it, derivations after all.
  public var order: Int
  /// True for a derivation: `SELF` is the destination object.
  public var isDerived = false
}

/// A relationship that an expression gives its value.
public struct LinkProgram: Codable, Sendable, Equatable {
  /// How the destination objects are found.
  public enum Way: Codable, Sendable, Equatable {
    /// What the mappings made of the source object itself.
    case ownObject(mappings: [Int])
    /// What they made of the object that a to-one column of the source points to: place in
    /// ``EntityMappingPlan/linkColumns``.
    case toOne(column: Int, mappings: [Int])
    /// What they made of the objects that a query gives. `?1` and `?2` bound the owner's key; it
    /// gives owner and target keys, by owner and then in the order of the relationship.
    case toMany(sql: String, mappings: [Int])
    /// Whatever the expression gives.
    case evaluated
  }

  public var property: String
  public var expression: String
  public var way: Way
  public var isToMany: Bool
  /// `Z_ENT` of the entities that the relationship may point to, in the destination.
  public var allowed: [Int64]
  /// Number among the table's relationship places of the to-one key.
  public var keyPlace: Int?
  /// Likewise of the target's entity.
  public var entityPlace: Int?
  /// Where else the pairs go.
  public var emissions: [Emission]

  public struct Emission: Codable, Sendable, Equatable {
    public var group: Int
    /// 0: the row that the group sets is the object at hand, for a join table the object of the
    /// first column. 1: it is the other one.
    public var side: Int
  }
}

/// Pairs of one relationship, gathered from every shard and sorted, to be set on its other side.
public struct RelationshipGroup: Codable, Sendable, Equatable {
  public enum Target: Codable, Sendable, Equatable {
    /// To-one columns of a table: number in ``MigrationPlan/tables``.
    case columns(table: Int, isOrdered: Bool)
    /// Number in ``MigrationPlan/joinTables``.
    case join(Int, firstIsOrdered: Bool, secondIsOrdered: Bool, isReflexive: Bool)
    /// A derived attribute's column: how often an object stands in the pairs of another group, on
    /// side 0 or 1, the row that it sets or the other one; nil where there are no pairs.
    case count(of: Int?, side: Int)
  }

  public var entity: EntityName
  public var relationship: String
  public var target: Target
  /// True when the inverse is to-one, too: who takes an object over takes it from another. The
  /// pairs are then set one after the other, in Core Data's order.
  public var isOneToOne = false
  /// True for the second of the two groups that have the pairs of a one-to-one relationship.
  public var isMirror = false
  /// True when its pairs are counted: then all of them must be here, and what is set to nil.
  public var isCounted = false
}

/// A column that a ``RelationshipGroup`` sets, as the objects of one mapping have it. Places are
/// numbers among the table's relationship places.
public struct RelationshipFill: Codable, Sendable, Equatable {
  public var group: Int
  public var keyPlace: Int
  public var entityPlace: Int?
  public var orderPlace: Int?
  /// True when the mapping itself sets the relationship; then only the place in the owner's list
  /// comes from the group.
  public var keepsOwn: Bool
  /// True when objects have a word of their own, or none, one by one: the group is asked where
  /// the column is NULL.
  public var yieldsToOwn = false
  /// True when the group alone decides, whatever the mapping has set.
  public var isDecided = false
  /// The value where the group has none; NULL otherwise.
  public var otherwise: Int64?
}

/// How many members a to-many relationship may have.
public struct CountRule: Codable, Sendable, Equatable {
  public var table: Int
  public var entity: EntityName
  public var entityNumber: Int64
  public var relationship: String
  public var low: Int64
  /// 0 for no limit.
  public var high: Int64
  /// An empty optional relationship is always allowed.
  public var isOptional: Bool
  /// A query on the destination: `?1` is the owner's `Z_PK`; it gives the number of members.
  public var countSQL: String
}

/// How to read the objects of one source entity by key, for expressions.
public struct SourceEntityAccess: Codable, Sendable, Equatable {
  public var entity: EntityName
  public var number: Int64
  public var table: String
  public var attributes: [SourceAttribute]
  /// Properties that the model has and the store does not hold: their value is nil.
  public var unstored: [String]
  public var relationships: [SourceRelationship]
}

/// A relationship of the source.
public struct SourceRelationship: Codable, Sendable, Equatable {
  public var name: String
  public var isToMany: Bool
  public var isOrdered: Bool
  /// `?1` is the owner's key. Gives key and `Z_ENT` of the objects, in order.
  public var sql: String
  /// The entities of the objects it may lead to.
  public var destinationEntities: [EntityName]
}
