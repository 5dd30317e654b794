import GodwitDurableFiles
import GodwitObjectModel
import GodwitSQLite

/// Where a model's properties really lie in a given store.
///
/// Names are computed by the rules of ``StoreLayout``. A store that was migrated in place may
/// deviate: entities keep older numbers, self-joins are named the other way round, columns with
/// an entity's number in their name have another number. Then the variant that exists is used.
///
/// Source: `core-data-sqlite-format.md` §7 and §9.
package struct StoreBinding {
  package let store: SourceStore
  /// The entities that the store holds: those of the model, or of one of its configurations.
  package let hierarchy: EntityHierarchy
  /// With the store's own entity numbers, and tables and columns under their real names. Statements
  /// are those of the rules all the same.
  package let layout: StoreLayout
  /// Where the entities' numbers come from.
  package enum Numbering: Sendable {
    /// `Z_PRIMARYKEY`, where it names just the model's entities and tells them apart; else the rules.
    case store
    /// The rules alone: `Z_PRIMARYKEY` is not believed.
    case rules
  }

  /// What was not found under any name: `table ZRECIPE`, `column ZRECIPE.ZNAME`,
  /// `join table Z_1TAGS`.
  package let missing: [String]

  /// Binds a model to a store.
  ///
  /// - Parameter hierarchy: The whole model, or the entities of the configuration that the store
  ///   was added with. Given the whole model, a store that holds just the entities of one
  ///   configuration is bound to these. See ``fitting(_:to:)``.
  package init(
    _ store: SourceStore, _ hierarchy: EntityHierarchy, numbering: Numbering = .store
  ) {
    let hierarchy = Self.fitting(hierarchy, to: store)
    var layout = StoreLayout(
      hierarchy, frameworkVersion: store.metadata.frameworkVersion ?? StoreLayout.recentFramework,
      entityNumbers: numbering == .store ? Self.ownNumbers(store, hierarchy) : nil)
    var missing: [String] = []
    for (index, table) in layout.tables.enumerated() {
      let have = Set(store.columns(of: table.name).map { NameKey($0.name) })
      guard !have.isEmpty else {
        missing.append("table \(table.name)")
        continue
      }
      missing += EntityTable.systemColumns.filter { !have.contains(NameKey($0)) }.map {
        "column \(table.name).\($0)"
      }
      var used = Set(table.columns.map { NameKey($0.name) })
      for (place, column) in table.columns.enumerated()
      where !have.contains(NameKey(column.name)) {
        if let other = Self.otherNumber(of: column, among: have.subtracting(used)) {
          used.insert(NameKey(other))
          layout.renameColumn(at: place, ofTable: index, to: other)
        } else {
          missing.append("column \(table.name).\(column.name)")
        }
      }
    }
    for (index, join) in layout.joinTables.enumerated() {
      if let found = Self.find(join, numbers: layout.entityNumbers, in: store) {
        layout.replaceJoin(at: index, by: found)
      } else {
        missing.append("join table \(join.name)")
      }
    }
    self.store = store
    self.hierarchy = hierarchy
    self.layout = layout
    self.missing = missing
  }
}

extension StoreBinding {
  /// What follows from the model, the schema and the entities' numbers, and not from any row. It is the
  /// same for all stores of a fleet that an application wrote under one version.
  struct Form: Equatable, Sendable {
    /// Of the hierarchy: told by what its copies share.
    fileprivate let hierarchy: Memo<[EntityName: VersionHash]>
    fileprivate let schema: SchemaForm
    fileprivate let numbers: [EntityName: Int]
    fileprivate let frameworkVersion: Int

    static func == (a: Form, b: Form) -> Bool {
      a.hierarchy === b.hierarchy && a.schema === b.schema && a.numbers == b.numbers
        && a.frameworkVersion == b.frameworkVersion
    }
  }

  var form: Form {
    Form(
      hierarchy: hierarchy.hashes, schema: store.schemaForm, numbers: layout.entityNumbers,
      frameworkVersion: layout.frameworkVersion)
  }
}

extension StoreBinding {
  /// The model as a store uses it: the entities of one configuration, when the store holds just
  /// those; else the model as it is.
  package static func fitting(_ hierarchy: EntityHierarchy, to store: SourceStore)
    -> EntityHierarchy
  {
    let hashed = Set(store.metadata.hashedEntities)
    let names = hashed.isEmpty ? Set(store.entityKeys.map { EntityName($0.name) }) : hashed
    guard !names.isEmpty, names.isStrictSubset(of: Set(hierarchy.order)),
      hierarchy.model.configurations.values.contains(where: { Set($0) == names })
    else { return hierarchy }
    return (try? hierarchy.restricted(to: names)) ?? hierarchy
  }

