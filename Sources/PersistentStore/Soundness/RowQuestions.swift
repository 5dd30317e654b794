import GodwitObjectModel
import GodwitSQLite

/// The rules about rows, as questions in SQL. A row of the table in question is called `a`.
struct RowQuestions {
  let binding: StoreBinding

  init(_ binding: StoreBinding) { self.binding = binding }

  typealias Question = StoreSoundness.Question

  // MARK: Rows by themselves

  /// Rows of no concrete entity of their table.
  func unknownEntityRows(_ table: EntityTable) -> [Question] {
    let concrete = binding.numbers(of: binding.hierarchy.concrete(of: table.root))
    let source = "\(quoted(table.name)) AS a"
    return [
      Question(
        kind: .rows, entity: table.root.rawValue,
        message: "\(table.name) has rows whose Z_ENT is not a concrete entity of this table",
        form: .rows(
          source: source, condition: "a.Z_ENT IS NULL OR a.Z_ENT NOT IN (\(concrete))",
          key: "a.Z_PK")),
      Question(
        kind: .note, entity: table.root.rawValue,
        message: "\(table.name) has rows whose Z_OPT is not a positive integer",
        form: .rows(
          source: source, condition: "typeof(a.Z_OPT) <> 'integer' OR a.Z_OPT < 1", key: "a.Z_PK")),
    ]
  }

  /// What ``RowRules`` judges, of the rows of one entity.
  func ofEntity(_ entity: EntityName, in table: EntityTable) -> [Question] {
    let source =
      "(SELECT * FROM \(quoted(table.name)) WHERE Z_ENT = \(binding.number(of: entity))) AS a"
    var questions: [Question] = []
    for ruled in binding.layout.ruledColumns(of: entity)
    where ruled.type != nil && binding.has(ruled.column, in: table.name) {
      let column = "a." + quoted(ruled.column)
      let rule = ruled.rule(at: 0, of: entity)
      func ask(_ failure: RowRules.Failure, _ condition: String) {
        let (kind, message) = rule.describe(failure)
        questions.append(
          Question(
            kind: kind, entity: entity.rawValue, property: ruled.property, message: message,
            form: .rows(source: source, condition: condition, key: "a.Z_PK")))
      }
      if ruled.isRequired { ask(.null, "\(column) IS NULL") }
      let classes = ruled.classes.map { "'\($0.sqlName)'" }.joined(separator: ", ")
      ask(.storageClass, "typeof(\(column)) NOT IN (\(classes), 'null')")
      if let range = ruled.range {
        ask(
          .value,
          "typeof(\(column)) = 'integer' AND \(column) NOT BETWEEN \(range.lowerBound) "
            + "AND \(range.upperBound)")
      } else if ruled.type == .uuid {
        ask(.value, "typeof(\(column)) = 'blob' AND length(\(column)) <> 16")
      } else if ruled.isExternal {
        let marker = "substr(\(column), 1, 1)"
        ask(
          .value,
          """
          typeof(\(column)) = 'blob' AND NOT (\(marker) IS x'01' OR (
            \(marker) IS x'02' AND length(\(column)) = 38 AND substr(\(column), 38) IS x'00'
            AND CAST(substr(\(column), 2, 36) AS TEXT) GLOB '\(Self.uuidPattern)'))
          """)
      }
    }
    return questions
  }

  /// A UUID in capitals, as SQLite's GLOB spells it.
  private static let uuidPattern = [8, 4, 4, 4, 12]
    .map { String(repeating: "[0-9A-F]", count: $0) }.joined(separator: "-")

  // MARK: To-one relationships

