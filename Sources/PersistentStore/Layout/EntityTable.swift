import GodwitObjectModel

/// The table of one root entity: every object of its inheritance tree is a row of it.
///
/// Source: `core-data-sqlite-format.md` §4.
package struct EntityTable: Sendable, Equatable {
  /// `Z` and the root's name in capitals. Not quoted: see ``StoreLayout/identifier(_:)``.
  package let name: String
  package let root: EntityName
  /// The root and everything below it, in the order of `Z_ENT`.
  package let entities: [EntityName]
  /// What follows `Z_PK`, `Z_ENT` and `Z_OPT`, in Core Data's order.
  package internal(set) var columns: [Column]
  /// The `CREATE TABLE` statement as Core Data writes it.
  package let sql: String
  /// The indexes of this table and of the join tables named after its entities.
  package internal(set) var indexes: [SchemaStatement] = []

  /// The columns that every entity table begins with.
  package static let systemColumns = ["Z_PK", "Z_ENT", "Z_OPT"]
}

/// One column of an entity table.
package struct Column: Sendable, Equatable {
  /// Not quoted: see ``StoreLayout/identifier(_:)``.
  package let name: String
  /// `INTEGER`, `DECIMAL`, `FLOAT`, `TIMESTAMP`, `VARCHAR` or `BLOB`.
  package let declaredType: String
  package let role: Role
}

/// What a column holds. The entity is the one that declares the property.
package enum Role: Sendable, Hashable {
  case attribute(EntityName, String)
  /// One element of a composite attribute, named by its path below the composite.
  case leaf(EntityName, composite: String, path: [String])
  /// `Z_PK` of the destination.
  case toOne(EntityName, String)
  /// `Z_ENT` of the destination; there where the destination entity has sub-entities.
  case targetEntity(EntityName, String)
  /// The place of the object in the ordered inverse of its to-one relationship: `Z_FOK_…`.
  case order(EntityName, String)
  /// `Z_PK` of the owner in a to-many relationship without inverse, declared by that owner.
  case owner(EntityName, relationship: String)
}

/// A column that holds values of an attribute, or of an element of a composite one.
package struct ValueColumn: Sendable, Equatable {
  /// Names of elements, from the composite's own elements down; none where there is no composite.
  package let path: [String]
  /// The attribute or the element.
  package let attribute: AttributeDescription
  package let column: String

  package var type: AttributeType { attribute.type }

  /// The key path of the column's values, below the attribute of that name: `place.street`.
  package func keyPath(below attribute: String) -> String {
    ([attribute] + path).joined(separator: ".")
  }
}

/// The table of a many-to-many relationship.
///
/// Source: `core-data-sqlite-format.md` §7.
package struct JoinTable: Sendable, Equatable {
  package let name: String
  /// Declares ``relationship``, whose name the table bears.
  package let entity: EntityName
  package let relationship: String
  /// Declares ``inverse``.
  package let inverseEntity: EntityName
  package let inverse: String
  /// Keys of the objects of ``entity``. Named after the inverse.
  package let firstColumn: String
  /// Keys of the objects of ``inverseEntity``. Named after the relationship.
  package let secondColumn: String
  /// Place of the object of ``entity`` in the list of its partner: the inverse is ordered.
  package let firstOrderColumn: String?
  /// Place of the object of ``inverseEntity`` in the list of its partner: the relationship is
  /// ordered.
  package let secondOrderColumn: String?

  package init(
    name: String, entity: EntityName, relationship: String, inverseEntity: EntityName,
    inverse: String, firstColumn: String, secondColumn: String, firstOrderColumn: String? = nil,
    secondOrderColumn: String? = nil
  ) {
    self.name = name
    self.entity = entity
    self.relationship = relationship
    self.inverseEntity = inverseEntity
    self.inverse = inverse
    self.firstColumn = firstColumn
    self.secondColumn = secondColumn
    self.firstOrderColumn = firstOrderColumn
    self.secondOrderColumn = secondOrderColumn
  }

  /// A relationship that is its own inverse; its table has the column `REFLEXIVE`.
  package var isReflexive: Bool { entity == inverseEntity && relationship == inverse }

  /// The columns as the table has them.
  package var columns: [String] {
    [firstColumn, secondColumn] + [firstOrderColumn, secondOrderColumn].compactMap { $0 }
  }

  /// The `CREATE TABLE` statement as Core Data writes it.
  package var sql: String {
    let listed = columns.map { "\(StoreLayout.identifier($0)) INTEGER" }.joined(separator: ", ")
    let keys = [firstColumn, secondColumn].map(StoreLayout.identifier).joined(separator: ", ")
    return "CREATE TABLE \(StoreLayout.identifier(name)) ( \(listed), PRIMARY KEY (\(keys)) )"
  }
}

/// One statement of a store's schema.
package struct SchemaStatement: Codable, Sendable, Equatable {
  package enum Kind: String, Codable, Sendable {
    case table, index
  }

  /// One column of an index.
  package struct IndexedColumn: Codable, Sendable, Equatable {
    package let name: String
    package let isAscending: Bool

    package init(name: String, isAscending: Bool = true) {
      self.name = name
      self.isAscending = isAscending
    }
  }

  package let name: String
  package let sql: String
  package let kind: Kind
  /// The table itself, or the one that the index is on.
  package let table: String
  /// In the order of the index; empty for a table.
  package let indexedColumns: [IndexedColumn]
  package let isUnique: Bool
  /// True for fetch indexes and uniqueness constraints: two of them may have the same columns and
  /// are told apart by name. The others are only known by what they index.
  package let goesByName: Bool

  init(table name: String, sql: String) {
    self.name = name
    self.sql = sql
    self.kind = .table
    self.table = name
    self.indexedColumns = []
    self.isUnique = false
    self.goesByName = true
  }

  /// - Parameter spellsOutOrder: Writes `COLLATE BINARY ASC`, as fetch indexes have it.
  init(
    index name: String, on table: String, _ columns: [IndexedColumn], isUnique: Bool = false,
    spellsOutOrder: Bool = false
  ) {
    let listed = columns.map { column in
      let identifier = StoreLayout.identifier(column.name)
      guard spellsOutOrder else { return identifier }
      return "\(identifier) COLLATE BINARY \(column.isAscending ? "ASC" : "DESC")"
    }
    self.name = name
    self.sql =
      "CREATE \(isUnique ? "UNIQUE " : "")INDEX \(StoreLayout.identifier(name)) ON "
      + "\(StoreLayout.identifier(table)) (\(listed.joined(separator: ", ")))"
    self.kind = .index
    self.table = table
    self.indexedColumns = columns
    self.isUnique = isUnique
    self.goesByName = spellsOutOrder
  }
}
