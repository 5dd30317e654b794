import GodwitDurableFiles
import GodwitObjectModel
import GodwitSQLite

/// Compares what the names in a trigger's text mean in two stores.
struct TriggerComparison {
  private let source: StoreBinding
  private let destination: StoreLayout
  private let successors: SuccessorNames
  /// In the destination's words, by names as SQLite compares them.
  private let sourceMeanings: [[UInt8]: Set<String>]
  private let destinationMeanings: [[UInt8]: Set<String>]
  /// Entities that both stores have and whose objects lie in a table, in the destination's words, by its name.
  private let sourceObjects: [[UInt8]: [Set<EntityName>]]
  private let destinationObjects: [[UInt8]: [Set<EntityName>]]
  /// Columns of the source that hold a target's entity.
  private let numberColumns: Set<[UInt8]>

  init(_ source: StoreBinding, _ destination: StoreLayout, _ successors: SuccessorNames) {
    self.source = source
    self.destination = destination
    self.successors = successors
    sourceMeanings = Self.meanings(source.layout, successors)
    destinationMeanings = Self.meanings(destination, .same)
    var next: [EntityName: EntityName] = [:]
    for name in source.hierarchy.order where source.hierarchy[name]?.isAbstract == false {
      guard let heir = successors.entity(name), destination.hierarchy[heir] != nil else { continue }
      next[name] = heir
    }
    let known = Set(next.values)
    sourceObjects = Self.objects(source.layout) { next[$0] }
    destinationObjects = Self.objects(destination) { known.contains($0) ? $0 : nil }
    numberColumns = Set(
      source.layout.tables.flatMap(\.columns).compactMap { column in
        if case .targetEntity = column.role { column.name.columnKey } else { nil }
      })
  }

  /// - Parameter word: A name as SQLite compares names.
  func isSame(_ word: [UInt8]) -> Bool {
    Self.system.contains(word) || sourceMeanings[word] == destinationMeanings[word]
  }

  /// Whether a table, if the word is one's name, still holds all that it held.
  func keepsObjects(_ word: [UInt8]) -> Bool {
    let (old, new) = (sourceObjects[word] ?? [], destinationObjects[word] ?? [])
    return old.count == new.count && zip(old, new).allSatisfy { $0.isSubset(of: $1) }
  }

  private static let system = Set(EntityTable.systemColumns.map(\.columnKey))

  func isSame(_ trigger: SchemaObject) -> Bool {
    guard let sql = trigger.sql else { return false }
    let isOfDerivation = trigger.name.begins(with: "Z_DA_")
    if isOfDerivation {
      // It keeps an attribute, which must still be derived in the same way.
      let isKept = destination.hierarchy.order.contains { name in
        (destination.hierarchy[name]?.properties ?? []).contains { property in
          guard let derivation = property.attribute?.derivationExpression,
            CarriedTriggers.keeps(trigger.name, on: trigger.table, property.name, of: name)
          else { return false }
          let old = source.hierarchy.property(property.name, of: name)?.property.attribute
          return old?.derivationExpression == derivation && keepsPairs(of: derivation, in: name)
        }
      }
      guard isKept else { return false }
    }
    let words = Self.words(of: sql)
    // Core Data's own pass the number of a row on, and compare it with none.
    let compared =
      isOfDerivation
      ? Set(
        sql.utf8.split(separator: "', Z_ENT, Z_PK, '".utf8)
          .flatMap { Self.words(of: String(Substring($0))) })
      : words
    if !keepsNumbers, compared.contains(where: isOfNumbers) { return false }
    let text = TriggerText(sql)
    if text.takesAllColumns, !words.allSatisfy(keepsPlaces) { return false }
    let byPlace = Set(text.namedByPlace.map(\.columnKey))
    if !byPlace.allSatisfy(keepsPlaces) { return false }
    for table in text.settlingConflicts.map(\.columnKey)
    where !keepsUnique(in: table, byPlace.contains(table) ? nil : words) { return false }
    // What keeps a derived attribute goes by pairs, whatever else their table holds.
    if !isOfDerivation, words.contains(where: { sourceObjects[$0] != destinationObjects[$0] }) {
      return false
    }
    return words.contains(trigger.table.columnKey) && words.allSatisfy(isSame)
  }

  /// Whether the pairs of each relationship that a derivation leads over lie in the same place in both stores: the
  /// trigger's text, which names it, says nothing about the relationship that they are of.
  private func keepsPairs(of derivation: String, in entity: EntityName) -> Bool {
    derivation.utf8.split { "(), ".utf8.contains($0) }.allSatisfy { path in
      var (old, new) = (entity, entity)
      for key in path.split(separator: UInt8(ascii: ".")).map({ String(Substring($0)) }) {
        let was = source.hierarchy.property(key, of: old)
        let declared = destination.hierarchy.property(key, of: new)
        guard place(of: was, in: source.layout) == place(of: declared, in: destination) else {
          return false
        }
        // Nothing has the name of a function or an operator.
        if let target = was?.property.relationship?.destinationEntity { old = target }
        if let target = declared?.property.relationship?.destinationEntity { new = target }
      }
      return true
    }
  }

  /// The table and the columns with the pairs of a relationship; none for anything else.
  private func place(of declared: EntityHierarchy.Declared?, in layout: StoreLayout) -> [String]? {
    guard let declared, let relationship = declared.property.relationship else { return nil }
    return layout.pairStorage(of: relationship, declaredBy: declared.entity).map {
      [$0.table, $0.ownerColumn, $0.targetColumn]
    }
  }

