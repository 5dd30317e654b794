import GodwitObjectModel

/// The schema that Core Data gives a model: tables, columns, join tables and indexes.
///
/// Everything is computed from the model by rules; nothing is read from a store. A store that was
/// migrated in place may have more columns and another order, so columns are found by name:
/// ``StoreBinding`` does that.
///
/// Source: `core-data-sqlite-format.md` §4–§8, checked there against the text of real stores.
package struct StoreLayout: Sendable {
  /// The framework version whose layout is written. The rules are the same from about 900 on.
  package static let recentFramework = 1447

  package let hierarchy: EntityHierarchy
  package let frameworkVersion: Int
  /// `Z_ENT` of every entity.
  package let entityNumbers: [EntityName: Int]
  /// In the order of their roots' numbers.
  package private(set) var tables: [EntityTable]
  /// In Core Data's order of creation within each table.
  package private(set) var joinTables: [JoinTable]
  /// What keeps this layout from being created as it stands, or is left out of it.
  package let problems: [LayoutProblem]

  /// What is left out of a store of this layout, for a person.
  package var notes: [String] { problems.filter { !$0.isFatal }.map(\.description) }

  private var columnNames: ColumnNames
  private let tableIndex: [EntityName: Int]
  private let joinIndex: [PropertyKey: (index: Int, isFirst: Bool)]

  /// - Parameters:
  ///   - frameworkVersion: Decides about the forms of old stores: uniqueness inside the table
  ///     before 860, indexes of the old flags before 800.
  ///   - entityNumbers: The store's own numbers where they are not those of the rule. An entity
  ///     that is missing here keeps the number of the rule.
  package init(
    _ hierarchy: EntityHierarchy, frameworkVersion: Int = recentFramework,
    entityNumbers: [EntityName: Int]? = nil
  ) {
    let input = Input(
      hierarchy: hierarchy.hashes, frameworkVersion: frameworkVersion, numbers: entityNumbers)
    self = Self.recent.output(for: input) {
      StoreLayout(computing: hierarchy, frameworkVersion, entityNumbers)
    }
  }

  /// What a layout depends on. The hierarchy is told by what its copies share.
  private struct Input: Equatable, Sendable {
    var hierarchy: Memo<[EntityName: VersionHash]>
    var frameworkVersion: Int
    var numbers: [EntityName: Int]?

    static func == (a: Input, b: Input) -> Bool {
      a.hierarchy === b.hierarchy && a.frameworkVersion == b.frameworkVersion
        && a.numbers == b.numbers
    }
  }

  /// The stores of a fleet have the same few.
  private static let recent = RecentResults<Input, StoreLayout>(limit: 8)

  private init(
    computing hierarchy: EntityHierarchy, _ frameworkVersion: Int,
    _ entityNumbers: [EntityName: Int]?
  ) {
    let numbers =
      entityNumbers.map { given in hierarchy.numbers.merging(given) { _, own in own } }
      ?? hierarchy.numbers
    var naming = TableNaming(
      hierarchy: hierarchy, numbers: numbers, frameworkVersion: frameworkVersion)
    var tables = hierarchy.roots.map { naming.table(of: $0) }
    let joins = JoinNaming(hierarchy: hierarchy, numbers: numbers).joinTables()

    var tableIndex: [EntityName: Int] = [:]
    for (index, table) in tables.enumerated() {
      for entity in table.entities { tableIndex[entity] = index }
    }
    var joinIndex: [PropertyKey: (index: Int, isFirst: Bool)] = [:]
    for (index, join) in joins.enumerated() {
      joinIndex[PropertyKey(join.entity, join.relationship)] = (index, true)
      if !join.isReflexive {
        joinIndex[PropertyKey(join.inverseEntity, join.inverse)] = (index, false)
      }
    }
    var indexing = IndexNaming(
      hierarchy: hierarchy, columns: naming.names, keyColumns: naming.keyColumns,
      frameworkVersion: frameworkVersion, taken: tables.map(\.name) + joins.map(\.name))
    for index in tables.indices {
      let members = Set(tables[index].entities)
      tables[index].indexes = indexing.indexes(
        of: tables[index], joins: joins.filter { members.contains($0.entity) })
    }
    self.hierarchy = hierarchy
    self.frameworkVersion = frameworkVersion
    self.entityNumbers = numbers
    self.tables = tables
    self.joinTables = joins
    self.columnNames = naming.names
    self.tableIndex = tableIndex
    self.joinIndex = joinIndex
    self.problems = LayoutProblem.all(tables: tables, joins: joins) + indexing.problems
  }
}

extension StoreLayout {
  /// The table that holds the objects of an entity: its root's.
  package func table(of entity: EntityName) -> EntityTable? {
    tableIndex[entity].map { tables[$0] }
  }

  /// The column of an own or inherited attribute or to-one relationship.
  ///
  /// Nil for everything without a column of its own, composites included.
  package func column(of property: String, in entity: EntityName) -> String? {
    declaring(property, entity).flatMap { columnNames.columns[$0] }
  }

