import GodwitCheckpoints
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// Makes objects and associations.
final class PolicyCopyEngine: PolicyStageEngine {
  private let objects: DestinationObjects
  private let expressions: RowExpressions
  private let code: AttributeProgramCode
  private let external: ExternalData
  private let newFiles: NewExternalFiles
  private let writer: CheckpointWriter
  private let output: RowValues
  @exclusivity(unchecked) private var record = RawBuffer(capacity: 4 << 10)
  @exclusivity(unchecked) private var values = RawBuffer(capacity: 4 << 10)
  @exclusivity(unchecked) private var scratch = RawBuffer(capacity: 16)
  /// Of its own: an expression that fills the others may ask a hook.
  @exclusivity(unchecked) private var said = RawBuffer(capacity: 64)
  @exclusivity(unchecked) private var current:
    (object: ObjectReference, values: UnsafeMutablePointer<RawValue>)?
  @exclusivity(unchecked) private var failures = RowFailures()
  private let pairs: ScratchRows
  @exclusivity(unchecked) private var pairCount = 0
  /// For questions that the order of the pairs does not answer.
  @exclusivity(unchecked) private var (bySource, byDestination) = (PairIndex(), PairIndex())
  @exclusivity(unchecked) private var last: (entity: Int64, key: Int64) = (.min, .min)
  @exclusivity(unchecked) private var isAscending = true
  /// Whether the mapping's expressions are being evaluated.
  @exclusivity(unchecked) private var isFilling = false
  /// What became of the source object at hand.
  @exclusivity(unchecked) private var made = MadeObjects()
  /// What was associated with source objects that are still to come, by their keys.
  @exclusivity(unchecked) private var ahead: [Int64: MadeObjects] = [:]
  /// The key of the last source object that had its turn.
  @exclusivity(unchecked) private var lastTaken = Int64.min

  init(
    _ context: ShardContext, _ mapping: EntityMappingPlan, unit: Int, _ writer: CheckpointWriter
  ) throws {
    self.writer = writer
    let kinds = DestinationKinds(context.plan)
    expressions = try RowExpressions(context.mapped, mapping)
    objects = DestinationObjects(context, kinds, ownTable: mapping.table, unit: unit, .copy)
    code = AttributeProgramCode(mapping.attributes)
    external = ExternalData(folder: context.plan.externalDataPath)
    var files = NewExternalFiles(folder: context.run.external, fingerprint: context.fingerprint)
    if case .mapping(let index) = context.plan.units[unit].subject { files.mapping = index }
    newFiles = files
    expressions.newFiles = files
    output = RowValues(count: 2 + mapping.attributes.count)
    pairs = ScratchRows(in: context.run.path)
    super.init(
      context, mapping, kinds, expressions.objects, userInfo: [:])
    derive(in: objects) { ObjectReference($0.kind.plan.entity, $0.ordinal, in: .destination) }
  }

  /// Keys are given out when all shards have made their objects.
  override func primaryKey(of object: ObjectReference) -> Int64 {
    object.store == .source ? object.primaryKey : 0
  }

  /// Turns to the next source object.
  ///
  /// - Returns: False when the mapping's filter does not take it.
  func begin(_ object: ObjectReference, _ values: UnsafeMutablePointer<RawValue>) throws -> Bool {
    expressions.begin(object.primaryKey, values)
    lastTaken = object.primaryKey
    guard try expressions.accepts(values) else { return false }
    mapping.sourceRules.check(values, key: object.primaryKey, into: &failures)
    current = (object, values)
    made.removeAll()
    if !ahead.isEmpty, let known = ahead.removeValue(forKey: object.primaryKey) { made = known }
    return true
  }

  /// After the last source object: its row's memory is gone.
  func end() {
    current = nil
    (made, ahead, lastTaken) = (MadeObjects(), [:], .max)
    stored.unsettle()
  }

  // MARK: Objects

  override func read(_ key: String, _ object: ObjectReference) throws -> ExpressionValue? {
    guard object.store == .destination else { return try super.read(key, object) }
    return try read(key, working(object), objects)
  }

  override func set(_ value: ExpressionValue, _ key: String, _ object: ObjectReference) throws {
    try set(value, key, working(object), objects, object)
  }

  override func add(_ member: ObjectReference, _ key: String, _ object: ObjectReference) throws {
    try add(member, key, working(object), objects, object)
  }

  override func remove(
    _ member: ObjectReference, _ key: String, _ object: ObjectReference
  ) throws {
    try remove(member, key, working(object), objects, object)
  }

