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
    for declared in source.properties(of: entity) where declared.property.isStored {
      guard let attribute = declared.property.attribute else { continue }
      let path = successors.path(of: attribute.name, in: entity)?.compactMap(\.attribute)
      for value in layout.valueColumns(of: attribute, in: entity)
      where columns.contains(value.column) {
        let label = value.keyPath(below: attribute.name)
        guard let (question, kind, what) = question(about: value, of: attribute, in: entity, path)
        else {
          continue
        }
        let place = scan.ask(question, ofRowsOf: number(entity))
        asked.append(
          Asked(place: place) { tally in
            Loss(
              kind, entity: entity.rawValue, property: label, count: tally.count,
              primaryKeys: tally.primaryKeys,
              message: "\(entity).\(label) \(what(tally.count)).")
          })
      }
    }
    return asked
  }

  /// What is to be asked about a column, if the models leave it open that something is lost.
  private func question(
    about value: ValueColumn, of attribute: AttributeDescription,
    in entity: EntityName, _ path: [AttributeDescription]?
  ) -> (LossScan.Question, Loss.Kind, (Int64) -> String)? {
    let isNamed =
      !value.path.isEmpty
      && successors.names(element: value.path, of: attribute.name, in: entity)
    let isRead =
      value.path.isEmpty || isNamed || successors.keepsWhole(attribute.name, in: entity)
    guard let path, isRead else {
      return (
        .value(of: [value.column]), .attribute,
        {
          "\(successors.propertyWords): \(Loss.number($0, "value")) \($0 == 1 ? "is" : "are") dropped"
        }
      )
    }
    var types = path.map(\.type)
    if !value.path.isEmpty {
      if isNamed { return nil }
      types = path.compactMap { step in step.leaves.first { $0.path == value.path }?.element.type }
    }
    let isKept = types.allSatisfy { type in
      value.path.isEmpty || type == value.type
        || (successors.convertsElements && value.type.convertsElement(to: type))
    }
    guard types.count == path.count, isKept else {
      return (
        .value(of: [value.column]), .attribute,
        { "has no element like it: \(Loss.number($0, "value")) \($0 == 1 ? "is" : "are") dropped" }
      )
    }
    let was = attribute.derivationExpression
    if let derived = path.first(where: {
      $0.derivationExpression != nil && $0.derivationExpression != was
    }) {
      // A migration computes counts and texts; Core Data the rest, see `TableBuilder`.
      let isComputed = derived.countedRelationship != nil || derived.isTextDerivation
      let end =
        isComputed
        ? "replaced by what the derivation gives"
        : "dropped, and derived when Core Data saves an object"
      let begin = was == nil ? "becomes derived" : "is derived in another way"
      // What was derived and is derived anew is no loss; nor is it under a mapping model's own rules.
      if was == nil || (!isComputed && successors is Succession) {
        return (
          .value(of: [value.column]), .attribute,
          { "\(begin): \(Loss.number($0, "value")) \($0 == 1 ? "is" : "are") \(end)" }
        )
      }
    }
    var (type, conversions) = (value.type, [AttributeType]())
    for step in types where step != type {
      if !type.keepsNumbers(as: step) { conversions.append(step) }
      type = step
    }
    guard !conversions.isEmpty else { return nil }
    let onTheWay = conversions.map(\.xmlName).joined(separator: " or ")
    let narrow = conversions == [type] ? "the type" : "\(onTheWay), its type on the way,"
    return (
      .changed(value.column, by: conversions), .narrowing,
      {
        "becomes \(type.xmlName): \(Loss.number($0, "number")) \($0 == 1 ? "changes" : "change"), "
          + "because \(narrow) cannot hold \($0 == 1 ? "it" : "them")"
      }
    )
  }
}

// References.
extension LossCounter {
  private struct Pair: Hashable {
    var owner: EntityName
    var target: EntityName
  }

  private func pairLosses() throws -> [Loss] {
    var losses: [Loss] = []
    for entity in source.order {
      for property in source[entity]?.properties ?? [] {
        guard let relationship = property.relationship, source.storesPairs(of: relationship)
        else { continue }
        let inverse = source.inverse(of: relationship)
        // A side that has no place in the store speaks for nobody.
        if let inverse, source.storesPairs(of: inverse.relationship),
          !isFirst(relationship, of: entity, before: inverse)
        {
          continue
        }
        losses += try self.losses(of: relationship, declaredBy: entity, inverse)
      }
    }
    return losses
  }

