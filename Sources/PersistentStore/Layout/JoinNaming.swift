import GodwitObjectModel

/// Names the tables of many-to-many relationships and their columns.
///
/// Source: `core-data-sqlite-format.md` §6 (order columns), §7.
struct JoinNaming {
  let hierarchy: EntityHierarchy
  let numbers: [EntityName: Int]

  private struct Side {
    let entity: EntityName
    let relationship: RelationshipDescription
    let inverseEntity: EntityName
    let inverse: RelationshipDescription

    var key: PropertyKey { PropertyKey(entity, relationship.name) }
    var inverseKey: PropertyKey { PropertyKey(inverseEntity, inverse.name) }
  }

  /// Every many-to-many relationship: entities by number, relationships by name.
  private func sides() -> [Side] {
    hierarchy.order.flatMap { name in
      (hierarchy[name]?.properties ?? []).compactMap { property -> Side? in
        guard let relationship = property.relationship, property.isStored, relationship.isToMany,
          let inverse = hierarchy.inverse(of: relationship), inverse.relationship.isToMany
        else { return nil }
        return Side(
          entity: name, relationship: relationship, inverseEntity: inverse.entity,
          inverse: inverse.relationship)
      }
    }
  }

  func joinTables() -> [JoinTable] {
    let sides = sides()
    // The columns with an entity's keys are told apart over the whole entity, in this order.
    var pools: [EntityName: NamePool] = [:]
    var keyColumns: [PropertyKey: String] = [:]
    for side in sides {
      keyColumns[side.key] = pools[side.entity, default: NamePool()].take(
        name(side.entity, side.inverse.name))
    }
    var seen: Set<PropertyKey> = []
    var joins: [JoinTable] = []
    for side in sides {
      guard !seen.contains(side.key) else { continue }
      seen.formUnion([side.key, side.inverseKey])
      if side.key == side.inverseKey {
        let table = name(side.entity, side.relationship.name)
        joins.append(
          JoinTable(
            name: table, entity: side.entity, relationship: side.relationship.name,
            inverseEntity: side.entity, inverse: side.relationship.name, firstColumn: table,
            secondColumn: "REFLEXIVE"))
        continue
      }
      // A join of an entity with itself is named after the later of the two relationships.
      let isSelfJoin = side.entity == side.inverseEntity
      let relationship = isSelfJoin ? side.inverse : side.relationship
      let inverse = isSelfJoin ? side.relationship : side.inverse
      let first =
        keyColumns[PropertyKey(side.entity, relationship.name)] ?? name(side.entity, inverse.name)
      let second =
        keyColumns[PropertyKey(side.inverseEntity, inverse.name)]
        ?? name(side.inverseEntity, relationship.name)
      joins.append(
        JoinTable(
          name: name(side.entity, relationship.name), entity: side.entity,
          relationship: relationship.name, inverseEntity: side.inverseEntity,
          inverse: inverse.name, firstColumn: first, secondColumn: second,
          firstOrderColumn: inverse.isOrdered ? "Z_FOK_" + first.dropFirst(2) : nil,
          secondOrderColumn: relationship.isOrdered ? "Z_FOK_" + second.dropFirst(2) : nil))
    }
    return joins
  }

  private func name(_ entity: EntityName, _ relationship: String) -> String {
    "Z_\(numbers[entity] ?? 0)" + relationship.uppercased()
  }
}
