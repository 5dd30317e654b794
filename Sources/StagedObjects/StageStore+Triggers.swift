import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

// An application's triggers: they would write rows that neither a handler nor the policy for invalid rows has
// asked for, or keep a row from being written.
extension StageStore {
  /// Takes the triggers out of the schema, but for those that keep derived attributes of the model, within the
  /// open transaction.
  ///
  /// - Returns: What ``putBack(_:)`` puts there again, byte for byte and in the same order.
  func takeTriggers() throws -> [[SQLiteValue]] {
    let taken = try connection.rows(
      "SELECT rowid, name, tbl_name, sql FROM main.sqlite_master WHERE type = 'trigger'"
    ).filter { !keepsDerived($0[1].text ?? "", on: $0[2].text ?? "") }
    guard !taken.isEmpty else { return [] }
    try changingSchema {
      for row in taken {
        _ = try connection.rows("DELETE FROM main.sqlite_master WHERE rowid = ?1", [row[0]])
      }
    }
    return taken
  }

  func putBack(_ triggers: [[SQLiteValue]]) throws {
    guard !triggers.isEmpty else { return }
    try changingSchema {
      for row in triggers {
        _ = try connection.rows(
          """
          INSERT INTO main.sqlite_master (rowid, type, name, tbl_name, rootpage, sql)
          VALUES (?1, 'trigger', ?2, ?3, 0, ?4)
          """, row)
      }
    }
  }

  /// `sqlite_master` is a table like any other meanwhile, and is read anew then.
  ///
  /// Source: https://sqlite.org/pragma.html#pragma_writable_schema.
  private func changingSchema(_ body: () throws -> Void) throws {
    try connection.execute("PRAGMA writable_schema = ON")
    try body()
    try connection.execute("PRAGMA writable_schema = RESET")
  }

  private func keepsDerived(_ trigger: String, on table: String) -> Bool {
    model.order.contains { owner in
      (model[owner]?.properties ?? []).contains {
        $0.attribute?.derivationExpression != nil
          && CarriedTriggers.keeps(trigger, on: table, $0.name, of: owner)
      }
    }
  }
}
