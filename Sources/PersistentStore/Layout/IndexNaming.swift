import GodwitObjectModel

/// Names the indexes of entity tables and join tables.
///
/// Source: `core-data-sqlite-format.md` §8.
struct IndexNaming {
  let hierarchy: EntityHierarchy
  let columns: ColumnNames
  let keyColumns: [EntityName: [String]]
  let frameworkVersion: Int
  private(set) var problems: [LayoutProblem] = []
  /// Names of tables and indexes share one space, without regard to the case of ASCII letters.
  private var taken: Set<[UInt8]>

  init(
    hierarchy: EntityHierarchy, columns: ColumnNames, keyColumns: [EntityName: [String]],
    frameworkVersion: Int, taken: [String]
  ) {
    self.hierarchy = hierarchy
    self.columns = columns
    self.keyColumns = keyColumns
    self.frameworkVersion = frameworkVersion
    self.taken = Set(taken.map(LayoutProblem.folded))
  }

  mutating func indexes(of table: EntityTable, joins: [JoinTable]) -> [SchemaStatement] {
    var automatic = (keyColumns[table.root] ?? []).map { column in
      SchemaStatement(
        index: "\(table.name)_\(column)_INDEX", on: table.name, [.init(name: column)])
    }
    if table.entities.count > 1 {
      automatic.append(
        SchemaStatement(
          index: "\(table.name)_Z_ENT_INDEX", on: table.name, [.init(name: "Z_ENT")]))
    }
    let ofJoins = joins.map { join in
      SchemaStatement(
        index: "\(join.name)_\(join.secondColumn)_INDEX", on: join.name,
        [.init(name: join.secondColumn), .init(name: join.firstColumn)])
    }
    let plain =
      frameworkVersion < 800
      ? automatic + legacy(table) + ofJoins : automatic + ofJoins + fetchIndexes(table)
    let made = plain.filter { index in
      if take(index.name) { return true }
      problems.append(.duplicateIndex(index.name))
      return false
    }
    return made + uniqueIndexes(table)
  }

  /// False where something has the name.
  private mutating func take(_ name: String) -> Bool {
    taken.insert(LayoutProblem.folded(name)).inserted
  }

  /// The columns of these properties, or nil when one of them has none.
  private func listed(_ names: [String], _ entity: EntityName) -> [String]? {
    let found = names.compactMap { name in
      hierarchy.property(name, of: entity).flatMap {
        columns.columns[PropertyKey($0.entity, name)]
      }
    }
    return found.count == names.count && !found.isEmpty ? found : nil
  }

  private mutating func fetchIndexes(_ table: EntityTable) -> [SchemaStatement] {
    var relationships: Set<String> = []
    for name in table.entities {
      for case .relationship(let relationship) in hierarchy[name]?.properties ?? [] {
        relationships.insert(relationship.name)
      }
    }
    return table.entities.flatMap { name in
      (hierarchy[name]?.fetchIndexes ?? []).compactMap { index -> SchemaStatement? in
        let names = index.elements.compactMap(\.propertyName)
        let isPlain =
          !index.elements.contains(where: \.isRTree) && index.partialIndexPredicate == nil
          && names.count == index.elements.count
        // The automatic index of a to-one relationship serves, and a to-many has none.
        if isPlain, names.count == 1,
          hierarchy.property(names[0], of: name)?.property.relationship != nil
        {
          return nil
        }
        // An index that Core Data may not make would be missed in its stores, which is damage.
        guard isPlain, names.count != 1 || !relationships.contains(names[0]),
          let columns = listed(names, name)
        else {
          problems.append(.unknownIndex(index.name, of: name))
          return nil
        }
        return SchemaStatement(
          index: "Z_\(name)_\(index.name)", on: table.name,
          zip(columns, index.elements).map { .init(name: $0, isAscending: $1.isAscending) },
          spellsOutOrder: true)
      }
    }
  }

  private mutating func uniqueIndexes(_ table: EntityTable) -> [SchemaStatement] {
    guard frameworkVersion >= 860 else { return [] }
    return table.entities.flatMap { name -> [SchemaStatement] in
      let constraints = hierarchy[name]?.uniquenessConstraints ?? []
      return constraints.indices.compactMap { place -> SchemaStatement? in
        let constraint = constraints[place]
        // One that is listed twice is kept by the one index.
        if constraints[..<place].contains(constraint) { return nil }
        // That of `n` and `m` has the name of that of `n_m`, and a fetch index may be called `UNIQUE_n`.
        let index = "Z_\(name)_UNIQUE_\(constraint.joined(separator: "_"))"
        guard let columns = listed(constraint, name), take(index) else {
          problems.append(.unknownConstraint(constraint, of: name))
          return nil
        }
        return SchemaStatement(
          index: index, on: table.name,
          columns.map { .init(name: $0) }, isUnique: true, spellsOutOrder: true)
      }
    }
  }

  /// The indexes of the old flags, before fetch indexes.
  private func legacy(_ table: EntityTable) -> [SchemaStatement] {
    table.entities.flatMap { name -> [SchemaStatement] in
      let entity = hierarchy[name]
      let indexed = (entity?.properties ?? []).filter(\.traits.isIndexed).map(\.name)
      let single = indexed.compactMap { listed([$0], name)?.first }.map { column in
        SchemaStatement(
          index: "\(table.name)_\(column)_INDEX", on: table.name, [.init(name: column)])
      }
      let compound = (entity?.compoundIndexes ?? []).compactMap { listed($0, name) }.map {
        columns in
        SchemaStatement(
          index: "\(table.name)_\(columns.joined(separator: "_"))", on: table.name,
          columns.map { .init(name: $0) })
      }
      return single + compound
    }
  }
}
