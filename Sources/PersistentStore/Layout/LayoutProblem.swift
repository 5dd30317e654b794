import GodwitObjectModel

/// What keeps a computed schema from being created.
///
/// How Core Data tells such names apart is not known, so no store is written for such a model.
package enum LayoutProblem: Error, Sendable, Equatable {
  /// Two entities or relationships give tables of one name, or the name of a control table.
  case duplicateTable(String)
  /// The index is left out: its name is taken.
  case duplicateIndex(String)
  /// The index is left out: an R-tree, a partial one, one over something else than columns, or over an attribute
  /// alone whose name a relationship of another entity of the table has. How Core Data writes those is not known.
  case unknownIndex(String, of: EntityName)
  /// The index of a uniqueness constraint is left out, and nothing keeps its rule: a property of it has no
  /// column, or more than one, or another index has its name.
  case unknownConstraint([String], of: EntityName)
  /// The table has more columns than SQLite makes.
  case tooManyColumns(table: String, count: Int)
  /// A name with a NUL character cannot stand in SQL.
  case unusableName(String)

  /// True when a store of this layout cannot be created at all.
  package var isFatal: Bool {
    switch self {
    case .duplicateIndex, .unknownIndex, .unknownConstraint: false
    case .duplicateTable, .tooManyColumns, .unusableName: true
    }
  }

  /// 2000. SQLite's own limit, with which Core Data's is built, too.
  /// https://sqlite.org/limits.html#max_column
  package static let mostColumns = 2_000

  /// What every store has besides the tables of its model; stores of old frameworks lack the last.
  package static let controlTables = ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"]

  static func all(tables: [EntityTable], joins: [JoinTable]) -> [LayoutProblem] {
    var problems: [LayoutProblem] = []
    var taken = Set(controlTables.map(folded))
    for name in tables.map(\.name) + joins.map(\.name) {
      if !taken.insert(folded(name)).inserted { problems.append(.duplicateTable(name)) }
    }
    for table in tables {
      let count = EntityTable.systemColumns.count + table.columns.count
      if count > mostColumns { problems.append(.tooManyColumns(table: table.name, count: count)) }
    }
    let names =
      tables.flatMap { [$0.name] + $0.columns.map(\.name) }
      + joins.flatMap { [$0.name] + $0.columns }
    return problems + names.filter { $0.utf8.contains(0) }.map { .unusableName($0) }
  }

  /// SQLite compares names without regard to the case of ASCII letters, and of no others.
  package static func folded(_ name: String) -> [UInt8] {
    name.utf8.map { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) ? $0 - 32 : $0 }
  }
}

extension LayoutProblem: CustomStringConvertible {
  package var description: String {
    switch self {
    case .duplicateTable(let name):
      "Two parts of the model need a table named \(name). Rename an entity or a relationship."
    case .duplicateIndex(let name):
      "The model asks twice for an index named \(name); only the first is made."
    case .unknownIndex(let name, let entity):
      "The index \(name) of \(entity) is not made: how Core Data writes one of its kind is not known."
    case .unknownConstraint(let properties, let entity):
      "The uniqueness constraint \(entity) (\(properties.joined(separator: ", "))) is not kept: not every "
        + "property of it has a column of its own, or another index has its name, and how Core Data "
        + "keeps such a one is not known."
    case .tooManyColumns(let table, let count):
      "The table \(table) needs \(count) columns, and SQLite makes \(Self.mostColumns) at most. Move attributes "
        + "to another entity."
    case .unusableName(let name):
      "The name \(name.debugDescription) has a NUL character and cannot be used in SQL. "
        + "Rename the entity or property."
    }
  }
}
