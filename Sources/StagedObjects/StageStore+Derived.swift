import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// A derived attribute of one entity, as SQL over the rows that it is computed for.
private struct DerivedColumn {
  var entity: EntityName
  var name: String
  var table: String
  var column: String
  var value: String
  /// Which rows, by `Z_PK`; `?1` is the entity's number.
  var keys: String
}

/// A derived attribute has a value that a uniqueness constraint refuses.
struct RepeatedValue: Error {
  var entity: EntityName
  var property: String
  /// `Z_PK` of one of the objects.
  var key: Int64

  /// The uniqueness constraints that it is in.
  func constraints(in model: EntityHierarchy) -> [[String]] {
    model.order.filter { model.isKind(entity, of: $0) }
      .flatMap { model[$0]?.uniquenessConstraints ?? [] }
      .filter { $0.contains { $0.isSameName(as: property) } }
  }
}

// Derived attributes that follow from the store's rows. Its triggers may compute them, too.
extension StageStore {
  /// Computes what derives from changed objects, once the handler has returned.
  ///
  /// - Throws: ``RepeatedValue``, `SQLiteError`.
  func computeDerived() throws {
    let derived = try model.order.flatMap { entity in
      try counts(of: entity) + own(of: entity)
    }
    let unique = Set(model.order.flatMap { model[$0]?.uniquenessConstraints ?? [] }.joined())
    // Objects may exchange values of a constraint, in one table those of several entities, too.
    for one in derived where unique.contains(one.name) { try set(one, to: "NULL") }
    for one in derived { try set(one, to: one.value) }
  }

  private func set(_ derived: DerivedColumn, to value: String) throws {
    let change = "UPDATE \(quoted(derived.table)) AS o SET \(quoted(derived.column)) = \(value)"
    let number = SQLiteValue.integer(number(of: derived.entity))
    do {
      _ = try connection.rows("\(change) WHERE Z_PK IN (\(derived.keys))", [number])
    } catch let error as SQLiteError where error.isConstraintUnique {
      // The rows are as they were: one by one, the first that is refused is found.
      for row in try connection.rows("\(derived.keys) ORDER BY 1", [number]) {
        do {
          _ = try connection.rows("\(change) WHERE Z_PK = ?1", [row[0]])
        } catch let error as SQLiteError where error.isConstraintUnique {
          throw RepeatedValue(
            entity: derived.entity, property: derived.name, key: row[0].integer ?? 0)
        }
      }
      throw error
    }
  }

  /// Attributes that count the members of a relationship.
  private func counts(of entity: EntityName) throws -> [DerivedColumn] {
    guard let table = layout.table(of: entity) else { return [] }
    return model.properties(of: entity).compactMap { declared in
      guard declared.property.isStored, let attribute = declared.property.attribute,
        let name = attribute.countedRelationship,
        let column = layout.column(of: attribute.name, in: entity),
        let counted = model.property(name, of: entity),
        let relationship = counted.property.relationship,
        let storage = layout.pairStorage(of: relationship, declaredBy: counted.entity)
      else { return nil }
      return DerivedColumn(
        entity: entity, name: attribute.name, table: table.name, column: column,
        value: """
          (SELECT count(*)
             FROM \(quoted(storage.table)) AS r
            WHERE r.\(quoted(storage.ownerColumn)) = o.Z_PK)
          """,
        keys: """
          SELECT pk FROM temp.changes WHERE ent = ?1
           UNION SELECT pk FROM temp.recounts WHERE ent = ?1
          """)
    }
  }

  /// Attributes that derive from the object alone.
  private func own(of entity: EntityName) -> [DerivedColumn] {
    guard let table = layout.table(of: entity) else { return [] }
    return model.properties(of: entity).compactMap { declared in
      guard declared.property.isStored, let attribute = declared.property.attribute,
        let column = layout.column(of: attribute.name, in: entity),
        let derived = derivation(of: attribute, in: entity)
      else { return nil }
      return DerivedColumn(
        entity: entity, name: attribute.name, table: table.name, column: column, value: derived,
        keys: "SELECT pk FROM temp.changes WHERE ent = ?1")
    }
  }

  /// In SQL: a function of the object's own texts, or the time of the change; nil for any other.
  private func derivation(of attribute: AttributeDescription, in entity: EntityName) -> String? {
    guard let own = attribute.ownDerivation(model, of: entity) else { return nil }
    if case .call("now", _) = own { return "\(settings.runDate)" }
    guard attribute.type == .string else { return nil }
    return own.derivedText { layout.column(of: $0, in: entity).map(quoted) }
  }

  /// Notes on attributes that derive from what was changed in another way, which no trigger keeps.
  func carriedDerivations() throws -> [StoreFinding] {
    let changed = try connection.rows("SELECT DISTINCT ent FROM temp.changes")
      .compactMap { $0.first?.integer.flatMap { entityName($0) } }
    let entities = deleted.union(changed)
    guard !entities.isEmpty else { return [] }
    let triggers = try connection.rows(
      "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'"
    ).map { (name: $0[0].text ?? "", table: $0[1].text ?? "") }
    return model.order.flatMap { owner in
      (model[owner]?.properties ?? []).compactMap { property in
        guard property.isStored, let attribute = property.attribute,
          let text = attribute.derivationExpression, attribute.countedRelationship == nil,
          derivation(of: attribute, in: owner) == nil,
          !triggers.contains(where: {
            CarriedTriggers.keeps($0.name, on: $0.table, attribute.name, of: owner)
          })
        else { return nil }
        var inputs = Set(model.concrete(of: owner))
        for path in (try? ValueExpression(parsing: attribute.hashedDerivation ?? text))?.keyPaths
          ?? []
        {
          guard let first = path.first,
            let relationship = model.property(first, of: owner)?.property.relationship
          else { continue }
          inputs.formUnion(model.concrete(of: relationship.destinationEntity))
        }
        guard !inputs.isDisjoint(with: entities) else { return nil }
        return StoreFinding(
          kind: .note, entity: owner.rawValue, property: attribute.name,
          message:
            "is not derived again from what the handler changed until Core Data saves the objects")
      }
    }
  }
}

// Counts of objects that are not changed themselves.
extension StageStore {
  /// Notes the objects that an object is a member of and that count their members. They lose it when it
  /// is deleted, also where the delete rule is no action, or the relationship has no inverse, and they
  /// do not count as changed.
  func noteCounts(before deletion: ObjectReference) throws {
    for relationship in try countedRelationships(to: deletion.entity) {
      for owner in try relationship.owners(of: deletion.primaryKey, self) {
        _ = try connection.rows(
          "INSERT OR IGNORE INTO temp.recounts VALUES (?1, ?2)",
          [.integer(number(of: owner.entity)), .integer(owner.primaryKey)])
      }
    }
  }

  private func countedRelationships(to entity: EntityName) throws -> [StageRelationship] {
    if let known = countedRelationships[entity] { return known }
    var found: [StageRelationship] = []
    for owner in model.order {
      for property in model[owner]?.properties ?? [] where property.isStored {
        guard let name = property.attribute?.countedRelationship,
          let counted = model.property(name, of: owner),
          let description = counted.property.relationship, description.isToMany,
          layout.pairStorage(of: description, declaredBy: counted.entity) != nil,
          model.isKind(entity, of: description.destinationEntity),
          case .relationship(let relationship) = try place(of: name, in: owner)
        else { continue }
        found.append(relationship)
      }
    }
    countedRelationships[entity] = found
    return found
  }
}
