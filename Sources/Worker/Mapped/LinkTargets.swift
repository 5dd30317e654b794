import GodwitCheckpoints
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// Finds the destination objects of one relationship, for one object after another.
final class LinkTargets {
  struct Target: Hashable, BitwiseCopyable {
    var entity: Int64
    var key: Int64
  }

  /// A mapping that may have made something of the targets; they are asked in their order.
  private enum Taker {
    case mapping(number: Int64, any Association)
    /// Any number of objects of any entity for one, which may be of any entity, too.
    case policy(PolicyAssociation)
  }

  /// See ``LinkProgram/Rival``.
  private typealias Rival = (own: any Association, asks: [any Association], isFirst: Bool)
  /// Mappings that took what none of the takers did: see ``LinkProgram/Others``.
  private typealias Others = (
    missed: [any Association], mutual: [any Association], kept: [any Association], rivals: [Rival]
  )

  private let plan: LinkProgram
  private let mapping: EntityMappingPlan
  private let context: MappedContext
  private let groups: [RelationshipGroup]
  private let evaluator: LinkEvaluator
  private let expression: ValueExpression?
  private let takers: [Taker]
  private let others: Others
  /// See ``LinkProgram/OneSided``.
  private let oneSided: (others: Others, inverse: Statement)?
  /// See ``LinkProgram/Unplaced``.
  private let unplaced: (kept: [any Association], elsewhere: [Rival])?
  /// The source's relationship that is followed, and the number of its targets' table.
  private let followed: (reference: SourceReference, table: Int)?
  private let allowed: Set<Int64>
  /// For ``LinkProgram/calls``: how many takers each call has, and the objects that are asked for, with
  /// whether a taker made anything of them.
  private let calls: [Int]
  @exclusivity(unchecked) private var asked: [(source: Int64, isTaken: Bool)] = []
  private var list: Statement?
  private let pair = RowValues(count: 2)
  @exclusivity(unchecked) private var listed: (owner: Int64, target: Int64)?
  @exclusivity(unchecked) private(set) var targets: [Target] = []
  private var dropped = RowTally()
  private var unasked = RowTally()
  private var placeless = RowTally()
  private var damage = FindingTally()
  @exclusivity(unchecked) private var object: Int64 = 0

  init(
    _ plan: LinkProgram, _ mapping: EntityMappingPlan, _ context: MappedContext,
    _ evaluator: LinkEvaluator, keys: ClosedRange<Int64>
  ) throws {
    self.plan = plan
    self.mapping = mapping
    self.context = context
    self.evaluator = evaluator
    groups = context.plan.mapped?.groups ?? []
    allowed = Set(plan.allowed)
    calls = plan.calls ?? []
    var numbers: [Int] = []
    var reference: SourceReference?
    switch plan.way {
    case .ownObject(let mappings): numbers = mappings
    case .toOne(_, let mappings, let followed): (numbers, reference) = (mappings, followed)
    case .toMany(let sql, let mappings, let followed):
      (numbers, reference) = (mappings, followed)
      let statement = try context.source.prepare(sql)
      try statement.bind(1, keys.lowerBound)
      try statement.bind(2, keys.upperBound)
      list = statement
    case .evaluated: break
    }
    if case .evaluated = plan.way {
      expression = try ValueExpression(parsing: plan.expression)
    } else {
      expression = nil
    }
    followed = try reference.map { ($0, try context.targets.table($0.table)) }
    takers = try numbers.map {
      let taker = try context.mapping($0)
      return taker.policy == nil
        ? .mapping(number: taker.destinationNumber, try context.association($0))
        : .policy(try context.policyAssociation($0))
    }
    func rival(_ plan: LinkProgram.Rival) throws -> Rival {
      (
        try context.association(plan.mapping), try plan.asks.map(context.association), plan.isFirst
      )
    }
    func associations(_ plan: LinkProgram.Others?) throws -> Others {
      (
        try plan?.missed.map(context.association) ?? [],
        try plan?.mutual?.map(context.association) ?? [],
        try plan?.kept.map(context.association) ?? [], try plan?.rivals?.map(rival) ?? []
      )
    }
    others = try associations(plan.others)
    oneSided = try plan.oneSided.map {
      (try associations($0.others), try context.source.prepare($0.inverse))
    }
    unplaced = try plan.unplaced.map {
      (try $0.kept.map(context.association), try $0.elsewhere.map(rival))
    }
    try readPair()
  }

