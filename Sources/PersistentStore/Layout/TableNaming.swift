import GodwitObjectModel

/// Gives out the column names of entity tables and puts the columns in order.
///
/// Source: `core-data-sqlite-format.md` §4.1 (names), §4.2 (order), §4.3–§4.6.
struct TableNaming {
  let hierarchy: EntityHierarchy
  let numbers: [EntityName: Int]
  let frameworkVersion: Int
  private(set) var names = ColumnNames()
  /// Root → columns that get an index of their own, in order.
  private(set) var keyColumns: [EntityName: [String]] = [:]
  /// Destination → to-many relationships of others, without inverse, in the order of their owners.
  private let withoutInverse: [EntityName: [PropertyKey]]

  init(hierarchy: EntityHierarchy, numbers: [EntityName: Int], frameworkVersion: Int) {
    self.hierarchy = hierarchy
    self.numbers = numbers
    self.frameworkVersion = frameworkVersion
    var found: [EntityName: [PropertyKey]] = [:]
    for owner in hierarchy.order {
      for property in hierarchy[owner]?.properties ?? [] {
        guard let relationship = property.relationship, property.isStored,
          relationship.isToMany, relationship.inverseName == nil
        else { continue }
        found[relationship.destinationEntity, default: []].append(
          PropertyKey(owner, relationship.name))
      }
    }
    withoutInverse = found
  }

  /// A column on its way to its place.
  private struct Placed {
    /// Group, entity, attributes before relationships; then the order of arrival.
    let place: (Int, Int, Int, Int)
    let column: Column
  }

  mutating func table(of root: EntityName) -> EntityTable {
    let members = hierarchy.subtree(of: root)
    var pool = NamePool(["Z_PK", "Z_ENT", "Z_OPT"])
    var placed: [Placed] = []
    func place(
      _ name: String, _ type: String, _ role: Role, _ group: Int, _ entity: Int, _ sub: Int
    ) {
      placed.append(
        Placed(
          place: (group, entity, sub, placed.count),
          column: Column(name: name, declaredType: type, role: role)))
    }
    var keys: [String] = []
    for (index, name) in members.enumerated() {
      var orders: [(key: PropertyKey, base: String)] = []
      for entry in entries(of: name) {
        let key = PropertyKey(name, entry.property.name)
        switch entry.content {
        case .leaf(let path, let element):
          let column = pool.take("Z" + (path.last ?? "").uppercased())
          names.leaves[key, default: []].append(
            ValueColumn(path: path, attribute: element, column: column))
          place(
            column, element.type.columnType ?? "BLOB",
            .leaf(name, composite: key.property, path: path), entry.group, index, 0)
        case .attribute(let type):
          let column = pool.take("Z" + key.property.uppercased())
          names.columns[key] = column
          place(
            column, type.columnType ?? "BLOB", .attribute(name, key.property), entry.group, index,
            0)
        case .toOne(let relationship):
          let column = pool.take("Z" + key.property.uppercased())
          names.columns[key] = column
          keys.append(column)
          place(column, "INTEGER", .toOne(name, key.property), entry.group, index, 1)
          if hierarchy.hasSubentities(relationship.destinationEntity) {
            let number = numbers[hierarchy.root(of: relationship.destinationEntity)] ?? 0
            let extra = pool.take("Z\(number)_" + String(column.unicodeScalars.dropFirst()))
            names.entityColumns[key] = extra
            place(extra, "INTEGER", .targetEntity(name, key.property), entry.group, index, 1)
          }
          if let inverse = hierarchy.inverse(of: relationship)?.relationship, inverse.isToMany,
            inverse.isOrdered
          {
            orders.append((key, "Z_FOK_" + String(column.unicodeScalars.dropFirst())))
          }
        }
      }
      for owner in withoutInverse[name] ?? [] {
        let column = pool.take("Z\(numbers[owner.entity] ?? 0)" + owner.property.uppercased())
        names.ownerColumns[owner] = column
        keys.append(column)
        place(column, "INTEGER", .owner(owner.entity, relationship: owner.property), 1, index, 1)
      }
      for order in orders {
        let column = pool.take(order.base)
        names.orderColumns[order.key] = column
        place(column, "INTEGER", .order(name, order.key.property), 2, index, 0)
      }
    }
    keyColumns[root] = keys
    let columns = placed.sorted { $0.place < $1.place }.map(\.column)
    return EntityTable(
      name: "Z" + root.rawValue.uppercased(), root: root, entities: members, columns: columns,
      sql: sql(of: root, members, columns))
  }

  // MARK: One entity

  private struct Entry {
    enum Content {
      case attribute(AttributeType)
      case leaf([String], AttributeDescription)
      case toOne(RelationshipDescription)
    }
    let property: PropertyDescription
    let content: Content
    let group: Int
    /// Integers come before relationships, which are in the same group.
    let sub: Int
    /// Place of a leaf in its composite.
    let place: Int
  }

