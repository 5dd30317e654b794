import GodwitObjectModel
import GodwitSQLite

/// A column of an entity and what its values must be by themselves.
struct RuledColumn {
  let column: String
  let property: String
  /// nil for the key of a to-one relationship.
  let type: AttributeType?
  let isRequired: Bool
  let isExternal: Bool

  /// Storage classes besides NULL. Source: `core-data-sqlite-format.md` §5.
  var classes: [RawValue.Kind] {
    guard let type else { return [.integer] }
    switch type {
    case .integer16, .integer32, .integer64, .boolean: return [.integer]
    case .decimal, .date: return [.integer, .real]
    case .double, .float: return [.real]
    case .string, .uri: return [.text]
    case .binary, .uuid, .transformable: return [.blob]
    case .objectID, .undefined, .composite: return [.integer, .real, .text, .blob]
    }
  }

  /// Integers that the type cannot hold are damage.
  var range: ClosedRange<Int64>? {
    switch type {
    case .integer16: Int64(Int16.min)...Int64(Int16.max)
    case .integer32: Int64(Int32.min)...Int64(Int32.max)
    case .boolean: 0...1
    default: nil
    }
  }

  func rule(at place: Int32, of entity: EntityName) -> RowRules.Rule {
    var allowed: UInt8 = isRequired ? 0 : RowRules.Rule.bit(.null)
    for kind in classes { allowed |= RowRules.Rule.bit(kind) }
    let check: RowRules.Rule.Check =
      range != nil ? .range : type == .uuid ? .uuid : isExternal ? .external : .none
    return RowRules.Rule(
      place: place, allowed: allowed, check: check, low: range?.lowerBound ?? 0,
      high: range?.upperBound ?? 0, entity: entity, property: property, type: type)
  }
}

extension StoreLayout {
  /// The columns of an entity, inherited ones included, that have a rule of their own.
  func ruledColumns(of entity: EntityName) -> [RuledColumn] {
    hierarchy.properties(of: entity).flatMap { declared -> [RuledColumn] in
      guard declared.property.isStored else { return [] }
      switch declared.property {
      case .attribute(let attribute):
        // A composite may be absent, and its elements with it.
        let isRequired = attribute.type != .composite && !attribute.mayBeNull
        return valueColumns(of: attribute, in: entity).filter { $0.type != .objectID }.map {
          RuledColumn(
            column: $0.column, property: $0.keyPath(below: attribute.name),
            type: $0.type, isRequired: isRequired, isExternal: $0.attribute.isExternal)
        }
      case .relationship(let relationship):
        guard let column = column(of: relationship.name, in: entity) else { return [] }
        // That a required to-one is set is a matter of validation.
        return [
          RuledColumn(
            column: column, property: relationship.name, type: nil, isRequired: false,
            isExternal: false)
        ]
      case .fetchedProperty:
        return []
      }
    }
  }

  /// The columns of an entity whose values begin with a storage marker: of attributes, inherited ones
  /// included, and of elements of composites, `composite.element`.
  package func externalColumns(of entity: EntityName) -> [(property: String, column: String)] {
    ruledColumns(of: entity).filter(\.isExternal).map { ($0.property, $0.column) }
  }
}