  /// True when the expression speaks of `$destination`.
  var needsDestination: Bool { expression?.mentions("destination") ?? false }

  /// Finds the targets of an object; rows must come by ascending key.
  func find(_ source: Int64, _ columns: UnsafePointer<RawValue>) throws {
    object = source
    targets.removeAll(keepingCapacity: true)
    switch plan.way {
    case .ownObject: try add(source)
    case .toOne(let column, _, _):
      if columns[column].kind == .integer { try add(columns[column].bits) }
    case .toMany:
      while let pair = listed, pair.owner <= source {
        if pair.owner == source {
          if calls.isEmpty { try add(pair.target) } else { asked.append((pair.target, false)) }
          if let unplaced, try took(pair.target, unplaced.kept),
            try !unplaced.elsewhere.contains(where: { try speaks($0, of: pair.target) })
          {
            placeless.add(source)
          }
        }
        try readPair()
      }
      if !asked.isEmpty { try addByCalls() }
    case .evaluated:
      guard let expression else { return }
      try add(expression, ObjectReference(mapping.source ?? "", source, in: .source))
    }
  }

  /// Finds the targets of any object, whatever came before it.
  func targets(of expression: ValueExpression, _ source: ObjectReference) throws -> [Target] {
    object = source.primaryKey
    targets.removeAll(keepingCapacity: true)
    try add(expression, source)
    return targets
  }

  private func add(_ expression: ValueExpression, _ source: ObjectReference) throws {
    for found in try evaluator.objects(expression, plan.property, source: source) {
      guard found.store == .destination, let number = evaluator.numbers[found.entity] else {
        throw wrong(found.store == .destination ? found.entity.rawValue : "the source store")
      }
      try append(Target(entity: number, key: found.primaryKey))
    }
  }

  private func add(_ source: Int64) throws {
    let known = targets.count
    try add(source, takers.indices)
    if targets.count == known { try look(at: source) }
  }

  private func add(_ source: Int64, _ asked: Range<Int>) throws {
    for place in asked {
      switch takers[place] {
      case .mapping(let number, let association):
        guard let key = try association.destination(of: source) else { continue }
        try append(Target(entity: number, key: key))
      case .policy(let association):
        guard let number = try entity(of: source) else { continue }
        try association.forEachDestination(of: number, source) { entity, key in
          try append(Target(entity: entity, key: key))
        }
      }
    }
  }

  /// `Z_ENT` of what the takers are asked for: the object itself, or the target of a reference, which is
  /// no more than a key. Nil for a reference that is damage.
  private func entity(of source: Int64) throws -> Int64? {
    guard let (reference, table) = followed else { return mapping.sourceNumber }
    if reference.allowed.count == 1 { return reference.allowed[0] }
    let found = try context.targets.entity(of: source, inTable: table)
    return found.flatMap { reference.allowed.contains($0) ? $0 : nil }
  }

  /// What each call finds of all objects, one call after the other.
  private func addByCalls() throws {
    defer { asked.removeAll(keepingCapacity: true) }
    var first = 0
    for count in calls {
      for place in asked.indices {
        let known = targets.count
        try add(asked[place].source, first..<first + count)
        if targets.count > known { asked[place].isTaken = true }
      }
      first += count
    }
    for object in asked where !object.isTaken { try look(at: object.source) }
  }

  /// No mapping made anything of an object. That is meant where a filter leaves it out, or where
  /// its entity goes; it is a loss where the object went through a mapping that nothing asks; else the
  /// reference is damage, of which the destination will not tell.
  private func look(at target: Int64) throws {
    var others = self.others
    if let oneSided, try !refersBack(target, oneSided.inverse) { others = oneSided.others }
    if try took(target, others.missed) || (target >= object && took(target, others.mutual)) {
      let isKept =
        try took(target, others.kept) || others.rivals.contains { try speaks($0, of: target) }
      if !isKept { unasked.add(object) }
      return
    }
    guard !takers.isEmpty, let (reference, table) = followed else { return }
    let entity = try context.targets.entity(of: target, inTable: table)
    if let entity, reference.allowed.contains(entity) { return }
    damage.add(
      entity == nil ? .dangling : .targetEntity, entity: mapping.source?.rawValue ?? "",
      property: reference.relationship,
      message: entity == nil
        ? "the target does not exist; the reference is dropped" : "the target is of another entity",
      primaryKey: object)
  }

