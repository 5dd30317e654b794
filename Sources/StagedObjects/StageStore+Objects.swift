import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

// Inserting. Source: `core-data-sqlite-format.md` §2 (keys), §13.
extension StageStore {
  package func insert(_ entity: EntityName) throws -> ObjectReference {
    guard let description = model[entity] else {
      throw refused(entity, "", "the model has no such entity")
    }
    guard !description.isAbstract, let table = layout.table(of: entity) else {
      throw refused(entity, "", "the entity is abstract and has no objects of its own")
    }
    let key = try nextKey(of: table)
    let defaults = defaults(of: entity)
    let statement =
      try inserts[entity]
      ?? connection.prepare(
        """
        INSERT INTO \(quoted(table.name))
               (\((["Z_PK", "Z_ENT", "Z_OPT"] + defaults.map { quoted($0.column) })
          .joined(separator: ", ")))
        VALUES (\((1...(3 + defaults.count)).map { "?\($0)" }.joined(separator: ", ")))
        """)
    inserts[entity] = statement
    try statement.bind(1, key)
    try statement.bind(2, number(of: entity))
    try statement.bind(3, 1)
    for (index, found) in defaults.enumerated() {
      try statement.bind(Int32(index + 4), found.value)
    }
    do {
      try statement.run()
    } catch let error as SQLiteError where error.isConstraintUnique {
      throw refused(
        entity, "", "the default values of a new object break a uniqueness constraint", code: 1551)
    }
    if highestKeys[table.root] == nil { firstNewKeys[table.name] = key }
    highestKeys[table.root] = key
    let object = ObjectReference(entity, key, in: settings.side)
    try note(object, isNew: true)
    return object
  }

  /// The key after the highest that was ever given out.
  private func nextKey(of table: EntityTable) throws -> Int64 {
    if let known = highestKeys[table.root] { return known + 1 }
    let given = try connection.rows(
      "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = ?1", [.integer(number(of: table.root))])
    let used = try connection.rows("SELECT max(Z_PK) FROM \(quoted(table.name))")
    let highest = max(given.first?.first?.integer ?? 0, used.first?.first?.integer ?? 0)
    guard highest < Int64.max - (1 << 40) else {
      throw refused(table.root, "", "its table has no keys left")
    }
    return highest + 1
  }

  /// Columns that do not begin with NULL, in the order of their names.
  func defaults(of entity: EntityName) -> [(column: String, value: SQLiteValue)] {
    var found: [(column: String, value: SQLiteValue)] = []
    for declared in model.properties(of: entity) where declared.property.isStored {
      guard let attribute = declared.property.attribute, attribute.derivationExpression == nil
      else { continue }
      for value in layout.valueColumns(of: attribute, in: entity) {
        switch value.attribute.storedDefault {
        case .integer(let number): found.append((value.column, .integer(number)))
        case .real(let number): found.append((value.column, .real(number)))
        case .text(let text): found.append((value.column, .text(text)))
        case .blob(let bytes): found.append((value.column, .blob(bytes)))
        case nil: break
        }
      }
    }
    return found
  }
}

// Deleting. Source: Core Data's delete rules, `core-data-sqlite-format.md` §3.
extension StageStore {
  package func delete(_ object: ObjectReference) throws {
    // Perhaps another object took it along. Core Data does nothing, too.
    guard try exists(object) else { return }
    let doomed = try closure(of: object)
    let all = Set(doomed)
    for object in doomed {
      for relationship in try relationships(of: object.entity)
      where relationship.description.deleteRule == .deny {
        guard try members(of: relationship, object).allSatisfy(all.contains) else {
          throw refused(
            object, relationship.description.name,
            "the relationship has objects and denies deletion", code: 1600)
        }
      }
    }
    try whole {
      for object in doomed {
        try noteCounts(before: object)
        for relationship in try relationships(of: object.entity) {
          try release(relationship, of: object, doomed: all)
        }
        try dropRow(of: object)
      }
    }
    deletions += 1
  }

  /// Takes an object's row and external files away, whatever refers to it.
  func dropRow(of object: ObjectReference) throws {
    try dropFiles(of: object)
    _ = try connection.rows(
      "DELETE FROM \(quoted(layout.table(of: object.entity)?.name ?? "")) WHERE Z_PK = ?1",
      [.integer(object.primaryKey)])
    deleted.insert(object.entity)
    try forget(object)
  }

  /// The object and all that its relationships take along.
  private func closure(of object: ObjectReference) throws -> [ObjectReference] {
    var found: [ObjectReference] = []
    var seen: Set<ObjectReference> = [object]
    var waiting = [object]
    while let next = waiting.popLast() {
      found.append(next)
      for relationship in try relationships(of: next.entity)
      where relationship.description.deleteRule == .cascade {
        for member in try members(of: relationship, next) where seen.insert(member).inserted {
          waiting.append(member)
        }
      }
    }
    return found
  }

  func relationships(of entity: EntityName) throws -> [StageRelationship] {
    try model.properties(of: entity).compactMap { declared in
      guard declared.property.isStored, declared.property.relationship != nil,
        case .relationship(let found) = try place(of: declared.property.name, in: entity)
      else { return nil }
      return found
    }
  }

  /// Takes an object out of its members' inverses.
  private func release(
    _ relationship: StageRelationship, of object: ObjectReference, doomed: Set<ObjectReference>
  ) throws {
    let isKept = relationship.description.deleteRule == .noAction
    for member in try members(of: relationship, object) {
      // A pair of keys without one of its objects is of no use to anybody.
      if relationship.storage.isJoinTable {
        try relationship.disconnect(object, member, self)
      } else if isKept {
        continue
      } else if relationship.description.isToMany {
        if !doomed.contains(member) { try relationship.disconnect(object, member, self) }
      } else if let inverse = relationship.inverse, !inverse.description.isToMany,
        !doomed.contains(member),
        case .relationship(let back) = try place(of: inverse.description.name, in: member.entity),
        try members(of: back, member) == [object]
      {
        try back.disconnect(member, object, self)
      }
      if relationship.inverse != nil, !doomed.contains(member) { try note(member) }
    }
  }

  func dropFiles(of object: ObjectReference) throws {
    let properties =
      externalProperties[object.entity]
      ?? layout.externalColumns(of: object.entity).map(\.property)
    externalProperties[object.entity] = properties
    for property in properties {
      guard case .attribute(let column) = try place(of: property, in: object.entity) else {
        continue
      }
      try drop(try stored(column, object, property))
    }
  }
}
