import GodwitObjectModel
import GodwitPersistentStore

/// One concrete entity of the destination, as entity migration policies write it: they may make
/// objects of any.
package struct DestinationEntityPlan: Codable, Sendable, Equatable {
  package var entity: EntityName
  /// `Z_ENT` in the destination.
  package var number: Int64
  /// Number in ``MigrationPlan/tables``.
  package var table: Int
  /// Elements of composite attributes stand here by their key paths.
  package var attributes: [DestinationAttribute]
  /// What a new object has, one for each of the table's attribute places.
  package var defaults: [AttributeProgram]
  package var relationships: [DestinationRelationship]
  /// Columns that may be set from the other side.
  package var fills: [RelationshipFill]
}

package struct DestinationAttribute: Codable, Sendable, Equatable {
  package var name: String
  package var type: AttributeType
  /// Number among the table's attribute places; nil for a transient attribute, whose value is
  /// forgotten after the link stage.
  package var place: Int?
  /// True when values begin with a storage marker.
  package var isExternal: Bool
  /// What the value is derived from, where that is the object's own attributes.
  package var derivation: String?
}

package struct DestinationRelationship: Codable, Sendable, Equatable {
  package var name: String
  package var isToMany: Bool
  package var isOrdered: Bool
  /// `Z_ENT` of the entities that it may point to.
  package var allowed: [Int64]
  /// Number among the table's relationship places of the to-one key.
  package var keyPlace: Int?
  package var entityPlace: Int?
  /// Where else the pairs go.
  package var emissions: [LinkProgram.Emission]
  /// The group that sets the to-one columns from elsewhere.
  package var group: Int?
}

extension MappedLinks {
  /// Everything about every concrete entity that a policy's code may want to know.
  func destinationEntities() -> [DestinationEntityPlan] {
    let hierarchy = context.destination.hierarchy
    return hierarchy.order.compactMap { entity in
      guard hierarchy[entity]?.isAbstract == false,
        let layout = context.destination.table(of: entity),
        let number = tables.firstIndex(where: { $0.name == layout.name })
      else { return nil }
      var plan = DestinationEntityPlan(
        entity: entity, number: context.destinationNumber(entity), table: number, attributes: [],
        defaults: [], relationships: [], fills: [])
      describeAttributes(layout, &plan)
      for declared in hierarchy.properties(of: entity) {
        guard let relationship = declared.property.relationship, declared.property.isStored else {
          continue
        }
        describe(relationship, declaredBy: declared.entity, &plan)
      }
      plan.fills += ownerFills(of: entity, number) + countFills(of: entity, number)
      return plan
    }
  }

  private func describeAttributes(_ layout: EntityTable, _ plan: inout DestinationEntityPlan) {
    let hierarchy = context.destination.hierarchy
    var place = -1
    for column in context.copiedColumns(of: layout) {
      place += 1
      var value = AttributeProgram.null
      defer { plan.defaults.append(value) }
      guard hierarchy.isKind(plan.entity, of: context.bearer(of: column)) else { continue }
      switch column.role {
      case .attribute(_, let name):
        guard let attribute = hierarchy.property(name, of: plan.entity)?.property.attribute else {
          continue
        }
        plan.attributes.append(
          DestinationAttribute(
            name: name, type: attribute.type, place: place,
            isExternal: attribute.isExternal,
            derivation: attribute.ownDerivation(hierarchy, of: plan.entity)?.description))
        if attribute.derivationExpression == nil {
          value = attribute.storedDefault.map(AttributeProgram.constant) ?? .null
        }
      case .leaf(_, let composite, let path):
        let leaf = context.destination.leafColumns(of: composite, in: plan.entity)
          .first { $0.path == path }
        guard let leaf else { continue }
        plan.attributes.append(
          DestinationAttribute(
            name: composite + "." + path.joined(separator: "."), type: leaf.type, place: place,
            isExternal: leaf.attribute.isExternal))
      case .toOne, .targetEntity, .order, .owner: continue
      }
    }
    let stored = Set(plan.attributes.map(\.name))
    for declared in hierarchy.properties(of: plan.entity) {
      guard let attribute = declared.property.attribute, attribute.type != .composite,
        !stored.contains(attribute.name)
      else { continue }
      plan.attributes.append(
        DestinationAttribute(
          name: attribute.name, type: attribute.type, place: nil, isExternal: false))
    }
  }

  private func describe(
    _ relationship: RelationshipDescription, declaredBy entity: EntityName,
    _ plan: inout DestinationEntityPlan
  ) {
    let name = relationship.name
    let table = tables[plan.table]
    func place(_ column: String?) -> Int? {
      column.flatMap { name in table.relationshipPlaces.firstIndex { table.columns[$0] == name } }
    }
    var description = DestinationRelationship(
      name: name, isToMany: relationship.isToMany,
      isOrdered: relationship.isToMany && relationship.isOrdered,
      allowed: allowedTargets(of: relationship), keyPlace: nil, entityPlace: nil,
      emissions: emissions(of: relationship, declaredBy: entity), group: nil)
    if !relationship.isToMany {
      description.keyPlace = place(context.destination.column(of: name, in: plan.entity))
      description.entityPlace = place(
        context.destination.entityColumn(of: name, in: plan.entity))
      description.group = group(of: name, declaredBy: entity)
      if let group = description.group, let key = description.keyPlace {
        plan.fills.append(
          RelationshipFill(
            group: group, keyPlace: key, entityPlace: description.entityPlace,
            orderPlace: place(context.destination.orderColumn(of: name, in: plan.entity)),
            keepsOwn: false, yieldsToOwn: !groups[group].isDecisive,
            isDecided: groups[group].isDecisive))
      }
    }
    plan.relationships.append(description)
  }
}
