import Testing

@testable import GodwitKeyedArchive

@Suite struct `An XML property list` {
  private static func read(_ body: String) throws -> PropertyList {
    let text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">\(body)</plist>
      """
    return try PropertyList(bytes: Array(text.utf8))
  }

  @Test(arguments: [
    ("<true/>", PropertyList.boolean(true)), ("<false/>", .boolean(false)),
    ("<integer>-7</integer>", .integer(-7)), ("<integer> 0x1F </integer>", .integer(31)),
    ("<integer>18446744073709551615</integer>", .wideInteger(Int128(UInt64.max))),
    ("<real>1.5e3</real>", .real(1_500)), ("<string>a &lt; b</string>", .string("a < b")),
    ("<string/>", .string("")), ("<data>\n AAEC\n </data>", .data([0, 1, 2])),
    ("<date>2001-01-01T00:00:00Z</date>", .date(0)),
    ("<date>2000-02-29T12:00:01Z</date>", .date(-26_481_599)),
    ("<date>1969-12-31T23:59:59Z</date>", .date(-978_307_201)),
    ("<array><string>a</string><integer>1</integer></array>", .array([.string("a"), .integer(1)])),
    (
      "<dict><key>b</key><true/><key>a</key><dict/></dict>",
      .dictionary(["b": .boolean(true), "a": .dictionary([:])])
    ),
    ("<dict><key>CF$UID</key><integer>3</integer></dict>", .uid(3)),
  ])
  func `gives its values`(text: String, value: PropertyList) throws {
    #expect(try Self.read(text) == value)
  }

  @Test(arguments: [
    "", "<true/><true/>", "<novelty/>", "<integer>many</integer>", "<real>x</real>",
    "<date>yesterday</date>", "<date>2001-13-01T00:00:00Z</date>", "<dict><true/></dict>",
    "<dict><key>a</key></dict>", "<dict><true/><key>a</key></dict>",
    String(repeating: "<array>", count: 5_000) + String(repeating: "</array>", count: 5_000),
  ])
  func `that is odd is an error`(text: String) {
    #expect(throws: ArchiveError.self) { try Self.read(text) }
  }
}
