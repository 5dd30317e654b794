import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// What the relationship mappings of an entity mapping give, for one source object after another.
final class DefaultLinks {
  private let mapping: EntityMappingPlan
  private let evaluator: LinkEvaluator
  private let links: [LinkTargets]
  private let rows: Statement?
  private let row: RowValues
  private var last = Int64.min
  private var expressions: [Int: ValueExpression] = [:]

  var objects: SourceObjects { evaluator.objects }

  /// References of the source that lead to no object, or to one of a wrong entity.
  var findings: [StoreFinding] { links.flatMap(\.findings) }

  init(
    _ context: MappedContext, _ mapping: EntityMappingPlan, _ keys: ClosedRange<Int64>
  ) throws {
    self.mapping = mapping
    evaluator = LinkEvaluator(context, mapping)
    links = try mapping.links.map { [evaluator] in
      try LinkTargets($0, mapping, context, evaluator, keys: keys)
    }
    row = RowValues(count: 1 + mapping.linkColumns.count)
    rows =
      mapping.sourceTable == nil || mapping.links.isEmpty
      ? nil : try context.rows(of: mapping, mapping.linkColumns, keys)
  }

  /// Calls the body with every relationship that has an expression.
  func find(
    _ source: ObjectReference, for destination: ObjectReference,
    _ body: (String, [LinkTargets.Target]) throws -> Void
  ) throws {
    evaluator.destination = destination
    // Source objects that come in order are met by going on; others are looked up.
    guard source.entity == mapping.source, source.primaryKey > last, try advance(source.primaryKey)
    else {
      for (number, link) in mapping.links.enumerated() {
        let expression = try expressions[number] ?? ValueExpression(parsing: link.expression)
        expressions[number] = expression
        try body(link.property, links[number].targets(of: expression, source))
      }
      return
    }
    for (number, link) in links.enumerated() {
      try link.find(source.primaryKey, row.values + 1)
      try body(mapping.links[number].property, link.targets)
    }
  }

  private func advance(_ key: Int64) throws -> Bool {
    guard let rows else { return true }
    while last < key {
      guard try rows.step() else { return false }
      rows.read(into: row.values, from: 0, count: Int32(row.count))
      last = row.values[0].bits
    }
    return last == key
  }
}
