import Foundation
import Testing

@testable import GodwitKeyedArchive

@Suite struct `A binary property list` {
  static let values: [PropertyList] = [
    .boolean(true), .boolean(false), .integer(0), .integer(255), .integer(256),
    .integer(65_536), .integer(-1), .integer(.max), .integer(.min), .real(0.5), .real(-0.0),
    .wideInteger(Int128(UInt64.max)), .wideInteger(.min), .date(-978_307_200), .data([]),
    .data(Array(repeating: 7, count: 300)), .string(""), .string("14 characters."),
    .string("15 characters.."), .string("größer ☕️ 🛢"),
    .unpairedText([0xD83D]), .unpairedText([0x61, 0xDE00, 0x62]), .uid(0), .uid(70_000),
    .array([]), .set([.integer(1)]), .array([.string("a"), .string("a")]),
    .array((0..<300).map { .integer(Int64($0)) }),
    .dictionary(["b": .integer(1), "a": .array([.dictionary([:])])]),
  ]

  @Test(arguments: values) func `comes back as it was written`(value: PropertyList) throws {
    #expect(try PropertyList(bytes: value.binary()) == value)
  }

  @Test func `has the bytes that the format says`() {
    let list = PropertyList.dictionary(["a": .integer(1)])
    let expected: [UInt8] =
      Array("bplist00".utf8) + [0xD1, 1, 2, 0x51, 0x61, 0x10, 1, 8, 11, 13]
      + [0, 0, 0, 0, 0, 0, 1, 1] + [0, 0, 0, 0, 0, 0, 0, 3] + [0, 0, 0, 0, 0, 0, 0, 0]
      + [0, 0, 0, 0, 0, 0, 0, 15]
    #expect(list.binary() == expected)
  }

  @Test func `keeps the order of keys and two spellings of one letter`() throws {
    let list = PropertyList.dictionary(["z": .integer(1), "a": .integer(2), "m": .integer(3)])
    #expect(try PropertyList(bytes: list.binary()).dictionary?.keys == ["z", "a", "m"])
    let spellings = PropertyList.array([.string("\u{E9}"), .string("e\u{301}")])
    let read = try PropertyList(bytes: spellings.binary()).array?.compactMap(\.string)
    #expect(read?.map { $0.unicodeScalars.count } == [1, 2])
  }

  @Test(arguments: [
    (what: "few keys, which are compared one by one", others: 0),
    (what: "as many as are compared one by one", others: 14),
    (what: "more, of which a table is made", others: 15),
    (what: "many keys", others: 100),
  ])
  func `keeps two keys that Unicode normalisation alone tells apart`(what: String, others: Int)
    throws
  {
    let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
    var list = PropertyListDictionary((0..<others).map { ("\($0)", .integer(0)) })
    list[composed] = .string("one")
    list[decomposed] = .string("two")
    let read = try PropertyList(bytes: PropertyList.dictionary(list).binary())
    let again = try PropertyList(text: read.xml())
    for found in [list, try #require(read.dictionary), try #require(again.dictionary)] {
      #expect(found.count == others + 2)
      #expect(found[composed]?.string == "one")
      #expect(found[decomposed]?.string == "two")
    }
    list[composed] = nil
    #expect(list[decomposed]?.string == "two")
    list[decomposed] = .string("three")
    #expect(list.count == others + 1)
    #expect(list[decomposed]?.string == "three")
    #expect(PropertyListDictionary([(composed, .integer(1))]) != [decomposed: .integer(1)])
  }

  @Test(.enabled(if: Python.isHere)) func `is the same for another reader`() throws {
    // Python has no sets, and no integers below those of 64 bits.
    let list = PropertyList.array(
      Self.values.filter { value in
        // Sets, and half characters, which it does not take out of UTF-16.
        if case .set = value { return false }
        if case .unpairedText = value { return false }
        return value != .wideInteger(.min)
      })
    let text = try Python.run(
      """
      import plistlib, sys, datetime
      values = plistlib.loads(sys.stdin.buffer.read())
      again = plistlib.dumps(values, fmt=plistlib.FMT_BINARY)
      sys.stdout.write(again.hex())
      """, input: list.binary())
    let digits = Array(text.utf8)
    let bytes = stride(from: 0, to: digits.count, by: 2).compactMap {
      UInt8(String(decoding: digits[$0..<($0 + 2)], as: UTF8.self), radix: 16)
    }
    #expect(try PropertyList(bytes: bytes) == list)
  }
}