  /// Whether every number of an entity is that of its successor.
  private var keepsNumbers: Bool {
    source.layout.entityNumbers.allSatisfy { name, number in
      successors.entity(name).flatMap { destination.entityNumbers[$0] } == number
    }
  }

  /// Whether a table of the model's, if the word is one's name, has the same columns in the same order, and
  /// numbers of entities that mean the same in them.
  private func keepsPlaces(_ word: [UInt8]) -> Bool {
    func columns(_ layout: StoreLayout, _ role: (Role) -> Role?) -> [[String]] {
      layout.tables.filter { $0.name.columnKey == word }.map { table in
        table.columns.map { "\($0.name) \(role($0.role).map { "\($0)" } ?? Self.gone)" }
      } + layout.joinTables.filter { $0.name.columnKey == word }.map(\.columns)
    }
    let own = columns(source.layout, successors.role)
    return own == columns(destination, { $0 }) && (own.isEmpty || keepsNumbers)
  }

  /// Whether the same columns of a table of the model's are kept unique.
  ///
  /// - Parameter columns: Those that the trigger may write to; nil for all. Others stay NULL in a new row or what
  ///   they were, and break no constraint.
  private func keepsUnique(in table: [UInt8], _ columns: Set<[UInt8]>?) -> Bool {
    func constraints(_ layout: StoreLayout) -> Set<Set<[UInt8]>> {
      var result: Set<Set<[UInt8]>> = []
      for entity in layout.tables.filter({ $0.name.columnKey == table }).flatMap(\.entities) {
        for constraint in layout.hierarchy[entity]?.uniquenessConstraints ?? [] {
          let key = Set(constraint.compactMap { layout.column(of: $0, in: entity)?.columnKey })
          if columns.map({ !$0.isDisjoint(with: key) }) ?? true { result.insert(key) }
        }
      }
      return result
    }
    return constraints(source.layout) == constraints(destination)
  }

  /// Columns and tables that hold numbers of entities, which a trigger may compare with any it
  /// likes: they are not looked for in its text.
  private func isOfNumbers(_ word: [UInt8]) -> Bool {
    let tables = ["Z_ENT", "Z_PRIMARYKEY", "ACHANGE"].map(\.columnKey)
    return tables.contains(word) || word.starts(with: "ANSCK".columnKey)
      || numberColumns.contains(word)
  }

  /// Name → what it stands for, once for each table that has it.
  private static func meanings(
    _ layout: StoreLayout, _ successors: SuccessorNames
  ) -> [[UInt8]: Set<String>] {
    var result: [[UInt8]: Set<String>] = [:]
    for table in layout.tables {
      let root = successors.entity(table.root)
      result[table.name.columnKey, default: []].insert(root.map { "table of \($0)" } ?? Self.gone)
      for column in table.columns {
        let role = successors.role(column.role)
        result[column.name.columnKey, default: []].insert(
          role.map { "\(table.name) \($0)" } ?? Self.gone)
      }
    }
    for join in layout.joinTables {
      let near = successors.place(join.entity, join.relationship)
      let far = successors.place(join.inverseEntity, join.inverse)
      let pair = near.flatMap { near in far.map { "\(near) \($0)" } } ?? Self.gone
      result[join.name.columnKey, default: []].insert("pairs of \(pair)")
      for (place, column) in join.columns.enumerated() {
        result[column.columnKey, default: []].insert("\(pair) \(place)")
      }
    }
    return result
  }

  /// Whose objects each table holds: of a join table those at either end.
  ///
  /// - Parameter name: What an entity is called in the destination; nil where only one of the stores has it.
  private static func objects(
    _ layout: StoreLayout, _ name: (EntityName) -> EntityName?
  ) -> [[UInt8]: [Set<EntityName>]] {
    var result: [[UInt8]: [Set<EntityName>]] = [:]
    for table in layout.tables {
      result[table.name.columnKey, default: []].append(Set(table.entities.compactMap(name)))
    }
    for join in layout.joinTables {
      for end in [join.entity, join.inverseEntity] {
        let entities = layout.hierarchy.subtree(of: end)
        result[join.name.columnKey, default: []].append(Set(entities.compactMap(name)))
      }
    }
    return result
  }

  /// What has no successor means nothing that the destination has.
  private static let gone = "nothing"

  /// Runs of letters, digits, `_` and everything outside ASCII: what SQLite takes for a name, as it
  /// compares names.
  private static func words(of sql: String) -> Set<[UInt8]> {
    Set(
      sql.unicodeScalars.split {
        $0.isASCII && !($0.properties.isAlphabetic || ("0"..."9").contains($0) || $0 == "_")
      }.map { String($0).columnKey })
  }
}

extension SuccessorNames {
  /// `Entity.property`, of the successors.
  fileprivate func place(_ entity: EntityName, _ name: String) -> String? {
    self.entity(entity).flatMap { next in property(entity, name).map { "\(next).\($0)" } }
  }

  /// What a column of the source holds, told of the successors.
  fileprivate func role(_ role: Role) -> Role? {
    func next(_ entity: EntityName, _ name: String, _ make: (EntityName, String) -> Role) -> Role? {
      self.entity(entity).flatMap { next in property(entity, name).map { make(next, $0) } }
    }
    switch role {
    case .attribute(let entity, let name): return next(entity, name, Role.attribute)
    case .leaf(let entity, let composite, let path):
      return next(entity, composite) { .leaf($0, composite: $1, path: path) }
    case .toOne(let entity, let name): return next(entity, name, Role.toOne)
    case .targetEntity(let entity, let name): return next(entity, name, Role.targetEntity)
    case .order(let entity, let name): return next(entity, name, Role.order)
    case .owner(let entity, let name): return next(entity, name) { .owner($0, relationship: $1) }
    }
  }
}
