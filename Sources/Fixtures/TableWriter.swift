import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Writes the rows of one root entity's table.
final class TableWriter {
  private enum Producer {
    case null
    case attribute(ValueSource)
    /// The key of a target. It comes before its companions below.
    case target(Int)
    /// `Z_ENT` of the target.
    case targetEntity(Int)
    /// The target's list holds the object at this place.
    case place(Int)
  }

  private let space: KeySpace
  private let tools: ValueTools
  private let statement: Statement
  /// For each share of the space, what fills the columns.
  private let producers: [[Producer]]
  private let targets: [ToOneTargets]
  private var current: [ToOneTargets.Target?]
  private let updatedThreshold: UInt64

  init(
    _ table: EntityTable, layout: StoreLayout, spaces: KeySpaces, connection: Connection,
    tools: ValueTools, options: StoreOptions
  ) throws {
    guard let space = spaces.spaces[table.root] else {
      throw FixtureError.notExpressible("the table \(table.name) has no entity")
    }
    self.space = space
    self.tools = tools
    updatedThreshold = threshold(options.updatedFraction)
    let hierarchy = layout.hierarchy
    let unique = UniqueProperties(hierarchy)
    var targets: [ToOneTargets] = []
    var places: [Role: Int] = [:]
    for column in table.columns {
      switch column.role {
      case .toOne(let entity, let name):
        guard let relationship = hierarchy.property(name, of: entity)?.property.relationship,
          let found = ToOneTargets(
            relationship, of: entity, isUnique: unique.contains(name, of: entity), in: spaces,
            options: options)
        else { continue }
        places[column.role] = targets.count
        targets.append(found)
      case .owner(let entity, let name):
        guard let relationship = hierarchy.property(name, of: entity)?.property.relationship,
          let found = ToOneTargets(
            ownerOf: relationship, declaredBy: entity, in: spaces, options: options)
        else { continue }
        places[column.role] = targets.count
        targets.append(found)
      default: continue
      }
    }
    self.targets = targets
    current = Array(repeating: nil, count: targets.count)
    producers = space.shares.map { share in
      table.columns.map { column in
        Self.producer(
          column.role, for: share.entity, hierarchy: hierarchy, places: places, unique: unique,
          options: options)
      }
    }
    let names = (EntityTable.systemColumns + table.columns.map(\.name)).map {
      StoreLayout.identifier($0)
    }
    let marks = Array(repeating: "?", count: names.count).joined(separator: ", ")
    statement = try connection.prepare(
      "INSERT INTO \(StoreLayout.identifier(table.name)) (\(names.joined(separator: ", "))) "
        + "VALUES (\(marks))")
  }

  private static func producer(
    _ role: Role, for entity: EntityName, hierarchy: EntityHierarchy, places: [Role: Int],
    unique: UniqueProperties, options: StoreOptions
  ) -> Producer {
    switch role {
    case .attribute(let declaring, let name):
      guard hierarchy.isKind(entity, of: declaring),
        let attribute = hierarchy.property(name, of: declaring)?.property.attribute,
        attribute.derivationExpression == nil
      else { return .null }
      return .attribute(
        ValueSource(
          attribute, isUnique: unique.contains(name, of: declaring), options: options))
    case .leaf(let declaring, let composite, let path):
      guard hierarchy.isKind(entity, of: declaring),
        let attribute = hierarchy.property(composite, of: declaring)?.property.attribute,
        let leaf = attribute.leaves.first(where: { $0.path == path })?.attribute
      else { return .null }
      return .attribute(ValueSource(leaf, isUnique: false, options: options))
    case .toOne(let declaring, _):
      guard hierarchy.isKind(entity, of: declaring) else { return .null }
      return places[role].map(Producer.target) ?? .null
    case .owner:
      return places[role].map(Producer.target) ?? .null
    case .targetEntity(let declaring, let name):
      return places[.toOne(declaring, name)].map(Producer.targetEntity) ?? .null
    case .order(let declaring, let name):
      return places[.toOne(declaring, name)].map(Producer.place) ?? .null
    }
  }

  @inline(__always)
  private func bind(_ column: Int32, _ number: Int64?) throws {
    if let number {
      try statement.bind(column, number)
    } else {
      try statement.bind(column, RawValue.null)
    }
  }

