import GodwitDurableFiles

/// The lines of an XML file as Xcode writes them: four spaces a level, one element a line.
struct MarkupLines {
  private(set) var text = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>"
  private var depth = 0

  private mutating func start(_ name: String, _ attributes: [(String, String?)], end: String) {
    text += "\n" + String(repeating: "    ", count: depth) + "<" + name
    for case (let key, let value?) in attributes {
      text += " \(key)=\"\(Self.escaped(value))\""
    }
    text += end
  }

  /// An element without content.
  mutating func leaf(_ name: String, _ attributes: [(String, String?)]) {
    start(name, attributes, end: "/>")
  }

  mutating func open(_ name: String, _ attributes: [(String, String?)]) {
    start(name, attributes, end: ">")
    depth += 1
  }

  mutating func close(_ name: String) {
    depth -= 1
    text += "\n" + String(repeating: "    ", count: depth) + "</" + name + ">"
  }

  /// An element whose content may turn out to be empty.
  mutating func element(
    _ name: String, _ attributes: [(String, String?)], content: (inout MarkupLines) -> Void
  ) {
    var inner = self
    inner.text = ""
    inner.depth += 1
    content(&inner)
    guard !inner.text.isEmpty else { return leaf(name, attributes) }
    open(name, attributes)
    text += inner.text
    close(name)
  }

  mutating func userInfo(_ pairs: [String: String]) {
    guard !pairs.isEmpty else { return }
    open("userInfo", [])
    for (key, value) in pairs.sorted(by: { $0.key.precedesInBytes($1.key) }) {
      leaf("entry", [("key", key), ("value", value)])
    }
    close("userInfo")
  }

  /// Lists of names in three levels, as constraints and compound indexes have them.
  mutating func lists(_ outer: String, _ inner: String, _ item: String, _ lists: [[String]]) {
    guard !lists.isEmpty else { return }
    open(outer, [])
    for list in lists {
      element(inner, []) { lines in
        for name in list { lines.leaf(item, [("value", name)]) }
      }
    }
    close(outer)
  }

  /// XML 1.0 has no spelling for most control characters; they are left out.
  static func escaped(_ value: String) -> String {
    value.replacingSigns { scalar in
      switch scalar {
      case "&": "&amp;"
      case "<": "&lt;"
      case ">": "&gt;"
      case "\"": "&quot;"
      // Plain, a parser would make spaces of them.
      case "\n", "\t", "\r": "&#\(scalar.value);"
      case _ where scalar.value < 0x20 || scalar.value == 0xFFFE || scalar.value == 0xFFFF: ""
      default: nil
      }
    }
  }
}
