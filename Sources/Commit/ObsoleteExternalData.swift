import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// Finds the external data that only rows of the source refer to: of entities without successor,
/// and of attributes that are gone or no longer stored outside.
///
/// A file that no row ever referred to is not ours to judge, and stays.
struct ObsoleteExternalData {
  private let plan: MigrationPlan

  init(_ plan: MigrationPlan) { self.plan = plan }

  /// Names of files in the folder that the source refers to and the assembled store does not.
  func names(in folder: FilePath, assembled: FilePath) throws -> [String] {
    let before = sourceColumns()
    guard !before.isEmpty else { return [] }
    let present = Set(try ExternalDataFolder.names(in: folder))
    guard !present.isEmpty else { return [] }
    let file = try Connection(path: assembled.string, mode: .immutable)
    try file.attachImmutable(plan.readPath, as: "src")
    try file.execute("CREATE TEMP TABLE reference (name TEXT PRIMARY KEY) WITHOUT ROWID")
    for place in before {
      try file.execute("INSERT OR IGNORE INTO reference \(references(in: "src", place))")
    }
    for place in destinationColumns() {
      try file.execute(
        "DELETE FROM reference WHERE name IN (\(references(in: "main", place)))")
    }
    let statement = try file.prepare("SELECT name FROM reference ORDER BY name")
    var names: [String] = []
    while try statement.step() {
      if let name = statement.value(0).text, present.contains(name),
        ExternalDataFolder.isSound(name)
      {
        names.append(name)
      }
    }
    return names
  }

  private struct Place: Hashable {
    var table: String
    var column: String
  }

  private func references(in schema: String, _ place: Place) -> String {
    ExternalDataFolder.references(in: "\(schema).\(quoted(place.table))", column: place.column)
  }

  /// Where references of rows that do not move unread may be. A table that is carried keeps all it
  /// has.
  private func sourceColumns() -> [Place] {
    places { table in
      guard let source = table.sourceTable, table.way != .carried else { return [] }
      return table.entities.flatMap { columns(of: $0.sourceRules, table.copyColumns) }.map {
        Place(table: source, column: $0)
      }
    }
  }

  private func destinationColumns() -> [Place] {
    places { table in
      guard table.way == .carried || table.way == .computed else { return [] }
      return table.entities.flatMap { columns(of: $0.destinationRules, table.columns) }.map {
        Place(table: table.name, column: $0)
      }
    }
  }

  private func columns(of rules: RowRules, _ columns: [String]) -> [String] {
    rules.rules.compactMap { rule in
      guard rule.check == .external, columns.indices.contains(Int(rule.place)) else { return nil }
      return columns[Int(rule.place)]
    }
  }

  private func places(_ of: (TablePlan) -> [Place]) -> [Place] {
    var seen: Set<Place> = []
    return plan.tables.flatMap(of).filter { seen.insert($0).inserted }
  }
}