  /// Writes the rows of the given slots, by ascending key.
  func write(slots: Range<Int>) throws {
    for slot in slots {
      let ordinal = space.ordinal(ofSlot: slot)
      let share = space.share(ofOrdinal: ordinal)
      tools.arena.reset()
      for index in current.indices { current[index] = nil }
      try statement.bind(1, space.key(ofSlot: slot))
      try statement.bind(2, Int64(space.shares[share].number))
      let random = tools.random.next()
      try statement.bind(3, random < updatedThreshold ? 2 + Int64(random & 7) : 1)
      var column: Int32 = 4
      for producer in producers[share] {
        switch producer {
        case .null: try statement.bind(column, RawValue.null)
        case .attribute(let source):
          try statement.bind(column, try source.value(ordinal: ordinal, tools))
        case .target(let index):
          let target = targets[index].target(ofOrdinal: ordinal)
          current[index] = target
          try bind(column, target.map { targets[index].targets.key($0.member) })
        case .targetEntity(let index):
          try bind(column, current[index].map { targets[index].targets.number($0.member) })
        case .place(let index):
          try bind(column, current[index]?.place)
        }
        column += 1
      }
      try statement.step()
      statement.reset()
    }
  }
}

extension AttributeDescription {
  /// The attribute itself, or what has columns of a composite one: optional where anything above is.
  var leaves: [(path: [String], attribute: AttributeDescription)] {
    guard type == .composite else { return [([], self)] }
    return (compositeElements ?? []).flatMap { element -> [([String], AttributeDescription)] in
      var element = element
      if traits.isOptional { element.traits.isOptional = true }
      return element.leaves.map { ([element.name] + $0.path, $0.attribute) }
    }
  }
}

/// The properties that must differ between any two objects, so that every uniqueness constraint
/// holds: one of each constraint.
struct UniqueProperties: Sendable {
  private var names: Set<String> = []

  init(_ hierarchy: EntityHierarchy) {
    for entity in hierarchy.order {
      for constraint in hierarchy[entity]?.uniquenessConstraints ?? [] {
        let candidates = constraint.compactMap { hierarchy.property($0, of: entity) }
        if let best = candidates.min(by: { Self.rank($0.property) < Self.rank($1.property) }) {
          names.insert(best.entity.rawValue + "." + best.property.name)
        }
      }
    }
  }

  /// - Throws: ``FixtureError/tooFewValues(property:rows:most:entities:)``.
  func requireEnoughValues(in spaces: KeySpaces, _ options: StoreOptions) throws {
    let hierarchy = spaces.hierarchy
    for entity in hierarchy.order {
      for property in hierarchy[entity]?.properties ?? []
      where property.isStored && contains(property.name, of: entity) {
        guard let attribute = property.attribute, attribute.derivationExpression == nil,
          let rows = spaces.population(of: entity)?.count
        else { continue }
        let source = ValueSource(attribute, isUnique: true, options: options)
        if let most = source.mostDifferent, most < rows {
          let entities = hierarchy.concrete(of: entity)
          let given = entities.compactMap { options.rowsByEntity[$0] }
          // Rows are asked for by entity, and those of sub-entities need values of their own.
          let asked = entities.count - given.count
          throw FixtureError.tooFewValues(
            property: "\(entity).\(property.name)", rows: rows,
            most: asked == 0 ? most : max(0, most - given.reduce(0, +)) / asked,
            entities: max(1, asked))
        }
      }
    }
  }

  func contains(_ property: String, of entity: EntityName) -> Bool {
    names.contains(entity.rawValue + "." + property)
  }

  /// How well a property can differ everywhere: lower is better.
  private static func rank(_ property: PropertyDescription) -> Int {
    guard let attribute = property.attribute else { return 8 }
    switch attribute.type {
    case .uuid: return 0
    case .string: return attribute.validation.isEmpty ? 1 : 5
    case .integer64, .uri: return 2
    case .integer32, .double, .date: return 3
    case .decimal: return 4
    case .integer16: return 6
    case .binary, .transformable: return 7
    default: return 9
    }
  }
}
