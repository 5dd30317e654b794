import GodwitPersistentStore
import GodwitSQLite

extension PlanMaker {
  /// The model's tables are read by SQLite, which needs every collation and function that their columns name:
  /// an application may have given them one of its own.
  ///
  /// - Throws: ``PlanError/unsupported(store:what:)`` where it lacks one, before anything is copied.
  func requireOwnTables() throws {
    let names = binding.layout.tables.map(\.name) + binding.joinTables.map(\.name)
    for name in names where !context.store.columns(of: name).isEmpty {
      do {
        // A column's collation is looked up where a subquery has the column.
        _ = try context.store.connection.prepare(
          "SELECT * FROM (SELECT * FROM \(quoted(name))) LIMIT 1")
      } catch let error as SQLiteError where error.isRefused {
        throw PlanError.unsupported(
          store: request.store.string,
          what:
            "the table \(name) cannot be read, because SQLite cannot work with it without the application: "
            + "\(error.message). `godwit repair` writes its rows into a store as Core Data makes it"
        )
      }
    }
  }
}
