import Foundation

/// A value that the XML form of a property list cannot hold.
package enum UnwritableValue: Error, Sendable {
  /// A control character, or another one that XML does not allow.
  case character
  /// ``PropertyList/unpairedText(_:)``.
  case unpairedText
  /// Outside of the years that are read again.
  case date
  /// Containers inside containers, more than are read again.
  case depth

  /// What it is, in words.
  package var words: String {
    switch self {
    case .character: "a text with a character that XML does not allow, such as a control character"
    case .unpairedText: "a text with half of a character, an unpaired UTF-16 unit"
    case .date: "a date so far from now"
    case .depth: "a value that is nested so deep"
    }
  }
}

/// Writes the XML form of a property list, as Apple's frameworks format it: with tabs. The same value
/// always gives the same text. Dates lose what is less than a second, which that form cannot hold.
///
/// Source: `plist(5)`.
enum XMLPropertyListWriter {
  static func text(_ list: PropertyList) throws(UnwritableValue) -> String {
    var lines = [
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
      "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" "
        + "\"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">", "<plist version=\"1.0\">",
    ]
    try write(list, 0, &lines)
    lines.append("</plist>")
    return lines.joined(separator: "\n") + "\n"
  }

  private static func write(
    _ list: PropertyList, _ depth: Int, _ lines: inout [String]
  ) throws(UnwritableValue) {
    // The elements around it: `plist` and containers.
    guard depth + 1 < MarkupElement.depthLimit else { throw .depth }
    let tabs = String(repeating: "\t", count: depth)
    func add(_ name: String, _ content: String) {
      lines.append("\(tabs)<\(name)>\(content)</\(name)>")
    }
    switch list {
    case .boolean(let value): lines.append(tabs + (value ? "<true/>" : "<false/>"))
    case .integer(let value): add("integer", "\(value)")
    case .wideInteger(let value): add("integer", "\(value)")
    case .real(let value):
      add("real", value.isInfinite ? (value < 0 ? "-infinity" : "+infinity") : "\(value)")
    case .date(let seconds):
      guard let text = PropertyListDate.text(seconds) else { throw .date }
      add("date", text)
    case .data(let bytes): add("data", Data(bytes).base64EncodedString())
    case .string(let text): add("string", try escaped(text))
    case .unpairedText: throw .unpairedText
    case .uid(let place):
      try write(.dictionary(["CF$UID": .integer(Int64(place))]), depth, &lines)
    case .array(let members), .set(let members):
      guard !members.isEmpty else { return lines.append(tabs + "<array/>") }
      lines.append(tabs + "<array>")
      for member in members { try write(member, depth + 1, &lines) }
      lines.append(tabs + "</array>")
    case .dictionary(let pairs):
      guard !pairs.isEmpty else { return lines.append(tabs + "<dict/>") }
      lines.append(tabs + "<dict>")
      for (key, value) in pairs {
        lines.append("\(tabs)\t<key>\(try escaped(key))</key>")
        try write(value, depth + 1, &lines)
      }
      lines.append(tabs + "</dict>")
    }
  }

  /// Carriage returns would be read as line feeds.
  private static func escaped(_ text: String) throws(UnwritableValue) -> String {
    var result = ""
    // By scalars: Swift takes a carriage return and a line feed for one character.
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\r": result += "&#13;"
      case "\t", "\n", " "..."\u{D7FF}", "\u{E000}"..."\u{FFFD}", "\u{10000}"...:
        result.unicodeScalars.append(scalar)
      default: throw .character
      }
    }
    return result
  }
}
