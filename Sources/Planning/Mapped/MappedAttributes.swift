import FoundationEssentials
import GodwitExpressions
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Plans the attributes of one entity mapping.
///
/// A plain `$source.name` of the same type moves unchanged; everything else is an expression for
/// the worker.
struct MappedAttributes {
  let context: PlanContext
  let mapping: EntityMapping
  let source: EntityName
  let destination: EntityName
  /// Source columns whose files belong to another value already.
  var takenOver: Set<String> = []
  private(set) var copyColumns: [String] = []
  private(set) var copyAttributes: [SourceAttribute] = []
  private(set) var programs: [AttributeProgram] = []
  private(set) var expressions: [AttributeExpression] = []

  init(
    context: PlanContext, mapping: EntityMapping, source: EntityName, destination: EntityName
  ) {
    self.context = context
    self.mapping = mapping
    self.source = source
    self.destination = destination
    for attribute in context.attributes(ofSource: source) {
      copyColumns.append(attribute.column)
      copyAttributes.append(attribute)
    }
  }

  mutating func build(_ table: EntityTable) {
    var place = 0
    for column in context.copiedColumns(of: table) {
      let isOwn = context.destination.hierarchy.isKind(destination, of: context.bearer(of: column))
      programs.append(isOwn ? program(of: column, place) : .null)
      place += 1
    }
    expressions.sort { $0.order < $1.order }
  }

  private mutating func program(of column: Column, _ place: Int) -> AttributeProgram {
    let hierarchy = context.destination.hierarchy
    switch column.role {
    case .attribute(_, let name):
      guard let new = hierarchy.property(name, of: destination)?.property.attribute else {
        return .null
      }
      if let derivation = new.ownDerivation(hierarchy, of: destination) {
        // What moves to an attribute unchanged, infinite numbers too, moves so to what is derived from it alone.
        if case .keyPath(_, let keys) = derivation, case .key(let key)? = keys.first,
          hierarchy.property(key, of: destination)?.property.attribute?.type == new.type,
          let given = expression(of: key), let moved = moved(given, to: new)
        {
          return moved
        }
        expressions.append(
          AttributeExpression(
            property: name, place: place, type: new.type, isExternal: false,
            expression: derivation.description, order: .max, isDerived: true))
        return .null
      }
      guard let expression = expression(of: name) else {
        return new.derivationExpression == nil
          ? new.storedDefault.map(AttributeProgram.constant) ?? .null : .null
      }
      if let moved = moved(expression, to: new) { return moved }
      expressions.append(
        AttributeExpression(
          property: name, place: place, type: new.type,
          isExternal: new.isExternal,
          expression: expression.description,
          order: mapping.properties.attributes.firstIndex { $0.name == name } ?? 0))
      return .null
    case .leaf(_, let composite, let path): return element(path, of: composite, place)
    case .toOne, .targetEntity, .order, .owner: return .null
    }
  }

  /// An element of a composite attribute has what the same element of the expression's value has.
  private mutating func element(_ path: [String], of composite: String, _ place: Int)
    -> AttributeProgram
  {
    guard let expression = expression(of: composite), expression != .constant(.null),
      let new = context.destination.leafColumns(of: composite, in: destination)
        .first(where: { $0.path == path })?.attribute
    else { return .null }
    var keys = path.map(KeyPathElement.key)
    var base = expression
    if let key = expression.plainSourceKey {
      // What becomes of elements that have no successor is counted as a loss.
      guard
        let old = context.source.leafColumns(of: key, in: source).first(where: { $0.path == path })
      else { return .null }
      if old.type.keepsValues(as: new.type) { return moved(old, to: new) ?? .null }
      guard old.type.convertsElement(to: new.type) else { return .null }
      (base, keys) = (.variable("source"), [.key(key)] + keys)
    } else if case .keyPath(let start, let first) = expression, first.areKeys {
      switch start == .variable("source") ? hasElement(path, behind: first) : nil {
      case false?: return .null
      case true?: (base, keys) = (start, first + keys)
      // As one key path, an element that is not there would be a misspelt key.
      case nil: base = .call("noindex:", [expression])
      }
    }
    expressions.append(
      AttributeExpression(
        property: ([composite] + path).joined(separator: "."), place: place, type: new.type,
        isExternal: new.isExternal,
        expression: ValueExpression.keyPath(base: base, keys: keys).description,
        order: mapping.properties.attributes.firstIndex { $0.name == composite } ?? 0))
    return .null
  }

  /// Whether the composite attribute that keys lead to from a source object has an element at a path; nil where the
  /// model does not tell.
  private func hasElement(_ path: [String], behind keys: [KeyPathElement]) -> Bool? {
    let names = keys.compactMap { if case .key(let name) = $0 { name } else { nil } }
    var entity = source
    for (place, name) in names.enumerated() {
      switch context.source.hierarchy.property(name, of: entity)?.property {
      case .relationship(let relationship)?: entity = relationship.destinationEntity
      case .attribute(let attribute)? where attribute.type == .composite:
        return attribute.element(at: (names[(place + 1)...] + path)[...]) != nil
      default: return nil
      }
    }
    return nil
  }

  private func expression(of property: String) -> ValueExpression? {
    mapping.properties.attributes.first { $0.name == property }?.expression
  }

  /// The value of a source attribute as it is, where the destination's type holds it unchanged.
  /// A composite's elements have columns of their own.
  private mutating func moved(_ expression: ValueExpression, to new: AttributeDescription)
    -> AttributeProgram?
  {
    guard let key = expression.plainSourceKey,
      let was = context.source.hierarchy.property(key, of: source)?.property.attribute,
      was.type != .composite, was.type.keepsValues(as: new.type)
    else { return nil }
    return context.source.valueColumns(of: was, in: source).first.flatMap { moved($0, to: new) }
  }

  private mutating func moved(_ was: ValueColumn, to new: AttributeDescription)
    -> AttributeProgram?
  {
    guard let place = copyColumns.firstIndex(of: was.column) else { return nil }
    if let changed = was.attribute.changedStorage(as: new, at: place) { return changed }
    let isTaken = was.attribute.isExternal && !takenOver.insert(was.column).inserted
    return isTaken ? .refiled(place) : .source(place)
  }
}