  /// The properties of one entity that have columns, in the order in which names are given out.
  private func entries(of name: EntityName) -> [Entry] {
    var entries: [Entry] = []
    for property in hierarchy[name]?.properties ?? [] where property.isStored {
      switch property {
      case .attribute(let attribute) where attribute.type == .composite:
        for (place, leaf) in attribute.leaves.enumerated() where leaf.element.type.columnType != nil
        {
          entries.append(
            Entry(
              property: property, content: .leaf(leaf.path, leaf.element),
              group: leaf.element.type.columnGroup, sub: 0, place: place))
        }
      case .attribute(let attribute) where attribute.type.columnType != nil:
        entries.append(
          Entry(
            property: property, content: .attribute(attribute.type),
            group: attribute.type.columnGroup, sub: 0, place: -1))
      case .relationship(let relationship) where !relationship.isToMany:
        entries.append(
          Entry(property: property, content: .toOne(relationship), group: 1, sub: 1, place: -1))
      default: break
      }
    }
    return entries.sorted { a, b in
      if (a.group, a.sub) != (b.group, b.sub) { return (a.group, a.sub) < (b.group, b.sub) }
      if a.property.name.precedesInBytes(b.property.name) { return true }
      if b.property.name.precedesInBytes(a.property.name) { return false }
      return a.place < b.place
    }
  }

  // MARK: Text

  private func sql(of root: EntityName, _ members: [EntityName], _ columns: [Column]) -> String {
    var unique: Set<String> = []
    var constraints = ""
    if frameworkVersion < 860 {
      // Before about 860 uniqueness stood in the table itself. Source: §4.6.
      for name in members {
        for constraint in hierarchy[name]?.uniquenessConstraints ?? [] {
          let listed = constraint.compactMap { property in
            hierarchy.property(property, of: name).flatMap {
              names.columns[PropertyKey($0.entity, property)]
            }
          }
          guard listed.count == constraint.count, let first = listed.first else { continue }
          if listed.count == 1 {
            unique.insert(first)
          } else {
            let title = StoreLayout.identifier(listed.joined(separator: "_"))
            let keys = listed.map(StoreLayout.identifier).joined(separator: ", ")
            constraints += ", CONSTRAINT \(title) UNIQUE (\(keys))"
          }
        }
      }
    }
    let listed = columns.map { column in
      ", \(StoreLayout.identifier(column.name)) \(column.declaredType)"
        + (unique.contains(column.name) ? " UNIQUE" : "")
    }
    let table = StoreLayout.identifier("Z" + root.rawValue.uppercased())
    return "CREATE TABLE \(table) ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER"
      + listed.joined() + (constraints.isEmpty ? " )" : constraints + ")")
  }
}

/// Names already given out; a name that is taken gets the suffix 1, 2, …
struct NamePool {
  // As bytes: Swift takes canonically equivalent texts for the same name, SQLite does not.
  private var used: Set<[UInt8]>
  private var lastSuffix: [[UInt8]: Int] = [:]

  init(_ reserved: [String] = []) {
    used = Set(reserved.map { Array($0.utf8) })
  }

  mutating func take(_ base: String) -> String {
    let key = Array(base.utf8)
    if used.insert(key).inserted { return base }
    // Suffixes tried before stay taken, so the search resumes where it ended.
    var suffix = lastSuffix[key] ?? 0
    var name = base
    repeat {
      suffix += 1
      name = base + String(suffix)
    } while !used.insert(Array(name.utf8)).inserted
    lastSuffix[key] = suffix
    return name
  }
}

extension AttributeType {
  /// The declared type of the attribute's column; nil for what has none. Source: §5.
  package var columnType: String? {
    switch self {
    case .integer16, .integer32, .integer64, .boolean: "INTEGER"
    case .decimal: "DECIMAL"
    case .double, .float: "FLOAT"
    case .date: "TIMESTAMP"
    case .string, .uri: "VARCHAR"
    case .binary, .uuid, .transformable, .objectID: "BLOB"
    case .undefined, .composite: nil
    }
  }

  /// Columns of a lower group come first in a table. Source: §4.2.
  var columnGroup: Int {
    switch self {
    case .integer16, .integer32, .integer64, .boolean: 1
    case .double, .float, .date: 3
    case .decimal: 4
    case .string: 5
    case .uuid: 6
    case .uri: 7
    case .objectID: 8
    case .transformable: 9
    case .binary: 10
    case .undefined, .composite: 11
    }
  }
}

extension AttributeDescription {
  /// The elements of a composite that are not composites themselves, with the path to each.
  package var leaves: [(path: [String], element: AttributeDescription)] {
    var result: [(path: [String], element: AttributeDescription)] = []
    // An explicit stack: composites of a hostile model may nest as deep as they like.
    var stack = (compositeElements ?? []).reversed().map { (path: [String](), element: $0) }
    while let (path, element) = stack.popLast() {
      let own = path + [element.name]
      if element.type == .composite {
        stack += (element.compositeElements ?? []).reversed().map { (path: own, element: $0) }
      } else {
        result.append((own, element))
      }
    }
    return result
  }
}
