import GodwitExpressions
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

/// What `$destination` is to the expressions of one entity mapping.
///
/// Source: `core-data-migration.md` §4.1: in the creation stage it is the new object, which has
/// the model's defaults and what the attribute mappings before have set; in the relationship
/// stage all of them have.
package struct DestinationAccess: Codable, Sendable, Equatable {
  package struct Attribute: Codable, Sendable, Equatable {
    package var name: String
    package var type: AttributeType
    /// Number among the table's attribute places; nil for an attribute that is not stored.
    package var place: Int?
    /// True when values begin with a storage marker.
    package var isExternal: Bool
    /// What a new object has.
    package var initial: StoredDefault?
    /// Number of the attribute mapping that sets it; nil when none does.
    package var order: Int?
  }

  package var attributes: [Attribute]
  /// Relationships of a new object are empty: true for those to many objects.
  package var relationships: [String: Bool]
}

/// Finds out whether a mapping's expressions speak of the destination object, and of what.
struct DestinationAccessPlanner {
  let context: PlanContext
  let mapping: EntityMapping
  let destination: EntityName

  /// Nil when no expression of the mapping needs it.
  func access(_ table: EntityTable, derives: Bool) -> DestinationAccess? {
    let properties = mapping.properties.attributes + mapping.properties.relationships
    guard derives || properties.contains(where: { $0.expression?.mentions("destination") ?? false })
    else { return nil }
    let columns = context.copiedColumns(of: table).map(\.name)
    let set = mapping.properties.attributes.map { $0.expression == nil ? nil : $0.name }
    var access = DestinationAccess(attributes: [], relationships: [:])
    for declared in context.destination.hierarchy.properties(of: destination) {
      switch declared.property {
      case .attribute(let attribute):
        guard attribute.type != .composite else {
          access.attributes += elements(of: attribute, columns, set)
          continue
        }
        let column = context.destination.column(of: attribute.name, in: destination)
        access.attributes.append(
          DestinationAccess.Attribute(
            name: attribute.name, type: attribute.type,
            place: column.flatMap(columns.firstIndex(of:)),
            isExternal: attribute.isExternal,
            initial: attribute.defaultValue, order: set.firstIndex(of: attribute.name)))
      case .relationship(let relationship):
        access.relationships[relationship.name] = relationship.isToMany
      case .fetchedProperty: break
      }
    }
    return access
  }

  /// They stand among the attributes by their key paths.
  private func elements(
    of composite: AttributeDescription, _ columns: [String], _ set: [String?]
  ) -> [DestinationAccess.Attribute] {
    context.destination.leafColumns(of: composite.name, in: destination).map { leaf in
      DestinationAccess.Attribute(
        name: leaf.keyPath(below: composite.name), type: leaf.type,
        place: columns.firstIndex(of: leaf.column), isExternal: false, initial: nil,
        order: set.firstIndex(of: composite.name))
    }
  }
}

extension AttributeDescription {
  /// A derivation that needs nothing but the object's own stored attributes, and gives a value of the attribute's
  /// type: functions of a text such as `canonical:(name)`, a date that is `now()`, or an attribute whose values the type holds.
  /// One that is derived itself stands for what it derives from, so that none has to be computed before another.
  /// Nil for any other, and for one of more than ``mostDerivationLevels``.
  package func ownDerivation(
    _ hierarchy: EntityHierarchy, of entity: EntityName
  ) -> ValueExpression? {
    ownDerivation(hierarchy, of: entity, levels: Self.mostDerivationLevels)
  }

  /// 16 functions and attributes, one in the other: of 24 in a statement, SQLite's parser finds its stack of 100
  /// entries too small. A cycle ends there, too.
  private static let mostDerivationLevels = 16

  fileprivate func ownDerivation(
    _ hierarchy: EntityHierarchy, of entity: EntityName, levels: Int
  ) -> ValueExpression? {
    guard !isExternal, type.columnType != nil, type != .objectID, let derivationExpression,
      let expression = try? ValueExpression(parsing: derivationExpression)
    else { return nil }
    return expression.resolved(as: type, hierarchy, of: entity, levels: levels)
  }
}

extension EntityHierarchy {
  /// Whether an inferred migration to this model computes what an attribute of an entity derives, where it is
  /// derived anew. Anything else stays NULL until Core Data saves the object.
  func computes(_ derived: AttributeDescription, of entity: EntityName) -> Bool {
    countedRelationship(of: derived, in: entity) != nil
      || textDerivation(of: derived, in: entity) != nil
  }

  /// The relationship whose objects an attribute counts.
  func countedRelationship(of derived: AttributeDescription, in entity: EntityName) -> String? {
    derived.countedRelationship.flatMap { property($0, of: entity)?.property.relationship?.name }
  }

  /// A derivation that is a function of one of the object's own texts.
  func textDerivation(
    of derived: AttributeDescription, in entity: EntityName
  ) -> ValueExpression? {
    // Nobody has asked whether values that are yet to be computed keep a constraint.
    guard derived.type == .string, let declared = property(derived.name, of: entity),
      !isUnique([derived.name], of: declared.entity)
    else { return nil }
    return derived.ownDerivation(self, of: entity)
  }

  /// Whether a uniqueness constraint names a property of an entity, or of its sub-entities.
  func isUnique(_ names: [String], of entity: EntityName) -> Bool {
    order.contains { name in
      (self[name]?.uniquenessConstraints ?? []).contains { constraint in
        constraint.contains { property in names.contains { $0.isSameName(as: property) } }
      } && isKind(name, of: entity)
    }
  }
}

extension ValueExpression {
  /// What a derivation over the object's own texts gives, in SQL; nil for any other.
  ///
  /// - Parameter text: What an attribute holds, in SQL; nil where that is no text.
  package func derivedText(_ text: (_ attribute: String) -> String?) -> String? {
    switch self {
    case .call(let name, let arguments):
      guard let function = TextDerivation.named(name), arguments.count == 1,
        let argument = arguments[0].derivedText(text)
      else { return nil }
      return "\(function.sqlName)(\(argument))"
    case .keyPath(.evaluatedObject, let keys):
      guard case .key(let key)? = keys.first else { return nil }
      return text(key)
    default: return nil
    }
  }

  /// The derivation of a value of a type, over attributes that are not derived. See
  /// ``AttributeDescription/ownDerivation(_:of:)``.
  fileprivate func resolved(
    as type: AttributeType, _ hierarchy: EntityHierarchy, of entity: EntityName, levels: Int
  ) -> ValueExpression? {
    switch self {
    case .keyPath(.evaluatedObject, let keys):
      guard keys.count == 1, case .key(let key)? = keys.first,
        let attribute = hierarchy.property(key, of: entity)?.property.attribute,
        attribute.type.keepsValues(as: type), !attribute.traits.isTransient
      else { return nil }
      guard attribute.derivationExpression != nil else { return self }
      guard levels > 0 else { return nil }
      return attribute.ownDerivation(hierarchy, of: entity, levels: levels - 1)
    case .call("now", let arguments): return type == .date && arguments.isEmpty ? self : nil
    case .call(let name, let arguments):
      guard levels > 0, type == .string, TextDerivation.named(name) != nil, arguments.count == 1
      else { return nil }
      return arguments[0].resolved(as: type, hierarchy, of: entity, levels: levels - 1)
        .map { .call(name, [$0]) }
    default: return nil
    }
  }
}