  func toOne(_ relationship: RelationshipDescription, of entity: EntityName) -> [Question] {
    guard let rule = toOneRule(relationship, of: entity) else { return [] }
    let (key, source) = ("a." + quoted(rule.column), rule.source)
    func ask(_ kind: StoreFinding.Kind, _ message: String, _ condition: String) -> Question {
      Question(
        kind: kind, entity: entity.rawValue, property: relationship.name, message: message,
        form: .rows(source: source, condition: condition, key: "a.Z_PK"), reference: key)
    }
    var questions = [
      ask(.type, "has a key that is not an integer", "typeof(\(key)) NOT IN ('integer', 'null')"),
      ask(
        .dangling, "points to an object that does not exist",
        "\(key) IS NOT NULL AND b.Z_PK IS NULL"),
      ask(
        .targetEntity, "points to an object that is no \(relationship.destinationEntity)",
        rule.isNotAllowed),
    ]
    if let extra = rule.entityColumn {
      let number = "a." + quoted(extra)
      questions += [
        ask(
          .entityColumn, "has another number in \(extra) than the Z_ENT of its destination",
          "b.Z_PK IS NOT NULL AND \(number) IS NOT b.Z_ENT"),
        ask(
          .entityColumn, "has a number in \(extra) without a destination",
          "\(key) IS NULL AND \(number) IS NOT NULL"),
      ]
    }
    if let inverse = binding.hierarchy.inverse(of: relationship), !inverse.relationship.isToMany,
      let column = binding.column(of: inverse.relationship.name, in: inverse.entity)
    {
      let back = "b." + quoted(column)
      let name = "\(inverse.entity).\(inverse.relationship.name)"
      questions += [
        ask(
          .inverse, "points to an object whose \(name) points to another object",
          "b.Z_PK IS NOT NULL AND \(back) IS NOT NULL AND \(back) <> a.Z_PK"),
        ask(
          .note, "points to an object whose \(name) is NULL",
          "b.Z_PK IS NOT NULL AND \(back) IS NULL"),
      ]
    }
    if let order = rule.orderColumn {
      let own = binding.numbers(of: binding.hierarchy.subtree(of: entity))
      let place = "a." + quoted(order)
      // Another key leads to no list, and is asked about by itself.
      let isMember = "typeof(\(key)) = 'integer'"
      questions += [
        ask(
          .order, "is a member of an ordered relationship without a place in \(order)",
          "\(isMember) AND \(place) IS NULL"),
        ask(
          .type,
          "is a member of an ordered relationship with a place in \(order) that is not an integer",
          "\(isMember) AND typeof(\(place)) NOT IN ('integer', 'null')"),
        Question(
          kind: .order, entity: entity.rawValue, property: relationship.name,
          message: "\(order) gives two members of one list the same place",
          form: .groups(
            source: """
              SELECT 1
                FROM \(quoted(rule.table)) AS a
               WHERE a.Z_ENT IN (\(own)) AND \(isMember) AND \(place) IS NOT NULL
               GROUP BY \(key), \(place)
              HAVING count(*) > 1
              """)),
      ]
    }
    return questions
  }

  // MARK: To-many relationships

  func withoutInverse(_ relationship: RelationshipDescription, of entity: EntityName) -> [Question]
  {
    guard let rule = ownerRule(relationship, of: entity) else { return [] }
    let (key, source) = ("a." + quoted(rule.column), rule.source)
    func ask(_ kind: StoreFinding.Kind, _ message: String, _ condition: String) -> Question {
      Question(
        kind: kind, entity: entity.rawValue, property: relationship.name, message: message,
        form: .rows(source: source, condition: condition, key: "a.Z_PK"), reference: key)
    }
    return [
      ask(
        .type, "has a member with a key of its owner that is not an integer",
        "typeof(\(key)) NOT IN ('integer', 'null')"),
      ask(
        .dangling, "has a member whose owner does not exist",
        "typeof(\(key)) = 'integer' AND b.Z_PK IS NULL"),
      ask(
        .targetEntity, "has a member whose owner is no \(entity)", rule.isNotAllowed),
    ]
  }

