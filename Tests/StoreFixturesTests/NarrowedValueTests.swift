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
