import Testing

@testable import GodwitKeyedArchive

@Suite struct `A keyed archive` {
  /// An archive whose `$objects` are these after `$null`, with object 1 as its root.
  private static func archive(_ objects: PropertyList...) throws -> KeyedArchive {
    try KeyedArchive(
      .dictionary([
        "$version": .integer(100_000), "$archiver": .string("NSKeyedArchiver"),
        "$top": .dictionary(["root": .uid(1)]),
        "$objects": .array([.string("$null")] + objects),
      ]))
  }

  private static func classNamed(_ names: String...) -> PropertyList {
    .dictionary([
      "$classname": .string(names[0]), "$classes": .array(names.map(PropertyList.string)),
    ])
  }

  @Test func `comes back as it was written`() throws {
    var writer = KeyedArchiveWriter()
    let place = writer.reserve()
    let child = writer.object(
      "Unknown",
      [("parent", place.uid), ("name", writer.string("x").uid), ("flag", .boolean(true))])
    let list = writer.collection([child, writer.string("x"), .null], className: "NSMutableArray")
    let pairs = writer.dictionary([(key: writer.string("k"), value: child)])
    writer.fill(place, "Root", [("list", list.uid), ("pairs", pairs.uid), ("none", .uid(0))])
    let root = try KeyedArchive(bytes: writer.bytes(root: place)).root()
    #expect(root.className == "Root" && root.classNames == ["Root", "NSObject"])
    #expect(root["none"] == nil && root["absent"] == nil)
    let elements = root.elements("list")
    #expect(elements.map(\.string) == [nil, "x", nil])
    #expect(elements.last == .null)
    let object = try #require(elements.first?.object)
    #expect(object.className == "Unknown" && object.boolean("flag"))
    #expect(object.object("parent") == root)
    #expect(root.entries("pairs").first?.value.object == object)
    #expect(root["list"]?.object?.isKind(of: "NSArray") == true)
  }

  @Test func `gives one string one place and the same bytes each time`() {
    func write() -> [UInt8] {
      var writer = KeyedArchiveWriter()
      #expect(writer.string("a") == writer.string("a"))
      #expect(writer.string("\u{E9}") != writer.string("e\u{301}"))
      let root = writer.object("A", [("b", writer.string("b").uid)])
      return writer.bytes(root: root)
    }
    #expect(write() == write())
  }

  @Test func `may hold an array that holds itself`() throws {
    let archive = try Self.archive(
      .dictionary(["$class": .uid(2), "NS.objects": .array([.uid(1), .uid(1)])]),
      Self.classNamed("NSMutableArray", "NSArray", "NSObject"))
    let root = try archive.root()
    let elements = try #require(archive[top: "root"]?.elements)
    #expect(elements.map(\.object) == [root, root])
    #expect(elements[0].elements?[1].object == root)
  }

