import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

/// One concrete entity of the destination, as entity migration policies write it: they may make
/// objects of any.
public struct DestinationEntityPlan: Codable, Sendable, Equatable {
  public var entity: EntityName
  /// `Z_ENT` in the destination.
  public var number: Int64
  /// Number in ``MigrationPlan/tables``.
  public var table: Int
  /// Elements of composite attributes stand here by their key paths.
  public var attributes: [DestinationAttribute]
  /// What a new object has, one for each of the table's attribute places.
  public var defaults: [AttributeProgram]
  public var relationships: [DestinationRelationship]
  /// Columns that may be set from the other side.
  public var fills: [RelationshipFill]
}

public struct DestinationAttribute: Codable, Sendable, Equatable {
  public var name: String
  public var type: AttributeType
  /// Number among the table's attribute places; nil for a transient attribute, whose value is
  /// taken and forgotten.
  public var place: Int?
  /// True when values begin with a storage marker.
  public var isExternal: Bool
}

public struct DestinationRelationship: Codable, Sendable, Equatable {
  public var name: String
  public var isToMany: Bool
  public var isOrdered: Bool
  /// `Z_ENT` of the entities that it may point to.
  public var allowed: [Int64]
  /// Number among the table's relationship places of the to-one key.
  public var keyPlace: Int?
  public var entityPlace: Int?
  /// Where else the pairs go.
  public var emissions: [LinkProgram.Emission]
  /// The group that sets the to-one columns from elsewhere.
  public var group: Int?
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
            isExternal: attribute.type == .binary && attribute.allowsExternalBinaryDataStorage))
        if attribute.derivationExpression == nil {
          value = attribute.defaultValue.map(AttributeProgram.constant) ?? .null
        }
      case .leaf(_, let composite, let path):
        let leaf = context.destination.leafColumns(of: composite, in: plan.entity)
          .first { $0.path == path }
        guard let leaf else { continue }
        plan.attributes.append(
          DestinationAttribute(
            name: composite + "." + path.joined(separator: "."), type: leaf.type, place: place,
            isExternal: false))
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
            keepsOwn: false, yieldsToOwn: !groups[group].isOneToOne,
            isDecided: groups[group].isOneToOne))
      }
    }
    plan.relationships.append(description)
  }
}
