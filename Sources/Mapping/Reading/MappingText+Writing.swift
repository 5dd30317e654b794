import Foundation
import GodwitExpressions
import GodwitObjectModel
import Yams

extension MappingText {
  /// The text form, with the schema named for editors.
  ///
  /// - Throws: ``MappingError`` when it would be larger than what is read back, and for what an archive
  ///   can hold and the text form cannot: a property that is mapped twice, an expression that is longer in its
  ///   normal form than one may be.
  static func text(_ document: MappingDocument) throws -> String {
    let text = try written(document)
    do {
      let again = try read(Array(text.utf8), file: "The text")
      guard try written(again) == text else {
        throw MappingError.unwritable(reason: "it would be read back as another one")
      }
    } catch let error as MappingError {
      if case .unwritable = error { throw error }
      throw MappingError.unwritable(reason: "it could not be read back. \(error)")
    }
    return text
  }

  private static func written(_ document: MappingDocument) throws -> String {
    try checkSize(of: document)
    for entry in document.entityMappings {
      try checkNames(of: entry.attributes, in: entry)
      try checkNames(of: entry.relationships, in: entry)
    }
    var pairs: [(Node, Node)] = [(node(Key.version.rawValue), Node(version, .implicit, .plain))]
    add(Key.sourceModel.rawValue, document.sourceModelPath, to: &pairs)
    add(Key.destinationModel.rawValue, document.destinationModelPath, to: &pairs)
    pairs.append(
      (
        node(Key.entityMappings.rawValue),
        Node(document.entityMappings.map(entry), .implicit, .block)
      ))
    let root = Node(pairs, .implicit, .block)
    var body = try Yams.serialize(node: root, width: -1, allowUnicode: true)
    if YAMLValue.hasManyAliases(Array(body.utf8)) {
      body = YAMLValue.text(
        ofJSON: try Yams.serialize(node: quoted(root), width: -1, allowUnicode: true))
    }
    return "# yaml-language-server: $schema=../mapping.schema.json\n" + body
  }

  /// Every text with a character that may pass for an alias between double quotation marks, where it can be
  /// written as a number.
  private static func quoted(_ node: Node) -> Node {
    switch node {
    case .scalar(var scalar):
      if scalar.string.utf8.contains(where: { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "&") })
      {
        scalar.style = .doubleQuoted
      }
      return .scalar(scalar)
    case .mapping(let mapping):
      return Node(
        mapping.map { (quoted($0.key), quoted($0.value)) }, mapping.tag, mapping.style)
    case .sequence(let sequence):
      return Node(sequence.map(quoted), sequence.tag, sequence.style)
    case .alias: return node
    }
  }

  /// One long text of an archive may stand in many rows, so the sum is checked before it is made.
  private static func checkSize(of document: MappingDocument) throws {
    var bytes = 0
    for entry in document.entityMappings {
      for row in entry.attributes + entry.relationships {
        bytes += row.name.utf8.count
        if case .expression(let value) = row.value { bytes += value.description.utf8.count }
        for (key, value) in row.userInfo { bytes += key.utf8.count + value.utf8.count }
        guard bytes <= byteLimit else {
          throw MappingError.unwritable(reason: "it would be larger than \(byteLimit) bytes")
        }
      }
    }
  }

  /// Keys of YAML are compared as Swift compares texts, so that two spellings of one name are one key.
  private static func checkNames(
    of rows: [MappingDocument.Row], in entry: MappingDocument.Entry
  ) throws {
    var names: Set<String> = []
    for row in rows where !names.insert(row.name).inserted {
      throw MappingError.unwritable(
        reason: "entity mapping \(entry.effectiveName) maps the property \(row.name) twice, which "
          + "the text form cannot hold. Remove one of the two in Xcode")
    }
  }

  /// A text; the emitter chooses the quotation marks it needs.
  private static func node(_ text: String) -> Node { Node(text, Tag(.str), style(of: text)) }

  /// Control characters only survive between double quotation marks.
  private static func style(_ isPlain: Bool) -> Node.Scalar.Style { isPlain ? .any : .doubleQuoted }

  private static func style(of text: String) -> Node.Scalar.Style {
    let hasControl = text.unicodeScalars.contains {
      $0.value < 0x20 || (0x7F...0xA0).contains($0.value) || (0x2028...0x2029).contains($0.value)
        || $0.value == 0xFEFF
    }
    return style(!hasControl && !text.isEmpty)
  }

  private static func add(_ key: String, _ value: String?, to pairs: inout [(Node, Node)]) {
    if let value { pairs.append((node(key), node(value))) }
  }

  private static func entry(_ entry: MappingDocument.Entry) -> Node {
    var pairs: [(Node, Node)] = []
    func add(_ key: EntryKey, _ value: String?) { Self.add(key.rawValue, value, to: &pairs) }
    add(.name, entry.name)
    // A compiled file may say custom without a policy, which means nothing.
    add(.type, entry.kindProblem == nil ? entry.kind?.rawValue : nil)
    add(.source, entry.source?.rawValue)
    add(.destination, entry.destination?.rawValue)
    switch entry.selection {
    case .all: break
    case .filter(let predicate): add(.filter, predicate.description)
    case .expression(let value): add(.sourceExpression, value.description)
    }
    add(.policy, entry.policy)
    add(.sourceHash, entry.sourceHash.map { Data($0.bytes).base64EncodedString() })
    add(.destinationHash, entry.destinationHash.map { Data($0.bytes).base64EncodedString() })
    if !entry.attributes.isEmpty {
      pairs.append((node(EntryKey.attributes.rawValue), rows(entry.attributes)))
    }
    if !entry.relationships.isEmpty {
      pairs.append((node(EntryKey.relationships.rawValue), rows(entry.relationships)))
    }
    if entry.others != .automatic { add(.others, entry.others.rawValue) }
    if !entry.userInfo.isEmpty {
      pairs.append((node(EntryKey.userInfo.rawValue), userInfo(entry.userInfo)))
    }
    return Node(pairs, .implicit, pairs.isEmpty ? .flow : .block)
  }

  private static func rows(_ rows: [MappingDocument.Row]) -> Node {
    Node(rows.map { (node($0.name), row($0)) }, .implicit, .block)
  }

  private static func row(_ row: MappingDocument.Row) -> Node {
    let value: (key: RowKey, text: String) =
      switch row.value {
      case .automatic: (.value, automatic)
      case .unset: (.value, unset)
      case .along(let path): (.along, path.description)
      case .expression(let expression): (.value, written(expression))
      }
    if row.userInfo.isEmpty, value.key == .value { return node(value.text) }
    var pairs = [(node(value.key.rawValue), node(value.text))]
    if !row.userInfo.isEmpty {
      pairs.append((node(RowKey.userInfo.rawValue), userInfo(row.userInfo)))
    }
    return Node(pairs, .implicit, .block)
  }

  /// A key path that looks like one of our two words is escaped.
  private static func written(_ expression: ValueExpression) -> String {
    let text = expression.description
    return text == automatic || text == unset ? "#" + text : text
  }

  private static func userInfo(_ info: [String: String]) -> Node {
    let pairs = info.sorted { $0.key.precedesInBytes($1.key) }
    return Node(pairs.map { (node($0.key), node($0.value)) }, .implicit, .block)
  }
}
