import Foundation
import Testing

@testable import GodwitExpressions

@Suite struct `Messages to texts` {
  private func ask(
    _ selector: String, _ text: String, _ arguments: String...
  ) throws -> ExpressionValue? {
    try ValueMessages.perform(selector, on: .string(text), arguments.map { .string($0) })
  }

  /// A text, what is looked for, what comes of replacing it with `X`, the number of parts between, and
  /// whether the text begins and ends with it: as NSString has it.
  @Test(
    arguments: [
      ("resume", "e", "rXsumX", 3, false, true), ("resume", "re", "Xsume", 2, true, false),
      ("a\r\nb", "\n", "a\rXb", 2, false, false), ("ab", "", "ab", 1, true, true),
      ("r\u{E9}sum\u{E9}", "\u{E9}", "rXsumX", 3, false, true),
      ("re\u{301}sume\u{301}", "e\u{301}", "rXsumX", 3, false, true),
      // One character, written in two ways.
      ("re\u{301}sume\u{301}", "\u{E9}", "rXsumX", 3, false, true),
      ("r\u{E9}sum\u{E9}", "e\u{301}", "rXsumX", 3, false, true),
      ("re\u{301}", "r\u{E9}", "X", 2, true, true),
      // The letter alone is not there.
      ("re\u{301}sume\u{301}", "e", "re\u{301}sume\u{301}", 1, false, false),
      ("re\u{301}", "re", "re\u{301}", 1, false, false),
      // Beside what is not ASCII, ASCII is found as ever.
      ("\u{E9}\r\nb", "\n", "\u{E9}\rXb", 2, false, false),
      ("\u{43C},\u{43C}", ",", "\u{43C}X\u{43C}", 2, false, false),
      ("\u{1F469},", ",", "\u{1F469}X", 2, false, true),
      ("\u{E9}", "", "\u{E9}", 1, true, true),
    ] as [(String, String, String, Int, Bool, Bool)])
  func `find characters, however they are written`(
    text: String, part: String, replaced: String, parts: Int, begins: Bool, ends: Bool
  ) throws {
    let made = try ask("stringByReplacingOccurrencesOfString:withString:", text, part, "X")
    guard case .string(let made)? = made else {
      Issue.record("no text")
      return
    }
    #expect(made.unicodeScalars.elementsEqual(replaced.unicodeScalars))
    #expect(try ask("componentsSeparatedByString:", text, part)?.members?.count == parts)
    #expect(try ask("hasPrefix:", text, part) == .boolean(begins))
    #expect(try ask("hasSuffix:", text, part) == .boolean(ends))
  }

  /// A path, without its extension, and with another one: nil where there is no name.
  @Test(
    arguments: [
      ("a.txt", "a", "a.txt.md"), ("a.tar.gz", "a.tar", "a.tar.gz.md"), ("a", "a", "a.md"),
      ("a.", "a", "a..md"), ("a..", "a.", "a...md"), ("/x/a.", "/x/a", "/x/a..md"),
      ("a.b/", "a", "a.b.md"), (".a", ".a", ".a.md"), (".a.", ".a", ".a..md"),
      ("x/.bashrc", "x/.bashrc", "x/.bashrc.md"), (".", ".", "..md"), ("..", "..", "...md"),
      ("x/..", "x/..", "x/...md"), ("", "", nil), ("/", "/", nil),
    ] as [(String, String, String?)])
  func `take extensions of paths as Foundation does`(path: String, without: String, with: String?)
    throws
  {
    #expect(try ask("stringByDeletingPathExtension", path) == .string(without))
    #expect(
      try ask("stringByAppendingPathExtension:", path, "md") == with.map(ExpressionValue.string)
        ?? .null)
  }
}

@Suite struct `Searching a text` {
  @Test func `finds what a plain search finds, in texts that repeat themselves`() {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<2_000 {
      func text(_ most: Int) -> String {
        String(
          decoding: (0..<Int.random(in: 0...most, using: &random)).map { _ in
            UInt8(ascii: Bool.random() ? "a" : "b")
          }, as: UTF8.self)
      }
      let (whole, part) = (text(24), text(5))
      let expected = part.isEmpty || whole.range(of: part, options: .literal) != nil
      #expect(ByteSearch.contains(whole, part) == expected, "\(whole) \(part)")
      if !part.isEmpty {
        #expect(ByteSearch.split(whole, by: part) == whole.components(separatedBy: part))
      }
    }
  }

  /// By a plain search this is 5·10^11 comparisons.
  @Test func `takes no longer where nearly every place fits`() {
    let whole = String(repeating: "a", count: 1_000_000)
    #expect(!ByteSearch.contains(whole, String(repeating: "a", count: 500_000) + "b"))
  }

  @Test func `by LIKE ends where it would compare too much`() {
    let texts = TextMatching()
    let (whole, part) = (
      String(repeating: "a", count: 40_000), String(repeating: "a", count: 9_000)
    )
    #expect(throws: EvaluationProblem.self) { try texts.isLike(whole, "*\(part)b*", []) }
  }
}
