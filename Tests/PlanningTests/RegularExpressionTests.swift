import GodwitPlanning
import Testing

@Suite struct `A rule with a pattern` {
  @Test(arguments: [
    ("a|b", "b", true), ("a|b", "ab", false), ("[a-z]+", "abc\n", false), ("(?i)x", "X", true),
  ])
  func `is about the whole text`(pattern: String, text: String, isMatch: Bool) throws {
    let matches = try #require(RegularExpression.matcher(pattern))
    #expect(matches(text) == isMatch)
  }

  /// ICU's stack has an end, and so has its patience: it says then that nothing matches.
  @Test(arguments: [
    ("(.|\n)*", String(repeating: "x", count: 300_000)),
    ("(a|a|aa)+b", String(repeating: "a", count: 60)),
  ])
  func `is not taken for broken where nobody can tell`(pattern: String, text: String) throws {
    let matches = try #require(RegularExpression.matcher(pattern))
    #expect(matches(text))
  }

  @Test func `is none where the pattern cannot be read`() {
    #expect(RegularExpression.matcher("([") == nil)
  }
}
