import GodwitDurableFiles
import GodwitObjectModel
import GodwitSQLite

/// What becomes of a source store's triggers.
///
/// Core Data keeps derived attributes by triggers. How it writes them is known for counts only, so
/// none is made; one that means the same in the destination is carried.
/// Source: `core-data-sqlite-format.md` §8.1.
package struct CarriedTriggers: Sendable, Equatable {
  /// Their SQL, in the source's order. To be run last: triggers would fire while rows are copied.
  package var statements: [String] = []
  /// What a person should know: triggers left behind, derived attributes without a trigger.
  package var notes: [String] = []

  /// SQL functions that only Core Data registers and that its triggers call. A connection that
  /// writes to a table with such a trigger needs stubs of them.
  package static let coreDataFunctions = [
    "NSCoreDataDATriggerUpdatedAffectedObjectValue",
    "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue", now,
  ]
  /// Likewise, what gives the time.
  package static let now = "NSCoreDataNow"

  /// Triggers of derived attributes are named `Z_DA_<table>_<entity>_<attribute>_<what>`. Entities and attributes may
  /// have `_` in their names, so all of it counts.
  package static func keeps(
    _ trigger: String, on table: String, _ attribute: String, of entity: EntityName
  ) -> Bool {
    let what = trigger.after("Z_DA_\(table)_\(entity)_\(attribute)_")
    // Counts have the first two. How others are named is not known.
    return ["PARAMETER_", "SOURCE_", "INSERT", "UPDATE", "DELETE"]
      .contains { what?.begins(with: $0) ?? false }
  }
}

extension DestinationSchema {
  /// Tells of a table's or column's name whether it means another thing than in the source, or nothing.
  package func strangeNames(
    in source: StoreBinding, successors: SuccessorNames
  ) -> (String) -> Bool {
    let comparison = TriggerComparison(source, layout, successors)
    return { !comparison.isSame($0.columnKey) }
  }

  /// Sorts a source store's triggers into those that mean the same in the destination and those
  /// that do not.
  ///
  /// A trigger is carried when every table and column of the model that its text names is, under
  /// the destination, that of the successor of the same entity and property; when numbers of entities
  /// that it may compare with are those of their successors; when what a derived attribute that it keeps
  /// is derived from has the same place; and when SQLite accepts it over the destination's schema.
  ///
  /// - Parameter isDropped: Tells of a table that is not the model's whether the destination lacks it.
  package func carriedTriggers(
    from source: StoreBinding, successors: SuccessorNames = .same,
    without isDropped: (String) -> Bool = { _ in false }
  ) throws -> CarriedTriggers {
    var result = CarriedTriggers()
    var kept: [SchemaObject] = []
    let triggers = source.store.schemaObjects.filter { $0.kind == .trigger && $0.sql != nil }
    if !triggers.isEmpty {
      let trial = try SQLiteError.nilByContent {
        try trialConnection(source.store, without: isDropped)
      }
      let comparison = TriggerComparison(source, layout, successors)
      for trigger in triggers {
        if let sql = trigger.sql, let trial, comparison.isSame(trigger),
          try Self.accepts(trigger, sql, trial)
        {
          result.statements.append(sql)
          kept.append(trigger)
        } else {
          result.notes.append(
            "The trigger \(trigger.name) would not mean the same in the destination and is not "
              + "carried.")
        }
      }
    }
    for name in layout.hierarchy.order {
      for case .attribute(let attribute) in layout.hierarchy[name]?.properties ?? []
      where attribute.derivationExpression != nil && !attribute.traits.isTransient {
        let isKept = kept.contains { trigger in
          CarriedTriggers.keeps(trigger.name, on: trigger.table, attribute.name, of: name)
        }
        guard !isKept else { continue }
        result.notes.append(
          "No trigger keeps the derived attribute \(name).\(attribute.name): its values are those "
            + "of the migration until Core Data saves the objects.")
      }
    }
    return result
  }

  /// The destination's schema and the foreign tables that are carried, without a row.
  private func trialConnection(
    _ source: SourceStore, without isDropped: (String) -> Bool
  ) throws -> Connection {
    let trial = try Connection(path: ":memory:", mode: .create)
    try trial.registerFunctionStubs(CarriedTriggers.coreDataFunctions)
    for statement in statements { try trial.execute(statement.sql) }
    for table in try source.foreignTables() where !table.isVirtual && !isDropped(table.name) {
      try? trial.define(.table, table.sql)
    }
    return trial
  }

  /// SQLite compiles a trigger when a statement fires it, and finds unknown columns only then.
  private static func accepts(
    _ trigger: SchemaObject, _ sql: String, _ trial: Connection
  ) throws -> Bool {
    let table = quoted(trigger.table)
    do {
      try trial.define(.trigger, sql)
    } catch let error as SQLiteError where !error.isOutOfMemory {
      return false
    }
    do {
      let columns = try trial.rows("PRAGMA table_info(\(table))").compactMap { $0[1].text }
      let all = columns.map { "\(quoted($0)) = \(quoted($0))" }.joined(separator: ", ")
      _ = try trial.prepare("INSERT INTO \(table) DEFAULT VALUES")
      _ = try trial.prepare("DELETE FROM \(table)")
      _ = try trial.prepare("UPDATE \(table) SET \(all)")
      return true
    } catch let error as SQLiteError where !error.isOutOfMemory {
      // Its table could not be written to any more.
      try? trial.execute("DROP TRIGGER IF EXISTS \(quoted(trigger.name))")
      return false
    }
  }
}

/// Compares what the names in a trigger's text mean in two stores.
private struct TriggerComparison {
  let source: StoreBinding
  let destination: StoreLayout
  private let successors: SuccessorNames
  /// In the destination's words, by names as SQLite compares them.
  private let sourceMeanings: [[UInt8]: Set<String>]
  private let destinationMeanings: [[UInt8]: Set<String>]
  /// Columns of the source that hold a target's entity.
  private let numberColumns: Set<[UInt8]>

  init(_ source: StoreBinding, _ destination: StoreLayout, _ successors: SuccessorNames) {
    self.source = source
    self.destination = destination
    self.successors = successors
    sourceMeanings = Self.meanings(source.layout, successors)
    destinationMeanings = Self.meanings(destination, .same)
    numberColumns = Set(
      source.layout.tables.flatMap(\.columns).compactMap { column in
        if case .targetEntity = column.role { column.name.columnKey } else { nil }
      })
  }

  /// - Parameter word: A name as SQLite compares names.
  func isSame(_ word: [UInt8]) -> Bool {
    Self.system.contains(word) || sourceMeanings[word] == destinationMeanings[word]
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
    if !text.namedByPlace.map(\.columnKey).allSatisfy(keepsPlaces) { return false }
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
