import Foundation
import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitFixtures
@testable import StoreFixtures

@Suite struct `A shuffle` {
  @Test(arguments: [1, 2, 3, 4, 7, 64, 1_000, 30_030], [nil, 1, 99] as [UInt64?])
  func `meets every place once and goes back`(count: Int, seed: UInt64?) {
    let shuffle = Shuffle(count: count, seed: seed)
    let places = (0..<count).map(shuffle.forward)
    #expect(Set(places) == Set(0..<count))
    #expect(places.map(shuffle.backward) == Array(0..<count))
  }
}

@Suite struct `A key space` {
  @Test(arguments: [0.0, 0.01, 0.2, 0.5, 0.9])
  func `has ascending keys that its ordinals lead back to`(deleted: Double) throws {
    let hierarchy = try EntityHierarchy(FixtureModels.Recipes.one.model())
    let space = try KeySpace(
      root: "Author", hierarchy: hierarchy, counts: ["Author": 70, "Chef": 31],
      deletedFraction: deleted, seed: 8)
    let keys = (0..<space.count).map(space.key(ofSlot:))
    #expect(zip(keys, keys.dropFirst()).allSatisfy { $0 < $1 })
    #expect((keys.last ?? 0) <= space.highestKey)
    for slot in 0..<space.count {
      #expect(space.key(ofOrdinal: space.ordinal(ofSlot: slot)) == keys[slot])
    }
    #expect(space.shares.map(\.count) == [70, 31])
  }
}

