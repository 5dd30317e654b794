import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Judges the default values of the destination model that a plan gives to objects, by the model's own
/// rules.
///
/// A default that its type cannot hold would be found in every row, and be taken for a fault of the
/// store. So would one that the model's validation refuses, where validation decides: with mapping
/// models. The model is at fault, before any row is looked at.
struct DefaultCheck {
  let plan: MigrationPlan
  let request: MigrationRequest
  /// How many objects the source has of an entity: nobody gets the default of one that has none.
  let rows: (EntityName) -> Int64

  /// - Throws: `ModelError.invalid`.
  func check() throws {
    var problems: [ModelProblem] = []
    for table in plan.tables where table.way == .computed {
      for program in table.entities where rows(program.source) > 0 {
        guard let entity = program.destination else { continue }
        problems += self.problems(of: program.attributes, entity, program, table)
      }
    }
    // A policy may give other values.
    for mapping in plan.mapped?.mappings ?? [] where mapping.policy == nil {
      guard let source = mapping.source, rows(source) > 0,
        let table = mapping.table.map({ plan.tables[$0] }), let entity = mapping.destination,
        let program = table.entities.first(where: { $0.destination == entity })
      else { continue }
      problems += self.problems(of: mapping.attributes, entity, program, table)
    }
    guard !problems.isEmpty else { return }
    throw ModelError.invalid(
      path: request.destination?.path ?? plan.destination.versionName ?? "The destination model",
      problems: problems)
  }

  private func problems(
    of attributes: [AttributeProgram], _ entity: EntityName, _ program: EntityProgram,
    _ table: TablePlan
  ) -> [ModelProblem] {
    zip(table.attributePlaces, attributes).compactMap { place, attribute in
      let value: StoredDefault? =
        switch attribute {
        case .constant(let value), .sourceOr(_, let value): value
        case .converted(_, _, let value): value
        case .markedInline(_, let value), .unmarked(_, let value): value
        case .null, .source, .expression, .refiled: nil
        }
      guard let value,
        let (property, fault) = fault(value, place, program, count: table.columns.count)
      else { return nil }
      return ModelProblem(
        entity: entity, property: property,
        message: "The default value of \(entity).\(property) \(fault). Give it another one.")
    }
  }

  /// What is wrong with a value of the column at a place.
  private func fault(
    _ value: StoredDefault, _ place: Int, _ program: EntityProgram, count: Int
  ) -> (property: String, fault: String)? {
    var values = [RawValue](repeating: .null, count: count)
    return value.withRaw { raw in
      values[place] = raw
      return values.withUnsafeBufferPointer { buffer -> (String, String)? in
        guard let row = buffer.baseAddress else { return nil }
        var found: (String, String)?
        program.destinationRules.check(row, key: 0) { number, failure, _ in
          let rule = program.destinationRules.rules[number]
          guard Int(rule.place) == place else { return }
          found = (rule.property, rule.describe(failure).1)
        }
        if let found { return found }
        // Rows that validation refuses are set aside where that was asked for.
        guard let rules = program.validation, request.invalid != .setAside else { return nil }
        let judge = ValidationJudge(rules, pattern: RegularExpression.matcher)
        return judge.broken(row).first { $0.place == place }.map { ($0.property, $0.message) }
      }
    }
  }
}

extension StoredDefault {
  /// Runs the body with the value as a row holds it.
  fileprivate func withRaw<Result>(_ body: (RawValue) -> Result) -> Result {
    switch self {
    case .integer(let value): return body(.integer(value))
    case .real(let value): return body(.real(value))
    case .text(let text):
      return Array(text.utf8).withUnsafeBytes { body(.text($0.baseAddress, count: $0.count)) }
    case .blob(let blob):
      return blob.withUnsafeBytes { body(.blob($0.baseAddress, count: $0.count)) }
    }
  }
}
