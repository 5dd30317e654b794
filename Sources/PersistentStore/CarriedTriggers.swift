import GodwitDurableFiles
import GodwitObjectModel
import GodwitSQLite

/// What becomes of a source store's triggers.
///
/// Core Data keeps derived attributes by triggers. How it writes them is known for counts only, so
/// none is made; one that means the same in the destination is carried.
/// Source: `core-data-sqlite-format.md` §8.1.
package struct CarriedTriggers: Sendable, Equatable {
  /// Their SQL, in the source's order. To be run last: triggers would fire while rows are copied.
  package var statements: [String] = []
  /// What a person should know: triggers left behind, derived attributes without a trigger.
  package var notes: [String] = []

  /// SQL functions that only Core Data registers and that its triggers call. A connection that
  /// writes to a table with such a trigger needs stubs of them.
  package static let coreDataFunctions = [
    "NSCoreDataDATriggerUpdatedAffectedObjectValue",
    "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue", now,
  ]
  /// Likewise, what gives the time.
  package static let now = "NSCoreDataNow"

  /// Triggers of derived attributes are named `Z_DA_<table>_<entity>_<attribute>_<what>`. Entities and attributes may
  /// have `_` in their names, so all of it counts.
  package static func keeps(
    _ trigger: String, on table: String, _ attribute: String, of entity: EntityName
  ) -> Bool {
    let what = trigger.after("Z_DA_\(table)_\(entity)_\(attribute)_")
    // Counts have the first two. How others are named is not known.
    return ["PARAMETER_", "SOURCE_", "INSERT", "UPDATE", "DELETE"]
      .contains { what?.begins(with: $0) ?? false }
  }
}

extension DestinationSchema {
  /// Tells of a table's or column's name whether it means another thing than in the source, or nothing, or does
  /// not hold all that it held.
  package func strangeNames(
    in source: StoreBinding, successors: SuccessorNames
  ) -> (String) -> Bool {
    let comparison = TriggerComparison(source, layout, successors)
    return { !comparison.isSame($0.columnKey) || !comparison.keepsObjects($0.columnKey) }
  }

  /// Sorts a source store's triggers into those that mean the same in the destination and those
  /// that do not.
  ///
  /// A trigger is carried when every table and column of the model that its text names is, under
  /// the destination, that of the successor of the same entity and property; when no entity's objects have left
  /// such a table or joined it; when numbers of entities that it may compare with are those of their successors;
  /// when what a derived attribute that it keeps is derived from has the same place; when columns that it means by
  /// their place, and constraints by which it settles conflicts, are the same; and when SQLite accepts it over the
  /// destination's schema.
  ///
  /// - Parameter isDropped: Tells of a table that is not the model's whether the destination lacks it.
  package func carriedTriggers(
    from source: StoreBinding, successors: SuccessorNames = .same,
    without isDropped: (String) -> Bool = { _ in false }
  ) throws -> CarriedTriggers {
    var result = CarriedTriggers()
    var kept: [SchemaObject] = []
    let triggers = source.store.schemaObjects.filter { $0.kind == .trigger && $0.sql != nil }
    if !triggers.isEmpty {
      let trial = try SQLiteError.nilByContent {
        try trialConnection(source.store, without: isDropped)
      }
      let comparison = TriggerComparison(source, layout, successors)
      for trigger in triggers {
        if let sql = trigger.sql, let trial, comparison.isSame(trigger),
          try Self.accepts(trigger, sql, trial)
        {
          result.statements.append(sql)
          kept.append(trigger)
        } else {
          result.notes.append(
            "The trigger \(trigger.name) would not mean the same in the destination and is not "
              + "carried.")
        }
      }
    }
    for name in layout.hierarchy.order {
      for case .attribute(let attribute) in layout.hierarchy[name]?.properties ?? []
      where attribute.derivationExpression != nil && !attribute.traits.isTransient {
        let isKept = kept.contains { trigger in
          CarriedTriggers.keeps(trigger.name, on: trigger.table, attribute.name, of: name)
        }
        guard !isKept else { continue }
        result.notes.append(
          "No trigger keeps the derived attribute \(name).\(attribute.name): its values are those "
            + "of the migration until Core Data saves the objects.")
      }
    }
    return result
  }

  /// The destination's schema and the foreign tables that are carried, without a row.
  private func trialConnection(
    _ source: SourceStore, without isDropped: (String) -> Bool
  ) throws -> Connection {
    let trial = try Connection(path: ":memory:", mode: .create)
    try trial.registerFunctionStubs(CarriedTriggers.coreDataFunctions)
    for statement in statements { try trial.execute(statement.sql) }
    for table in try source.foreignTables() where !table.isVirtual && !isDropped(table.name) {
      try? trial.define(.table, table.sql)
    }
    return trial
  }

  /// SQLite compiles a trigger when a statement fires it, and finds unknown columns only then.
  private static func accepts(
    _ trigger: SchemaObject, _ sql: String, _ trial: Connection
  ) throws -> Bool {
    let table = quoted(trigger.table)
    do {
      try trial.define(.trigger, sql)
    } catch let error as SQLiteError where !error.isOutOfMemory {
      return false
    }
    do {
      let columns = try trial.rows("PRAGMA table_info(\(table))").compactMap { $0[1].text }
      let all = columns.map { "\(quoted($0)) = \(quoted($0))" }.joined(separator: ", ")
      _ = try trial.prepare("INSERT INTO \(table) DEFAULT VALUES")
      _ = try trial.prepare("DELETE FROM \(table)")
      _ = try trial.prepare("UPDATE \(table) SET \(all)")
      return true
    } catch let error as SQLiteError where !error.isOutOfMemory {
      // Its table could not be written to any more.
      try? trial.execute("DROP TRIGGER IF EXISTS \(quoted(trigger.name))")
      return false
    }
  }
}