  /// In the checkpoint before the objects, for the link stage to repeat: keys are known then.
  override func say(
    _ word: RelationshipWord, _ targets: [LinkTargets.Target], _ relationship: Int,
    _ object: WorkingObject
  ) throws {
    said.removeAll()
    said.append(number: object.kind.plan.number.littleEndian)
    word.encode(into: &said)
    LinkBytes.append([(relationship, targets)], to: &said)
    try writer.append(channel: PolicyChannel.words, key: object.ordinal, said.bytes)
  }

  private func working(_ object: ObjectReference) throws -> WorkingObject {
    guard object.store == .destination else {
      throw PolicyError.notNow("objects of the source cannot be changed")
    }
    if let recent = objects.recent(object) { return recent }
    guard let found = try objects.object(try kind(of: object.entity), object.primaryKey) else {
      throw PolicyError.notNow("the object is none of this shard's")
    }
    return found
  }

  override func uri(of object: ObjectReference) -> String? {
    object.store == .source ? super.uri(of: object) : nil
  }

  override func insert(_ entity: EntityName) throws -> ObjectReference {
    let made = try objects.insert(try kind(of: entity))
    return ObjectReference(entity, made.ordinal, in: .destination)
  }

  override func createByDefault(_ source: ObjectReference) throws {
    guard let current, current.object == source else {
      throw PolicyError.notNow(
        "createDestinationInstances makes objects of the source object at hand only")
    }
    guard !isFilling else {
      throw PolicyError.notNow(
        "createDestinationInstances cannot be called by a selector that an expression of the same object "
          + "asks")
    }
    guard let destination = mapping.destination else { return }
    output.values[0] = .integer(mapping.destinationNumber)
    output.values[1] = .integer(1)
    CopyStage.run(code.operations, from: current.values, to: output.values + 2)
    if code.needsScratch {
      scratch.removeAll()
      try external.settle(
        code.operations, from: current.values, to: output.values + 2, scratch: &scratch,
        newFiles: newFiles, entity: source.entity.rawValue, primaryKey: source.primaryKey)
    }
    if !expressions.isEmpty {
      isFilling = true
      defer { isFilling = false }
      try expressions.fill(output.values + 2, from: current.values, &values)
    }
    record.removeAll()
    RecordFormat.encode(output.values, count: output.count, into: &record)
    let object = try objects.insert(try kind(of: destination), record.bytes)
    try associate(
      source, ObjectReference(destination, object.ordinal, in: .destination), object.kind)
  }

  // MARK: Associations

  override func associate(
    _ source: ObjectReference, _ destination: ObjectReference, _ mapping: CurrentEntityMapping
  ) throws {
    guard mapping.name == self.mapping.name else {
      throw PolicyError.notNow(
        "objects can be associated for the current mapping, \(self.mapping.name), only")
    }
    guard source.store == .source, destination.store == .destination else {
      throw PolicyError.notNow("a source object is associated with a destination object")
    }
    try associate(source, destination, working(destination).kind)
  }

  private func associate(
    _ source: ObjectReference, _ destination: ObjectReference, _ kind: DestinationKind
  ) throws {
    let isCurrent = current?.object == source
    let number = isCurrent ? mapping.sourceNumber : context.mapped.sourceNumbers[source.entity]
    guard let from = number else { throw PolicyError.unknownEntity(source.entity.rawValue) }
    if isCurrent {
      guard made.insert(destination) else { return }
    } else if source.entity == self.mapping.source, source.primaryKey > lastTaken {
      guard ahead[source.primaryKey, default: MadeObjects()].insert(destination) else { return }
    }
    var pair = PolicyPair(
      sourceEntity: from, source: source.primaryKey,
      destinationEntity: kind.plan.number, destination: destination.primaryKey)
    if (pair.sourceEntity, pair.source) < last { isAscending = false }
    last = (pair.sourceEntity, pair.source)
    _ = try withUnsafeBytes(of: &pair) { try pairs.append($0) }
    pairCount += 1
  }

  private func pair(_ number: Int) throws -> PolicyPair {
    try pairs.read(number * PolicyPair.byteCount, count: PolicyPair.byteCount) {
      $0.loadUnaligned(as: PolicyPair.self)
    }
  }

