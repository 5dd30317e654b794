import FoundationEssentials
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// What a migration by mapping models adds to a plan: the entity mappings, and how the
/// relationships that they set reach the other side.
///
/// Source: `core-data-migration.md` §5.
package struct MappedPlan: Codable, Sendable, Equatable {
  /// In the order in which they are processed; those of the first mapping model come first.
  package var mappings: [EntityMappingPlan]
  /// Columns and join tables that are set from the other side of a relationship.
  package var groups: [RelationshipGroup]
  /// How the objects of the source are read, for expressions that are evaluated as they are.
  package var sourceEntities: [SourceEntityAccess]
  /// Questions about the written destination: numbers of members of to-many relationships.
  package var countRules: [CountRule]
  /// The source store's UUID, for the URIs of its objects.
  package var sourceUUID = ""
  /// The mapping models, by the last parts of their paths, in the order in which they are run.
  package var files: [String] = []
  /// What policies may make; empty where no mapping has one.
  package var destinationEntities: [DestinationEntityPlan] = []
  /// How the objects of the written destination are read, by policies that validate it.
  package var writtenEntities: [SourceEntityAccess] = []
  /// SHA-256 of the code of the policies, so that another build's checkpoints are not this one's.
  package var policyCode: String?
  /// The source model as a model cache holds it, for policies that ask for it.
  package var sourceModel: Data?
  /// What `now()` yields in every row and every attempt, in seconds since 2001-01-01 UTC. Nil where nothing
  /// asks for it. No part of the fingerprint.
  package var runDate: Double?
}

/// One entity mapping, with everything that its three stages need.
package struct EntityMappingPlan: Codable, Sendable, Equatable {
  package var name: String
  /// Number of the mapping model. Mappings find each other by name within one model only.
  package var pass: Int
  package var source: EntityName?
  package var destination: EntityName?
  /// `Z_ENT` in the source store; 0 without a source.
  package var sourceNumber: Int64
  /// `Z_ENT` in the destination; 0 without a destination.
  package var destinationNumber: Int64
  /// The source entity's table.
  package var sourceTable: String?
  /// The destination's, as a number in ``MigrationPlan/tables``.
  package var table: Int?
  /// The class of the entity migration policy.
  package var policy: String?
  /// What the policy may ask of its mapping; nil without one.
  package var policyMapping: PolicyMapping?
  /// True when the policy must see the whole entity: one shard.
  package var isWhole = false
  package var userInfo: [String: String]
  /// The predicate that source objects must fulfil, as text; nil takes all.
  package var filter: String?
  /// The source expression that yields the source objects, as text; nil takes all.
  package var selection: String?
  /// True when the destination's keys are given out again: the copy stage writes ordinals from 1,
  /// and ``MappedOffsets`` says what to add.
  package var assignsKeys: Bool
  /// True when somebody asks what became of this mapping's source objects.
  package var isReferenced: Bool
  /// The source columns that are read after `Z_PK`.
  package var copyColumns: [String]
  /// What attributes the places of ``copyColumns`` hold, for compiling expressions.
  package var copyAttributes: [SourceAttribute]
  /// One for each of the table's attribute places.
  package var attributes: [AttributeProgram]
  /// Attributes whose program is a place holder: an expression gives them their values.
  package var expressions: [AttributeExpression]
  /// `$destination`, where expressions of the mapping speak of it.
  package var destinationAccess: DestinationAccess?
  package var sourceRules: RowRules
  /// To-one columns of the source that the link stage reads after `Z_PK`.
  package var linkColumns: [String]
  package var links: [LinkProgram]
  /// Values that this mapping drops or changes and another one of the entity keeps. Nil for none, so that such
  /// plans keep their fingerprint.
  package var dropped: [DroppedValue]?
  /// Relationship columns that are, or may be, set from the other side.
  package var fills: [RelationshipFill]
}

extension EntityMappingPlan {
  /// False where the link stage has nothing to do with the objects.
  var hasLinkStage: Bool { !links.isEmpty || dropped != nil }
}

/// An attribute, or element of a composite one, of which an entity mapping keeps less than others of the
/// source entity do: that is lost for what only this mapping takes.
package struct DroppedValue: Codable, Sendable, Equatable {
  /// What a mapping does not keep of a number.
  package struct Narrowing: Codable, Sendable, Equatable {
    /// Each of these types changes the number.
    package var types: [AttributeType]
    /// What each of these changes, too, nobody keeps, and the plan has counted it. Nil where all is kept
    /// by some mapping.
    package var counted: [AttributeType]?
  }

  package var property: String
  /// Place in ``EntityMappingPlan/linkColumns``.
  package var column: Int
  /// Entity mappings that keep the value, or count it, where they took the object, too.
  package var elsewhere: [Int]
  /// Nil where every value is dropped, so that such plans keep their fingerprint.
  package var narrowing: Narrowing?
}