@Suite struct `A simple pattern` {
  @Test(arguments: [
    ("[A-Z]{2}-[0-9]{3,6}", true),
    (#"^\d+(\.\d)?$"#, false),  // a group
    (#"\d{4}-\d\d"#, true),
    ("a|b", false),  // an alternative
    ("[^a-z]+x?.*", true),
    ("[a-z", false),  // never closed
    ("x{2000}", false),  // more than a fixture needs
    (#"a\.b\\c"#, true),
  ])
  func `is understood or refused`(expression: String, isUnderstood: Bool) throws {
    let pattern = SimplePattern(expression)
    #expect((pattern != nil) == isUnderstood)
    guard let pattern else { return }
    let judge = try NSRegularExpression(pattern: "^(?:\(expression))$")
    var random = SplitMix64(seed: 1)
    let room = UnsafeMutableRawPointer.allocate(byteCount: pattern.length.upperBound, alignment: 1)
    defer { room.deallocate() }
    for _ in 0..<100 {
      let count = pattern.write(into: room, &random)
      let text = String(
        decoding: UnsafeRawBufferPointer(start: room, count: count), as: UTF8.self)
      let range = NSRange(text.startIndex..., in: text)
      #expect(judge.firstMatch(in: text, range: range) != nil, "\(text)")
    }
  }
}

@Suite struct `A simple pattern with bounds of its length` {
  @Test(arguments: [
    ("[a-c]+", 2...4, true), ("[a-c]*x", 9...20, true), ("a{2,}b", 12...12, true),
    ("a?b?c?", 2...2, true), ("[ab]{3}", 4...9, false), ("[ab]{3,}", 0...2, false),
  ])
  func `has matches of such lengths only`(
    expression: String, bounds: ClosedRange<Int>, isPossible: Bool
  ) throws {
    let pattern = SimplePattern(expression, bounds: bounds)
    #expect((pattern != nil) == isPossible)
    guard let pattern else { return }
    let judge = try NSRegularExpression(pattern: "^(?:\(expression))$")
    let room = UnsafeMutableRawPointer.allocate(byteCount: pattern.length.upperBound, alignment: 1)
    defer { room.deallocate() }
    var random = SplitMix64(seed: 1)
    var distinct: Set<String> = []
    for number in 0..<200 {
      let isDistinct = number < min(100, pattern.matchCount)
      let count =
        isDistinct ? pattern.write(match: number, into: room) : pattern.write(into: room, &random)
      let text = String(
        decoding: UnsafeRawBufferPointer(start: room, count: count), as: UTF8.self)
      #expect(bounds.contains(count), "\(text)")
      let range = NSRange(text.startIndex..., in: text)
      #expect(judge.firstMatch(in: text, range: range) != nil, "\(text)")
      if isDistinct { #expect(distinct.insert(text).inserted, "\(text)") }
    }
  }
}

@Suite struct `The relationships of a generated store` {
  private func store(_ scratch: Scratch, rows: [EntityName: Int]) throws -> Connection {
    var options = StoreOptions(seed: 21, rows: 40)
    options.rowsByEntity = rows
    try StoreGenerator(FixtureModels.Recipes.one.model(), options: options)
      .write(to: scratch.path("a.sqlite"))
    return try Connection(path: scratch.path("a.sqlite"), mode: .immutable)
  }

  @Test(arguments: [40, 7, 90, 1])
  func `agree on both sides of a one-to-one`(images: Int) throws {
    let scratch = try Scratch()
    let store = try store(scratch, rows: ["Image": images])
    let pairs = try store.rows(
      "SELECT Z_PK, ZIMAGE FROM ZRECIPE WHERE ZIMAGE IS NOT NULL ORDER BY 2")
    let turned = try store.rows(
      "SELECT ZRECIPE, Z_PK FROM ZIMAGE WHERE ZRECIPE IS NOT NULL ORDER BY 2")
    #expect(pairs == turned)
    #expect(images < 7 || !pairs.isEmpty)
  }

  @Test(arguments: [1, 39, 40, 41, 400])
  func `give every member of an ordered list its own place`(steps: Int) throws {
    let scratch = try Scratch()
    let store = try store(scratch, rows: ["Step": steps])
    #expect(
      try store.rows(
        "SELECT count(*), count(DISTINCT ZRECIPE * 10000000 + Z_FOK_RECIPE) FROM ZSTEP")
        == [[.integer(Int64(steps)), .integer(Int64(steps))]])
  }

  @Test func `are not ordered as their keys are`() throws {
    let scratch = try Scratch()
    let store = try store(scratch, rows: ["Step": 400])
    let turned = try store.rows(
      """
      SELECT count(*) FROM ZSTEP a JOIN ZSTEP b
          ON a.ZRECIPE = b.ZRECIPE AND a.Z_PK < b.Z_PK AND a.Z_FOK_RECIPE > b.Z_FOK_RECIPE
      """)
    #expect((turned.first?.first?.integer ?? 0) > 0)
  }

  /// Whether the to-one may be empty, the most members of its inverse, and how many objects are asked for.
  @Test(
    arguments: [
      (false, 1, 0, 4, ["A has 4 objects instead of 0: B.a is required, and one-to-one"]),
      (false, 1, 5, 3, ["B has 5 objects instead of 3: A.b is required, and one-to-one"]),
      (false, 1, 3, 3, []), (false, 1, 0, 0, []), (true, 1, 5, 3, []),
      (false, 0, 5, 0, ["B has 1 object instead of 0: A.b is required"]),
      (false, 0, 5, 1, []), (false, 0, 0, 0, []), (true, 0, 5, 0, []),
    ] as [(Bool, Int, Int, Int, [String])])
  func `get as many objects as they need, and a note says so`(
    isOptional: Bool, most: Int, a: Int, b: Int, notes: [String]
  ) throws {
    func entity(_ name: String, _ to: String, _ isOptional: Bool, _ most: Int) -> EntityDescription
    {
      EntityDescription(
        name: EntityName(name.uppercased()),
        properties: [
          .relationship(
            RelationshipDescription(
              traits: PropertyTraits(name: to, isOptional: isOptional),
              destinationEntity: EntityName(to.uppercased()), inverseName: name, maxCount: most))
        ])
    }
    let model = ManagedObjectModel(entities: [
      entity("a", "b", isOptional, 1), entity("b", "a", isOptional || most == 0, most),
    ])
    let scratch = try Scratch()
    var options = StoreOptions(seed: 1, rows: a)
    options.rowsByEntity = ["B": b]
    let report = try FixtureFile(StoreGenerator(model, options: options))
      .write(to: scratch.path("a.sqlite"))
    #expect(report.notes == notes)
    let isAlike = most == 1 && !notes.isEmpty
    #expect(report.objects["A"] == (isAlike ? max(a, b) : a))
    #expect(report.objects["B"] == (isAlike ? max(a, b) : notes.isEmpty ? b : 1))
  }
}
