import GodwitObjectModel

/// A rule about rows, as SQL that finds those that break it: for whoever mends them.
package struct RowRule: Sendable {
  package let kind: StoreFinding.Kind
  /// The entity that declares the property, or whose rows are judged.
  package let entity: EntityName?
  package let property: String?
  package let message: String
  /// Rows, as `a`; where there is a target, as `b`.
  package let source: String
  /// True for rows that break the rule.
  package let condition: String
  /// `Z_PK`; the first key of a pair in a join table.
  package let key: String
}

extension StoreSoundness {
  /// The rules that are broken row by row, of every table that the store has.
  ///
  /// Rules about groups of rows (order, uniqueness) and about derived attributes are left out.
  package static func rowRules(_ binding: StoreBinding) -> [RowRule] {
    let questions = RowQuestions(binding)
    var found: [Question] = []
    for table in binding.layout.tables where binding.table(of: table.root) != nil {
      found += questions.unknownEntityRows(table)
      for entity in binding.hierarchy.concrete(of: table.root) {
        found += questions.ofEntity(entity, in: table)
      }
    }
    for (entity, relationship) in binding.relationships where !relationship.isToMany {
      found += questions.toOne(relationship, of: entity)
    }
    for (entity, relationship) in binding.relationships
    where relationship.isToMany && relationship.inverseName == nil {
      found += questions.withoutInverse(relationship, of: entity)
    }
    return found.compactMap { rule($0) }
  }

  /// Those of one join table.
  package static func pairRules(_ join: JoinTable, _ binding: StoreBinding) -> [RowRule] {
    RowQuestions(binding).join(join).compactMap { rule($0) }
  }

  /// Derived attributes that are not the number of their objects, and what they are counted from.
  package static func countRules(_ binding: StoreBinding) -> [(rule: RowRule, column: String)] {
    let questions = RowQuestions(binding)
    return binding.hierarchy.order.flatMap { entity in
      questions.derived(of: entity).compactMap { question in
        guard let rule = rule(question), let property = question.property,
          let column = binding.column(of: property, in: entity)
        else { return nil }
        return (rule, column)
      }
    }
  }

  private static func rule(_ question: Question) -> RowRule? {
    guard case .rows(let source, let condition, let key) = question.form else { return nil }
    return RowRule(
      kind: question.kind, entity: question.entity.map { EntityName($0) },
      property: question.property, message: question.message, source: source,
      condition: condition, key: key)
  }
}
