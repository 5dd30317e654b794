/// Text for a terminal or a page. Names of files, entities and properties come from others, and may have characters
/// in them that move the cursor, change colours or end a line: those are shown, never sent.
package enum VisibleText {
  /// A line. What would end it is shown, too.
  package static func line(_ text: String) -> String { shown(text) { _ in true } }

  /// Several lines.
  package static func lines(_ text: String) -> String { shown(text) { $0 != "\n" } }

  private static func shown(_ text: String, where isMeant: (Unicode.Scalar) -> Bool) -> String {
    guard text.unicodeScalars.contains(where: { isControl($0) && isMeant($0) }) else { return text }
    var shown = ""
    for scalar in text.unicodeScalars {
      if isControl(scalar), isMeant(scalar) {
        shown += scalar.escaped(asASCII: true)
      } else {
        shown.unicodeScalars.append(scalar)
      }
    }
    return shown
  }

  /// A control character but the tabulator, the end of a line or paragraph, one that turns the
  /// direction of what follows, or a byte order mark.
  package static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x09: false
    case 0x00...0x1F, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
    default: false
    }
  }
}