  func join(_ join: JoinTable) -> [Question] {
    let name = quoted(join.name)
    let (first, second) = (quoted(join.firstColumn), quoted(join.secondColumn))
    var questions = [
      Question(
        kind: .rows, entity: join.entity.rawValue, property: join.relationship,
        message: StoreFinding.pairWithoutKeys(in: join),
        form: .rows(
          source: "\(name) AS a",
          condition: "typeof(a.\(first)) <> 'integer' OR typeof(a.\(second)) <> 'integer'",
          key: "a." + first), reference: "a." + second)
    ]
    let sides = [
      (join.firstColumn, join.entity, join.relationship),
      (join.secondColumn, join.inverseEntity, join.inverse),
    ]
    for (column, entity, relationship) in sides {
      guard let rule = pairRule(join, column, of: entity) else { continue }
      let source = rule.source
      func ask(_ kind: StoreFinding.Kind, _ message: String, _ condition: String) -> Question {
        Question(
          kind: kind, entity: entity.rawValue, property: relationship, message: message,
          form: .rows(source: source, condition: condition, key: "a." + first),
          reference: "a." + second)
      }
      questions += [
        ask(
          .dangling, "\(join.name).\(column) points to an object that does not exist",
          "b.Z_PK IS NULL"),
        ask(
          .targetEntity, "\(join.name).\(column) points to an object that is no \(entity)",
          rule.isNotAllowed),
      ]
    }
    func groups(
      _ kind: StoreFinding.Kind, _ message: String, _ keys: String, where condition: String
    )
      -> Question
    {
      Question(
        kind: kind, entity: join.entity.rawValue, property: join.relationship, message: message,
        form: .groups(
          source: """
            SELECT 1
              FROM \(name)
             WHERE \(condition)
             GROUP BY \(keys)
            HAVING count(*) > 1
            """))
    }
    // What a unique index proves, whose check is a question of its own; NULL is equal to nothing there.
    let isKnown = isUnique([join.firstColumn, join.secondColumn], in: join.name)
    questions.append(
      groups(
        .rows, "\(join.name) has a pair twice", "\(first), \(second)",
        where: isKnown ? "\(first) IS NULL OR \(second) IS NULL" : "1"))
    for (column, owner) in [(join.firstOrderColumn, second), (join.secondOrderColumn, first)] {
      guard let column else { continue }
      let place = quoted(column)
      questions += [
        Question(
          kind: .order, entity: join.entity.rawValue, property: join.relationship,
          message: "\(join.name).\(column) is NULL",
          form: .rows(source: "\(name) AS a", condition: "a.\(place) IS NULL", key: "a." + first),
          reference: "a." + second),
        Question(
          kind: .type, entity: join.entity.rawValue, property: join.relationship,
          message: "\(join.name).\(column) is not an integer",
          form: .rows(
            source: "\(name) AS a", condition: "typeof(a.\(place)) NOT IN ('integer', 'null')",
            key: "a." + first), reference: "a." + second),
        groups(
          .order, "\(join.name).\(column) gives two members of one list the same place",
          "\(owner), \(place)", where: "\(place) IS NOT NULL"),
      ]
    }
    return questions
  }
}

extension RawValue.Kind {
  /// What `typeof()` calls it.
  var sqlName: String {
    switch self {
    case .integer: "integer"
    case .real: "real"
    case .text: "text"
    case .blob: "blob"
    case .null: "null"
    }
  }
}

extension RowQuestions {
  /// Whether the store has a unique index over columns, or some of them.
  private func isUnique(_ columns: [String], in table: String) -> Bool {
    guard let shape = try? binding.store.connection.shape(of: table) else { return false }
    let wanted = Set(columns.map(\.columnKey))
    return shape.indexes.contains { index in
      index.isUnique && !index.isPartial
        && index.fields.filter(\.isKey).allSatisfy { field in
          shape.columns.indices.contains(field.column)
            && wanted.contains(shape.columns[field.column].name.columnKey)
        }
    }
  }
}