@Suite struct `A hostile property list` {
  /// The bytes of objects, with an offset table of the given offsets and a trailer.
  static func file(
    objects: [UInt8], offsets: [UInt8], count: UInt64? = nil, top: UInt64 = 0,
    table: UInt64? = nil, offsetSize: UInt8 = 1, referenceSize: UInt8 = 1
  ) -> [UInt8] {
    func word(_ value: UInt64) -> [UInt8] {
      (0..<8).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }
    let body = Array("bplist00".utf8) + objects
    return body + offsets + [0, 0, 0, 0, 0, 0, offsetSize, referenceSize]
      + word(count ?? UInt64(offsets.count)) + word(top) + word(table ?? UInt64(body.count))
  }

  static let files: [(what: String, bytes: [UInt8])] = [
    ("only a magic", Array("bplist00".utf8)),
    ("a trailer that claims 2^40 objects", file(objects: [8], offsets: [8], count: 1 << 40)),
    ("a trailer that claims 2^63 objects", file(objects: [8], offsets: [8], count: 1 << 63)),
    ("an offset table past the end", file(objects: [8], offsets: [8], table: 1 << 20)),
    ("an offset table of 2^64 − 1", file(objects: [8], offsets: [8], table: .max)),
    ("offsets of no bytes", file(objects: [8], offsets: [8], offsetSize: 0)),
    ("offsets of nine bytes", file(objects: [8], offsets: [8], offsetSize: 9)),
    ("references of no bytes", file(objects: [8], offsets: [8], referenceSize: 0)),
    ("a top object that is not there", file(objects: [8], offsets: [8], top: 1)),
    ("an object in the header", file(objects: [8], offsets: [0])),
    ("an object in the trailer", file(objects: [8], offsets: [30])),
    ("no object", file(objects: [], offsets: [])),
    ("an array that holds itself", file(objects: [0xA1, 0], offsets: [8])),
    ("two arrays that hold each other", file(objects: [0xA1, 1, 0xA1, 0], offsets: [8, 10])),
    ("a dictionary that is its own key", file(objects: [0xD1, 0, 0], offsets: [8])),
    (
      "a dictionary with a number for a key",
      file(objects: [0xD1, 1, 1, 0x10, 1], offsets: [8, 11])
    ),
    ("a reference past the last object", file(objects: [0xA1, 7], offsets: [8])),
    (
      "a string longer than the file",
      file(objects: [0x5F, 0x13] + Array(repeating: 0x7F, count: 8), offsets: [8])
    ),
    (
      "an array of 2^62 elements",
      file(objects: [0xAF, 0x13, 0x40, 0, 0, 0, 0, 0, 0, 0], offsets: [8])
    ),
    (
      "a UTF-16 string of 2^62 units",
      file(objects: [0x6F, 0x13, 0x40, 0, 0, 0, 0, 0, 0, 0], offsets: [8])
    ),
    ("a size that is a string", file(objects: [0x5F, 0x51, 0x61], offsets: [8])),
    (
      "a dictionary whose key is half of a character",
      file(objects: [0xD1, 1, 2, 0x61, 0xD8, 0x3D, 0x51, 0x61], offsets: [8, 11, 14])
    ),
    ("a string that is not ASCII", file(objects: [0x51, 0xE9], offsets: [8])),
    (
      "an integer of 32 bytes", file(objects: [0x15] + Array(repeating: 0, count: 32), offsets: [8])
    ),
    ("an unknown kind", file(objects: [0x70], offsets: [8])),
    (
      "a UID of eight bytes", file(objects: [0x87] + Array(repeating: 0xFF, count: 8), offsets: [8])
    ),
    ("no list at all", Array("hello".utf8)), ("nothing", []),
  ]