  /// Each pair is counted once: from the side that holds the key, else from the first by name.
  private func isFirst(
    _ relationship: RelationshipDescription, of entity: EntityName,
    before inverse: (entity: EntityName, relationship: RelationshipDescription)
  ) -> Bool {
    if relationship.isToMany != inverse.relationship.isToMany { return !relationship.isToMany }
    let own = "\(entity) \(relationship.name)"
    let other = "\(inverse.entity) \(inverse.relationship.name)"
    return own == other || own.precedesInBytes(other)
  }

  private func losses(
    of relationship: RelationshipDescription, declaredBy entity: EntityName,
    _ inverse: (entity: EntityName, relationship: RelationshipDescription)?
  ) throws -> [Loss] {
    var meaning: [Pair: ReferenceLoss] = [:]
    for owner in source.concrete(of: entity) where hasRows(owner) {
      for target in source.concrete(of: relationship.destinationEntity) where hasRows(target) {
        let fate = successors.fate(
          of: relationship.name, from: owner, to: target, inverse: inverse?.relationship.name)
        guard fate != .kept else { continue }
        meaning[Pair(owner: owner, target: target)] = ReferenceLoss(
          successors, relationship, inverse?.relationship, owner: owner, target: target)
      }
    }
    guard !meaning.isEmpty, let storage = layout.pairStorage(of: relationship, declaredBy: entity),
      let pairs = pairs(in: storage)
    else { return [] }
    return try count(pairs, meaning)
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

  private func count(_ pairs: String, _ meaning: [Pair: ReferenceLoss]) throws -> [Loss] {
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
    var tallies: [ReferenceLoss: RowTally] = [:]
    while try statement.step() {
      guard let x = names[statement.int64(2)], let y = names[statement.int64(3)],
        let loss = meaning[Pair(owner: x, target: y)]
      else { continue }
      tallies[loss, default: RowTally()]
        .add(statement.int64(loss.isOfTarget ? 1 : 0))
    }
    return tallies.keys.sorted { $0.place.precedesInBytes($1.place) }
      .compactMap { loss in tallies[loss].map(loss.loss) }
  }
}

/// References of one entity's relationship that are lost, for one reason.
private struct ReferenceLoss: Hashable {
  var kind: Loss.Kind
  var entity: EntityName
  var property: String
  var why: String
  /// True when the objects that lose a reference are those that the storage calls targets.
  var isOfTarget: Bool

  var place: String { "\(entity) \(property) \(kind.rawValue)" }

  /// Nil where both objects are dropped: their entities are the loss.
  init?(
    _ successors: any Successors, _ relationship: RelationshipDescription,
    _ inverse: RelationshipDescription?, owner: EntityName, target: EntityName
  ) {
    let isOwnerKept = successors.keeps(owner)
    let isTargetKept = successors.keeps(target)
    guard isOwnerKept || isTargetKept else { return nil }
    isOfTarget = !isOwnerKept
    guard let own = isOfTarget ? inverse : relationship else { return nil }
    let other = isOfTarget ? relationship : inverse
    (entity, property) = (isOfTarget ? target : owner, own.name)
    guard let path = successors.path(of: own.name, in: entity) else {
      kind = .relationship
      why =
        successors.propertyWords
        + (other.map { isOwnerKept && isTargetKept ? ", nor has its inverse \($0.name)" : "" } ?? "")
      return
    }
    kind = .reference
    let gone = isOfTarget ? owner : target
    why =
      isOwnerKept && isTargetKept
      ? "may no longer point to \(gone)" : "points to objects of \(gone), which is dropped"
    if let next = path.last?.relationship, !next.isToMany, !next.traits.isOptional {
      why += ", and is required"
    }
  }

  func loss(_ tally: RowTally) -> Loss {
    Loss(
      kind, entity: entity.rawValue, property: property, count: tally.count,
      primaryKeys: Array(Set(tally.primaryKeys)).sorted(),
      message: "\(entity).\(property) \(why): \(Loss.number(tally.count, "reference")) "
        + "\(tally.count == 1 ? "is" : "are") dropped.")
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

extension AttributeType {
  /// True when no number of this type changes as one of the other.
  func keepsNumbers(as other: AttributeType) -> Bool {
    if keepsValues(as: other) { return true }
    return switch (self, other) {
    case (_, .decimal): true
    case (.boolean, .float), (.integer16, .float): true
    case (.boolean, .double), (.integer16, .double), (.integer32, .double): true
    default: false
    }
  }
}
