import GodwitExpressions
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Testing

@testable import GodwitCommit
@testable import GodwitPersistentStore
@testable import GodwitPlanning
@testable import GodwitStagedObjects

/// Every form that a relationship has in a store.
private func garden() throws -> StageFixture {
  try StageFixture([
    EntityDescription(
      name: "Bed",
      properties: [
        attribute("size", .integer32, derivation: "count:(plants)"),
        relationship("plants", "Plant", inverse: "bed", many: true, rule: .deny),
        relationship("spare", "Plant", inverse: nil, many: true),
        relationship("lists", "Tag", inverse: "beds", many: true, ordered: true),
      ]),
    EntityDescription(
      name: "Plant",
      properties: [
        relationship("bed", "Bed", inverse: "plants"),
        relationship("parent", "Plant", inverse: "children"),
        relationship(
          "children", "Plant", inverse: "parent", many: true, ordered: true, rule: .cascade),
        relationship("mate", "Plant", inverse: "mateOf"),
        relationship("mateOf", "Plant", inverse: "mate"),
        relationship("friend", "Plant", inverse: "friend"),
        relationship("likes", "Plant", inverse: "likedBy", many: true),
        relationship("likedBy", "Plant", inverse: "likes", many: true),
        relationship("peers", "Plant", inverse: "peers", many: true),
        relationship("tags", "Tag", inverse: "plants", many: true, ordered: true),
      ]),
    EntityDescription(
      name: "Rose", superentity: "Plant",
      properties: [relationship("label", "Tag", inverse: "rose")]),
    EntityDescription(
      name: "Tag",
      properties: [
        relationship("plants", "Plant", inverse: "tags", many: true),
        relationship("beds", "Bed", inverse: "lists", many: true, ordered: true),
        relationship("rose", "Rose", inverse: "label"),
      ]),
  ])
}

/// A graph of objects in memory that keeps inverses in the plainest way: what the store is
/// compared with.
private struct Graph {
  struct Form {
    var inverse: String?
    var isMany: Bool
    var isInverseMany: Bool
    var isOrdered: Bool
    var rule: RelationshipDescription.DeleteRule
    var target: EntityName
  }
  let model: EntityHierarchy
  var objects: [ObjectReference] = []
  var values: [ObjectReference: [String: [ObjectReference]]] = [:]

  func forms(of entity: EntityName) -> [String: Form] {
    var forms: [String: Form] = [:]
    for declared in model.properties(of: entity) {
      guard let found = declared.property.relationship else { continue }
      let inverse = model.inverse(of: found)?.relationship
      forms[found.name] = Form(
        inverse: inverse?.name, isMany: found.isToMany, isInverseMany: inverse?.isToMany ?? false,
        isOrdered: found.isOrdered, rule: found.deleteRule, target: found.destinationEntity)
    }
    return forms
  }

  func get(_ object: ObjectReference, _ name: String) -> [ObjectReference] {
    values[object]?[name] ?? []
  }

  private mutating func unlink(
    _ a: ObjectReference, _ name: String, _ b: ObjectReference, _ form: Form
  ) {
    values[a]?[name]?.removeAll { $0 == b }
    if let inverse = form.inverse { values[b]?[inverse]?.removeAll { $0 == a } }
  }

  mutating func set(_ object: ObjectReference, _ name: String, _ targets: [ObjectReference]) {
    guard let form = forms(of: object.entity)[name] else { return }
    for old in get(object, name) where !targets.contains(old) { unlink(object, name, old, form) }
    for target in targets where !get(object, name).contains(target) {
      if let inverse = form.inverse, !form.isInverseMany {
        for owner in get(target, inverse) { unlink(owner, name, target, form) }
      } else if form.inverse == nil, form.isMany {
        for owner in objects { values[owner]?[name]?.removeAll { $0 == target } }
      }
      values[object, default: [:]][name, default: []].append(target)
      if let inverse = form.inverse, !(inverse == name && object == target) {
        values[target, default: [:]][inverse, default: []].append(object)
      }
    }
    if form.isMany { values[object, default: [:]][name] = targets }
  }

  /// False where a relationship denies it.
  mutating func delete(_ object: ObjectReference) -> Bool {
    var doomed = [object]
    var index = 0
    while index < doomed.count {
      for (name, form) in forms(of: doomed[index].entity) where form.rule == .cascade {
        for member in get(doomed[index], name) where !doomed.contains(member) {
          doomed.append(member)
        }
      }
      index += 1
    }
    for object in doomed {
      for (name, form) in forms(of: object.entity) where form.rule == .deny {
        if get(object, name).contains(where: { !doomed.contains($0) }) { return false }
      }
    }
    objects.removeAll { doomed.contains($0) }
    for object in doomed { values[object] = nil }
    for object in objects {
      for name in (values[object] ?? [:]).keys {
        values[object]?[name]?.removeAll { doomed.contains($0) }
      }
    }
    return true
  }
}

