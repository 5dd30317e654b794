import Foundation
import Testing

@testable import GodwitKeyedArchive

@Suite struct `A property list in a text` {
  @Test(
    arguments: [
      ("{}", [:]), ("{ a = b; }", ["a": .string("b")]), ("{a=b}", ["a": .string("b")]),
      ("{ \"a b\" = 'c d'; }", ["a b": .string("c d")]),
      ("{ n = 3; r = -1.5; }", ["n": .string("3"), "r": .string("-1.5")]),
      (
        "{ l = (a, \"b\", ); e = (); }",
        ["l": .array([.string("a"), .string("b")]), "e": .array([])]
      ),
      ("{ d = <0fbd 77>; none = <>; }", ["d": .data([0x0F, 0xBD, 0x77]), "none": .data([])]),
      ("/* c */ { // x\n a = b; }", ["a": .string("b")]),
      ("{ t = \"\\U00e9\\n\\\"\\101\"; }", ["t": .string("é\n\"A")]),
      ("{ t = \"\\Ud83d\\Ude00\"; }", ["t": .string("😀")]),  // a pair of surrogates
      ("{ t = \"a\\Ud83d\"; }", ["t": .unpairedText([0x61, 0xD83D])]),  // half of one
      ("{ t = \"é\"; }", ["t": .string("é")]),
      ("{ a = { b = { c = d; }; }; }", ["a": .dictionary(["b": .dictionary(["c": .string("d")])])]),
      ("{ u = http://x/y; }", ["u": .string("http://x/y")]),
    ] as [(String, PropertyListDictionary)])
  func `is read in its old form`(text: String, expected: PropertyListDictionary) throws {
    #expect(try PropertyList(text: text) == .dictionary(expected))
  }

  @Test(arguments: [
    "", "{", "{ a }", "{ a = ; }", "{ a = b c; }", "{ a = (b; }", "{ a = <0f; }", "{ a = <0>; }",
    "{ a = <xy>; }", "{ a = \"b; }", "{ a = b; } c", "/* c", "{ t = \"\\U12\"; }", "{ t = \"\\",
    "{ t = \"\\351\"; }", "{ \"\\Ud83d\" = a; }", "{ badge = {length = 2, bytes = 0x0102}; }",
    String(repeating: "(", count: 300),
  ])
  func `is refused when it is damaged`(text: String) {
    #expect(throws: ArchiveError.self) { try PropertyList(text: text) }
  }

  @Test func `is read as Foundation reads it`() throws {
    let text = "{ name = \"A cake\"; tags = (sweet, \"for two\"); badge = <0fbd77 1c2735ae>; }"
    let theirs = try #require(
      PropertyListSerialization.propertyList(from: Data(text.utf8), format: nil)
        as? [String: Any])
    let ours = try #require(PropertyList(text: text).dictionary)
    #expect(ours["name"]?.string == theirs["name"] as? String)
    #expect(ours["badge"]?.data.map { Data($0) } == theirs["badge"] as? Data)
    #expect(ours["tags"]?.array?.compactMap(\.string) == theirs["tags"] as? [String])
  }

  @Test func `is written as XML that is read again, by Foundation, too`() throws {
    let list = PropertyList.dictionary([
      "text": .string("é & <b>\r\n\t\"x\""), "number": .integer(-3), "real": .real(0.1),
      "date": .date(700_000_000), "data": .data([0, 1, 255]), "yes": .boolean(true),
      "list": .array([.string(""), .dictionary([:]), .array([])]),
      "wide": .wideInteger(Int128(UInt64.max)),
    ])
    let text = try list.xml()
    #expect(try PropertyList(text: text) == list)
    let theirs = try #require(
      PropertyListSerialization.propertyList(from: Data(text.utf8), format: nil)
        as? [String: Any])
    #expect(theirs["text"] as? String == "é & <b>\r\n\t\"x\"")
    #expect(theirs["date"] as? Date == Date(timeIntervalSinceReferenceDate: 700_000_000))
    #expect(theirs["data"] as? Data == Data([0, 1, 255]))
  }
}
