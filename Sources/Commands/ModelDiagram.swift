import GodwitObjectModel

/// A model as a picture: a box an entity, a line a pair of relationships, an arrow to a parent.
struct ModelDiagram {
  private struct Line {
    var from: EntityName
    var to: EntityName
    var label: String
    var isInheritance: Bool
  }

  private let hierarchy: EntityHierarchy
  private let lines: [Line]

  init(_ hierarchy: EntityHierarchy) {
    self.hierarchy = hierarchy
    var lines: [Line] = []
    var seen: Set<String> = []
    for name in hierarchy.order {
      guard let entity = hierarchy[name] else { continue }
      if let parent = entity.superentity {
        lines.append(Line(from: name, to: parent, label: "", isInheritance: true))
      }
      for relationship in entity.properties.compactMap(\.relationship) {
        // A relationship and its inverse are one line, drawn for the first of the two.
        let inverse = hierarchy.inverse(of: relationship)
        let own = "\(name)\u{0}\(relationship.name)"
        guard !seen.contains(own) else { continue }
        seen.insert(own)
        var label = relationship.name + (relationship.isToMany ? " *" : "")
        if let inverse {
          seen.insert("\(inverse.entity)\u{0}\(inverse.relationship.name)")
          label += " / " + inverse.relationship.name + (inverse.relationship.isToMany ? " *" : "")
        }
        lines.append(
          Line(from: name, to: relationship.destinationEntity, label: label, isInheritance: false))
      }
    }
    self.lines = lines
  }

  private func rows(of name: EntityName) -> [String] {
    (hierarchy[name]?.properties ?? []).compactMap { property in
      property.attribute.map { "\($0.name): \($0.type.xmlName)" }
    }
  }

  /// For Graphviz.
  var dot: String {
    func escaped(_ text: String) -> String {
      text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    }
    func label(_ text: String) -> String {
      var text = escaped(text)
      for sign in ["{", "}", "|", "<", ">"] { text = text.replacing(sign, with: "\\" + sign) }
      return text
    }
    var text = "digraph model {\n  node [shape=record, fontname=\"Helvetica\"];\n"
    for name in hierarchy.order {
      let attributes = rows(of: name).map { label($0) + "\\l" }.joined()
      let style = hierarchy[name]?.isAbstract == true ? ", style=dashed" : ""
      text +=
        "  \"\(escaped(name.rawValue))\" [label=\"{\(label(name.rawValue))|\(attributes)}\"\(style)];\n"
    }
    for line in lines {
      text += "  \"\(escaped(line.from.rawValue))\" -> \"\(escaped(line.to.rawValue))\""
      text +=
        line.isInheritance
        ? " [arrowhead=empty];\n" : " [label=\"\(escaped(line.label))\", dir=none];\n"
    }
    return text + "}"
  }

  /// Boxes in a grid, in the order of the entities' numbers.
  var svg: String {
    let perRow = max(1, Int(Double(hierarchy.order.count).squareRoot().rounded(.up)))
    let (width, gap, lineHeight) = (220, 60, 16)
    var boxes: [EntityName: (x: Int, y: Int, height: Int)] = [:]
    var top = gap
    for start in stride(from: 0, to: hierarchy.order.count, by: perRow) {
      let row = hierarchy.order[start..<min(start + perRow, hierarchy.order.count)]
      var highest = 0
      for (column, name) in row.enumerated() {
        let height = (rows(of: name).count + 2) * lineHeight
        boxes[name] = (gap + column * (width + gap), top, height)
        highest = max(highest, height)
      }
      top += highest + gap
    }
    func escaped(_ text: String) -> String {
      text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
        .replacing("\"", with: "&quot;")
    }
    var text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"\(gap + perRow * (width + gap))\" "
      + "height=\"\(top)\" font-family=\"Helvetica\" font-size=\"12\">\n"
    for line in lines {
      guard let a = boxes[line.from], let b = boxes[line.to] else { continue }
      let (x1, y1) = (a.x + width / 2, a.y + a.height / 2)
      let (x2, y2) = (b.x + width / 2, b.y + b.height / 2)
      let dash = line.isInheritance ? " stroke-dasharray=\"4 3\"" : ""
      text += "<line x1=\"\(x1)\" y1=\"\(y1)\" x2=\"\(x2)\" y2=\"\(y2)\" stroke=\"gray\"\(dash)/>\n"
      text +=
        "<text x=\"\((x1 + x2) / 2)\" y=\"\((y1 + y2) / 2)\" fill=\"gray\" "
        + "text-anchor=\"middle\">\(escaped(line.label))</text>\n"
    }
    for name in hierarchy.order {
      guard let box = boxes[name] else { continue }
      let dash = hierarchy[name]?.isAbstract == true ? " stroke-dasharray=\"4 3\"" : ""
      text +=
        "<rect x=\"\(box.x)\" y=\"\(box.y)\" width=\"\(width)\" height=\"\(box.height)\" "
        + "fill=\"white\" stroke=\"black\"\(dash)/>\n"
        + "<text x=\"\(box.x + 8)\" y=\"\(box.y + lineHeight)\" font-weight=\"bold\">"
        + "\(escaped(name.rawValue))</text>\n"
      for (place, row) in rows(of: name).enumerated() {
        text +=
          "<text x=\"\(box.x + 8)\" y=\"\(box.y + (place + 2) * lineHeight)\">\(escaped(row))</text>\n"
      }
    }
    return text + "</svg>"
  }
}
