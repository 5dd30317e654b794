import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Counts what a migration drops: exactly, on the source store.
///
/// The models say where something can be lost; only those tables are read, each once.
struct LossCounter {
  let binding: StoreBinding
  let census: StoreCensus
  let successors: any Successors

  var store: SourceStore { binding.store }
  var layout: StoreLayout { binding.layout }
  var source: EntityHierarchy { successors.source }
  var questions: LossQuestions {
    LossQuestions(
      layout: layout, successors: successors, mayHaveRows: hasRows, mayBeDamaged: true)
  }

  func losses() throws -> [Loss] {
    try rowLosses() + pairLosses() + orderLosses()
      + binding.unknownContents().map(Loss.init(unknown:))
  }

  /// What inferred steps through several versions drop, on the whole.
  ///
  /// - Parameter versions: From the store's to the destination's; at least two.
  /// - Returns: Nil for a store that cannot be read: planning its first step says why.
  static func losses(of store: SourceStore, over versions: [EntityHierarchy]) throws
    -> [Loss]?
  {
    let binding = StoreBinding(store, versions[0])
    guard let census = try SQLiteError.nilByContent({ try StoreCensus(binding) }) else {
      return nil
    }
    let steps = zip(versions, versions.dropFirst()).map {
      InferredMapping(source: $0, destination: $1)
    }
    return try SQLiteError.nilByContent {
      try LossCounter(
        binding: binding, census: census, successors: Succession(steps)
      ).losses()
    }
  }

  func number(_ entity: EntityName) -> Int64 { Int64(layout.entityNumbers[entity] ?? 0) }

  func hasRows(_ entity: EntityName) -> Bool { census.rows[entity] ?? 0 > 0 }
}

// Rows and values.
extension LossCounter {
  /// A question to a table, and what its answer means.
  private struct Asked {
    var place: Int
    var loss: (RowTally) -> Loss
  }

  /// A dropped entity: its rows and the values of each attribute.
  private struct Dropped {
    var entity: EntityName
    var rows: Int
    var values: [(name: String, place: Int)]
  }

  private func rowLosses() throws -> [Loss] {
    var losses: [Loss] = []
    for table in layout.tables {
      let columns = Set(store.columns(of: table.name).map(\.name))
      var scan = LossScan(table: table.name)
      var (dropped, asked): ([Dropped], [Asked]) = ([], [])
      for entity in table.entities
      where source[entity]?.isAbstract == false && hasRows(entity) {
        if !successors.keeps(entity) {
          dropped.append(ask(dropped: entity, columns, &scan))
        } else {
          asked += ask(kept: entity, columns, &scan)
        }
      }
      let tallies = try scan.run(on: store.connection)
      losses += dropped.map { loss(of: $0, tallies) }
      losses += asked.filter { tallies[$0.place].count > 0 }.map { $0.loss(tallies[$0.place]) }
    }
    return losses
  }

  private func ask(
    dropped entity: EntityName, _ columns: Set<String>, _ scan: inout LossScan
  ) -> Dropped {
    let number = number(entity)
    var result = Dropped(
      entity: entity, rows: scan.ask(.row, ofRowsOf: number), values: [])
    for declared in source.properties(of: entity) where declared.property.isStored {
      guard let attribute = declared.property.attribute else { continue }
      let found = layout.valueColumns(of: attribute, in: entity).map(\.column)
        .filter(columns.contains)
      guard !found.isEmpty else { continue }
      result.values.append(
        (attribute.name, scan.ask(.value(of: found), ofRowsOf: number)))
    }
    return result
  }

  private func loss(of dropped: Dropped, _ tallies: [RowTally]) -> Loss {
    let rows = tallies[dropped.rows]
    let values = dropped.values.map { name, place in
      "\(name) (\(Loss.number(tallies[place].count, "value")))"
    }
    return Loss(
      .entity, entity: dropped.entity.rawValue, count: rows.count, primaryKeys: rows.primaryKeys,
      message: "\(dropped.entity) \(successors.entityWords): \(Loss.number(rows.count, "object")) "
        + "\(rows.count == 1 ? "is" : "are") dropped"
        + (values.isEmpty
          ? "."
          : ", with the \(values.count == 1 ? "attribute" : "attributes") \(Loss.list(values))."))
  }

  private func ask(
    kept entity: EntityName, _ columns: Set<String>, _ scan: inout LossScan
  ) -> [Asked] {
    var asked: [Asked] = []
    for doubt in questions.values(of: entity) where columns.contains(doubt.column) {
      let place = scan.ask(doubt.question, ofRowsOf: number(entity))
      asked.append(
        Asked(place: place) { tally in
          Loss(
            doubt.kind, entity: entity.rawValue, property: doubt.property, count: tally.count,
            primaryKeys: tally.primaryKeys,
            message: "\(entity).\(doubt.property) \(doubt.counted(tally.count)).")
        })
    }
    return asked
  }
}

