import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

extension PlanMaker {
  /// Tables of the application whose foreign keys name a table of the model, or one that is not carried. Their
  /// text and their values are carried as they are, though objects may go to another table or get other keys.
  ///
  /// - Parameters:
  ///   - schema: The destination's; nil where a mapping model makes the objects.
  ///   - dropped: History's and CloudKit's tables where they are not carried.
  func foreignKeyNotes(
    _ schema: DestinationSchema?, dropping dropped: [String] = []
  ) throws -> [String] {
    let source = context.source
    let dropped = try dropped + binding.unknownTables()
    let all = source.tables.map(\.name) + source.joinTables.map(\.name) + dropped
    let carried = try context.store.foreignTables().filter {
      !$0.isVirtual && !dropped.contains($0.name)
    }
    let refusal =
      "The reference is carried as it is: SQLite refuses changes where foreign keys are enforced."
    // Of no use to most stores.
    lazy var isStrange = schema?.strangeNames(
      in: binding, successors: SuccessorNames(context.inference))
    return try carried.flatMap { table -> [String] in
      let rows = try context.store.connection.rows(
        "SELECT \"table\", id, \"to\" FROM pragma_foreign_key_list(?1) ORDER BY 1, id, seq",
        [.text(table.name)])
      let named = Dictionary(grouping: rows) { $0.first?.text?.columnKey ?? [] }
      return try named.sorted { $0.key.lexicographicallyPrecedes($1.key) }.compactMap {
        key, rows -> String? in
        guard let name = all.first(where: { $0.columnKey == key }) else { return nil }
        let begin = "The table \(table.name) refers to \(name)"
        if dropped.contains(name) { return "\(begin), which is not carried. \(refusal)" }
        guard let schema, let isStrange else {
          return "\(begin) by keys of the source, which are carried as they are."
        }
        let strange = ([name] + rows.compactMap { $0.last?.text }).filter(isStrange)
        guard let model = source.tables.first(where: { $0.name == name }),
          strange.allSatisfy({ $0 == name })
        else {
          return strange.isEmpty
            ? nil
            : "\(begin), and \(strange.joined(separator: ", ")) is not in the new store what it was. "
              + refusal
        }
        let keys = Dictionary(grouping: rows) { $0[1].integer }.values
        let lost = try keys.map { $0.compactMap { $0.last?.text } }.filter {
          try isUnique($0, of: name) && !isUnique($0, of: name, in: schema)
        }
        if !lost.isEmpty {
          let columns = lost.map { $0.joined(separator: " and ") }.sorted { $0.precedesInBytes($1) }
          return
            "\(begin), and nothing keeps \(columns.joined(separator: ", ")) unique in the new store. "
            + refusal
        }
        let next = Set(
          model.entities.compactMap {
            context.successor[$0].flatMap { context.destination.table(of: $0)?.name }
          })
        if next == [model.name] { return nil }
        return begin
          + (next.isEmpty
            ? ", whose objects have no successor."
            : ", whose objects go to \(next.sorted().joined(separator: " and ")).")
          + " The reference is carried as it is."
      }
    }
  }

  /// Whether an index of the source keeps columns unique, just these, as SQLite asks for what a foreign key
  /// names. Of `Z_PK` nothing says so: it is the row id.
  private func isUnique(_ columns: [String], of table: String) throws -> Bool {
    let rows = try context.store.connection.rows(
      """
      SELECT i.name, c.name
        FROM pragma_index_list(?1) AS i, pragma_index_info(i.name) AS c
       WHERE i."unique" AND NOT i.partial
      """, [.text(table)])
    let indexes = Dictionary(grouping: rows) { $0.first?.text }.values
    // What is no column has no name there.
    return indexes.contains { index in
      Set(index.map { $0.last?.text?.columnKey ?? [] }) == Set(columns.map(\.columnKey))
    }
  }

  private func isUnique(_ columns: [String], of table: String, in schema: DestinationSchema) -> Bool
  {
    schema.statements.contains { index in
      index.isUnique && index.table == table
        && Set(index.indexedColumns.map(\.name.columnKey)) == Set(columns.map(\.columnKey))
    }
  }
}