/// An attribute of the source as it lies in a row that is read. An element of a composite attribute has
/// its key path for a name.
package struct SourceAttribute: Codable, Sendable, Equatable {
  package var name: String
  package var type: AttributeType
  package var column: String
  /// True when values begin with a storage marker.
  package var isExternal: Bool
}

/// An attribute that an expression gives its value.
package struct AttributeExpression: Codable, Sendable, Equatable {
  package var property: String
  /// Number among the table's attribute places.
  package var place: Int
  package var type: AttributeType
  /// True when values begin with a storage marker.
  package var isExternal: Bool
  package var expression: String
  /// Number of the attribute mapping: expressions are evaluated by it, derivations after all.
  package var order: Int
  /// True for a derivation: `SELF` is the destination object.
  package var isDerived = false
}

/// A relationship that an expression gives its value.
package struct LinkProgram: Codable, Sendable, Equatable {
  /// How the destination objects are found.
  package enum Way: Codable, Sendable, Equatable {
    /// What the mappings made of the source object itself.
    case ownObject(mappings: [Int])
    /// What they made of the object that a to-one column of the source points to: place in
    /// ``EntityMappingPlan/linkColumns``.
    case toOne(column: Int, mappings: [Int], SourceReference)
    /// What they made of the objects that a query gives. `?1` and `?2` bound the owner's key; it
    /// gives owner and target keys, by owner and then in the order of the relationship.
    case toMany(sql: String, mappings: [Int], SourceReference)
    /// Whatever the expression gives.
    case evaluated
  }

  package var property: String
  package var expression: String
  package var way: Way
  /// How many of the mappings of a to-many's way each call of an aggregate asks: every call gives what
  /// it finds of all objects before the next one does. Nil for one call, so that such plans keep their
  /// fingerprint.
  package var calls: [Int]?
  package var isToMany: Bool
  /// `Z_ENT` of the entities that the relationship may point to, in the destination.
  package var allowed: [Int64]
  /// Number among the table's relationship places of the to-one key.
  package var keyPlace: Int?
  /// Likewise of the target's entity.
  package var entityPlace: Int?
  /// Where else the pairs go.
  package var emissions: [Emission]
  /// Nil where every mapping that may have taken the targets is asked, so that such plans keep their
  /// fingerprint.
  package var others: Others?
  /// Likewise of what the targets' column of a one-to-one lacks. Nil where that is no different.
  package var oneSided: OneSided?
  /// Nil where no place in a list is lost that another mapping would keep, so that such plans keep their
  /// fingerprint.
  package var unplaced: Unplaced?

  /// Entity mappings that may have taken targets of which the asked ones made nothing.
  package struct Others: Codable, Sendable, Equatable {
    /// The reference to what one of them took is lost.
    package var missed: [Int]
    /// Likewise, of a relationship that is its own inverse: both objects have the pair, and the one with
    /// the lesser key counts it. Nil for none, so that such plans keep their fingerprint.
    package var mutual: [Int]?
    /// Unless one of these took it, too: another program asks them.
    package var kept: [Int]
    /// Or another mapping that may have taken the owner, too, asks for it. Nil for none, likewise.
    package var rivals: [Rival]?
  }

  /// What becomes of the pairs that one column of a one-to-one alone has.
  package struct OneSided: Codable, Sendable, Equatable {
    package var others: Others
    /// Gives a row where object `?1` has `?2` in the other column.
    package var inverse: String
  }

  /// Members of an ordered relationship that stay and whose places do not.
  package struct Unplaced: Codable, Sendable, Equatable {
    /// Members are what one of these took.
    package var kept: [Int]
    /// Entity mappings that keep the places, or count them, of what those that they ask took.
    package var elsewhere: [Rival]
  }

  /// Another mapping of the owner's entity, and the mappings whose objects it keeps references to.
  package struct Rival: Codable, Sendable, Equatable {
    package var mapping: Int
    package var asks: [Int]
    /// True for one that counts what it does not keep, so that nobody else needs to.
    package var isFirst: Bool

    var mappings: [Int] { [mapping] + asks }
  }

  package struct Emission: Codable, Sendable, Equatable {
    package var group: Int
    /// 0: the row that the group sets is the object at hand, for a join table the object of the
    /// first column. 1: it is the other one.
    package var side: Int
  }
}

/// The relationship of the source that is followed, and where its references may lead.
package struct SourceReference: Codable, Sendable, Equatable {
  package var relationship: String
  /// The table of its targets.
  package var table: String
  /// `Z_ENT` of its targets.
  package var allowed: [Int64]
}

