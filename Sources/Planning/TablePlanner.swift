import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Plans the entity tables: for each column of each entity, what gives it its value.
struct TablePlanner {
  let context: PlanContext

  /// The plans of the destination's tables, then of the source's tables without successor.
  func plans() -> [TablePlan] {
    var plans: [TablePlan] = []
    var handledEntities: Set<EntityName> = []
    for table in context.destination.tables {
      plans.append(plan(of: table, handledEntities: &handledEntities))
    }
    for table in context.source.tables {
      let left = table.entities.filter {
        !handledEntities.contains($0) && context.rows(ofSource: $0) > 0
      }
      guard !left.isEmpty, !plans.contains(where: { $0.sourceTable == table.name }) else {
        continue
      }
      plans.append(removed(table))
    }
    return plans
  }

  // MARK: One destination table

  private func plan(of table: EntityTable, handledEntities: inout Set<EntityName>) -> TablePlan {
    let pairs = table.entities.compactMap { name -> (EntityName, EntityName)? in
      guard context.destination.hierarchy[name]?.isAbstract == false else { return nil }
      return context.predecessor(of: name).map { (name, $0) }
    }
    let sourceRoot = pairs.first.map { context.source.hierarchy.root(of: $0.1) }
    guard let sourceRoot, let old = context.source.table(of: sourceRoot) else {
      return empty(table)
    }
    var builder = TableBuilder(context: context, old: old)
    for (name, predecessor) in pairs {
      builder.add(destination: name, source: predecessor, table: table)
      handledEntities.insert(predecessor)
    }
    // The first table that takes rows from a source table also looks at the rows that nobody takes.
    let isFirst =
      context.destination.tables.first { candidate in
        candidate.entities.contains { name in
          context.destination.hierarchy[name]?.isAbstract == false
            && context.predecessor(of: name).map { context.source.hierarchy.root(of: $0) }
              == sourceRoot
        }
      }?.name == table.name
    let taken = Set(pairs.map(\.1))
    let others = old.entities.filter { !taken.contains($0) }
    if isFirst {
      for name in others where context.successor[name] == nil { builder.addRemoved(name) }
    }
    let elsewhere = others.filter { !isFirst || context.successor[$0] != nil }
    var plan = TablePlan(
      name: table.name, root: table.root, way: .computed, columns: table.columns.map(\.name),
      sourceTable: old.name, carriedColumns: [], copyColumns: builder.copyColumns,
      copyExpressions: builder.copyExpressions,
      linkColumns: builder.linkColumns, pairQueries: builder.pairQueries,
      entities: builder.programs, elsewhere: elsewhere.map(context.sourceNumber),
      expectedRows: taken.reduce(0) { $0 + context.rows(ofSource: $1) },
      attributePlaces: table.columns.indices.filter { table.columns[$0].isAttribute },
      relationshipPlaces: table.columns.indices.filter { !table.columns[$0].isAttribute })
    if let columns = carriedColumns(of: plan, table: table, old: old) {
      plan.way = .carried
      plan.carriedColumns = columns
    }
    return plan
  }

  private func empty(_ table: EntityTable) -> TablePlan {
    TablePlan(
      name: table.name, root: table.root, way: .empty, columns: table.columns.map(\.name),
      sourceTable: nil, carriedColumns: [], copyColumns: [], copyExpressions: [], linkColumns: [],
      pairQueries: [],
      entities: [], elsewhere: [], expectedRows: 0,
      attributePlaces: table.columns.indices.filter { table.columns[$0].isAttribute },
      relationshipPlaces: table.columns.indices.filter { !table.columns[$0].isAttribute })
  }

  private func removed(_ table: EntityTable) -> TablePlan {
    var builder = TableBuilder(context: context, old: table)
    for name in table.entities { builder.addRemoved(name) }
    return TablePlan(
      name: table.name, root: table.root, way: .removed, columns: [], sourceTable: table.name,
      carriedColumns: [], copyColumns: builder.copyColumns, copyExpressions: [],
      linkColumns: builder.linkColumns,
      pairQueries: [], entities: builder.programs, elsewhere: [], expectedRows: 0,
      attributePlaces: [], relationshipPlaces: [])
  }

  // MARK: Carried or computed

