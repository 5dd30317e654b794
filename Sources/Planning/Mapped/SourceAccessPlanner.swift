import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Plans how expressions reach the source's objects: a few statements for each entity.
struct SourceAccessPlanner {
  let context: PlanContext

  func entities() -> [SourceEntityAccess] {
    context.source.hierarchy.order.compactMap { entity in
      guard let table = context.source.table(of: entity) else { return nil }
      var access = SourceEntityAccess(
        entity: entity, number: context.sourceNumber(entity), table: table.name,
        attributes: context.attributes(ofSource: entity), unstored: [], relationships: [])
      let attributes = Set(access.attributes.map { $0.name.prefix { $0 != "." } })
      for declared in context.source.hierarchy.properties(of: entity) {
        let property = declared.property
        if let relationship = property.relationship, property.isStored,
          let found = self.relationship(relationship, declaredBy: declared.entity)
        {
          access.relationships.append(found)
        } else if property.attribute != nil || property.relationship != nil,
          !attributes.contains(property.name[...])
        {
          // A fetched property is not among them: nil would be a wrong answer.
          access.unstored.append(property.name)
        } else if let attribute = property.attribute, attribute.type == .composite {
          // Nor need a store have a column for each element.
          let elements = context.source.valueColumns(of: attribute, in: entity)
            .map { $0.keyPath(below: attribute.name) }
          access.unstored += elements.filter { name in
            !access.attributes.contains { $0.name == name }
          }
        }
      }
      return access
    }
  }

  private func relationship(
    _ relationship: RelationshipDescription, declaredBy entity: EntityName
  ) -> SourceRelationship? {
    guard context.source.hierarchy.contains(relationship.destinationEntity) else {
      // Out of the configuration that the store is of: there is nothing that it could lead to.
      return SourceRelationship(
        name: relationship.name, isToMany: relationship.isToMany,
        isOrdered: relationship.isToMany && relationship.isOrdered,
        rows: "FROM (SELECT NULL AS Z_PK, NULL AS Z_ENT) AS y WHERE ?1 <> ?1", keyColumn: nil,
        destinationEntities: [])
    }
    guard let storage = context.storage(of: relationship, declaredBy: entity) else { return nil }
    let target = "y.Z_PK"
    var order = [target]
    if relationship.isOrdered, let column = storage.orderColumn {
      order.insert("r." + quoted(column), at: 0)
    }
    let numbers = context.allowed(relationship.destinationEntity)
      .map(String.init).joined(separator: ", ")
    return SourceRelationship(
      name: relationship.name, isToMany: relationship.isToMany,
      isOrdered: relationship.isToMany && relationship.isOrdered,
      rows: """
        FROM \(quoted(storage.table)) AS r
          JOIN \(quoted(storage.targetTable)) AS y ON y.Z_PK = r.\(quoted(storage.targetColumn))
         WHERE r.\(quoted(storage.ownerColumn)) = ?1 AND y.Z_ENT IN (\(numbers))
         ORDER BY \(order.joined(separator: ", "))
        """,
      keyColumn: !relationship.isToMany && storage.ownerColumn == "Z_PK"
        ? storage.targetColumn : nil,
      destinationEntities: context.source.hierarchy.concrete(of: relationship.destinationEntity))
  }
}

/// Plans the questions about numbers of members, asked of the written destination.
///
/// Source: `core-data-migration.md` §5.3, 1580 and 1590.
struct CountRules {
  let context: PlanContext
  let tables: [TablePlan]

  func rules() -> [CountRule] {
    var rules: [CountRule] = []
    let layout = context.destination
    for number in layout.tables.indices where tables[number].way == .computed {
      for program in tables[number].entities {
        guard let entity = program.destination else { continue }
        for declared in layout.hierarchy.properties(of: entity) where declared.property.isStored {
          guard let relationship = declared.property.relationship, relationship.isToMany,
            relationship.minCount > 0 || relationship.maxCount > 1,
            let sql = countSQL(relationship, declaredBy: declared.entity)
          else { continue }
          rules.append(
            CountRule(
              table: number, entity: entity, entityNumber: program.destinationNumber,
              relationship: relationship.name,
              low: Int64(relationship.minCount),
              high: Int64(max(0, relationship.maxCount)),
              isOptional: relationship.traits.isOptional, countSQL: sql))
        }
      }
    }
    return rules
  }

  private func countSQL(_ relationship: RelationshipDescription, declaredBy entity: EntityName)
    -> String?
  {
    let layout = context.destination
    if let join = layout.join(of: relationship.name, in: entity) {
      let column = join.isFirst ? join.table.firstColumn : join.table.secondColumn
      return "SELECT count(*) FROM \(quoted(join.table.name)) WHERE \(quoted(column)) = ?1"
    }
    guard let table = layout.table(of: relationship.destinationEntity) else { return nil }
    let column =
      layout.hierarchy.inverse(of: relationship).flatMap {
        layout.column(of: $0.relationship.name, in: $0.entity)
      } ?? layout.ownerColumn(of: relationship.name, in: entity)
    guard let column else { return nil }
    return "SELECT count(*) FROM \(quoted(table.name)) WHERE \(quoted(column)) = ?1"
  }
}
