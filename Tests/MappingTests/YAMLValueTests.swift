import Foundation
import GodwitMapping
import Testing

@Suite struct `JSON that is read as YAML` {
  /// Every character of the first planes' beginnings, and those that YAML treats in a way of its own.
  private static let characters: [Unicode.Scalar] =
    ([
      0x01..<0x2FF, 0x2000..<0x2070, 0xFEFF..<0xFF00, 0xFFFC..<0x1_0010,
    ] as [Range<UInt32>]).flatMap { $0.compactMap { Unicode.Scalar($0) } }

  private func read(_ text: String) throws -> String? {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let json = String(decoding: try encoder.encode(["a": [text]]), as: UTF8.self)
    let root = try YAMLValue(bytes: Array(YAMLValue.text(ofJSON: json).utf8), byteLimit: 1 << 20)
    return root.pairs?.first?.value.list?.first?.scalar
  }

  @Test func `says the same, whatever characters its texts have`() throws {
    for scalar in Self.characters {
      let text = "x\(scalar)y"
      #expect(
        try Array((read(text) ?? "").utf8) == Array(text.utf8), "\(String(scalar.value, radix: 16))"
      )
    }
  }

  @Test(arguments: [
    "", " ", "arch\u{85}ive", "a\u{2028}b", "a\u{FEFF}", "del\u{7F}", "a\nb", "a: *b",
    "/srv/&x/" + String(repeating: " *a", count: 40), "👍🏽", "\u{10FFFF}", "\\u0085", "#", "- a",
  ])
  func `has texts of all kinds`(text: String) throws {
    #expect(try Array((read(text) ?? "none").utf8) == Array(text.utf8))
  }
}