// References.
extension LossCounter {
  private func pairLosses() throws -> [Loss] {
    try questions.relationships.flatMap { entity, relationship, inverse -> [Loss] in
      let meaning = questions.references(of: relationship, declaredBy: entity, inverse)
      guard let storage = layout.pairStorage(of: relationship, declaredBy: entity),
        let pairs = pairs(in: storage)
      else { return [] }
      let isMirrored = inverse.map { $0 == (entity, relationship) } ?? false
      var found: [ReferenceLoss: RowTally] = [:]
      if let inverse, !isMirrored, let sides = sides(of: relationship, storage, inverse) {
        try count(pairs + sides.isMutual, meaning, &found)
        try count(
          pairs + sides.isAlone,
          questions.references(of: relationship, declaredBy: entity, inverse, isAlone: true),
          &found)
        try count(
          sides.others,
          questions.references(
            of: inverse.relationship, declaredBy: inverse.entity, (entity, relationship),
            isAlone: true),
          &found)
      } else {
        try count(isMirrored ? once(pairs, in: storage) : pairs, meaning, &found)
      }
      return found.keys.sorted { a, b in
        a.place.isSameName(as: b.place)
          ? a.why.precedesInBytes(b.why) : a.place.precedesInBytes(b.place)
      }.compactMap { loss in found[loss].map(loss.loss) }
    }
  }

  /// A one-to-one has a column on each side, and a pair may be in one of them alone: what `r` is asked to
  /// tell, and the pairs of the other side that are in its column alone. Nil for any other relationship.
  private func sides(
    of relationship: RelationshipDescription, _ storage: PairStorage,
    _ inverse: LossQuestions.Inverse
  ) -> (isMutual: String, isAlone: String, others: String)? {
    guard !relationship.isToMany, !inverse.relationship.isToMany,
      source.storesPairs(of: inverse.relationship),
      let back = layout.pairStorage(of: inverse.relationship, declaredBy: inverse.entity),
      let others = pairs(in: back)
    else { return nil }
    let (own, other) = (quoted(storage.targetColumn), quoted(back.targetColumn))
    return (
      " AND y.\(other) IS x.Z_PK", " AND y.\(other) IS NOT x.Z_PK",
      others + " AND y.\(own) IS NOT x.Z_PK"
    )
  }

  /// A relationship's pairs as `r`, between owners `x` and targets `y`; nil where a store lacks what
  /// they are kept in.
  ///
  /// - Parameter column: A further one of `r` that is asked for.
  func pairs(in storage: PairStorage, with column: String? = nil) -> String? {
    let columns = Set(store.columns(of: storage.table).map(\.name))
    guard
      columns.isSuperset(
        of: [storage.ownerColumn, storage.targetColumn] + (column.map { [$0] } ?? [])),
      [storage.ownerTable, storage.targetTable].allSatisfy({ !store.columns(of: $0).isEmpty })
    else { return nil }
    return """
      \(quoted(storage.table)) AS r
      JOIN \(quoted(storage.ownerTable)) AS x ON x.Z_PK = r.\(quoted(storage.ownerColumn))
      JOIN \(quoted(storage.targetTable)) AS y ON y.Z_PK = r.\(quoted(storage.targetColumn))
      """
  }

  /// A relationship that is its own inverse has each pair twice, once from each side.
  private func once(_ pairs: String, in storage: PairStorage) -> String {
    let (owner, target) = (quoted(storage.ownerColumn), quoted(storage.targetColumn))
    return """
      \(pairs) AND (x.Z_PK <= y.Z_PK OR NOT EXISTS (
        SELECT 1 FROM \(quoted(storage.table)) AS m
         WHERE m.\(owner) = r.\(target) AND m.\(target) = r.\(owner)))
      """
  }

  private func count(
    _ pairs: String, _ meaning: [LossQuestions.Pair: ReferenceLoss],
    _ tallies: inout [ReferenceLoss: RowTally]
  ) throws {
    if meaning.isEmpty { return }
    func numbers(_ entities: [EntityName]) -> String {
      Set(entities.map(number)).sorted().map(String.init).joined(separator: ", ")
    }
    let names = Dictionary(
      source.order.map { (number($0), $0) }, uniquingKeysWith: { first, _ in first })
    let statement = try store.connection.prepare(
      """
      SELECT x.Z_PK, y.Z_PK, x.Z_ENT, y.Z_ENT
        FROM \(pairs)
       WHERE x.Z_ENT IN (\(numbers(meaning.keys.map(\.owner))))
         AND y.Z_ENT IN (\(numbers(meaning.keys.map(\.target))))
      """)
    while try statement.step() {
      guard let x = names[statement.int64(2)], let y = names[statement.int64(3)],
        let loss = meaning[.init(owner: x, target: y)]
      else { continue }
      tallies[loss, default: RowTally()]
        .add(statement.int64(loss.isOfTarget ? 1 : 0))
    }
  }
}

extension Loss {
  /// `1 value`, `2 values`.
  static func number(_ count: Int64, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
  }

  /// `a`, `a and b`, `a, b and c`.
  static func list(_ items: [String]) -> String {
    guard items.count > 1, let last = items.last else { return items.first ?? "" }
    return items.dropLast().joined(separator: ", ") + " and " + last
  }
}
