import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Plans the entity tables: for each column of each entity, what gives it its value.
struct TablePlanner {
  let context: PlanContext

  /// As ``TableBuilder/recounted``.
  private var recounted: Set<String> = []

  init(context: PlanContext) { self.context = context }

  /// The plans of the destination's tables, then of the source's tables without successor.
  func plans() -> [TablePlan] {
    let plans = plansOnce()
    let computed = Set(plans.filter { $0.way == .computed }.compactMap(\.sourceTable))
    var again = self
    again.recounted = context.countedStrays(in: computed)
    return again.recounted.isEmpty ? plans : again.plansOnce()
  }

  private func plansOnce() -> [TablePlan] {
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
    var builder = TableBuilder(context: context, old: old, recounted: recounted)
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
      sourceTable: old.name, keptColumns: [], copyColumns: builder.copyColumns,
      copyExpressions: builder.copyExpressions,
      linkColumns: builder.linkColumns, pairQueries: builder.pairQueries,
      entities: builder.programs, elsewhere: elsewhere.map(context.sourceNumber),
      expectedRows: taken.reduce(0) { $0 + context.rows(ofSource: $1) },
      attributePlaces: table.columns.indices.filter { table.columns[$0].isAttribute },
      relationshipPlaces: table.columns.indices.filter { !table.columns[$0].isAttribute })
    if let kept = keptColumns(of: plan, table: table, old: old) {
      plan.keptColumns = kept
      if isCarried(plan, table, old: old) {
        plan.way = .carried
      } else {
        // Computed rows have no values of other entities, which an index of the source may have.
        for (place, column) in table.columns.enumerated() where isPartial(column, plan) {
          plan.keptColumns[place] = nil
        }
      }
    }
    return plan
  }

  private func empty(_ table: EntityTable) -> TablePlan {
    TablePlan(
      name: table.name, root: table.root, way: .empty, columns: table.columns.map(\.name),
      sourceTable: nil, keptColumns: [], copyColumns: [], copyExpressions: [], linkColumns: [],
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
      keptColumns: [], copyColumns: builder.copyColumns, copyExpressions: [],
      linkColumns: builder.linkColumns,
      pairQueries: [], entities: builder.programs, elsewhere: [], expectedRows: 0,
      attributePlaces: [], relationshipPlaces: [])
  }

  // MARK: Carried or computed

  /// The source's column for each of the destination's whose value no row changes; nil where rows stay
  /// behind.
  private func keptColumns(
    of plan: TablePlan, table: EntityTable, old: EntityTable
  ) -> [String?]? {
    let leavesRows =
      plan.entities.contains { $0.destination == nil && context.rows(ofSource: $0.source) > 0 }
      || plan.elsewhere.contains { number in
        old.entities.contains {
          context.sourceNumber($0) == number && context.rows(ofSource: $0) > 0
        }
      }
    if leavesRows { return nil }
    var columns = [KeptColumn](repeating: .unknown, count: plan.columns.count)
    for entity in plan.entities where entity.destination != nil {
      for (place, program) in zip(plan.attributePlaces, entity.attributes) {
        switch program {
        case .null where !isOwn(table.columns[place], of: entity.destination): continue
        case .source(let index): columns[place].take(plan.copyColumns[index])
        default: columns[place] = .changed
        }
      }
      for (place, program) in zip(plan.relationshipPlaces, entity.relationships) {
        switch program {
        case .null where !isOwn(table.columns[place], of: entity.destination): continue
        case .key(let number) where keepsTargets(entity.references[number]):
          columns[place].take(plan.linkColumns[entity.references[number].key])
        case .targetEntity(let number)
        where entity.references[number].keepsNumbers && keepsTargets(entity.references[number]):
          columns[place].take(entity.references[number].entityColumn.map { plan.linkColumns[$0] })
        case .order(let index, let number)
        where number.map { keepsTargets(entity.references[$0]) } ?? true:
          columns[place].take(plan.linkColumns[index])
        default: columns[place] = .changed
        }
      }
    }
    return zip(table.columns, columns).map { column, found in
      guard case .kept(let name) = found,
        !leavesValues(plan, column, keptFrom: name, old: old)
      else { return nil }
      return name
    }
  }

  /// Whether every object that a reference may lead to is there in the destination; in a damaged store that
  /// may be one of any entity of the targets' table.
  private func keepsTargets(_ reference: ReferenceCheck) -> Bool {
    guard let table = context.source.tables.first(where: { $0.name == reference.targetTable })
    else { return false }
    return reference.keepsTargets
      && table.entities.allSatisfy {
        context.rows(ofSource: $0) == 0
          || reference.surviving[Int(context.sourceNumber($0))] != nil
      }
  }

  /// Whether no value of any row changes, and the source has no other column.
  ///
  /// Rows go over with what they have in columns of other entities. Where that would count, it stays behind.
  private func isCarried(_ plan: TablePlan, _ table: EntityTable, old: EntityTable) -> Bool {
    plan.carriedColumns.count == plan.columns.count && plan.keepsNumbers
      && context.store.columns(of: old.name).map(\.name)
        == EntityTable.systemColumns + plan.carriedColumns
      && !table.columns.contains { isPartial($0, plan) && context.isAskedOfAll($0) }
  }

  /// Whether some row is of an entity that does not have the property behind the column. Core Data leaves
  /// values there, such as a default that was new once.
  /// Source: `core-data-sqlite-format.md` §5.
  private func isPartial(_ column: Column, _ plan: TablePlan) -> Bool {
    plan.entities.contains {
      context.rows(ofSource: $0.source) > 0 && !isOwn(column, of: $0.destination)
    }
  }

  /// What is known of a destination column while the entities are looked at.
  private enum KeptColumn {
    case unknown, changed
    case kept(String)

    mutating func take(_ column: String?) {
      switch (self, column) {
      case (.unknown, let column?): self = .kept(column)
      case (.kept(let known), let column?) where known == column: break
      default: self = .changed
      }
    }
  }

  /// True when objects of some entity have a value in a column that their successors do not have:
  /// carried, it would remain there.
  private func leavesValues(
    _ plan: TablePlan, _ column: Column, keptFrom name: String, old: EntityTable
  ) -> Bool {
    plan.entities.contains { entity in
      context.rows(ofSource: entity.source) > 0 && !isOwn(column, of: entity.destination)
        && old.columns.contains {
          $0.name == name
            && context.source.hierarchy.isKind(
              entity.source, of: PlanContext.bearer(of: $0, in: context.source.hierarchy))
        }
    }
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