  override func destinations(_ mapping: String, _ sources: [ObjectReference]?) throws
    -> [ObjectReference]
  {
    try requireOwn(mapping)
    if let sources, let current, sources.count == 1, sources[0] == current.object {
      return made.all
    }
    var found: [ObjectReference] = []
    var seen: Set<ObjectReference> = []
    func take(_ pair: PolicyPair) {
      let target = LinkTargets.Target(entity: pair.destinationEntity, key: pair.destination)
      if let object = reference(target), seen.insert(object).inserted { found.append(object) }
    }
    guard let sources else {
      for number in 0..<pairCount { take(try pair(number)) }
      return found
    }
    for source in sources {
      guard let entity = context.mapped.sourceNumbers[source.entity] else { continue }
      for number in try places(entity, source.primaryKey) { take(try pair(number)) }
    }
    return found
  }

  /// Where the pairs of a source object are: found by their order, as long as sources have come in it.
  private func places(_ entity: Int64, _ key: Int64) throws -> [Int] {
    guard isAscending else {
      try bring(&bySource) { LinkTargets.Target(entity: $0.sourceEntity, key: $0.source) }
      return bySource.pairs(of: LinkTargets.Target(entity: entity, key: key))
    }
    var (low, high) = (0, pairCount)
    while low < high {
      let middle = (low + high) / 2
      let pair = try pair(middle)
      if (pair.sourceEntity, pair.source) < (entity, key) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    var end = low
    while end < pairCount {
      let pair = try pair(end)
      guard pair.sourceEntity == entity, pair.source == key else { break }
      end += 1
    }
    return Array(low..<end)
  }

  /// Brings an index up to the pairs that there are.
  private func bring(
    _ index: inout PairIndex, _ object: (PolicyPair) -> LinkTargets.Target
  ) throws {
    while index.count < pairCount { index.append(object(try pair(index.count))) }
  }

  override func sources(_ mapping: String, _ destinations: [ObjectReference]?) throws
    -> [ObjectReference]
  {
    try requireOwn(mapping)
    let names = context.mapped.sourceNames
    var found: [ObjectReference] = []
    var seen: Set<ObjectReference> = []
    func take(_ number: Int) throws {
      let pair = try pair(number)
      guard let name = names[pair.sourceEntity] else { return }
      let object = ObjectReference(name, pair.source, in: .source)
      if seen.insert(object).inserted { found.append(object) }
    }
    guard let destinations else {
      for number in 0..<pairCount { try take(number) }
      return found
    }
    try bring(&byDestination) {
      LinkTargets.Target(entity: $0.destinationEntity, key: $0.destination)
    }
    var numbers: [Int] = []
    for object in destinations {
      numbers += byDestination.pairs(
        of: LinkTargets.Target(
          entity: try kind(of: object.entity).plan.number, key: object.primaryKey))
    }
    for number in numbers.sorted() { try take(number) }
    return found
  }

  private func requireOwn(_ mapping: String) throws {
    guard mapping == self.mapping.name else {
      throw PolicyError.notNow(
        "what other entity mappings made is known from createRelationships on, when all is there")
    }
  }

  override func destinations(ofRelationship relationship: String, _ sources: [ObjectReference])
    throws -> [ObjectReference]
  {
    try requireOwn("")
    return []
  }

  // MARK: The end

  /// Writes everything to the checkpoint.
  func finish(ownTable: Int?) throws -> ShardSummary {
    var summary = ShardSummary()
    var inserted: [Int: Int64] = [:]
    let rows = PolicyRowWriter(writer: writer, ownTable: ownTable)
    var buffer = RawBuffer(capacity: 4 << 10)
    var blob = RawBuffer(capacity: 1 << 10)
    for table in objects.tables {
      inserted[table] = objects.count(of: table)
      try objects.forEach(in: table) { ordinal, record, transients, links in
        try rows.append(record, table: table, ordinal: ordinal, &buffer)
        summary.rows += 1
        summary.bytes += Int64(record.count)
        if !transients.isEmpty {
          try rows.append(
            PolicyChannel.transients, transients, table: table, ordinal: ordinal, &buffer)
        }
        guard !links.isEmpty else { return }
        blob.removeAll()
        LinkBytes.append(links, to: &blob)
        try rows.append(
          PolicyChannel.links, blob.bytes, table: table, ordinal: ordinal, &buffer)
      }
    }
    for number in 0..<pairCount {
      let pair = try pair(number)
      buffer.removeAll()
      for number in pair.numbers { buffer.append(number: number.littleEndian) }
      try writer.append(channel: PolicyChannel.association, key: Int64(number), buffer.bytes)
    }
    summary.inserted = inserted
    summary.userInfo = changedUserInfo
    summary.findings = failures.findings(mapping.sourceRules).filter { $0.kind != .required }
    return summary
  }
}
