import GodwitSQLite

/// The indexes of all other tables that have as many columns as one of a table: a page of theirs may stand in its
/// place.
final class OtherIndexes {
  /// The values of an entry, the row id left out.
  typealias Entry = (key: Int64, values: [SQLiteValue])

  /// Of a page: enough that they are not alike by chance.
  static let mostSamples = 16
  private static let leastSamples = 3

  private let file: Connection
  private let indexes: [(table: String, columns: [String])]
  /// Whether a table has a row, by the place of the index; nil for one that cannot be asked.
  private lazy var questions: [Statement?] = indexes.map { table, columns in
    let agrees = columns.indices.map { "\(quoted(columns[$0])) IS ?\($0 + 2)" }
    return try? file.prepare(
      "SELECT 1 FROM \(quoted(table)) WHERE rowid = ?1 AND "
        + agrees.joined(separator: " AND "))
  }

  init(than table: String, columns: [String], _ schema: SchemaSalvage, in file: Connection) {
    self.file = file
    indexes = schema.indexes(over: columns.count, ofOthersThan: table)
  }

  /// Whether another table has a row for each of the entries. Those without values prove nothing: rows of many
  /// tables are alike in what they do not have.
  func have(_ entries: [Entry]) throws -> Bool {
    let telling = entries.filter { $0.values.contains { $0 != .null } }
    guard Set(telling.map(\.values)).count >= Self.leastSamples else { return false }
    return try questions.contains { question in
      guard let question else { return false }
      return try telling.allSatisfy { key, values in
        defer { question.reset() }
        try question.bind(1, key)
        for (place, value) in values.enumerated() { try question.bind(Int32(place + 2), value) }
        return try question.step()
      }
    }
  }
}
