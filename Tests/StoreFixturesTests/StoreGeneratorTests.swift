import Foundation
import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitFixtures
@testable import StoreFixtures

@Suite struct `A generated store` {
  private func options(_ rows: Int, seed: UInt64) -> StoreOptions {
    var options = StoreOptions(seed: seed, rows: rows)
    options.externalFraction = 0.05
    options.history = true
    return options
  }

  @Test(arguments: FixtureModels.Recipes.allCases)
  func `has equal bytes for equal seeds`(version: FixtureModels.Recipes) throws {
    let scratch = try Scratch()
    let model = try version.model()
    for (name, seed) in [("a", 5), ("b", 5), ("c", 6)] as [(String, UInt64)] {
      try StoreGenerator(model, options: options(60, seed: seed))
        .write(to: scratch.path(name + ".sqlite"))
    }
    #expect(try scratch.bytes("a.sqlite") == scratch.bytes("b.sqlite"))
    #expect(try scratch.bytes("a.sqlite") != scratch.bytes("c.sqlite"))
  }

  @Test func `has equal bytes in its log, too`() throws {
    let scratch = try Scratch()
    var options = options(60, seed: 5)
    options.leavesWAL = true
    let generator = try StoreGenerator(FixtureModels.Recipes.one.model(), options: options)
    for name in ["a.sqlite", "b.sqlite"] { try generator.write(to: scratch.path(name)) }
    #expect(try scratch.bytes("a.sqlite") == scratch.bytes("b.sqlite"))
    #expect(try scratch.bytes("a.sqlite-wal") == scratch.bytes("b.sqlite-wal"))
  }

  @Test(arguments: [false, true])
  func `may be empty`(leavesWAL: Bool) throws {
    let scratch = try Scratch()
    var options = StoreOptions(seed: 1, rows: 0)
    options.leavesWAL = leavesWAL
    let report = try StoreGenerator(FixtureModels.Recipes.two.model(), options: options)
      .write(to: scratch.path("a.sqlite"))
    #expect(report.totalObjects == 0)
    let store = try Connection(path: scratch.path("a.sqlite"), mode: .readWrite)
    #expect(try store.rows("SELECT count(*) FROM Z_PRIMARYKEY") == [[.integer(10)]])
  }

  @Test func `is never written over another file`() throws {
    let scratch = try Scratch()
    let generator = try StoreGenerator(FixtureModels.Recipes.one.model())
    try generator.write(to: scratch.path("a.sqlite"))
    #expect(throws: FixtureError.alreadyThere(path: scratch.path("a.sqlite"))) {
      try generator.write(to: scratch.path("a.sqlite"))
    }
  }

  @Test func `holds as many objects as it was asked for`() throws {
    let scratch = try Scratch()
    var options = StoreOptions(seed: 3, rows: 0)
    options.rowsByEntity = ["Recipe": 17, "Chef": 5]
    let report = try StoreGenerator(FixtureModels.Recipes.one.model(), options: options)
      .write(to: scratch.path("a.sqlite"))
    #expect(report.objects["Recipe"] == 17)
    #expect(report.totalObjects == 22)
    let store = try Connection(path: scratch.path("a.sqlite"), mode: .immutable)
    #expect(
      try store.rows("SELECT Z_ENT, count(*) FROM ZAUTHOR GROUP BY 1") == [
        [.integer(2), .integer(5)]
      ])
  }

  @Test func `has keys with gaps, and a Z_MAX that is at least the highest key`() throws {
    let scratch = try Scratch()
    try StoreGenerator(FixtureModels.Recipes.one.model(), options: options(200, seed: 1))
      .write(to: scratch.path("a.sqlite"))
    let store = try Connection(path: scratch.path("a.sqlite"), mode: .immutable)
    let row = try #require(
      try store.rows(
        """
        SELECT count(*), max(Z_PK), (SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Recipe')
          FROM ZRECIPE
        """
      ).first)
    let numbers = row.compactMap(\.integer)
    #expect(numbers.count == 3)
    #expect(numbers[0] < numbers[1] && numbers[1] <= numbers[2])
  }

  @Test func `leaves its last rows in the log when asked to`() throws {
    let scratch = try Scratch()
    var options = StoreOptions(seed: 2, rows: 100)
    options.leavesWAL = true
    try StoreGenerator(FixtureModels.Recipes.one.model(), options: options)
      .write(to: scratch.path("a.sqlite"))
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: scratch.url.path).sorted()
        == ["a.sqlite", "a.sqlite-wal"])
    let count = "SELECT count(*) FROM ZRECIPE"
    let withoutLog = try Connection(path: scratch.path("a.sqlite"), mode: .immutable)
    #expect(try withoutLog.rows(count) == [[.integer(70)]])
    try withoutLog.close()
    let whole = try Connection(path: scratch.path("a.sqlite"), mode: .readWrite)
    #expect(try whole.rows(count) == [[.integer(100)]])
    #expect(try whole.rows("PRAGMA integrity_check") == [[.text("ok")]])
  }

  @Test(
    .enabled(if: OracleJudge.isHere, "needs ../shared"), arguments: FixtureModels.Recipes.allCases)
  func `satisfies the oracle for Recipes`(version: FixtureModels.Recipes) throws {
    let scratch = try Scratch()
    let path = scratch.path("Recipes.sqlite")
    try StoreGenerator(version.model(), options: options(120, seed: 11)).write(to: path)
    for model in [version.path, "cache:" + path] {
      let check = try OracleJudge.run("check", path, "--model", model, "--validation")
      #expect(check.status == 0, "\(check.output)")
      let text = try OracleJudge.run("ddl", path, "--model", model, "--strict-order")
      #expect(text.status == 0, "\(text.output)")
    }
  }

  @Test(
    .enabled(if: OracleJudge.isHere, "needs ../shared"),
    arguments: Array(OracleJudge.corpusModels(every: 12).enumerated()).map {
      ($0.offset, $0.element)
    })
  func `satisfies the oracle for models of real applications`(seed: Int, model: String) throws {
    let scratch = try Scratch()
    let path = scratch.path("a.sqlite")
    var options = StoreOptions(seed: UInt64(seed), rows: 30)
    options.externalFraction = 0.02
    options.leavesWAL = seed % 2 == 1
    try StoreGenerator(FixtureModels.model(at: model), options: options).write(to: path)
    let check = try OracleJudge.run("check", path, "--model", "cache:" + path, "--validation")
    #expect(check.status == 0, "\(model): \(check.output)")
    let text = try OracleJudge.run("ddl", path, "--model", model)
    #expect(text.status == 0, "\(model): \(text.output)")
  }

  @Test(.enabled(if: OracleJudge.isHere, "needs ../shared"))
  func `of Recipes 1 can be migrated to Recipes 2 without a mapping model`() throws {
    let scratch = try Scratch()
    let path = scratch.path("Recipes.sqlite")
    try StoreGenerator(FixtureModels.Recipes.one.model(), options: options(50, seed: 4))
      .write(to: path)
    let verdict = try OracleJudge.run(
      "infer", path, "--source-model", FixtureModels.Recipes.one.path, "--destination-model",
      FixtureModels.Recipes.two.path)
    #expect(verdict.status == 0, "\(verdict.output)")
  }
}

