import GodwitDurableFiles
import Testing

/// U+06DD joins with what follows it, and U+0301 with what precedes it.
@Suite struct `A name or text of others` {
  @Test(
    arguments: [
      ("a.sqlite", ".sqlite", "a"), ("a\u{6DD}.sqlite", ".sqlite", "a\u{6DD}"),
      (".sqlite", ".sqlite", ""), ("a.sqlite\u{301}", ".sqlite", nil), ("wal", "-wal", nil),
      ("", "-wal", nil), ("e\u{301}", "\u{E9}", nil), ("a", "", "a"),
    ] as [(String, String, String?)])
  func `ends with the bytes that it has last`(name: String, ending: String, start: String?) {
    #expect(name.before(ending).map { Array($0.utf8) } == start.map { Array($0.utf8) })
    #expect(name.ends(with: ending) == (start != nil))
  }

  @Test(
    arguments: [
      ("/srv/a", "/srv/", "a"), ("/srv/\u{301}a", "/srv/", "\u{301}a"), (".", ".", ""),
      ("/sr", "/srv", nil), ("", "/", nil), ("e\u{301}", "\u{E9}", nil), ("a", "", "a"),
    ] as [(String, String, String?)])
  func `begins with the bytes that it has first`(name: String, beginning: String, rest: String?) {
    #expect(name.after(beginning).map { Array($0.utf8) } == rest.map { Array($0.utf8) })
    #expect(name.begins(with: beginning) == (rest != nil))
  }

  @Test(arguments: [
    ("a\r\nb", "\n", " ", "a\r b"), ("O'\u{301}", "'", "''", "O''\u{301}"),
    ("\u{6DD}\"", "\"", "_", "\u{6DD}_"), ("''", "'", "-", "--"), ("", "'", "-", ""),
  ])
  func `has another sign in each place of one`(
    text: String, sign: Unicode.Scalar, other: String, result: String
  ) {
    #expect(Array(text.replacing(sign, by: other).utf8) == Array(result.utf8))
  }
}