  /// The source's columns in the destination's order, when no value of any row changes and the
  /// source has no other column; nil when the rows must be computed.
  private func carriedColumns(of plan: TablePlan, table: EntityTable, old: EntityTable) -> [String]?
  {
    var columns = [String?](repeating: nil, count: plan.columns.count)
    for entity in plan.entities {
      guard entity.destination != nil else {
        if context.rows(ofSource: entity.source) > 0 { return nil }
        continue
      }
      guard entity.sourceNumber == entity.destinationNumber else { return nil }
      for (place, program) in zip(plan.attributePlaces, entity.attributes) {
        switch program {
        case .null where !isOwn(table.columns[place], of: entity.destination): continue
        case .source(let index):
          guard plan.copyColumns.indices.contains(index),
            assign(plan.copyColumns[index], to: place, in: &columns)
          else { return nil }
        default: return nil
        }
      }
      for (place, program) in zip(plan.relationshipPlaces, entity.relationships) {
        switch program {
        case .null:
          if isOwn(table.columns[place], of: entity.destination) { return nil }
        case .key(let number), .targetEntity(let number):
          let check = entity.references[number]
          guard check.surviving.count == check.allowed.count,
            check.surviving.allSatisfy({ Int64($0.key) == $0.value })
          else { return nil }
          let isKey = if case .key = program { true } else { false }
          guard let index = isKey ? check.key : check.entityColumn,
            assign(plan.linkColumns[index], to: place, in: &columns)
          else { return nil }
        case .order(let index, _):
          guard assign(plan.linkColumns[index], to: place, in: &columns) else { return nil }
        default: return nil
        }
      }
    }
    guard
      plan.elsewhere.allSatisfy({ number in
        old.entities.contains {
          context.sourceNumber($0) == number && context.rows(ofSource: $0) == 0
        }
      })
    else { return nil }
    let complete = columns.compactMap { $0 }
    guard complete.count == columns.count, !leavesValues(plan, columns, table: table, old: old)
    else { return nil }
    let actual = context.store.columns(of: old.name)
    guard actual.map(\.name) == ["Z_PK", "Z_ENT", "Z_OPT"] + complete else { return nil }
    return complete
  }

  /// True when objects of some entity have a value in a column that their successors do not have:
  /// carried, it would remain there.
  private func leavesValues(
    _ plan: TablePlan, _ columns: [String?], table: EntityTable, old: EntityTable
  ) -> Bool {
    plan.entities.contains { entity in
      context.rows(ofSource: entity.source) > 0
        && zip(table.columns, columns).contains { column, carried in
          !isOwn(column, of: entity.destination)
            && old.columns.contains {
              $0.name == carried
                && context.source.hierarchy.isKind(
                  entity.source, of: PlanContext.bearer(of: $0, in: context.source.hierarchy))
            }
        }
    }
  }

  private func assign(_ column: String, to place: Int, in columns: inout [String?]) -> Bool {
    if let known = columns[place] { return known == column }
    columns[place] = column
    return true
  }

  /// True when objects of `entity` have the property behind the column.
  private func isOwn(_ column: Column, of entity: EntityName?) -> Bool {
    guard let entity else { return false }
    return context.destination.hierarchy.isKind(entity, of: context.bearer(of: column))
  }
}

extension PlanContext {
  /// The entity whose objects have a value in a destination column: the one that declares the
  /// property; for a to-many without inverse, its destination.
  func bearer(of column: Column) -> EntityName {
    Self.bearer(of: column, in: destination.hierarchy)
  }

  /// Likewise, of either model.
  static func bearer(of column: Column, in hierarchy: EntityHierarchy) -> EntityName {
    switch column.role {
    case .attribute(let entity, _), .leaf(let entity, _, _), .toOne(let entity, _),
      .targetEntity(let entity, _), .order(let entity, _):
      entity
    case .owner(let entity, let relationship):
      hierarchy.property(relationship, of: entity)?.property.relationship?
        .destinationEntity ?? entity
    }
  }
}

extension Column {
  /// True for columns that the copy stage fills; the link stage fills the others.
  var isAttribute: Bool {
    switch role {
    case .attribute, .leaf: true
    case .toOne, .targetEntity, .order, .owner: false
    }
  }
}
