import Foundation
import GodwitKeyedArchive
import Testing

@Suite struct `An XML element` {
  private func read(_ text: String) throws -> MarkupElement {
    try MarkupElement(xml: Array(text.utf8))
  }

  @Test(arguments: [
    ("<a/>", MarkupElement(name: "a")),
    (
      "\u{FEFF}<?xml version=\"1.0\"?>\n<!DOCTYPE a SYSTEM 'x>y'>\n<a></a>\n<!-- end -->",
      .init(name: "a")
    ),
    ("<!DOCTYPE a [ <!ELEMENT a (#PCDATA)> <!-- > ] --> ]><a/>", .init(name: "a")),
    ("<a x='1' y = \"2\"\n z=''/>", .init(name: "a", attributes: ["x": "1", "y": "2", "z": ""])),
    ("<a>x<b/>y</a>", .init(name: "a", children: [.init(name: "b")], text: "xy")),
    ("<a>&lt;&#65;&#x1F600;&amp;&quot;&apos;&gt;</a>", .init(name: "a", text: "<A😀&\"'>")),
    ("<a>x<![CDATA[<&]] ]]>y<!-- no --></a>", .init(name: "a", text: "x<&]] y")),
    ("<a>1\r\n2\r3\n4</a>", .init(name: "a", text: "1\n2\n3\n4")),
    ("<a x='1\n2\t3&#10;4'/>", .init(name: "a", attributes: ["x": "1 2 3\n4"])),
    ("<é:x-1.y/>", .init(name: "é:x-1.y")),
  ])
  func `is read as XML 1.0 says`(text: String, element: MarkupElement) throws {
    #expect(try read(text) == element)
  }

  @Test(arguments: [
    "", " ", "x", "<", "<a", "<a>", "</a>", "<a></b>", "<a/><b/>", "<a/>x", "x<a/>", "<a x/>",
    "<a x=1/>", "<a x='1/>", "<a x='1'y='2'/>", "<a x='1' x='2'/>", "<a x='<'/>", "<a>&b;</a>",
    "<a>&#0;</a>", "<a>&#xD800;</a>", "<a>&#99999999;</a>", "<a>&#65</a>", "<a>&#+65;</a>",
    "<a>\u{1}</a>", "<1/>", "<!-- -", "<?x", "<![CDATA[x]]>", "<a><![CDATA[x</a>",
    "<!DOCTYPE a [<!ENTITY x 'y'>]><a/>", "<!DOCTYPE", "< a/>", "<a></a x>",
  ])
  func `that is not well formed is refused`(text: String) {
    #expect(throws: ArchiveError.self) { try read(text) }
  }

  @Test(arguments: [String.Encoding.utf16LittleEndian, .utf16BigEndian])
  func `in UTF-16 is read by its byte order mark`(encoding: String.Encoding) throws {
    let text = "\u{FEFF}<?xml version='1.0' encoding='UTF-16'?><plist><string>é😀</string></plist>"
    let bytes = [UInt8](try #require(text.data(using: encoding)))
    #expect(
      try MarkupElement(xml: bytes)
        == MarkupElement(name: "plist", children: [.init(name: "string", text: "é😀")]))
    #expect(try PropertyList(bytes: bytes) == .string("é😀"))
  }

  @Test func `must be UTF-8 or whole UTF-16`() {
    #expect(throws: ArchiveError.self) {
      try MarkupElement(xml: Array("<a>".utf8) + [0xFF] + Array("</a>".utf8))
    }
    #expect(throws: ArchiveError.self) { try MarkupElement(xml: [0xFF, 0xFE, 0x3C, 0x00]) }
  }

  @Test func `names the line of a fault`() {
    #expect(throws: ArchiveError.malformedXML(line: 3, reason: "it refers to an unknown entity")) {
      try read("<a>\n\n&b;</a>")
    }
  }

  @Test func `is never nested too deep`() {
    let marks = String(repeating: "<a>", count: 1_000_000)
    #expect(throws: ArchiveError.tooLarge(what: "levels", limit: MarkupElement.depthLimit)) {
      try read(marks)
    }
  }

  /// The only claim is that an element or an error comes back.
  @Test(arguments: 0..<300) func `damaged anywhere ends in an error`(seed: UInt64) {
    var bytes = Array(
      "<?xml version='1.0'?><!DOCTYPE d><d a='&lt;1' b=\"2\"><e>x&#65;</e><![CDATA[y]]><!-- c --></d>"
        .utf8)
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    for _ in 0...3 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      bytes[Int((state >> 33) % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: state >> 20)
    }
    _ = try? MarkupElement(xml: bytes)
    _ = try? MarkupElement(xml: Array(bytes.prefix(Int(seed) % bytes.count)))
  }
}