/// SplitMix64: equal on every machine.
private struct Dice: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var hash = state
    hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
    hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
    return hash ^ (hash >> 31)
  }
}

@Suite struct `Relationships of a store between two versions` {
  @Test(arguments: 1...12)
  func `agree with a graph in memory whatever is set, inserted and deleted`(seed: UInt64) throws {
    _ = try play(seed)
  }

  @Test(
    .enabled(if: OracleJudge.isHere, "skipped: the independent judge is not there"),
    arguments: 13...20)
  func `are left as Core Data's own rules want them`(seed: UInt64) throws {
    #expect(try play(seed).complaints() == "")
  }

  /// Does what the dice say to a store and to a graph, and compares them now and then.
  private func play(_ seed: UInt64) throws -> StageFixture {
    let garden = try garden()
    let model = garden.model
    try garden.run { store in
      var dice = Dice(state: seed)
      var graph = Graph(model: model)
      let entities: [EntityName] = ["Bed", "Plant", "Rose", "Tag"]
      func insert() throws {
        guard let entity = entities.randomElement(using: &dice) else { return }
        graph.objects.append(try store.insert(entity).reference)
      }
      for _ in 0..<16 { try insert() }
      for step in 0..<80 {
        guard let object = graph.objects.randomElement(using: &dice) else { break }
        let chance = Int.random(in: 0..<20, using: &dice)
        if chance == 0 { try insert() }
        if chance == 1 {
          let survives = !graph.delete(object)
          if survives {
            let error = #expect(throws: StagedMigrationError.self) {
              try store.delete(store.object(object))
            }
            #expect(error?.code == 1600)
          } else {
            try store.delete(store.object(object))
          }
          #expect(try store.object(object).isDeleted == !survives)
          continue
        }
        let forms = graph.forms(of: object.entity).sorted { $0.key < $1.key }
        guard let (name, form) = forms.randomElement(using: &dice) else { continue }
        let possible = graph.objects.filter { model.isKind($0.entity, of: form.target) }
          .shuffled(using: &dice)
        let count = Int.random(in: 0...(form.isMany ? 4 : 1), using: &dice)
        if form.isMany, chance < 8, let member = possible.first {
          let all = graph.get(object, name)
          graph.set(object, name, all.contains(member) ? all : all + [member])
          try store.object(object).add(store.object(member), toKey: name)
          continue
        }
        let targets = Array(possible.prefix(count))
        graph.set(object, name, targets)
        let value: ExpressionValue =
          form.isMany
          ? .array(targets.map { .object($0) }) : targets.first.map { .object($0) } ?? .null
        try store.object(object).setValue(value, forKey: name)
        if step % 8 == 0 {
          try compare(store, graph, "seed \(seed), step \(step), \(object.entity).\(name)")
        }
      }
      try compare(store, graph, "seed \(seed), at the end")
    }
    return garden
  }

  private func compare(_ store: StageContext, _ graph: Graph, _ place: String) throws {
    for object in graph.objects {
      for (name, form) in graph.forms(of: object.entity) {
        let value = try store.object(object).value(forKey: name)
        var found: [ObjectReference] = (value.members ?? [value]).compactMap {
          if case .object(let member) = $0 { member } else { nil }
        }
        var wanted = graph.get(object, name)
        if !form.isOrdered {
          found.sort { $0.primaryKey < $1.primaryKey }
          wanted.sort { $0.primaryKey < $1.primaryKey }
        }
        #expect(found == wanted, "\(place): \(object.entity) \(object.primaryKey).\(name)")
      }
    }
  }

  @Test func `write keys, entities and places as Core Data does`() throws {
    let garden = try garden()
    try garden.run { store in
      let bed = try store.insert("Bed")
      let rose = try store.insert("Rose")
      let plant = try store.insert("Plant")
      try plant.setObject(bed, forKey: "bed")
      try plant.setObject(rose, forKey: "parent")
      let tags = try (0..<2).map { _ in try store.insert("Tag") }
      try rose.setObjects(tags, forKey: "tags")
      try rose.setObject(tags[1], forKey: "label")
      try rose.add(plant, toKey: "peers")
    }
    #expect(
      try garden.rows(
        "SELECT ZBED, ZPARENT, Z2_PARENT, Z_FOK_PARENT FROM ZPLANT WHERE Z_PK = 2")
        == [[.integer(1), .integer(1), .integer(3), .integer(2048)]])
    #expect(
      try garden.rows("SELECT Z_4TAGS, Z_FOK_4TAGS FROM Z_2TAGS ORDER BY 1")
        == [[.integer(1), .integer(2048)], [.integer(2), .integer(3072)]])
    #expect(try garden.rows("SELECT ZROSE FROM ZTAG ORDER BY Z_PK") == [[.null], [.integer(1)]])
    #expect(try garden.rows("SELECT count(*) FROM Z_2PEERS") == [[.integer(2)]])
    // The derived count of the bed's plants, which no trigger keeps here.
    #expect(try garden.rows("SELECT ZSIZE FROM ZBED") == [[.integer(1)]])
  }

  /// A column by which members are ordered may hold any number.
  @Test func `number a list anew that has no place behind its last`() throws {
    let garden = try garden()
    try garden.run { store in
      let rose = try store.insert("Rose")
      for _ in 0..<3 { try store.insert("Plant").setObject(rose, forKey: "parent") }
      try rose.setObjects((0..<2).map { _ in try store.insert("Tag") }, forKey: "tags")
    }
    try garden.execute(
      """
      UPDATE ZPLANT SET Z_FOK_PARENT = 9223372036854775807 - Z_PK WHERE ZPARENT IS NOT NULL;
      UPDATE Z_2TAGS SET Z_FOK_4TAGS = 9223372036854775807 - Z_4TAGS
      """)
    try garden.run { store in
      let rose = try store.fetch("Rose")[0]
      try store.insert("Plant").setObject(rose, forKey: "parent")
      try rose.add(store.insert("Tag"), toKey: "tags")
      #expect(try rose.objects(forKey: "children").map(\.primaryKey) == [4, 3, 2, 5])
      #expect(try rose.objects(forKey: "tags").map(\.primaryKey) == [2, 1, 3])
    }
    #expect(
      try garden.rows("SELECT Z_PK, Z_FOK_PARENT FROM ZPLANT WHERE ZPARENT = 1 ORDER BY 2")
        == [(4, 2048), (3, 3072), (2, 4096), (5, 5120)].map { [.integer($0), .integer($1)] })
    #expect(
      try garden.rows("SELECT Z_4TAGS, Z_FOK_4TAGS FROM Z_2TAGS ORDER BY 2")
        == [(2, 2048), (1, 3072), (3, 4096)].map { [.integer($0), .integer($1)] })
  }

  @Test func `take objects of their own entities only, and those that exist`() throws {
    let garden = try garden()
    let gone = garden.object("Tag", 9)
    func code(_ body: @escaping @Sendable (StageContext, StageObject) throws -> Void) -> Int? {
      let error = #expect(throws: StagedMigrationError.self) {
        try garden.run { try body($0, $0.insert("Plant")) }
      }
      return error?.code
    }
    #expect(code { _, plant in try plant.setObject(plant, forKey: "bed") } == 1550)
    #expect(code { _, plant in try plant.setObjects([plant], forKey: "parent") } == 1550)
    #expect(code { _, plant in try plant.setObject(plant, forKey: "likes") } == 1550)
    #expect(code { _, plant in try plant.setValue(1, forKey: "bed") } == 1550)
    #expect(code { _, plant in try plant.add(plant, toKey: "mate") } == 1550)
    #expect(
      code { store, plant in
        try plant.setObjects([store.object(gone)], forKey: "tags")
      } == 133_000)
  }

  @Test func `are validated when the handler is done`() throws {
    let team = try StageFixture([
      EntityDescription(
        name: "Player",
        properties: [relationship("team", "Team", inverse: "players", required: true)]),
      EntityDescription(
        name: "Team",
        properties: [
          relationship(
            "players", "Player", inverse: "team", many: true, required: true, counts: 1...2)
        ]),
    ])
    func code(_ body: @escaping @Sendable (StageContext) throws -> Void) -> Int? {
      let error = #expect(throws: StagedMigrationError.self) { try team.run(body) }
      return error?.code
    }
    #expect(code { _ = try $0.insert("Player") } == 1570)
    #expect(code { _ = try $0.insert("Team") } == 1580)
    #expect(
      code { store in
        let players = try (0..<3).map { _ in try store.insert("Player") }
        try store.insert("Team").setObjects(players, forKey: "players")
      } == 1590)
    try team.run { store in
      let players = try (0..<2).map { _ in try store.insert("Player") }
      try store.insert("Team").setObjects(players, forKey: "players")
    }
    // A player that goes leaves a team that must have one.
    try team.run { try $0.delete($0.fetch("Player")[0]) }
    #expect(code { try $0.delete($0.fetch("Player")[0]) } == 1580)
  }

  @Test func `that are no action leave what they refer to`() throws {
    let store = try StageFixture([
      EntityDescription(
        name: "A", properties: [relationship("bs", "B", inverse: "a", many: true, rule: .noAction)]),
      EntityDescription(name: "B", properties: [relationship("a", "A", inverse: "bs")]),
    ])
    try store.run { store in
      let (a, b) = (try store.insert("A"), try store.insert("B"))
      try b.setObject(a, forKey: "a")
      try store.delete(a)
      #expect(try b.object(forKey: "a") == nil)
    }
    #expect(try store.rows("SELECT ZA FROM ZB") == [[.integer(1)]])
    // What refers to nothing can be cleared.
    try store.run { try $0.fetch("B")[0].setObject(nil, forKey: "a") }
    #expect(try store.rows("SELECT ZA FROM ZB") == [[.null]])
  }
}
