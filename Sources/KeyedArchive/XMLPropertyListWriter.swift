import Foundation

/// Writes the XML form of a property list, as Apple's frameworks format it: with tabs. The same value
/// always gives the same text. Dates lose what is less than a second, which that form cannot hold.
///
/// Source: `plist(5)`.
enum XMLPropertyListWriter {
  static func text(_ list: PropertyList) -> String {
    var lines = [
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
      "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" "
        + "\"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">", "<plist version=\"1.0\">",
    ]
    write(list, 0, &lines)
    lines.append("</plist>")
    return lines.joined(separator: "\n") + "\n"
  }

  private static func write(_ list: PropertyList, _ depth: Int, _ lines: inout [String]) {
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
    case .date(let seconds): add("date", date(seconds))
    case .data(let bytes): add("data", Data(bytes).base64EncodedString())
    case .string(let text): add("string", escaped(text))
    case .uid(let place):
      write(.dictionary(["CF$UID": .integer(Int64(place))]), depth, &lines)
    case .array(let members), .set(let members):
      guard !members.isEmpty else { return lines.append(tabs + "<array/>") }
      lines.append(tabs + "<array>")
      for member in members { write(member, depth + 1, &lines) }
      lines.append(tabs + "</array>")
    case .dictionary(let pairs):
      guard !pairs.isEmpty else { return lines.append(tabs + "<dict/>") }
      lines.append(tabs + "<dict>")
      for (key, value) in pairs {
        lines.append("\(tabs)\t<key>\(escaped(key))</key>")
        write(value, depth + 1, &lines)
      }
      lines.append(tabs + "</dict>")
    }
  }

  private static func date(_ seconds: Double) -> String {
    Date(timeIntervalSinceReferenceDate: seconds.rounded(.down)).formatted(.iso8601)
  }

  /// Carriage returns would be read as line feeds.
  private static func escaped(_ text: String) -> String {
    // By scalars: Swift takes a carriage return and a line feed for one character.
    text.unicodeScalars.reduce(into: "") { result, scalar in
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\r": result += "&#13;"
      default: result.unicodeScalars.append(scalar)
      }
    }
  }
}