@Suite struct `The Recipes models` {
  @Test func `1 and 1.1 agree on every version hash`() throws {
    let one = try EntityHierarchy(FixtureModels.Recipes.one.model())
    let other = try EntityHierarchy(FixtureModels.Recipes.onePointOne.model())
    #expect(one.versionHashes == other.versionHashes)
    #expect(one.model != other.model)
  }

  @Test(arguments: [FixtureModels.Recipes.two, .twoWithMapping])
  func `of generation 2 do not open stores of 1`(version: FixtureModels.Recipes) throws {
    let hashes = try EntityHierarchy(FixtureModels.Recipes.one.model()).versionHashes
    #expect(try EntityHierarchy(version.model()).versionHashes != hashes)
  }

  private func seats(_ type: AttributeType, _ rules: [ValidationRule]) -> ManagedObjectModel {
    ManagedObjectModel(entities: [
      EntityDescription(
        name: "Seat",
        properties: [
          .attribute(
            AttributeDescription(
              traits: PropertyTraits(name: "code", isOptional: false), type: type,
              validation: rules))
        ], uniquenessConstraints: [["code"]])
    ])
  }

  @Test(arguments: [
    (AttributeType.integer16, [ValidationRule.minimum(1), .maximum(30)], 30),
    (.integer16, [.maximum(-32_750)], 19), (.boolean, [], 2),
    (.string, [.maximumLength(1)], 36), (.string, [.matches("[a-c]+"), .maximumLength(3)], 27),
  ])
  func `has different values while there are some, and says how many there are`(
    type: AttributeType, rules: [ValidationRule], most: Int
  ) throws {
    let scratch = try Scratch()
    var options = StoreOptions(seed: 1, rows: most)
    try StoreGenerator(seats(type, rules), options: options).write(to: scratch.path("a.sqlite"))
    let store = try Connection(path: scratch.path("a.sqlite"), mode: .immutable)
    #expect(
      try store.rows("SELECT count(DISTINCT ZCODE) FROM ZSEAT") == [[.integer(Int64(most))]])
    options.rows = most + 1
    #expect(
      throws: FixtureError.tooFewValues(
        property: "Seat.code", rows: most + 1, most: most, entities: 1)
    ) {
      try StoreGenerator(seats(type, rules), options: options).write(to: scratch.path("b.sqlite"))
    }
  }

  @Test func `counts the rows of sub-entities where values have to differ`() throws {
    let scratch = try Scratch()
    var model = seats(.integer16, [.minimum(1), .maximum(7)])
    model.entities += ["Box", "Stall"].map {
      EntityDescription(name: EntityName($0), superentity: "Seat", properties: [])
    }
    var options = StoreOptions(seed: 1, rows: 3)
    let error = FixtureError.tooFewValues(property: "Seat.code", rows: 9, most: 2, entities: 3)
    #expect(throws: error) {
      try StoreGenerator(model, options: options).write(to: scratch.path("a.sqlite"))
    }
    #expect("\(error)".hasSuffix("at most 2 rows of each of the 3 entities that have it."))
    #expect("\(error)".hasPrefix("Seat.code, which is in a uniqueness constraint, gets"))
    options.rows = 2
    try StoreGenerator(model, options: options).write(to: scratch.path("b.sqlite"))
    // Whose number is given by itself is not asked for.
    options.rowsByEntity = ["Box": 4]
    #expect(
      throws: FixtureError.tooFewValues(property: "Seat.code", rows: 8, most: 1, entities: 2)
    ) {
      try StoreGenerator(model, options: options).write(to: scratch.path("c.sqlite"))
    }
  }

  @Test(arguments: [
    (
      AttributeType.integer64,
      [ValidationRule.minimum(9_007_199_254_740_993), .maximum(9_007_199_254_740_995)], 3
    ),
    (.integer64, [.above(ValidationBound(Int64.max - 4)), .below(ValidationBound(Int64.max))], 3),
    (.double, [.minimum(0x1p60)], 40), (.decimal, [.minimum(0x1p60)], 40),
  ])
  func `keeps bounds that no double is`(
    type: AttributeType, rules: [ValidationRule], rows: Int
  ) throws {
    let scratch = try Scratch()
    let options = StoreOptions(seed: 1, rows: rows)
    try StoreGenerator(seats(type, rules), options: options).write(to: scratch.path("a.sqlite"))
    let store = try Connection(path: scratch.path("a.sqlite"), mode: .immutable)
    let values = try store.rows("SELECT DISTINCT ZCODE FROM ZSEAT ORDER BY 1").map { $0[0] }
    #expect(values.count == rows)
    for (place, value) in values.enumerated() where type == .integer64 {
      let first: Int64 =
        rules.count > 1 && rules[0] == .minimum(9_007_199_254_740_993)
        ? 9_007_199_254_740_993 : .max - 3
      #expect(value == .integer(first + Int64(place)))
    }
  }

  @Test(arguments: [(1, 0, 2), (0, 1, 3), (2, 2, 4), (3, 0, 0)])
  func `keeps the numbers of members of both sides of a many-to-many`(
    least: Int, leastOther: Int, mostOther: Int
  ) throws {
    let scratch = try Scratch()
    let model = ManagedObjectModel(entities: [
      EntityDescription(
        name: "Node",
        properties: [
          .relationship(
            RelationshipDescription(
              traits: PropertyTraits(name: "kids"), destinationEntity: "Node",
              inverseName: "dads", minCount: least, maxCount: 0)),
          .relationship(
            RelationshipDescription(
              traits: PropertyTraits(name: "dads"), destinationEntity: "Node",
              inverseName: "kids", minCount: leastOther, maxCount: mostOther)),
        ])
    ])
    let path = scratch.path("a.sqlite")
    let report = try FixtureFile(StoreGenerator(model, options: StoreOptions(seed: 1, rows: 50)))
      .write(to: path)
    #expect(report.notes.isEmpty && report.joinRows > 0, "\(report.notes)")
  }

  @Test(arguments: [(2, 0, 30), (3, 4, 31), (1, 2, 31), (5, 5, 30)])
  func `keeps the numbers of members of what is its own inverse`(
    least: Int, most: Int, rows: Int
  ) throws {
    let scratch = try Scratch()
    let model = ManagedObjectModel(entities: [
      EntityDescription(
        name: "Node",
        properties: [
          .relationship(
            RelationshipDescription(
              traits: PropertyTraits(name: "peers", isOptional: false), destinationEntity: "Node",
              inverseName: "peers", minCount: least, maxCount: most, isOrdered: true))
        ])
    ])
    let generator = try StoreGenerator(model, options: StoreOptions(seed: 1, rows: rows))
    let report = try FixtureFile(generator).write(to: scratch.path("a.sqlite"))
    #expect(report.notes.isEmpty && report.joinRows >= least * rows, "\(report.notes)")
  }

  @Test(arguments: [(2, 4, 90), (0, 2, 300), (3, 0, 90)])
  func `keeps the numbers of members of a to-many without inverse`(
    least: Int, most: Int, members: Int
  ) throws {
    let scratch = try Scratch()
    let model = ManagedObjectModel(entities: [
      EntityDescription(
        name: "Box",
        properties: [
          .relationship(
            RelationshipDescription(
              traits: PropertyTraits(name: "items", isOptional: false), destinationEntity: "Item",
              minCount: least, maxCount: most))
        ]), EntityDescription(name: "Item"),
    ])
    var options = StoreOptions(seed: 1, rows: 30)
    options.rowsByEntity = ["Item": members]
    let report = try FixtureFile(StoreGenerator(model, options: options))
      .write(to: scratch.path("a.sqlite"))
    #expect(report.notes.isEmpty, "\(report.notes)")
  }
}
