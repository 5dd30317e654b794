import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitFixtures
@testable import StoreFixtures

@Suite struct `Values that a second model allows, too` {
  private static func model(
    _ type: AttributeType, optional: Bool, _ rules: ValidationRule...
  ) -> ManagedObjectModel {
    let number = AttributeDescription(
      traits: PropertyTraits(name: "number", isOptional: optional), type: type, validation: rules)
    let data = AttributeDescription(traits: PropertyTraits(name: "data"), type: .binary)
    return ManagedObjectModel(entities: [
      EntityDescription(
        name: "Thing", properties: [.attribute(number), .attribute(data)],
        uniquenessConstraints: [["data"]])
    ])
  }

  private func numbers(_ options: StoreOptions) throws -> (low: Int64?, high: Int64?, nulls: Int64?)
  {
    let scratch = try Scratch()
    try StoreGenerator(Self.model(.integer32, optional: true), options: options)
      .write(to: scratch.path("a.sqlite"))
    let store = try Connection(path: scratch.path("a.sqlite"), mode: .immutable)
    let row = try store.rows(
      "SELECT min(ZNUMBER), max(ZNUMBER), count(*) - count(ZNUMBER) FROM ZTHING"
    ).first?.map(\.integer)
    let found = try #require(row)
    return (found[0], found[1], found[2])
  }

  @Test func `go over the whole range of their type when there is none`() throws {
    let found = try numbers(StoreOptions(seed: 1, rows: 400))
    #expect(found.low == -0x8000_0000 && found.high == 0x7FFF_FFFF)
    #expect(try #require(found.nulls) > 0)
  }

  @Test func `keep the other model's type and rules, and are there where it needs them`() throws {
    var options = StoreOptions(seed: 1, rows: 400)
    options.validFor = try EntityHierarchy(Self.model(.integer16, optional: false, .minimum(-3)))
    let found = try numbers(options)
    #expect(try #require(found.low) >= -3)
    #expect(try #require(found.high) <= 0x7FFF)
    #expect(found.nulls == 0)
  }

  @Test func `are small when that is asked for`() throws {
    var options = StoreOptions(seed: 1, rows: 400)
    options.largestInteger = 10
    let found = try numbers(options)
    #expect(found.low == -10 && found.high == 10)
  }

  @Test func `stay within their type when larger ones are allowed`() throws {
    var options = StoreOptions(seed: 1, rows: 400)
    options.largestInteger = 1 << 40
    let found = try numbers(options)
    #expect(try #require(found.low) >= -0x8000_0000)
    #expect(try #require(found.high) <= 0x7FFF_FFFF)
  }

