import GodwitObjectModel
import GodwitSQLite

// What an application's own statements ask of the rows of the model's tables.
extension StoreBinding {
  /// A sentence about each table of the model with clauses that are not Core Data's: no destination has them.
  ///
  /// Core Data declares columns with a type and nothing else, but for `PRIMARY KEY`, and, of a model's uniqueness
  /// constraints, `UNIQUE`. Source: `core-data-sqlite-format.md` §4.6.
  ///
  /// - Throws: `SQLiteError` for a schema that cannot be read.
  package func constraintNotes() throws -> [String] {
    try Self.recentConstraints.output(for: form) { try findConstraintNotes() }
  }

  private static let recentConstraints = RecentResults<Form, [String]>(limit: 4)

  private func findConstraintNotes() throws -> [String] {
    let tables =
      layout.tables.map { (name: $0.name, entities: $0.entities) }
      + joinTables.map { (name: $0.name, entities: [EntityName]()) }
    return try tables.compactMap { table in
      guard let shape = try store.connection.shape(of: table.name), shape.kind == "table" else {
        return nil
      }
      let clauses = ownClauses(of: shape, table.name, table.entities)
      guard !clauses.isEmpty else { return nil }
      return
        "The table \(table.name) has clauses that are not Core Data's and are not carried: "
        + clauses.joined(separator: ", ") + "."
    }
  }

  private func ownClauses(
    of shape: TableShape, _ table: String, _ entities: [EntityName]
  ) -> [String] {
    let columns = shape.columns.filter { !$0.isHidden }
    // A name may be one of the words, or hold one.
    let names = Set(
      (shape.columns.map(\.name) + [table]).flatMap { name in
        name.uppercased().split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init)
      })
    func has(_ word: String) -> Bool { shape.words.contains(word) && !names.contains(word) }
    let clauses: [(isThere: Bool, name: String)] = [
      (has("CHECK"), "CHECK"), (hasOwnKey(shape, entities), "UNIQUE"),
      (columns.contains { !$0.isNullable && $0.keyPlace == 0 }, "NOT NULL"),
      (columns.contains(where: \.hasDefault), "DEFAULT"), (has("REFERENCES"), "FOREIGN KEY"),
      (has("COLLATE"), "COLLATE"), (has("AUTOINCREMENT"), "AUTOINCREMENT"),
    ]
    return clauses.filter(\.isThere).map(\.name)
  }

  /// Whether a `UNIQUE` of the table is none of the model's uniqueness constraints.
  private func hasOwnKey(_ shape: TableShape, _ entities: [EntityName]) -> Bool {
    let unique = shape.indexes.filter { $0.origin == "u" }
    guard !unique.isEmpty else { return false }
    let known = Set(
      entities.flatMap { entity in
        (hierarchy[entity]?.uniquenessConstraints ?? []).map { constraint in
          Set(constraint.compactMap { layout.column(of: $0, in: entity) }.map { NameKey($0) })
        }
      })
    return unique.contains { index in
      let places = index.fields.filter(\.isKey).map(\.column)
      let keys = places.compactMap { shape.columns.indices.contains($0) ? shape.columns[$0] : nil }
      return !known.contains(Set(keys.map { NameKey($0.name) }))
    }
  }
}
