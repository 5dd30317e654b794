import GodwitDigests
import GodwitDurableFiles
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

// Uniqueness constraints: the values that the destination will have under one.
extension RowConditions {
  /// Objects that share their values under a uniqueness constraint with others.
  func repeatedValues(_ parts: [UniquePart]) throws -> Offence? {
    var selects: [String] = []
    var values: [SQLiteValue] = []
    var width = 0
    for group in groups(parts) {
      guard let part = group.first, let table = context.source.table(of: part.entity)?.name else {
        continue
      }
      width = part.terms.count
      let terms = part.terms.enumerated().map { index, term in
        "\(expression(term, of: part.entity, &values)) AS c\(index)"
      }
      let numbers = group.map { String(context.sourceNumber($0.entity)) }
      selects.append(
        """
        SELECT a.Z_PK AS key, a.Z_ENT AS number, \(terms.joined(separator: ", "))
          FROM \(quoted(table)) AS a
         WHERE a.Z_ENT IN (\(numbers.joined(separator: ", ")))
        """)
    }
    guard !selects.isEmpty, width > 0 else { return nil }
    try context.store.connection.registerSinglePrecision(Self.singlePrecision)
    try context.store.connection.registerExternalContent(
      Self.externalContent, in: context.store.files.externalDataFolder)
    let columns = (0..<width).map { "c\($0)" }
    let listed = columns.joined(separator: ", ")
    let rows = """
      FROM (\(PairSet.union(selects)))
           WHERE \(columns.map { "\($0) IS NOT NULL" }.joined(separator: " AND "))
      """
    let isRepeated = try number(
      "SELECT EXISTS (SELECT 1 \(rows) GROUP BY \(listed) HAVING count(*) > 1)", values)
    guard isRepeated != 0 else { return nil }
    let repeated = """
      SELECT key, number FROM (
        SELECT key, number, count(*) OVER (PARTITION BY \(listed)) AS n \(rows)) WHERE n > 1
      """
    let numbers = Set(
      try context.store.connection.rows("SELECT DISTINCT number FROM (\(repeated))", values)
        .compactMap { $0.first?.integer })
    return Offence(
      count: try number("SELECT count(*) FROM (\(repeated))", values),
      primaryKeys: try keys(repeated, values),
      entities: parts.map(\.entity).filter { numbers.contains(context.sourceNumber($0)) }
        .compactMap { context.successor[$0] })
  }

  /// Parts with objects, those together that one question can be asked of.
  private func groups(_ parts: [UniquePart]) -> [[UniquePart]] {
    func columns(_ part: UniquePart) -> [String?]? {
      var names: [String?] = [context.source.table(of: part.entity)?.name]
      for term in part.terms {
        switch term {
        case .source(let property, _, _):
          names.append(context.source.column(of: property, in: part.entity))
        case .constant: names.append(nil)
        case .target, .count: return nil
        }
      }
      return names
    }
    var groups: [(columns: [String?]?, parts: [UniquePart])] = []
    for part in parts where context.rows(ofSource: part.entity) > 0 {
      let names = columns(part)
      let known = groups.firstIndex {
        names != nil && $0.columns == names && $0.parts.first?.terms == part.terms
      }
      if let known {
        groups[known].parts.append(part)
      } else {
        groups.append((names, [part]))
      }
    }
    return groups.map(\.parts)
  }

  /// The SQL function that rounds a number to single precision.
  private static let singlePrecision = "godwit_single"
  /// The SQL function that gives, for a value that may lie in a file, what tells its content.
  private static let externalContent = "godwit_content"

  /// The value that the destination will have, of a row that goes by `a`.
  private func expression(
    _ term: UniquePart.Term, of entity: EntityName, _ values: inout [SQLiteValue]
  ) -> String {
    switch term {
    case .source(let property, let type, let fallback):
      guard let column = context.source.column(of: property, in: entity) else { return "NULL" }
      var text = "a.\(quoted(column))"
      if let type { text = Self.converted(text, to: type) }
      guard let fallback else { return text }
      if type == .binary, case .blob(let bytes) = fallback {
        values.append(.blob(SHA256.digest(of: bytes)))
      } else {
        values.append(SQLiteValue(fallback))
      }
      return "ifnull(\(text), ?)"
    case .constant(let constant):
      values.append(constant.map(SQLiteValue.init) ?? .null)
      return "?"
    case .target(let relationship):
      return "(SELECT t FROM (\(kept(relationship, of: entity))) LIMIT 1)"
    case .count(let relationship):
      return members(of: relationship, of: entity)
    }
  }

  private func kept(_ relationship: String, of entity: EntityName) -> String {
    guard let next = context.successor[entity],
      let declared = context.destination.hierarchy.property(relationship, of: next),
      let found = declared.property.relationship
    else { return PairSet.nothing }
    return context.pairSet(of: found, declaredBy: declared.entity).living.kept {
      "\($0.owner) = a.Z_PK"
    }
  }

  /// How many a relationship of the destination will have, of a row that goes by `a`.
  func members(of relationship: String, of entity: EntityName) -> String {
    "(SELECT count(*) FROM (\(kept(relationship, of: entity))))"
  }

  /// A number as a column of another numeric type holds it; the copy stage does the same.
  private static func converted(_ column: String, to type: AttributeType) -> String {
    func clamped(_ low: Int64, _ high: Int64) -> String {
      """
      CASE WHEN typeof(\(column)) IN ('integer', 'real')
           THEN max(\(low), min(\(high), CAST(\(column) AS INTEGER))) ELSE \(column) END
      """
    }
    return switch type {
    case .integer16: clamped(-0x8000, 0x7FFF)
    case .integer32: clamped(-0x8000_0000, 0x7FFF_FFFF)
    case .integer64: "iif(typeof(\(column)) = 'real', CAST(\(column) AS INTEGER), \(column))"
    case .double: "iif(typeof(\(column)) = 'integer', CAST(\(column) AS REAL), \(column))"
    case .float: "\(singlePrecision)(\(column))"
    case .binary: "\(externalContent)(\(column))"
    case .boolean: "iif(typeof(\(column)) IN ('integer', 'real'), \(column) <> 0, \(column))"
    default: column
    }
  }
}

extension Connection {
  /// Makes an SQL function that gives the digest of what a value with a storage marker holds, in its file
  /// or in itself. A file that cannot be read is what the migration reports, not this.
  fileprivate func registerExternalContent(_ name: String, in folder: FilePath) throws {
    try registerBytesFunction(name) { value in
      switch RowRules.marker(of: value) {
      case .inline: SHA256.digest(of: UnsafeRawBufferPointer(rebasing: value.dropFirst()))
      case .file:
        (try? RegularFile.bytes(
          of: folder.appending(String(decoding: value[1..<37], as: UTF8.self)),
          limit: StoreFiles.mostExternalBytes)).map { SHA256.digest(of: $0) } ?? Array(value)
      case nil: SHA256.digest(of: value)
      }
    }
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
