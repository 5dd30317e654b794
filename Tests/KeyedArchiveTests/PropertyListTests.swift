import Testing

@testable import GodwitKeyedArchive

@Suite struct `A binary property list` {
  @Test(arguments: [
    PropertyList.boolean(true), .boolean(false), .integer(0), .integer(255), .integer(256),
    .integer(65_536), .integer(-1), .integer(.max), .integer(.min), .real(0.5),
    .wideInteger(Int128(UInt64.max)), .date(-978_307_200), .data([]),
    .data(Array(repeating: 7, count: 300)), .string(""), .string("14 characters."),
    .string("15 characters.."), .string("größer ☕️ 🛢"), .uid(0), .uid(70_000),
    .array([]), .set([.integer(1)]), .array([.string("a"), .string("a")]),
    .dictionary(["b": .integer(1), "a": .array([.dictionary([:])])]),
  ])
  func `comes back as it was written`(value: PropertyList) throws {
    #expect(try PropertyList(bytes: value.binary()) == value)
  }
}
