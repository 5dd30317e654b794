import GodwitReport
import Testing

@Suite struct `Text for a terminal or a page` {
  @Test(arguments: [
    ("Caf\u{E9} \u{1F469}\u{200D}\u{1F373}\tend", "Caf\u{E9} \u{1F469}\u{200D}\u{1F373}\tend"),
    ("\u{1B}[2J\u{1B}]0;title\u{7}", #"\u{1B}[2J\u{1B}]0;title\u{07}"#),
    ("a.sqlite\n8 stores, 0 failed", #"a.sqlite\n8 stores, 0 failed"#),
    ("a\r\nb", #"a\r\nb"#),
    ("\u{9B}31m \u{7F} \u{0}", #"\u{009B}31m \u{7F} \0"#),
    ("\u{FEFF}a", #"\u{FEFF}a"#),
    ("\u{202E}etilqs.\u{2066}\u{2028}", #"\u{202E}etilqs.\u{2066}\u{2028}"#),
  ])
  func `shows control characters instead of sending them`(given: String, shown: String) {
    #expect(VisibleText.line(given) == shown)
  }

  @Test func `keeps the lines of a text of several`() {
    #expect(VisibleText.lines("a\n\u{1B}b\n") == "a\n" + #"\u{1B}b"# + "\n")
  }
}