  /// `Z_ENT` by `Z_PRIMARYKEY`, when it names just the model's entities and tells them apart.
  private static func ownNumbers(_ store: SourceStore, _ hierarchy: EntityHierarchy)
    -> [EntityName: Int]?
  {
    var numbers: [EntityName: Int] = [:]
    for row in store.entityKeys where row.number > 0 {
      numbers[EntityName(row.name)] = Int(row.number)
    }
    guard Set(numbers.keys) == Set(hierarchy.order), Set(numbers.values).count == numbers.count
    else { return nil }
    return numbers
  }

  /// The column whose name differs in an entity's number only, if there is just one.
  private static func otherNumber(of column: Column, among names: Set<NameKey>) -> String? {
    switch column.role {
    case .targetEntity, .owner: break
    case .attribute, .leaf, .toOne, .order: return nil
    }
    func afterNumber(_ name: String) -> String? {
      guard let own = name.after("Z") else { return nil }
      let rest = own.unicodeScalars.drop { ("0"..."9").contains($0) }
      return rest.startIndex > own.startIndex ? String(rest) : nil
    }
    guard let wanted = afterNumber(column.name) else { return nil }
    let found = names.filter { name in
      afterNumber(name.name).isSameName(as: wanted)
    }
    return found.count == 1 ? found.first?.name : nil
  }

  /// The join table under its computed name, or under that of the inverse relationship.
  private static func find(
    _ join: JoinTable, numbers: [EntityName: Int], in store: SourceStore
  ) -> JoinTable? {
    let other = "Z_\(numbers[join.inverseEntity] ?? 0)" + join.inverse.uppercased()
    for name in [join.name, other] {
      let have = Set(store.columns(of: name).map { NameKey($0.name) })
      guard have.contains(NameKey(join.firstColumn)), have.contains(NameKey(join.secondColumn))
      else { continue }
      let present = { (column: String?) in
        column.flatMap { have.contains(NameKey($0)) ? $0 : nil }
      }
      return JoinTable(
        name: name, entity: join.entity, relationship: join.relationship,
        inverseEntity: join.inverseEntity, inverse: join.inverse, firstColumn: join.firstColumn,
        secondColumn: join.secondColumn, firstOrderColumn: present(join.firstOrderColumn),
        secondOrderColumn: present(join.secondOrderColumn))
    }
    return nil
  }

  // MARK: Only what is there

  package func has(_ column: String, in table: String) -> Bool {
    store.columns(of: table).contains { $0.name.isSameName(as: column) }
  }

  /// The table of an entity, or nil when the store lacks it or one of its system columns.
  package func table(of entity: EntityName) -> EntityTable? {
    guard let table = layout.table(of: entity),
      EntityTable.systemColumns.allSatisfy({ has($0, in: table.name) })
    else { return nil }
    return table
  }

  /// The column of an attribute or to-one relationship, or nil when the store lacks it.
  package func column(of property: String, in entity: EntityName) -> String? {
    present(layout.column(of: property, in: entity), of: entity)
  }

  package func entityColumn(of property: String, in entity: EntityName) -> String? {
    present(layout.entityColumn(of: property, in: entity), of: entity)
  }

  package func orderColumn(of property: String, in entity: EntityName) -> String? {
    present(layout.orderColumn(of: property, in: entity), of: entity)
  }

  /// The join table of a to-many relationship, or nil when the store lacks it.
  package func join(of relationship: String, in entity: EntityName) -> (
    table: JoinTable, isFirst: Bool
  )? {
    layout.join(of: relationship, in: entity).flatMap { found in
      has(found.table.firstColumn, in: found.table.name)
        && has(found.table.secondColumn, in: found.table.name) ? found : nil
    }
  }

  /// The join tables that the store has.
  package var joinTables: [JoinTable] {
    layout.joinTables.filter {
      has($0.firstColumn, in: $0.name) && has($0.secondColumn, in: $0.name)
    }
  }

  /// `Z_ENT` of an entity in this store.
  package func number(of entity: EntityName) -> Int64 { Int64(layout.entityNumbers[entity] ?? 0) }

  private func present(_ column: String?, of entity: EntityName) -> String? {
    guard let column, let table = table(of: entity), has(column, in: table.name) else {
      return nil
    }
    return column
  }
}