  @Test func `of composite attributes and numbers of members keep both models' rules, too`() throws
  {
    func model(_ rule: [ValidationRule], _ counts: ClosedRange<Int>?) throws -> EntityHierarchy {
      let element = AttributeDescription(
        traits: PropertyTraits(name: "x", isOptional: false), type: .double, validation: rule)
      let whole = AttributeDescription(
        traits: PropertyTraits(name: "c", isOptional: false), type: .composite,
        compositeElements: [element])
      func relationship(_ name: String, _ inverse: String, _ counts: ClosedRange<Int>)
        -> PropertyDescription
      {
        .relationship(
          RelationshipDescription(
            traits: PropertyTraits(name: name),
            destinationEntity: name == "owner" ? "Box" : "Thing",
            inverseName: inverse, minCount: counts.lowerBound, maxCount: counts.upperBound))
      }
      return try EntityHierarchy(
        ManagedObjectModel(entities: [
          EntityDescription(
            name: "Thing",
            properties: [.attribute(whole), relationship("owner", "things", 0...1)]),
          EntityDescription(
            name: "Box", properties: [relationship("things", "owner", counts ?? 0...0)]),
        ]))
    }
    let scratch = try Scratch()
    var options = StoreOptions(seed: 1, rows: 40)
    options.rowsByEntity["Box"] = 20
    options.validFor = try model([.minimum(5), .maximum(6)], 1...2)
    try StoreGenerator(try model([], nil), options: options).write(to: scratch.path("a.sqlite"))
    let store = try Connection(path: scratch.path("a.sqlite"), mode: .immutable)
    let column = try #require(
      try store.rows("SELECT name FROM pragma_table_info('ZTHING') WHERE type = 'FLOAT'").first?[0]
        .text)
    #expect(
      try store.rows("SELECT count(*) FROM ZTHING WHERE \(column) BETWEEN 5 AND 6")
        == [[.integer(40)]])
    #expect(
      try store.rows(
        """
        SELECT count(*) FROM ZBOX AS b
         WHERE (SELECT count(*) FROM ZTHING WHERE ZOWNER = b.Z_PK) BETWEEN 1 AND 2
        """) == [[.integer(20)]])
  }

  /// Bounds at the edge of a type, or beyond it.
  private static let edges: [(AttributeType, [ValidationRule], ClosedRange<Double>)] = [
    (.integer16, [.minimum(100_000)], 0x7FFF...0x7FFF),
    (.double, [.minimum(-1.7e308), .maximum(1.7e308)], -1.7e308...1.7e308),
    (.float, [.minimum(0), .maximum(1e300)], 0...Double(Float.greatestFiniteMagnitude)),
    (.decimal, [.minimum(0.001), .maximum(0.004)], 0.001...0.004),
    (.boolean, [.minimum(1)], 1...1), (.boolean, [.maximum(0)], 0...0),
  ]

  @Test(arguments: edges)
  func `are of their type, and within the bounds that it can keep`(
    type: AttributeType, rules: [ValidationRule], expected: ClosedRange<Double>
  ) throws {
    let number = AttributeDescription(
      traits: PropertyTraits(name: "number", isOptional: false), type: type, validation: rules)
    let model = ManagedObjectModel(entities: [
      EntityDescription(name: "Thing", properties: [.attribute(number)])
    ])
    let scratch = try Scratch()
    try StoreGenerator(model, options: StoreOptions(seed: 1, rows: 60)).write(
      to: scratch.path("a.sqlite"))
    let store = try Connection(path: scratch.path("a.sqlite"), mode: .immutable)
    for row in try store.rows("SELECT ZNUMBER FROM ZTHING") {
      let found: Double? =
        switch row[0] {
        case .real(let number): number
        case .integer(let number): Double(number)
        default: nil
        }
      #expect(found.map(expected.contains) == true, "\(row[0])")
    }
  }

  private static let close: [(AttributeType, ClosedRange<Double>, Int)] = [
    (.double, 0...0.5, 2), (.double, 0...0.5, 5_000), (.float, 0...0.5, 5_000),
    (.date, 0...0.25, 900),
    (.decimal, 0...1, 90), (.double, 0...1_000_000, 5_000), (.float, 2e7...3e7, 400),
    (.float, 0.7...0.9, 400), (.decimal, 0.005...3, 200), (.double, 0x1p53...0x1p53 + 1_000, 40),
    (.date, 0x1p53...0x1p53 + 1_000, 40), (.double, -0.5...0.25, 700),
  ]

  @Test(arguments: close)
  func `that must differ do so between bounds that are close`(
    type: AttributeType, bounds: ClosedRange<Double>, rows: Int
  ) throws {
    let number = AttributeDescription(
      traits: PropertyTraits(name: "number", isOptional: false), type: type,
      validation: [
        .minimum(ValidationBound(bounds.lowerBound)), .maximum(ValidationBound(bounds.upperBound)),
      ])
    let model = ManagedObjectModel(entities: [
      EntityDescription(
        name: "Thing", properties: [.attribute(number)], uniquenessConstraints: [["number"]])
    ])
    let scratch = try Scratch()
    try StoreGenerator(model, options: StoreOptions(seed: 1, rows: rows)).write(
      to: scratch.path("a.sqlite"))
    let store = try Connection(path: scratch.path("a.sqlite"), mode: .immutable)
    #expect(
      try store.rows(
        "SELECT count(DISTINCT ZNUMBER), min(ZNUMBER) >= ?1, max(ZNUMBER) <= ?2 FROM ZTHING",
        [.real(bounds.lowerBound), .real(bounds.upperBound)])
        == [[.integer(Int64(rows)), .integer(1), .integer(1)]])
  }

  @Test(arguments: [Int.max, 1 << 62, (1 << 30) + 1, 1 << 30])
  func `of more objects than can be numbered are refused`(rows: Int) throws {
    let parent = EntityDescription(name: "P", isAbstract: true)
    let toOne = PropertyDescription.relationship(
      RelationshipDescription(
        traits: PropertyTraits(name: "a", isOptional: false), destinationEntity: "A",
        inverseName: nil)
    )
    let model = ManagedObjectModel(entities: [
      parent, EntityDescription(name: "A", superentity: "P"),
      EntityDescription(name: "B", superentity: "P", properties: [toOne]),
    ])
    let scratch = try Scratch()
    #expect(throws: FixtureError.tooManyRows(entity: "P")) {
      try StoreGenerator(model, options: StoreOptions(seed: 1, rows: rows)).write(
        to: scratch.path("a.sqlite"))
    }
  }

  /// An address of a web page: a piece of the pattern for each letter.
  @Test(.timeLimit(.minutes(1)))
  func `of a long pattern are counted piece by piece`() throws {
    let pattern = try #require(
      SimplePattern("https://www.example.com/items/and/more/of/them/[a-z]+", bounds: 0...200))
    #expect(pattern.matchCount == .max || pattern.matchCount > 1 << 20)
    let place = UnsafeMutableRawPointer.allocate(byteCount: 256, alignment: 1)
    defer { place.deallocate() }
    #expect(pattern.write(match: 1, into: place) == pattern.length.upperBound)
  }

  @Test func `of a unique binary attribute differ`() throws {
    let scratch = try Scratch()
    try StoreGenerator(
      Self.model(.integer32, optional: true), options: StoreOptions(seed: 1, rows: 5000)
    ).write(to: scratch.path("a.sqlite"))
    let store = try Connection(path: scratch.path("a.sqlite"), mode: .immutable)
    #expect(
      try store.rows("SELECT count(DISTINCT ZDATA) FROM ZTHING WHERE ZDATA IS NOT NULL")
        == store.rows("SELECT count(ZDATA) FROM ZTHING"))
  }
}