  /// The column with `Z_ENT` of a to-one relationship's destination: `Z<n>_REL`.
  ///
  /// Nil where the destination entity has no sub-entities. Source: §4.3.
  package func entityColumn(of property: String, in entity: EntityName) -> String? {
    declaring(property, entity).flatMap { columnNames.entityColumns[$0] }
  }

  /// The column with the object's place in the ordered inverse of a to-one relationship.
  package func orderColumn(of toOne: String, in entity: EntityName) -> String? {
    declaring(toOne, entity).flatMap { columnNames.orderColumns[$0] }
  }

  /// The columns of a composite attribute's elements, in declared order. Source: §4.5.
  package func leafColumns(of composite: String, in entity: EntityName) -> [ValueColumn] {
    declaring(composite, entity).flatMap { columnNames.leaves[$0] } ?? []
  }

  /// The columns of an attribute: its own, or those of a composite's elements.
  package func valueColumns(
    of attribute: AttributeDescription, in entity: EntityName
  ) -> [ValueColumn] {
    guard attribute.type != .composite else { return leafColumns(of: attribute.name, in: entity) }
    return column(of: attribute.name, in: entity).map {
      [ValueColumn(path: [], attribute: attribute, column: $0)]
    } ?? []
  }

  /// The column, in the table of the destination, of a to-many relationship without inverse.
  ///
  /// Source: §4.4.
  package func ownerColumn(of toMany: String, in owner: EntityName) -> String? {
    declaring(toMany, owner).flatMap { columnNames.ownerColumns[$0] }
  }

  /// The join table of a to-many relationship, and whether `entity`'s keys are in its first
  /// column.
  ///
  /// A reflexive relationship is given as first; its pairs stand in the table both ways round.
  package func join(
    of relationship: String, in entity: EntityName
  ) -> (table: JoinTable, isFirst: Bool)? {
    guard let key = declaring(relationship, entity), let found = joinIndex[key] else { return nil }
    return (joinTables[found.index], found.isFirst)
  }

  /// Takes over what a join table is really called in a store.
  mutating func replaceJoin(at index: Int, by join: JoinTable) { joinTables[index] = join }

  /// Takes over what a column is really called in a store.
  mutating func renameColumn(at place: Int, ofTable table: Int, to name: String) {
    let old = tables[table].columns[place]
    tables[table].columns[place] = Column(
      name: name, declaredType: old.declaredType, role: old.role)
    switch old.role {
    case .targetEntity(let entity, let property):
      columnNames.entityColumns[PropertyKey(entity, property)] = name
    case .owner(let entity, let relationship):
      columnNames.ownerColumns[PropertyKey(entity, relationship)] = name
    case .attribute(let entity, let property), .toOne(let entity, let property):
      columnNames.columns[PropertyKey(entity, property)] = name
    case .order(let entity, let property):
      columnNames.orderColumns[PropertyKey(entity, property)] = name
    case .leaf:
      break  // never under another name
    }
  }

  private func declaring(_ property: String, _ entity: EntityName) -> PropertyKey? {
    hierarchy.property(property, of: entity).map { PropertyKey($0.entity, property) }
  }

  /// `CREATE TABLE` and `CREATE INDEX` of everything that the model asks for, in Core Data's order:
  /// each root's table and the join tables named after it, then each root's indexes. Source: §8.
  package var statements: [SchemaStatement] {
    var result: [SchemaStatement] = []
    for table in tables {
      result.append(SchemaStatement(table: table.name, sql: table.sql))
      let members = Set(table.entities)
      for join in joinTables where members.contains(join.entity) {
        result.append(SchemaStatement(table: join.name, sql: join.sql))
      }
    }
    return result + tables.flatMap(\.indexes)
  }

  /// - Throws: ``StoreError/layout(_:)`` when no store can be made by this layout.
  package func requireUsable() throws {
    if let problem = problems.first(where: \.isFatal) { throw StoreError.layout(problem) }
  }

  /// The name as it stands in SQL: bare where Core Data would write it bare, else quoted.
  ///
  /// Names come from models, and a model may be anyone's: everything but letters, digits and `_`
  /// is quoted.
  package static func identifier(_ name: String) -> String {
    let isPlain = name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
    if isPlain, name.utf8.first == UInt8(ascii: "Z") || name == "REFLEXIVE" { return name }
    var text = "\""
    for character in name.unicodeScalars {
      if character == "\"" { text.unicodeScalars.append("\"") }
      text.unicodeScalars.append(character)
    }
    return text + "\""
  }
}

/// A property by the entity that declares it.
struct PropertyKey: Hashable, Sendable {
  let entity: EntityName
  let property: String

  init(_ entity: EntityName, _ property: String) {
    self.entity = entity
    self.property = property
  }
}

/// Where every property lies; keys are declaring entities.
struct ColumnNames: Sendable {
  var columns: [PropertyKey: String] = [:]
  var entityColumns: [PropertyKey: String] = [:]
  var orderColumns: [PropertyKey: String] = [:]
  var leaves: [PropertyKey: [ValueColumn]] = [:]
  var ownerColumns: [PropertyKey: String] = [:]
}
