import FoundationEssentials
import GodwitExpressions
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Plans the entity mappings: tables, keys, columns, relationships.
struct MappedBuilder {
  /// An entity mapping and where it stands.
  struct Member {
    var mapping: EntityMapping
    /// As the mapping model has it, for policies that ask.
    var written: EntityMapping
    var pass: Int
    var index: Int
  }

  let context: PlanContext
  let members: [Member]
  private let renumbers: Bool
  private let policies: RegisteredPolicies
  private(set) var tables: [TablePlan] = []
  private(set) var joinTables: [JoinTablePlan] = []
  private(set) var mapped = MappedPlan(
    mappings: [], groups: [], sourceEntities: [], countRules: [])
  private(set) var notes: [String] = []

  init(
    context: PlanContext, models: [MappingModel], renumbers: Bool,
    policies: RegisteredPolicies = .none
  ) throws {
    self.context = context
    self.renumbers = renumbers
    self.policies = policies
    var members: [Member] = []
    for (pass, model) in models.enumerated() {
      for mapping in model.entityMappings {
        members.append(
          Member(
            mapping: mapping.withHelperConstants, written: mapping, pass: pass,
            index: members.count))
      }
    }
    self.members = members
  }

  mutating func build() throws {
    for table in context.destination.tables {
      let makers = members.filter { makes($0, rowsOf: table) }
      tables.append(plan(of: table, makers))
    }
    for member in members { mapped.mappings.append(try plan(of: member)) }
    var links = MappedLinks(context: context, members: members, tables: tables)
    links.build(&mapped.mappings)
    mapped.groups = links.groups
    notes += links.notes
    joinTables = links.joinTables
    if hasPolicies {
      mapped.destinationEntities = links.destinationEntities()
      mapped.writtenEntities = SourceAccessPlanner(context: context.ofDestination).entities()
      mapped.policyCode = policies.codeDigest()
      mapped.sourceModel = Data(try context.source.hierarchy.modelCacheBytes())
    }
    if needsObjects {
      mapped.sourceEntities = SourceAccessPlanner(context: context).entities()
    }
    mapped.sourceUUID = context.store.metadata.uuid ?? ""
    mapped.countRules = CountRules(context: context, tables: tables).rules()
  }

  /// True when some expression is more than a look at the row or a known way to objects.
  private var needsObjects: Bool {
    mapped.mappings.contains { mapping in
      !mapping.takesAll || !mapping.expressions.isEmpty || mapping.policy != nil
        || mapping.links.contains { $0.way == .evaluated }
    }
  }

  /// The code of policies may make objects of any entity.
  private var hasPolicies: Bool { members.contains { $0.mapping.policy != nil } }

  // MARK: Tables and keys

  private func makes(_ member: Member, rowsOf table: EntityTable) -> Bool {
    guard let destination = member.mapping.destinationEntity else { return false }
    return (member.mapping.sourceEntity != nil || member.mapping.policy != nil)
      && table.entities.contains(destination)
  }

  private func plan(of table: EntityTable, _ makers: [Member]) -> TablePlan {
    let names = table.columns.map(\.name)
    let numbers =
      hasPolicies
      ? table.entities.filter { context.destination.hierarchy[$0]?.isAbstract == false }
      : Set(makers.compactMap(\.mapping.destinationEntity)).sorted()
    let empty = RowRules(of: table.root, in: context.destination, columns: [])
    return TablePlan(
      name: table.name, root: table.root, way: makers.isEmpty && !hasPolicies ? .empty : .computed,
      columns: names, sourceTable: nil, keptColumns: [], copyColumns: [], copyExpressions: [],
      linkColumns: [], pairQueries: [],
      entities: numbers.map { entity in
        EntityProgram(
          source: entity, destination: entity, sourceNumber: 0,
          destinationNumber: context.destinationNumber(entity), attributes: [],
          relationships: [], sourceRules: empty,
          destinationRules: RowRules(of: entity, in: context.destination, columns: names),
          references: [],
          validation: ValidationRules(of: entity, in: context.destination, columns: names))
      }, elsewhere: [],
      expectedRows: makers.reduce(0) {
        $0 + ($1.mapping.sourceEntity.map(context.rows(ofSource:)) ?? 0)
      },
      attributePlaces: table.columns.indices.filter { context.isCopied(table.columns[$0]) },
      relationshipPlaces: table.columns.indices.filter { !context.isCopied(table.columns[$0]) })
  }

  /// Keys are kept when all rows come from one source table and no source object gives two.
  private func assignsKeys(_ table: EntityTable) -> Bool {
    if renumbers { return true }
    let makers = members.filter { makes($0, rowsOf: table) }
    let sources = makers.compactMap(\.mapping.sourceEntity)
    return Set(sources.map(context.source.hierarchy.root)).count > 1
      || Set(sources).count < sources.count || makers.contains { $0.mapping.policy != nil }
  }

  // MARK: One entity mapping