/// Pairs of one relationship, gathered from every shard and sorted, to be set on its other side.
package struct RelationshipGroup: Codable, Sendable, Equatable {
  package enum Target: Codable, Sendable, Equatable {
    /// To-one columns of a table: number in ``MigrationPlan/tables``.
    case columns(table: Int, isOrdered: Bool)
    /// Number in ``MigrationPlan/joinTables``.
    case join(Int, firstIsOrdered: Bool, secondIsOrdered: Bool, isReflexive: Bool)
    /// A derived attribute's column: how often an object stands in the pairs of another group, on
    /// side 0 or 1, the row that it sets or the other one; nil where there are no pairs.
    case count(of: Int?, side: Int)
  }

  package var entity: EntityName
  package var relationship: String
  package var target: Target
  /// True when the inverse is to-one, too: who takes an object over takes it from another. The
  /// pairs are then set one after the other, in Core Data's order.
  package var isOneToOne = false
  /// True for one-to-one with itself: each pair comes both ways round. Nil else, so that such plans
  /// keep their fingerprint.
  package var isOwnInverse: Bool?
  /// True for the second of the two groups that have the pairs of a one-to-one relationship.
  package var isMirror = false
  /// True when its pairs are counted: then all of them must be here, and what is set to nil.
  package var isCounted = false
  /// True when both sides of a relationship that is not one-to-one are set, and not to the same:
  /// the pairs are then set one after the other, too. Nil else, so that such plans keep their
  /// fingerprint.
  package var isSequential: Bool?
  /// True in migrations with policies, whose code may set either side of any object: then nobody's word
  /// may be missing, as what is set to nil. Whether pairs are set one after the other shows when the
  /// hooks have run, see ``HookWords``. Nil else, so that such plans keep their fingerprint.
  package var isOpen: Bool?

  /// True when all pairs must be here, as what is set to nil or to nothing, and nobody else speaks.
  package var isDecisive: Bool { isOneToOne || isSequential == true }
}

/// A column that a ``RelationshipGroup`` sets, as the objects of one mapping have it. Places are
/// numbers among the table's relationship places.
package struct RelationshipFill: Codable, Sendable, Equatable {
  package var group: Int
  package var keyPlace: Int
  package var entityPlace: Int?
  package var orderPlace: Int?
  /// True when the mapping itself sets the relationship; then only the place in the owner's list
  /// comes from the group.
  package var keepsOwn: Bool
  /// True when objects have a word of their own, or none, one by one: the group is asked where
  /// the column is NULL.
  package var yieldsToOwn = false
  /// True when the group alone decides, whatever the mapping has set.
  package var isDecided = false
  /// The value where the group has none; NULL otherwise.
  package var otherwise: Int64?
  /// True where the column holds floating-point numbers. Nil else, so that such plans keep their
  /// fingerprint.
  package var isReal: Bool?
  /// What a count that its column may not hold is told of; nil where there is no such count.
  package var limit: CountLimit?
}

/// A derived attribute that counts, and whose type may be too small for it.
package struct CountLimit: Codable, Sendable, Equatable {
  package var entity: EntityName
  package var attribute: String
  package var relationship: String
  package var type: AttributeType
  /// The highest number that a value of the type has.
  package var most: Int64
}

/// How many members a to-many relationship may have.
package struct CountRule: Codable, Sendable, Equatable {
  package var table: Int
  package var entity: EntityName
  package var entityNumber: Int64
  package var relationship: String
  package var low: Int64
  /// 0 for no limit.
  package var high: Int64
  /// An empty optional relationship is always allowed.
  package var isOptional: Bool
  /// A query on the destination: `?1` is the owner's `Z_PK`; it gives the number of members.
  package var countSQL: String
}

/// How to read the objects of one source entity by key, for expressions.
package struct SourceEntityAccess: Codable, Sendable, Equatable {
  package var entity: EntityName
  package var number: Int64
  package var table: String
  package var attributes: [SourceAttribute]
  /// Attributes and relationships that the model has and the store does not hold: their value is nil.
  package var unstored: [String]
  package var relationships: [SourceRelationship]
}

/// A relationship of the source.
package struct SourceRelationship: Codable, Sendable, Equatable {
  package var name: String
  package var isToMany: Bool
  package var isOrdered: Bool
  /// From `FROM` on: the rows of the objects are called `y`, and `?1` is the owner's key.
  package var rows: String
  /// The column of the owner's row that holds the object's key, where it is a to-one and has one.
  package var keyColumn: String?
  /// The entities of the objects it may lead to.
  package var destinationEntities: [EntityName]

  /// Gives key and `Z_ENT` of the objects, in order, and further columns of theirs.
  package func sql(_ columns: [String] = []) -> String {
    let wanted = (["Z_PK", "Z_ENT"] + columns).map { "y." + quoted($0) }
    return "SELECT \(wanted.joined(separator: ", ")) \(rows)"
  }
}
