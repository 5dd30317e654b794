import GodwitDurableFiles

// The text for Graphviz. Source: https://graphviz.org/doc/info/lang.html and shapes.html (labels of
// the form `<…>` are tables, and their text is escaped as in XML).

extension EntityDiagram.Kind {
  /// Line, and what the box's head is filled with. The report maps these for its dark theme.
  var colors: (line: String, fill: String) {
    switch self {
    case .same: ("#475569", "#f1f5f9")
    case .added: ("#15803d", "#dcfce7")
    case .removed: ("#b91c1c", "#fee2e2")
    case .changed: ("#b45309", "#fef3c7")
    }
  }

  /// Said before a name, since a colour alone says nothing to many.
  var mark: String {
    switch self {
    case .same: ""
    case .added: "+ "
    case .removed: "− "
    case .changed: "~ "
    }
  }
}

extension EntityDiagram {
  /// The diagram in Graphviz's language.
  package var dot: String {
    var text = """
      digraph model {
        graph [rankdir=LR, bgcolor="transparent", nodesep=0.4, ranksep=1.0, fontname="Helvetica"];
        node [shape=plain, fontname="Helvetica", fontsize=11];
        edge [fontname="Helvetica", fontsize=10, dir=both, arrowsize=0.9];

      """
    for (place, box) in boxes.enumerated() {
      text += "  n\(place) [class=\"\(box.kind.rawValue)\", label=<\(Self.table(box))>];\n"
    }
    for line in lines {
      text += "  n\(line.from) -> n\(line.to) [\(Self.attributes(of: line))];\n"
    }
    return text + "}"
  }

  private static func table(_ box: Box) -> String {
    let colors = box.kind.colors
    let style = box.isAbstract ? " STYLE=\"DASHED\"" : ""
    var text =
      "<TABLE BORDER=\"1\" CELLBORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"4\" "
      + "COLOR=\"\(colors.line)\" BGCOLOR=\"#ffffff\"\(style)>"
      + "<TR><TD COLSPAN=\"2\" BGCOLOR=\"\(colors.fill)\">"
      + "<FONT COLOR=\"#0f172a\"><B>\(escaped(box.kind.mark + box.title))</B></FONT>"
    for note in box.notes {
      text +=
        "<BR/><FONT POINT-SIZE=\"10\" COLOR=\"\(colors.line)\">\(escaped(note))</FONT>"
    }
    text += "</TD></TR>"
    for row in box.rows {
      text +=
        "<TR><TD ALIGN=\"LEFT\"><FONT COLOR=\"#0f172a\">\(escaped(row.kind.mark + row.name))</FONT>"
        + "</TD><TD ALIGN=\"LEFT\"><FONT COLOR=\"\(row.kind.colors.line)\">\(escaped(row.detail))"
        + "</FONT></TD></TR>"
    }
    return text + "</TABLE>"
  }

  private static func attributes(of line: Line) -> String {
    let color = line.kind.colors.line
    var parts = ["class=\"\(line.kind.rawValue)\"", "color=\"\(color)\""]
    if line.isInheritance {
      parts += ["arrowhead=onormal", "arrowtail=none", "style=dashed"]
      if line.kind != .same {
        parts.append("label=<\(label([line.kind.rawValue], color))>")
      }
    } else {
      parts += ["arrowhead=\(arrow(line.toEnd))", "arrowtail=\(arrow(line.fromEnd))"]
      let words = line.label.enumerated().map { ($0 == 0 ? line.kind.mark : "") + $1 }
      parts.append("label=<\(label(words, color))>")
      if line.kind == .removed { parts.append("style=dotted") }
    }
    return parts.joined(separator: ", ")
  }

  private static func label(_ lines: [String], _ color: String) -> String {
    let text = lines.map(escaped).joined(separator: "<BR/>")
    return "<FONT COLOR=\"\(color)\">\(text)</FONT>"
  }

  /// Crow's feet: three toes for many, a bar for one, a ring where there may be none.
  private static func arrow(_ end: End?) -> String {
    guard let end else { return "none" }
    return (end.isToMany ? "crow" : "tee") + (end.isOptional ? "odot" : "tee")
  }

  /// An empty text is an error in a table; a space is none.
  private static func escaped(_ text: String) -> String {
    let result = text.replacingSigns { scalar in
      switch scalar {
      case "&": "&amp;"
      case "<": "&lt;"
      case ">": "&gt;"
      case "\"": "&quot;"
      // Graphviz puts names of its own for some letters behind one, however it is written, and makes one of two.
      case "\\": "&#92;&#92;"
      case _
      where scalar.value < 0x20 || scalar.value == 0x7F
        || scalar.value >= 0xFFFE && scalar.value <= 0xFFFF:
        " "
      default: nil
      }
    }
    return result.isEmpty ? " " : result
  }
}