  @Test(arguments: files) func `is an error when it has`(what: String, bytes: [UInt8]) {
    #expect(throws: ArchiveError.self) { try PropertyList(bytes: bytes) }
  }

  @Test func `cannot make the reader read one byte twice`() {
    // 100 strings that all lie over the same 150 bytes.
    var objects: [UInt8] = [0xAF, 0x10, 100] + (1...100).map { UInt8($0) }
    let place = UInt8(8 + objects.count)
    objects += [0x5F, 0x10, 100] + Array(repeating: 0x61, count: 100)
    let bytes = Self.file(
      objects: objects, offsets: [8] + Array(repeating: place, count: 100))
    #expect(throws: ArchiveError.self) { try PropertyList(bytes: bytes) }
  }

  @Test func `cannot grow by sharing`() {
    // Each array holds the next one ten times: 10^30 values in 400 bytes.
    var objects: [UInt8] = []
    var offsets: [UInt8] = []
    for level in 0..<20 {
      offsets.append(UInt8(8 + objects.count))
      objects += [0xAA] + Array(repeating: UInt8(level + 1), count: 10)
    }
    offsets.append(UInt8(8 + objects.count))
    objects.append(8)
    #expect(throws: ArchiveError.tooLarge(what: "values", limit: PropertyList.Limits.values)) {
      try PropertyList(bytes: Self.file(objects: objects, offsets: offsets))
    }
  }

  @Test(arguments: [(PropertyList.Limits.objects, true), (PropertyList.Limits.objects + 1, false)])
  func `cannot grow by objects that nothing refers to`(count: Int, isRead: Bool) {
    let bytes = Self.file(
      objects: Array(repeating: 8, count: count), offsets: Array(repeating: 8, count: count))
    #expect(((try? PropertyList(bytes: bytes)) != nil) == isRead)
  }

  @Test(arguments: [(254, true), (255, true), (256, false), (100_000, false)])
  func `is read to a bounded depth`(depth: Int, isRead: Bool) throws {
    // Arrays of one element each; offsets and references of four bytes.
    func word(_ value: Int) -> [UInt8] {
      (0..<4).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }
    var (objects, offsets): ([UInt8], [UInt8]) = ([], [])
    for level in 0..<depth {
      offsets += word(8 + objects.count)
      objects += [0xA1] + word(level + 1)
    }
    offsets += word(8 + objects.count)
    objects.append(8)
    let bytes = Self.file(
      objects: objects, offsets: offsets, count: UInt64(depth + 1), offsetSize: 4,
      referenceSize: 4)
    #expect(((try? PropertyList(bytes: bytes)) != nil) == isRead)
  }

  @Test func `that is nested too deeply names the key below which it is`() {
    let deep = (0..<300).reduce(PropertyList.integer(1)) { inner, _ in .array([inner]) }
    let list = PropertyList.dictionary([
      "a": .integer(1), "settings": .dictionary(["inner": deep]), "z": .integer(2),
    ])
    let error = ArchiveError.tooDeep(key: "settings", limit: PropertyList.Limits.depth)
    #expect(throws: error) { try PropertyList(bytes: list.binary()) }
    #expect(error.reason.contains("\"settings\" is nested too deeply"))
    #expect(throws: ArchiveError.tooDeep(key: nil, limit: PropertyList.Limits.depth)) {
      try PropertyList(bytes: deep.binary())
    }
  }

  @Test(arguments: [UInt64(1), 2, 3, 4])
  func `with flipped bits is an error or a list`(seed: UInt64) throws {
    let list = PropertyList.array(`A binary property list`.values)
    let bytes = list.binary()
    var state = seed &* 0x9E37_79B9_7F4A_7C15
    for _ in 0..<500 {
      var damaged = bytes
      for _ in 0..<2 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        damaged[Int(state >> 33) % damaged.count] ^= UInt8(1 << (state >> 60 & 7))
      }
      do { _ = try PropertyList(bytes: damaged) } catch is ArchiveError {}
    }
  }
}
