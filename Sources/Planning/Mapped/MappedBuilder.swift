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
