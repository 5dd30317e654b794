import GodwitPlanning
import Testing

@Suite struct `A rule with a pattern` {
  @Test(arguments: [
    ("a|b", "b", true), ("a|b", "ab", false), ("[a-z]+", "abc\n", false), ("(?i)x", "X", true),
    ("(?x) [a-z]+  # letters", "ab", true), ("(?x) [a-z]+  # letters", "ab1", false),
    ("a\\Qb", "ab", true), ("a\\Qb", "abc", false),
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
  func `is neither kept nor broken where nobody can tell`(pattern: String, text: String) throws {
    let matches = try #require(RegularExpression.matcher(pattern))
    #expect(matches(text) == nil)
  }

  @Test func `judges other texts after many of which nobody can tell`() throws {
    let matches = try #require(RegularExpression.matcher("(a|a|aa)+b"))
    // With the patience of the first ones it would take minutes.
    for _ in 0..<1_000 { #expect(matches(String(repeating: "a", count: 60)) == nil) }
    #expect(matches("aab") == true)
    #expect(matches("aac") == false)
  }

  @Test func `is none where the pattern cannot be read`() {
    #expect(RegularExpression.matcher("([") == nil)
    #expect(RegularExpression.matcher("ab)|(?:b") == nil)
  }
}