  /// True where the target's column of a one-to-one has the pair, too.
  private func refersBack(_ target: Int64, _ inverse: Statement) throws -> Bool {
    try inverse.bind(1, target)
    try inverse.bind(2, object)
    defer { inverse.reset() }
    return try inverse.step()
  }

  /// True where another mapping took the owner, too, and keeps the reference or counts it.
  private func speaks(_ rival: Rival, of target: Int64) throws -> Bool {
    guard try rival.own.destination(of: object) != nil else { return false }
    return try rival.isFirst || took(target, rival.asks)
  }

  private func took(_ target: Int64, _ mappings: [any Association]) throws -> Bool {
    try mappings.contains { try $0.destination(of: target) != nil }
  }

  /// References of the source that lead to no object, or to one of a wrong entity.
  var findings: [StoreFinding] { damage.sorted }

  private func append(_ target: Target) throws {
    guard allowed.contains(target.entity) else {
      let entity = context.plan.tables.lazy.flatMap(\.entities).first {
        $0.destination != nil && $0.destinationNumber == target.entity
      }?.destination?.rawValue
      throw wrong(entity ?? "the destination's entity with Z_ENT \(target.entity)")
    }
    targets.append(target)
  }

  private func wrong(_ found: String) -> StageError {
    .wrongTarget(
      entity: mapping.source?.rawValue ?? "", primaryKey: object, relationship: plan.property,
      found: found)
  }

  /// A key that is no integer leads nowhere, and the audit says so: as a number SQLite would make one of it.
  private func readPair() throws {
    listed = nil
    guard let list else { return }
    while try list.step() {
      list.read(into: pair.values, from: 0, count: 2)
      guard pair.values[0].kind == .integer, pair.values[1].kind == .integer else { continue }
      listed = (pair.values[0].bits, pair.values[1].bits)
      return
    }
  }

  /// Several objects for a to-one relationship: the first is taken. Source: §4.3.
  func setColumns(of output: UnsafeMutablePointer<RawValue>) {
    guard let place = plan.keyPlace, let first = targets.first else { return }
    output[place] = .integer(first.key)
    if let entity = plan.entityPlace { output[entity] = .integer(first.entity) }
  }

  /// What the objects so far have of a to-one relationship beside its one object, their references to what
  /// went through mappings that nothing asks, and places in their lists.
  var losses: [Loss] {
    let unasked = followed.flatMap {
      Loss(unaskedIn: $0.reference.relationship, of: mapping.source?.rawValue ?? "", self.unasked)
    }
    let placeless = followed.flatMap {
      Loss(
        unplacedIn: $0.reference.relationship, of: mapping.source?.rawValue ?? "", self.placeless)
    }
    return [
      Loss(withoutRoomIn: plan.property, of: mapping.destination?.rawValue ?? "", dropped), unasked,
      placeless,
    ].compactMap(\.self)
  }

  /// Sends the pairs to where else they are kept.
  func emit(
    _ key: Int64, _ number: Int64, into buffer: inout RawBuffer, _ writer: CheckpointWriter
  ) throws {
    // The first one is kept. Pairs that are set one after the other are counted where that is done.
    if !plan.isToMany, !plan.emissions.contains(where: { groups[$0.group].isDecisive }) {
      for _ in targets.dropFirst() { dropped.add(key) }
    }
    guard !plan.emissions.isEmpty else { return }
    try Edge.emit(
      targets, plan.emissions, isToMany: plan.isToMany, key: key, number: number, groups
    ) { group, edge in
      edge.encode(into: &buffer)
      try writer.append(channel: Edge.channel, key: Int64(group), buffer.bytes)
    }
  }
}
