import GodwitObjectModel
import GodwitPersistentStore
import Testing

@Suite struct `The order of entities' numbers` {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// What is said of a store whose entities have the numbers from 1 in this order.
  private func kinds(
    _ names: [String], superentities: [String: String] = [:]
  ) throws -> [StoreFinding.Kind] {
    let entities = names.map { name in
      EntityDescription(
        name: EntityName(name), superentity: superentities[name].map { EntityName($0) })
    }
    let hierarchy = try EntityHierarchy(ManagedObjectModel(entities: entities))
    let store = try SmallStore(hierarchy, at: folder.path.appending("s.sqlite"), rows: "")
    try store.execute("UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT + 100, Z_SUPER = 0")
    for (place, name) in names.enumerated() {
      let parent = superentities[name].flatMap { names.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
      try store.execute(
        "UPDATE Z_PRIMARYKEY SET Z_ENT = \(place + 1), Z_SUPER = \(parent) WHERE Z_NAME = '\(name)'"
      )
    }
    return try StoreSoundness.control(StoreBinding(store.open(), hierarchy)).map(\.kind)
  }

  // Letters of either case are one.
  @Test(
    arguments: [
      (["A_B", "ab"], []), (["a", "B"], []), (["B", "a"], [.control, .control]),
      (["AB", "A_B"], [.note]), (["A1", "A_B", "AB"], []), (["A_B", "A1", "AB"], [.note]),
      (["AB", "A_B", "AC"], [.note]), (["AC", "A_B", "AB"], [.control, .control, .control]),
      // The shorter name comes first.
      (["A", "A_B"], []), (["A_B", "A"], [.control, .control]),
      // The next letter decides.
      (["A_B", "A_C"], []), (["A_C", "A_B"], [.control, .control]),
      (["Ez", "\u{C9}a"], []), (["\u{C9}a", "Ez"], [.note]),
      (["\u{C9}b", "\u{C9}a"], [.control, .control]),
    ] as [([String], [StoreFinding.Kind])])
  func `is damage where the rule for it is known, and noted where not`(
    names: [String], expected: [StoreFinding.Kind]
  ) throws {
    #expect(try kinds(names) == expected)
  }

  @Test(
    arguments: [
      (["R", "XY", "X_Y", "S"], [.note]), (["R", "X_Y", "XY", "S"], []),
      (["R", "XY", "S", "X_Y"], [.control, .control, .control]),
      (["XY", "R", "X_Y", "S"], [.control, .control, .control]),
    ] as [([String], [StoreFinding.Kind])])
  func `has each entity's sub-entities behind it`(
    names: [String], expected: [StoreFinding.Kind]
  ) throws {
    #expect(try kinds(names, superentities: ["XY": "R", "X_Y": "R"]) == expected)
  }
}
