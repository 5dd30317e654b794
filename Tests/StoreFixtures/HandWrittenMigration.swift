import GodwitKeyedArchive
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// The SQL that an engineer would write by hand to migrate one store.
///
/// What the benchmark compares with. There are two forms: `script` fills a new store from an
/// attached source, `scriptInPlace` changes a copy of the source. Both cover renamed, added,
/// removed, widened and computed attributes, shifted entity numbers and renamed join tables;
/// `script` also covers inheritance and relationships that become ordered. Anything else is refused.
package struct HandWrittenMigration {
  /// What a mapping model or a policy does, in SQL.
  package struct Rewrite: Sendable {
    /// The entities that have objects in the destination; nil for all.
    package var entities: Set<EntityName>?
    /// Entity → property → expression over the source's columns. `{source}` stands for the
    /// schema prefix of source tables.
    package var values: [EntityName: [String: String]] = [:]
    /// Objects are new ones: an optimistic lock of 1, and `Z_MAX` as the keys leave it.
    package var insertsObjects = false
    /// Entities whose objects get keys from 1.
    package var renumbered: Set<EntityName> = []

    package init() {}
  }

  let source: StoreLayout
  let destination: StoreLayout
  /// Destination entity → source entity.
  let pairs: [EntityName: EntityName]
  let rewrite: Rewrite

  package init(
    from source: ManagedObjectModel, to destination: ManagedObjectModel,
    rewrite: Rewrite = Rewrite()
  ) throws {
    let before = try EntityHierarchy(source)
    let after = try EntityHierarchy(destination)
    self.source = StoreLayout(before)
    self.destination = StoreLayout(after)
    self.rewrite = rewrite
    var byKey: [String: EntityName] = [:]
    for entity in before.order { byKey[before[entity]?.mappingKey ?? ""] = entity }
    pairs = after.order.reduce(into: [:]) { pairs, entity in
      guard rewrite.entities?.contains(entity) ?? true else { return }
      pairs[entity] = after[entity].flatMap { byKey[$0.mappingKey] }
    }
  }

  // MARK: - Values

  /// The value of a column of the destination, as an expression over the source's columns.
  func value(
    of column: Column, for entity: EntityName, _ old: EntityName, prefix: String
  ) throws -> String {
    if case .attribute(_, let property) = column.role, let own = rewrite.values[entity]?[property] {
      return own.replacing("{source}", with: prefix)
    }
    if case .toOne(_, let property) = column.role, let own = rewrite.values[entity]?[property] {
      return own.replacing("{source}", with: prefix)
    }
    return try carriedValue(of: column, for: entity, old)
  }

  private func carriedValue(
    of column: Column, for entity: EntityName, _ old: EntityName
  ) throws -> String {
    let after = destination.hierarchy
    switch column.role {
    case .attribute(let declaring, let property):
      guard after.isKind(entity, of: declaring),
        let attribute = after.property(property, of: entity)?.property.attribute
      else { return "NULL" }
      let fallback = attribute.defaultValue.map { literal(SQLiteValue($0)) }
      guard let match = try matched(property, of: entity, old)?.property.attribute,
        let from = source.column(of: match.name, in: old)
      else { return fallback ?? "NULL" }
      guard
        match.allowsExternalBinaryDataStorage == attribute.allowsExternalBinaryDataStorage
      else { throw FixtureError.notExpressible("\(entity).\(property) changes its storage") }
      if !attribute.traits.isOptional, match.traits.isOptional, let fallback {
        return "ifnull(\(name(from)), \(fallback))"
      }
      return name(from)
    case .leaf(let declaring, let composite, let path):
      guard after.isKind(entity, of: declaring) else { return "NULL" }
      let leaves = source.leafColumns(of: composite, in: old)
      guard let leaf = leaves.first(where: { $0.path == path }) else { return "NULL" }
      let new = destination.leafColumns(of: composite, in: entity).first { $0.path == path }
      guard leaf.attribute.isExternal == new?.attribute.isExternal else {
        throw FixtureError.notExpressible("\(entity).\(composite) changes its storage")
      }
      return name(leaf.column)
    case .toOne(let declaring, let property):
      guard after.isKind(entity, of: declaring) else { return "NULL" }
      return try toOne(property, of: entity, old)?.column ?? "NULL"
    case .targetEntity(let declaring, let property):
      guard after.isKind(entity, of: declaring),
        let found = try toOne(property, of: entity, old)
      else { return "NULL" }
      return try targetEntity(found, old)
    case .order(let declaring, let property):
      guard after.isKind(entity, of: declaring),
        let found = try toOne(property, of: entity, old)
      else { return "NULL" }
      if let place = source.orderColumn(of: found.name, in: found.entity) { return name(place) }
      let key = found.column
      return "CASE WHEN \(key) IS NOT NULL THEN "
        + "1024 + 1024 * row_number() OVER (PARTITION BY \(key) ORDER BY Z_PK) END"
    case .owner(let declaring, let property):
      guard let oldOwner = pairs[declaring],
        let match = try matched(property, of: declaring, oldOwner)
      else { return "NULL" }
      guard let from = source.ownerColumn(of: match.property.name, in: match.entity) else {
        throw FixtureError.notExpressible("\(declaring).\(property) changes its storage")
      }
      return name(from)
    }
  }

  private struct ToOne {
    let entity: EntityName
    let name: String
    let column: String
    let destination: EntityName
  }

  private func toOne(
    _ property: String, of entity: EntityName, _ old: EntityName
  ) throws -> ToOne? {
    guard let match = try matched(property, of: entity, old) else { return nil }
    guard let relationship = match.property.relationship, !relationship.isToMany,
      let column = source.column(of: relationship.name, in: match.entity)
    else { throw FixtureError.notExpressible("\(entity).\(property) was no to-one") }
    let kept = Set(pairs.values)
    for target in source.hierarchy.concrete(of: relationship.destinationEntity)
    where !kept.contains(target) {
      throw FixtureError.notExpressible("\(entity).\(property) loses its targets \(target)")
    }
    return ToOne(
      entity: match.entity, name: relationship.name, column: name(column),
      destination: relationship.destinationEntity)
  }

  /// The destination's number of the target's entity.
  private func targetEntity(_ found: ToOne, _ old: EntityName) throws -> String {
    var cases = ""
    for (new, before) in pairs.sorted(by: { $0.key < $1.key })
    where source.hierarchy.isKind(before, of: found.destination) {
      guard let from = source.entityNumbers[before], let to = destination.entityNumbers[new]
      else { continue }
      guard source.entityColumn(of: found.name, in: found.entity) != nil else {
        return "CASE WHEN \(found.column) IS NOT NULL THEN \(to) END"
      }
      cases += " WHEN \(from) THEN \(to)"
    }
    guard let column = source.entityColumn(of: found.name, in: found.entity), !cases.isEmpty
    else { return "NULL" }
    return "CASE \(name(column))\(cases) END"
  }

  /// The source's property of the same kind and renaming identifier.
  private func matched(
    _ property: String, of entity: EntityName, _ old: EntityName
  ) throws -> EntityHierarchy.Declared? {
    guard let wanted = destination.hierarchy.property(property, of: entity)?.property else {
      return nil
    }
    return source.hierarchy.properties(of: old).first {
      $0.property.isStored && $0.property.traits.mappingKey == wanted.traits.mappingKey
        && ($0.property.attribute == nil) == (wanted.attribute == nil)
    }
  }

  // MARK: - Many-to-many

  /// The source of a join table, and the SQL of its columns; nil where the destination has no pairs.
  func pairs(of join: JoinTable) throws -> (from: JoinTable, values: [String])? {
    let sides = [
      (join.entity, join.relationship, false), (join.inverseEntity, join.inverse, true),
    ]
    for (entity, relationship, isTurned) in sides {
      guard let old = pairs[entity], let match = try matched(relationship, of: entity, old)
      else { continue }
      guard let found = source.join(of: match.property.name, in: match.entity) else {
        throw FixtureError.notExpressible("\(entity).\(relationship) was not many-to-many")
      }
      let straight = found.isFirst != isTurned
      let from = found.table
      let keys =
        straight ? [from.firstColumn, from.secondColumn] : [from.secondColumn, from.firstColumn]
      let places =
        straight
        ? [from.firstOrderColumn, from.secondOrderColumn]
        : [from.secondOrderColumn, from.firstOrderColumn]
      var values = keys.map(name)
      for (index, wanted) in [join.firstOrderColumn, join.secondOrderColumn].enumerated()
      where wanted != nil {
        values.append(
          places[index].map(name)
            ?? "1024 + 1024 * row_number() OVER (PARTITION BY \(name(keys[1 - index])) "
            + "ORDER BY \(name(keys[index])))")
      }
      return (from, values)
    }
    return nil
  }

  // MARK: - Control tables

  /// Fills `Z_PRIMARYKEY`; `old` is the source's.
  func primaryKeys(from old: String) -> [String] {
    let hierarchy = destination.hierarchy
    return hierarchy.order.map { entity in
      let above = hierarchy[entity]?.superentity.flatMap { destination.entityNumbers[$0] } ?? 0
      var highest = "0"
      if above == 0, let table = destination.table(of: entity),
        let before = hierarchy.subtree(of: entity).lazy.compactMap({ pairs[$0] }).first
      {
        let root = source.hierarchy.root(of: before).rawValue
        highest =
          rewrite.insertsObjects
          ? "(SELECT ifnull(max(Z_PK), 0) FROM \(name(table.name)))"
          : "(SELECT Z_MAX FROM \(old) WHERE Z_NAME = \(literal(.text(root))))"
      }
      return "INSERT INTO Z_PRIMARYKEY VALUES (\(destination.entityNumbers[entity] ?? 0), "
        + "\(literal(.text(entity.rawValue))), \(above), \(highest));"
    }
  }

  /// The literals of `Z_PLIST` and `Z_CONTENT` for a store with the metadata of the one at `path`.
  func stamp(of path: String) throws -> (metadata: String, modelCache: String) {
    let store = try Connection(path: path, mode: .immutable)
    guard
      case .blob(let plist)? = try store.rows("SELECT Z_PLIST FROM Z_METADATA").first?.first,
      case .dictionary(let metadata) = try PropertyList(bytes: plist)
    else { throw FixtureError.notExpressible("\(path) has no metadata") }
    let stamp = StoreStamp(
      hierarchy: destination.hierarchy, frameworkVersion: destination.frameworkVersion)
    return (
      literal(.blob(stamp.metadata(keeping: metadata))),
      literal(.blob(try destination.hierarchy.model.modelCacheBytes()))
    )
  }

  func name(_ identifier: String) -> String { StoreLayout.identifier(identifier) }

  func literal(_ value: SQLiteValue) -> String {
    switch value {
    case .null: "NULL"
    case .integer(let number): String(number)
    case .real(let number): String(number)
    case .text(let text): "'" + text.replacing("'", with: "''") + "'"
    case .blob(let bytes):
      "X'" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "'"
    }
  }
}

extension SQLiteValue {
  fileprivate init(_ value: StoredDefault) {
    switch value {
    case .integer(let number): self = .integer(number)
    case .real(let number): self = .real(number)
    case .text(let text): self = .text(text)
    case .blob(let bytes): self = .blob(bytes)
    }
  }
}
