import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Asks the source store what inference leaves open: whether its rows forbid the migration.
struct RowConditions {
  let context: PlanContext

  /// The refusals whose condition the rows do not fulfil.
  func refusals() throws -> [Refusal] {
    try context.inference.rowConditions.compactMap { condition in
      let offending = try offendingRows(condition.question)
      guard offending > 0 else { return nil }
      var refusal = condition.refusal
      refusal.message += " (\(offending) \(offending == 1 ? "object" : "objects"))"
      return refusal
    }
  }

  private func offendingRows(_ question: RowCondition.Question) throws -> Int64 {
    switch question {
    case .noRows(let entity):
      return context.rows(ofSource: entity)
    case .noNulls(let entity, let property):
      guard context.rows(ofSource: entity) > 0,
        let table = context.source.table(of: entity)?.name,
        let column = context.source.column(of: property, in: entity)
      else { return 0 }
      return try count(
        """
        SELECT count(*)
          FROM \(quoted(table))
         WHERE Z_ENT = \(context.sourceNumber(entity)) AND \(quoted(column)) IS NULL
        """)
    case .unique(let parts):
      return try repeatedValues(parts)
    }
  }

  /// Values that more than one object has under a uniqueness constraint.
  private func repeatedValues(_ parts: [UniquePart]) throws -> Int64 {
    var selects: [String] = []
    var values: [SQLiteValue] = []
    var width = 0
    for part in parts where context.rows(ofSource: part.entity) > 0 {
      guard let table = context.source.table(of: part.entity)?.name else { continue }
      width = part.terms.count
      let terms = part.terms.enumerated().map { index, term -> String in
        let expression: String
        switch term {
        case .source(let property, let fallback):
          guard let column = context.source.column(of: property, in: part.entity) else {
            expression = "NULL"
            break
          }
          if let fallback {
            values.append(SQLiteValue(fallback))
            expression = "ifnull(\(quoted(column)), ?)"
          } else {
            expression = quoted(column)
          }
        case .constant(let constant):
          values.append(constant.map(SQLiteValue.init) ?? .null)
          expression = "?"
        }
        return "\(expression) AS c\(index)"
      }
      selects.append(
        """
        SELECT \(terms.joined(separator: ", "))
          FROM \(quoted(table))
         WHERE Z_ENT = \(context.sourceNumber(part.entity))
        """)
    }
    guard !selects.isEmpty, width > 0 else { return 0 }
    let columns = (0..<width).map { "c\($0)" }
    return try count(
      """
      SELECT count(*)
        FROM (SELECT 1
                FROM (\(selects.joined(separator: " UNION ALL ")))
               WHERE \(columns.map { "\($0) IS NOT NULL" }.joined(separator: " AND "))
               GROUP BY \(columns.joined(separator: ", "))
              HAVING count(*) > 1)
      """, values)
  }

  private func count(_ sql: String, _ values: [SQLiteValue] = []) throws -> Int64 {
    guard case .integer(let number)? = try context.store.connection.rows(sql, values).first?.first
    else { return 0 }
    return number
  }
}

extension SQLiteValue {
  init(_ value: StoredDefault) {
    self =
      switch value {
      case .integer(let integer): .integer(integer)
      case .real(let real): .real(real)
      case .text(let text): .text(text)
      case .blob(let bytes): .blob(bytes)
      }
  }
}