  private func plan(of member: Member) throws -> EntityMappingPlan {
    let mapping = member.mapping
    let source = mapping.sourceEntity
    let destination = mapping.destinationEntity
    let old = source.flatMap(context.source.table(of:))
    let table = destination.flatMap(context.destination.table(of:))
    let place =
      (old != nil || mapping.policy != nil) && table != nil
      ? tables.firstIndex { $0.name == table?.name && $0.way == .computed } : nil
    var plan = EntityMappingPlan(
      name: mapping.name, pass: member.pass, source: source, destination: destination,
      sourceNumber: source.map(context.sourceNumber) ?? 0,
      destinationNumber: destination.map(context.destinationNumber) ?? 0,
      sourceTable: old?.name, table: place, policy: mapping.policy, userInfo: mapping.userInfo,
      filter: nil, assignsKeys: table.map(assignsKeys) ?? false, isReferenced: false,
      copyColumns: [], copyAttributes: [], attributes: [], expressions: [],
      sourceRules: RowRules([]), linkColumns: [], links: [], fills: [])
    if mapping.policy != nil {
      plan.policyMapping = PolicyMapping(
        member.written, source: context.source.hierarchy,
        destination: context.destination.hierarchy)
    }
    plan.isWhole = mapping.policy.flatMap { policies[$0] }?.seesWholeEntity ?? false
    switch mapping.sourceSelection {
    case .all, .filter(.constant(true)): break
    case .filter(let predicate): plan.filter = predicate.description
    case .expression(let expression): plan.selection = expression.description
    }
    guard let source, let destination, let table, place != nil else { return plan }
    var attributes = MappedAttributes(
      context: context, mapping: mapping, source: source, destination: destination)
    attributes.takenOver = files(takenBefore: member.index, from: source)
    attributes.build(table)
    plan.copyColumns = attributes.copyColumns
    plan.copyAttributes = attributes.copyAttributes
    plan.attributes = attributes.programs
    plan.expressions = attributes.expressions
    plan.destinationAccess = DestinationAccessPlanner(
      context: context, mapping: mapping, destination: destination
    ).access(table, derives: attributes.expressions.contains(where: \.isDerived))
    plan.sourceRules = RowRules(of: source, in: context.source, columns: attributes.copyColumns)
    return plan
  }
}

extension MappedBuilder {
  /// Source columns whose external files an earlier mapping may give to its own objects.
  private func files(takenBefore index: Int, from source: EntityName) -> Set<String> {
    var columns: Set<String> = []
    for member in members[..<index] where member.mapping.sourceEntity == source {
      guard let destination = member.mapping.destinationEntity else { continue }
      for row in member.mapping.properties.attributes {
        guard let key = row.expression?.plainSourceKey,
          let was = context.source.hierarchy.property(key, of: source)?.property.attribute,
          let new = context.destination.hierarchy.property(row.name, of: destination)?
            .property.attribute
        else { continue }
        let outside = context.destination.valueColumns(of: new, in: destination)
          .filter(\.attribute.isExternal).map(\.path)
        for value in context.source.valueColumns(of: was, in: source)
        where value.attribute.isExternal && outside.contains(value.path) {
          columns.insert(value.column)
        }
      }
    }
    return columns
  }
}

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
      (base, keys) = (start, first + keys)
    }
    expressions.append(
      AttributeExpression(
        property: ([composite] + path).joined(separator: "."), place: place, type: new.type,
        isExternal: new.isExternal,
        expression: ValueExpression.keyPath(base: base, keys: keys).description,
        order: mapping.properties.attributes.firstIndex { $0.name == composite } ?? 0))
    return .null
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

extension PlanContext {
  /// The stored attributes of a source entity that its table really has. Elements of composite
  /// attributes stand here by their key paths.
  func attributes(ofSource entity: EntityName) -> [SourceAttribute] {
    let present =
      isOfStore
      ? source.table(of: entity).map { Set(store.columns(of: $0.name).map(\.name)) } ?? [] : nil
    let found = source.hierarchy.properties(of: entity).flatMap { declared -> [SourceAttribute] in
      guard declared.property.isStored, let attribute = declared.property.attribute else {
        return []
      }
      return source.valueColumns(of: attribute, in: entity).map { value in
        SourceAttribute(
          name: value.keyPath(below: attribute.name), type: value.type, column: value.column,
          isExternal: value.attribute.isExternal)
      }
    }
    return found.filter { present?.contains($0.column) ?? true }
  }
}

extension AttributeType {
  /// True when an element of a composite that has another type in the destination gets the number, as an
  /// attribute would. Anything else has no successor.
  func convertsElement(to other: AttributeType) -> Bool { isNumeric && other.isNumeric }

  private var isNumeric: Bool {
    switch self {
    case .integer16, .integer32, .integer64, .decimal, .double, .float, .boolean: true
    default: false
    }
  }
}

extension EntityMappingPlan {
  /// True when no object of the source entity is left out.
  package var takesAll: Bool { filter == nil && selection == nil }
}
