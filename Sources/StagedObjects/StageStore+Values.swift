import Foundation
import GodwitDurableFiles
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// How one property of an entity is reached.
enum StagePlace {
  case attribute(StageColumn)
  /// A composite attribute: its elements that have columns, with the path to each.
  case composite(AttributeDescription, [(path: [String], column: StageColumn)])
  case relationship(StageRelationship)
}

/// The column of an attribute, or of an element of a composite one.
final class StageColumn {
  let description: AttributeDescription
  let table: String
  let column: String
  var reader: Statement?
  var writer: Statement?

  init(_ description: AttributeDescription, table: String, column: String) {
    self.description = description
    self.table = table
    self.column = column
  }
}

extension StageStore {
  package func value(forKey key: String, of object: ObjectReference) throws -> ExpressionValue {
    switch try place(of: key, in: object.entity) {
    case .attribute(let column):
      return try value(of: column, object, key)
    case .composite(_, let leaves):
      var tree = CompositeElements()
      for (path, column) in leaves {
        tree.set(path[...], to: try value(of: column, object, key))
      }
      return tree.valueOrNull.isNull ? .null : tree.dictionary
    case .relationship(let relationship):
      guard try exists(object) else { throw missing(object, key) }
      let found = try members(of: relationship, object).map { ExpressionValue.object($0) }
      guard relationship.description.isToMany else { return found.first ?? .null }
      return relationship.description.isOrdered ? .orderedSet(found) : .set(found)
    }
  }

  package func setValue(
    _ value: ExpressionValue, forKey key: String, of object: ObjectReference
  ) throws {
    switch try place(of: key, in: object.entity) {
    case .attribute(let column):
      try set(column, to: value, object, key)
    case .composite(let description, let leaves):
      let assigned = try assigned(value, to: description, object, key)
      try whole {
        for (path, column) in leaves {
          // Equal bytes in two elements are two files, by their names.
          try set(
            column, to: assigned.element(at: path), object,
            ([key] + path).joined(separator: "."))
        }
      }
    case .relationship(let relationship):
      try set(relationship, to: try targets(value, relationship, object), object)
    }
  }

  /// - Throws: For what is not a stored property of the entity.
  func place(of key: String, in entity: EntityName) throws -> StagePlace {
    if let known = places[entity]?[key] { return known }
    let found = try findPlace(of: key, in: entity)
    places[entity, default: [:]][key] = found
    return found
  }

  private func findPlace(of key: String, in entity: EntityName) throws -> StagePlace {
    guard let table = layout.table(of: entity)?.name else {
      throw refused(entity, "", "the model has no such entity")
    }
    let path = key.keyPathParts
    guard let declared = model.property(path[0], of: entity), declared.property.isStored else {
      throw refused(entity, key, "there is no such stored property")
    }
    if let relationship = declared.property.relationship, path.count == 1 {
      return .relationship(try StageRelationship(relationship, declaredBy: declared.entity, self))
    }
    guard let attribute = declared.property.attribute else {
      throw refused(entity, key, "there is no such stored property")
    }
    if attribute.type == .composite {
      let leaves = layout.leafColumns(of: attribute.name, in: entity).map {
        (path: $0.path, column: StageColumn($0.attribute, table: table, column: $0.column))
      }
      if path.count == 1 { return .composite(attribute, leaves) }
      let below = Array(path.dropFirst())
      if let leaf = leaves.first(where: { $0.path == below }) { return .attribute(leaf.column) }
      // A composite in a composite.
      if let inner = attribute.element(at: below[...]), inner.type == .composite {
        return .composite(
          inner,
          leaves.filter { $0.path.starts(with: below) }.map {
            (path: Array($0.path.dropFirst(below.count)), column: $0.column)
          })
      }
    } else if path.count == 1, let column = layout.column(of: attribute.name, in: entity) {
      return .attribute(StageColumn(attribute, table: table, column: column))
    }
    throw refused(entity, key, "there is no such stored property")
  }

  /// A value as the attribute's type takes it.
  private func assigned(
    _ value: ExpressionValue, to attribute: AttributeDescription, _ object: ObjectReference,
    _ key: String
  ) throws -> ExpressionValue {
    do {
      return try value.assigned(to: attribute)
    } catch {
      let problem = EvaluationError(error, expression: "")
      let isType = problem.code == 134_110
      throw refused(
        object.entity, key, "Z_PK \(object.primaryKey): \(error)",
        code: isType ? 1550 : problem.code)
    }
  }

  // MARK: One column

  private func value(
    of place: StageColumn, _ object: ObjectReference, _ key: String
  ) throws -> ExpressionValue {
    var stored = try self.stored(place, object, key)
    if place.description.isExternal, let bytes = stored.blob {
      stored = .blob(try content(bytes, object, key))
    }
    do {
      return try ExpressionValue(stored: stored, as: place.description.type)
    } catch {
      throw refused(object, key, "\(error)")
    }
  }

  /// What stands in the column.
  func stored(
    _ place: StageColumn, _ object: ObjectReference, _ key: String
  ) throws -> SQLiteValue {
    let statement =
      try place.reader
      ?? connection.prepare(
        """
        SELECT \(quoted(place.column)) FROM \(quoted(place.table)) WHERE Z_PK = ?1 AND Z_ENT = ?2
        """)
    place.reader = statement
    try statement.bind(1, object.primaryKey)
    try statement.bind(2, number(of: object.entity))
    defer { statement.reset() }
    guard try statement.step() else { throw missing(object, key) }
    var raw = RawValue.null
    statement.read(into: &raw, from: 0, count: 1)
    guard let value = SQLiteValue(exactly: raw) else {
      throw refused(object, key, "the text is not UTF-8")
    }
    return value
  }

  private func set(
    _ place: StageColumn, to value: ExpressionValue, _ object: ObjectReference, _ key: String
  ) throws {
    let attribute = place.description
    guard attribute.derivationExpression == nil else {
      throw refused(object, key, "the attribute is derived and cannot be set")
    }
    let assigned = try assigned(value, to: attribute, object, key)
    guard var column = assigned.stored(), column.number?.isFinite != false else {
      throw refused(object, key, "the value is not one of \(attribute.type.xmlName)")
    }
    if attribute.isExternal {
      try drop(try stored(place, object, key))
      if let bytes = column.blob { column = .blob(try externalForm(bytes, object, key)) }
    }
    let statement =
      try place.writer
      ?? connection.prepare(
        """
        UPDATE \(quoted(place.table)) SET \(quoted(place.column)) = ?1
         WHERE Z_PK = ?2 AND Z_ENT = ?3
        """)
    place.writer = statement
    try statement.bind(1, column)
    try statement.bind(2, object.primaryKey)
    try statement.bind(3, number(of: object.entity))
    do {
      try statement.run()
    } catch let error as SQLiteError where error.isConstraintUnique {
      throw refused(object, key, "the value breaks a uniqueness constraint", code: 1551)
    }
    guard connection.changes > 0 else { throw missing(object, key) }
    try note(object)
  }
}
