import Foundation
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
    ("<data/>", .data([])), ("<data></data>", .data([])), ("<data>\n\t</data>", .data([])),
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
    "<date>2001-02-29T00:00:00Z</date>", "<date>2001:02:03T00:00:00Z</date>",
    "<date>--01-02-03T00:00:00Z</date>", "<date>-02-03T00:00:00Z</date>",
    "<date>999999999-02-03T00:00:00Z</date>",
    "<dict><key>a</key></dict>", "<dict><true/><key>a</key></dict>",
    "<string>a<b>c</b>d</string>", "<true>yes</true>", "<false><true/></false>",
    "<dict>x<key>a</key><true/></dict>", "<array>1<true/></array>",
    "<dict><key>a<b>c</b></key><true/></dict>", "<integer>1<real>2</real></integer>",
    String(repeating: "<array>", count: 5_000) + String(repeating: "</array>", count: 5_000),
  ])
  func `that is odd is an error`(text: String) {
    #expect(throws: ArchiveError.self) { try Self.read(text) }
  }

  @Test(arguments: [
    ("2001-01-01T00:00:00Z", "the reference date"), ("1582-10-15T00:00:00Z", "the reform"),
    ("1582-10-10T00:00:00Z", "a day that the reform left out"),
    ("1500-03-01T00:00:00Z", "a Julian leap year"), ("1600-02-29T23:59:59Z", "a leap day"),
    ("0001-01-01T00:00:00Z", "the first year"), ("0000-02-29T00:00:00Z", "the year before"),
    ("-001-12-31T23:59:59Z", "the last second of another"), ("-4712-01-01T12:00:00Z", "far back"),
    ("9999-12-31T23:59:59Z", "the last year of four digits"), ("10000-01-01T00:00:00Z", "five"),
    ("31690739-07-06T01:46:40Z", "eight"),
  ])
  func `has dates that are written as they were read, and as Core Foundation has them`(
    text: String, why: String
  ) throws {
    let list = try Self.read("<date>\(text)</date>")
    let written = try list.xml()
    #expect(written.contains("<date>\(text)</date>"), "\(why)")
    let theirs = try PropertyListSerialization.propertyList(from: Data(written.utf8), format: nil)
    let date = try #require(theirs as? Date)
    #expect(date.timeIntervalSinceReferenceDate == list.date, "\(why)")
    let again = try PropertyListSerialization.data(fromPropertyList: date, format: .xml, options: 0)
    #expect(String(decoding: again, as: UTF8.self).contains("<date>\(text)</date>"), "\(why)")
  }

  @Test func `has every day of two cycles of the calendar`() throws {
    var read = 0
    // Each day's last second, as a fraction is cut off downwards.
    for day in stride(from: -1_100_000.0, to: 1_100_000, by: 7.3) {
      let seconds = (day * 86_400).rounded(.down)
      let written = try #require(PropertyListDate.text(seconds + 0.9))
      #expect(PropertyListDate.seconds(written) == seconds)
      read += 1
    }
    #expect(read > 300_000)
  }

  @Test(arguments: [
    (PropertyList.string("a\u{1}b"), UnwritableValue.character), (.string("\0"), .character),
    (.string("a\u{FFFE}"), .character), (.string("\u{FFFF}"), .character),
    (.string("\u{1B}["), .character), (.dictionary(["\u{8}": .boolean(true)]), .character),
    (.array([.unpairedText([0x61, 0xD83D])]), .unpairedText), (.date(.infinity), .date),
    (.date(.nan), .date), (.date(1e16), .date), (.date(-1e300), .date),
    (nested(255), .depth),
  ])
  func `is not written with what would not be read again`(
    list: PropertyList, error: UnwritableValue
  ) {
    #expect(throws: error) { try list.xml() }
  }

  @Test(arguments: [
    PropertyList.string("\t\r\n \u{7F}\u{85}\u{2028}\u{D7FF}\u{E000}\u{FFFD}😀]]>"),
    .dictionary(["a&<b>\r": .real(.infinity)]), nested(254),
  ])
  func `holds characters and levels up to the bounds`(list: PropertyList) throws {
    #expect(try PropertyList(text: list.xml()) == list)
  }

  /// A text in so many arrays.
  private static func nested(_ levels: Int) -> PropertyList {
    (0..<levels).reduce(.string("a")) { inner, _ in .array([inner]) }
  }
}