  @Test func `reads Foundation's values`() throws {
    let archive = try Self.archive(
      .dictionary([
        "$class": .uid(2), "date": .uid(3), "uuid": .uid(5), "url": .uid(7), "number": .uid(9),
        "decimal": .uid(11), "text": .uid(13), "data": .uid(15), "known": .uid(17),
      ]),
      Self.classNamed("Root"),
      .dictionary(["$class": .uid(4), "NS.time": .real(1.5)]), Self.classNamed("NSDate"),
      .dictionary(["$class": .uid(6), "NS.uuidbytes": .data(Array(0..<16))]),
      Self.classNamed("NSUUID"),
      .dictionary(["$class": .uid(8), "NS.base": .uid(0), "NS.relative": .string("a:b")]),
      Self.classNamed("NSURL"),
      .dictionary(["$class": .uid(10), "NS.intval": .integer(7)]), Self.classNamed("NSNumber"),
      .dictionary([
        "$class": .uid(12), "NS.mantissa.bo": .integer(1), "NS.length": .integer(1),
        "NS.mantissa": .data([0x7D, 0] + Array(repeating: 9, count: 14)),
        "NS.negative": .boolean(true), "NS.exponent": .integer(-2),
      ]), Self.classNamed("NSDecimalNumberPlaceholder", "NSDecimalNumber", "NSNumber"),
      .dictionary(["$class": .uid(14), "NS.string": .string("t")]),
      Self.classNamed("NSMutableString", "NSString"),
      .dictionary(["$class": .uid(16), "NS.data": .data([1])]), Self.classNamed("NSData"),
      .dictionary([
        "$class": .uid(18), "searchMapping": .uid(19), "values": .uid(21),
        "emptyToken": .string("none"),
      ]), Self.classNamed("NSKnownKeysDictionary1"),
      .dictionary(["$class": .uid(20), "keys": .uid(23)]),
      Self.classNamed("NSKnownKeysMappingStrategy1"),
      .dictionary([
        "$class": .uid(22), "NS.objects": .array([.integer(1), .string("none"), .integer(3)]),
      ]), Self.classNamed("NSArray"),
      .dictionary([
        "$class": .uid(22), "NS.objects": .array([.string("a"), .string("b"), .string("c")]),
      ]))
    let root = try archive.root()
    #expect(root["date"]?.date == 1.5)
    #expect(root["uuid"]?.uuid == Array(0..<16))
    #expect(root["url"]?.url == "a:b")
    #expect(root["number"]?.integer == 7)
    #expect(root["decimal"]?.number == .decimal(negative: true, mantissa: 125, exponent: -2))
    #expect(root["decimal"]?.real == -1.25)
    #expect(root.string("text") == "t")
    #expect(root["data"]?.data == [1])
    #expect(root.entries("known").map(\.key) == ["a", "c"])
  }

  @Test(
    arguments: [
      (false, 9_007_199_254_740_993, 0, 9_007_199_254_740_993), (true, 125, -2, nil),
      (false, 12_500, -2, 125), (true, 12_500, 2, -1_250_000), (true, 0, -128, 0),
      (false, 0, 127, 0), (false, 9_223_372_036_854_775_807, 0, .max),
      (false, 9_223_372_036_854_775_808, 0, nil), (true, 9_223_372_036_854_775_808, 0, .min),
      (false, 1, 18, 1_000_000_000_000_000_000), (false, 1, 19, nil), (false, 1, 127, nil),
      (true, .max, 127, nil), (true, .max, -128, nil),
    ] as [(Bool, UInt128, Int, Int64?)])
  func `reads a decimal that is whole exactly`(
    isNegative: Bool, mantissa: UInt128, exponent: Int, whole: Int64?
  ) {
    let number = ArchivedNumber.decimal(
      negative: isNegative, mantissa: mantissa, exponent: exponent)
    #expect(number.integer == whole)
  }

  @Test(arguments: [
    ("no objects", PropertyList.dictionary(["$top": .dictionary([:])])),
    ("no list", .string("x")),
    (
      "objects that are no array", .dictionary(["$top": .dictionary([:]), "$objects": .integer(1)])
    ),
    (
      "a reference past the end",
      .dictionary(["$top": .dictionary(["root": .uid(9)]), "$objects": .array([.string("$null")])])
    ),
    (
      "a reference that leads to itself",
      .dictionary([
        "$top": .dictionary(["root": .uid(1)]), "$objects": .array([.string("$null"), .uid(1)]),
      ])
    ),
    (
      "an object whose class is not there",
      .dictionary([
        "$top": .dictionary(["root": .uid(1)]),
        "$objects": .array([.string("$null"), .dictionary(["$class": .uid(7)])]),
      ])
    ),
    (
      "an object that is its own class",
      .dictionary([
        "$top": .dictionary(["root": .uid(1)]),
        "$objects": .array([.string("$null"), .dictionary(["$class": .uid(1)])]),
      ])
    ),
  ])
  func `is refused when it has`(what: String, list: PropertyList) {
    #expect(throws: ArchiveError.self) { try KeyedArchive(list) }
  }

  @Test func `without a root says so`() throws {
    let list = PropertyList.dictionary([
      "$top": .dictionary([:]), "$objects": .array([.string("$null")]),
    ])
    #expect(throws: ArchiveError.notAKeyedArchive(reason: "it has no root object")) {
      try KeyedArchive(list).root()
    }
  }
}
