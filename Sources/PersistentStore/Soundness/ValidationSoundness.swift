import GodwitObjectModel
import GodwitSQLite

extension StoreSoundness {
  /// Makes of an ICU regular expression a test whether it matches a whole string, which gives nil where it
  /// cannot tell; nil where the expression is none.
  package typealias PatternCompiler = (String) -> ((String) -> Bool?)?

  /// The rules of the model editor, on every object: bounds, lengths, patterns, required to-one
  /// relationships, numbers of members.
  ///
  /// Core Data judges them when objects are saved, so a store may break rules that were added
  /// later.
  ///
  /// - Parameter pattern: The engine for regular expressions. Without one they are not judged.
  package static func validation(of binding: StoreBinding, pattern: PatternCompiler? = nil) throws
    -> [StoreFinding]
  {
    var findings: [StoreFinding] = []
    for entity in binding.hierarchy.order where binding.hierarchy[entity]?.isAbstract == false {
      guard let table = binding.table(of: entity) else { continue }
      for declared in binding.hierarchy.properties(of: entity) where declared.property.isStored {
        if let attribute = declared.property.attribute,
          let column = binding.column(of: attribute.name, in: entity)
        {
          for rule in attribute.validation {
            let judge = AttributeJudge(
              binding: binding, entity: entity, table: table, attribute: attribute.name,
              column: quoted(column))
            findings += try judge.findings(rule, pattern)
          }
        } else if let attribute = declared.property.attribute {
          // Of a composite one. When Core Data judges rules of elements is not known.
          findings += binding.layout.leafColumns(of: attribute.name, in: entity)
            .filter { !$0.attribute.validation.isEmpty }.map { leaf in
              StoreFinding(
                kind: .note, entity: entity.rawValue,
                property: leaf.keyPath(below: attribute.name), message: StoreFinding.notJudged)
            }
        } else if let relationship = declared.property.relationship {
          let questions = RowQuestions(binding).counts(
            relationship, declaredBy: declared.entity, of: entity, in: table)
          findings += try answer(questions, binding.store.connection)
        }
      }
    }
    return findings
  }
}

/// Judges one attribute of the objects of one entity.
private struct AttributeJudge {
  let binding: StoreBinding
  let entity: EntityName
  let table: EntityTable
  let attribute: String
  let column: String

  func findings(_ rule: ValidationRule, _ pattern: StoreSoundness.PatternCompiler?) throws
    -> [StoreFinding]
  {
    switch rule {
    case .minimum(let bound): try compare("<", bound, "is lower than its minimum")
    case .maximum(let bound): try compare(">", bound, "is higher than its maximum")
    case .above(let bound): try compare("<=", bound, "is not above its lower bound")
    case .below(let bound): try compare(">=", bound, "is not below its upper bound")
    case .minimumLength(let bound):
      // A text never has fewer UTF-16 units than characters.
      try scan("length(\(column)) < ?1", Int64(bound), "is shorter than its minimum length") {
        $0.utf16.count < bound
      }
    case .maximumLength(let bound):
      // Nor more than bytes.
      try scan(
        "length(CAST(\(column) AS BLOB)) > ?1", Int64(bound), "is longer than its maximum length"
      ) { $0.utf16.count > bound }
    case .matches(let expression):
      if let matches = pattern?(expression) {
        try scan("\(column) IS NOT NULL AND ?1 = 0", 0, "does not match its pattern") {
          matches($0).map { !$0 }
        }
      } else {
        [notJudged]
      }
    case .other:
      [notJudged]
    }
  }

  private var notJudged: StoreFinding {
    StoreFinding(
      kind: .note, entity: entity.rawValue, property: attribute,
      message: StoreFinding.notJudged)
  }

  private func compare(_ sign: String, _ bound: ValidationBound, _ message: String) throws
    -> [StoreFinding]
  {
    let source = """
      FROM \(quoted(table.name))
       WHERE Z_ENT = \(binding.number(of: entity)) AND \(column) \(sign) ?1
      """
    let connection = binding.store.connection
    let limit = bound.integer.map(SQLiteValue.integer) ?? .real(bound.real)
    let count =
      try connection.rows("SELECT count(*) \(source)", [limit]).first?.first?.integer ?? 0
    guard count > 0 else { return [] }
    let examples = try connection.rows(
      "SELECT Z_PK \(source) LIMIT \(StoreFinding.mostExamples)", [limit]
    ).compactMap { $0.first?.integer }
    return [finding(message, count, examples)]
  }

  private func scan(
    _ condition: String, _ bound: Int64, _ message: String, _ isBroken: (String) -> Bool?
  ) throws -> [StoreFinding] {
    let statement = try binding.store.connection.prepare(
      """
      SELECT Z_PK, \(column)
        FROM \(quoted(table.name))
       WHERE Z_ENT = \(binding.number(of: entity)) AND \(condition)
      """)
    try statement.bind(1, bound)
    var (broken, unjudged) = (FoundRows(), FoundRows())
    while try statement.step() {
      guard let text = statement.value(1).text else { continue }
      switch isBroken(text) {
      case true?: broken.add(statement.int64(0))
      case false?: continue
      case nil: unjudged.add(statement.int64(0))
      }
    }
    return [(message, broken, .validation), (StoreFinding.unmatched, unjudged, .note)]
      .filter { $0.1.count > 0 }.map { finding($0, $1.count, $1.examples, $2) }
  }

  private func finding(
    _ message: String, _ count: Int64, _ examples: [Int64],
    _ kind: StoreFinding.Kind = .validation
  ) -> StoreFinding {
    StoreFinding(
      kind: kind, entity: entity.rawValue, property: attribute, message: message,
      count: count, examples: examples)
  }
}

extension RowQuestions {
  /// Required to-one relationships and the numbers of members of to-many ones. An empty optional
  /// list is always allowed.
  func counts(
    _ relationship: RelationshipDescription, declaredBy declaring: EntityName,
    of entity: EntityName, in table: EntityTable
  ) -> [Question] {
    let source =
      "(SELECT * FROM \(quoted(table.name)) WHERE Z_ENT = \(binding.number(of: entity))) AS a"
    func ask(_ message: String, _ source: String, _ condition: String) -> Question {
      Question(
        kind: .validation, entity: entity.rawValue, property: relationship.name, message: message,
        form: .rows(source: source, condition: condition, key: "a.Z_PK"))
    }
    guard relationship.isToMany else {
      guard !relationship.traits.isOptional,
        let column = binding.column(of: relationship.name, in: entity)
      else { return [] }
      return [ask("is required and NULL", source, "a.\(quoted(column)) IS NULL")]
    }
    let (low, high) = (relationship.minCount, relationship.maxCount)
    guard low > 0 || high > 0, let members = members(of: relationship, declaredBy: declaring)
    else { return [] }
    var condition = "(ifnull(c.n, 0) < \(low)" + (high > 0 ? " OR c.n > \(high))" : ")")
    if relationship.traits.isOptional { condition += " AND c.n > 0" }
    return [
      ask(
        "has not between \(low) and \(high > 0 ? String(high) : "any") members",
        """
        \(source) LEFT JOIN (SELECT \(members.owner) AS owner, count(*) AS n
                               FROM \(members.source)
                              GROUP BY \(members.owner)) AS c ON c.owner = a.Z_PK
        """, condition)
    ]
  }
}
