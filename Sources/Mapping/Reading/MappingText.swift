import Foundation
import GodwitObjectModel
import Yams

/// The text form of a mapping model: YAML, made for review.
///
///     # yaml-language-server: $schema=../mapping.schema.json
///     mapping-model: 1                    # the format's version
///     source-model: V1.xcdatamodel        # where the models were; not used
///     destination-model: V2.xcdatamodel
///     entity-mappings:                    # in order
///       - name: NoteToNote                # else SourceToDestination
///         type: transform                 # else decided by source, destination, policy
///         source: Note                    # none: add
///         destination: Note               # none: remove
///         filter: image != nil
///         source-expression: …            # instead of filter
///         policy: ClassName               # makes the type custom
///         source-hash: base64             # 32 bytes
///         destination-hash: base64
///         attributes:
///           celsius: ($source.fahrenheit - 32.0) / 1.8
///           title: automatic              # from the source's property of that name
///           remark: default               # keeps the default value
///           count: { value: 5, user-info: { why: … } }
///         relationships:
///           image: { along: $source.note.image }   # automatic, along another key path
///         others: none                    # properties not written: automatic (else) or none
///         user-info: { key: text }
///
/// A key path that is spelled `automatic` or `default` is written `#automatic`, `#default`.
enum MappingText {
  static let version = "1"
  /// 8 MiB; the largest mapping model seen makes 0.1.
  static let byteLimit = 8 << 20

  enum Key: String, CaseIterable {
    case version = "mapping-model"
    case sourceModel = "source-model"
    case destinationModel = "destination-model"
    case entityMappings = "entity-mappings"
  }

  enum EntryKey: String, CaseIterable {
    case name, type, source, destination, filter
    case sourceExpression = "source-expression"
    case policy
    case sourceHash = "source-hash"
    case destinationHash = "destination-hash"
    case attributes, relationships, others
    case userInfo = "user-info"
  }

  enum RowKey: String, CaseIterable {
    case value, along
    case userInfo = "user-info"
  }

  /// Words that stand where an expression could.
  static let automatic = "automatic"
  static let unset = "default"
}

extension MappingText {
  static func read(_ bytes: [UInt8], file: String) throws -> MappingDocument {
    guard bytes.count <= byteLimit else {
      throw MappingError.unreadable(file: file, reason: "it is larger than \(byteLimit) bytes")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw MappingError.unreadable(file: file, reason: "it is not UTF-8")
    }
    guard !hasManyAliases(bytes) else {
      throw MappingError.unreadable(
        file: file, reason: "it uses YAML aliases; write the repeated part out")
    }
    let root: Node?
    do {
      root = try Yams.compose(yaml: text)
    } catch {
      throw MappingError.unreadable(file: file, reason: "\(error)")
    }
    guard let root else { throw MappingError.unreadable(file: file, reason: "it is empty") }
    return try MappingTextReader().document(root)
  }

  /// Aliases of aliases grow without bound; a handful cannot.
  private static func hasManyAliases(_ bytes: [UInt8]) -> Bool {
    var aliases = 0
    var hasAnchor = false
    for (place, byte) in bytes.enumerated().dropLast() {
      guard byte == UInt8(ascii: "*") || byte == UInt8(ascii: "&") else { continue }
      let before = place == 0 ? UInt8(ascii: " ") : bytes[place - 1]
      let after = bytes[place + 1]
      guard before <= 0x20 || "[{,:?-".utf8.contains(before), after > 0x20,
        after != byte, after != UInt8(ascii: "=")
      else { continue }
      if byte == UInt8(ascii: "*") { aliases += 1 } else { hasAnchor = true }
    }
    return hasAnchor && aliases > 16
  }
}

/// Walks the YAML nodes. Depth is fixed by the format.
private struct MappingTextReader {
  func document(_ root: Node) throws -> MappingDocument {
    let fields = try fields(of: root, MappingText.Key.self, what: "a mapping model")
    guard let version = fields[.version] else {
      throw bad(
        root,
        "the key \(MappingText.Key.version.rawValue) is missing; write "
          + "\(MappingText.Key.version.rawValue): \(MappingText.version)")
    }
    guard try text(version) == MappingText.version else {
      throw bad(version, "this build reads version \(MappingText.version) of the format")
    }
    var document = MappingDocument(entityMappings: [])
    document.sourceModelPath = try fields[.sourceModel].map(text)
    document.destinationModelPath = try fields[.destinationModel].map(text)
    if let list = fields[.entityMappings] {
      guard let items = list.sequence else { throw bad(list, "entity-mappings is a list") }
      var budget = MappingBudget(file: "The text")
      try budget.check(entityMappings: items.count)
      document.entityMappings = try items.map { item in
        let entry = try entry(item)
        try budget.take(rows: entry.attributes.count + entry.relationships.count)
        return entry
      }
    }
    return document
  }

  private func entry(_ node: Node) throws -> MappingDocument.Entry {
    let fields = try fields(of: node, MappingText.EntryKey.self, what: "an entity mapping")
    var entry = MappingDocument.Entry(
      name: try fields[.name].map(text),
      kind: try fields[.type].map { try word($0, MappingDocument.Kind.self) },
      source: try fields[.source].map { EntityName(try text($0)) },
      destination: try fields[.destination].map { EntityName(try text($0)) },
      policy: try fields[.policy].map(text),
      sourceHash: try fields[.sourceHash].map(hash),
      destinationHash: try fields[.destinationHash].map(hash),
      others: try fields[.others].map { try word($0, MappingDocument.Others.self) } ?? .automatic,
      userInfo: try fields[.userInfo].map(userInfo) ?? [:])
    let name = entry.effectiveName
    if let filter = fields[.filter] {
      guard fields[.sourceExpression] == nil else {
        throw bad(filter, "an entity mapping has a filter or a source-expression, not both")
      }
      entry.selection = .filter(
        try parsed(filter, name, nil) { text throws(ExpressionError) in
          try PredicateExpression(parsing: text)
        })
    } else if let expression = fields[.sourceExpression] {
      entry.selection = .expression(try value(expression, name, "source-expression"))
    }
    entry.attributes = try fields[.attributes].map { try rows($0, of: name) } ?? []
    entry.relationships = try fields[.relationships].map { try rows($0, of: name) } ?? []
    return entry
  }

  private func rows(_ node: Node, of mapping: String) throws -> [MappingDocument.Row] {
    guard let pairs = node.mapping else {
      throw bad(node, "property names with expressions go here")
    }
    return try pairs.map { key, value in
      let name = try text(key)
      guard value.mapping != nil else {
        return MappingDocument.Row(name, try rowValue(value, mapping, name))
      }
      let fields = try fields(of: value, MappingText.RowKey.self, what: "a property mapping")
      let info = try fields[.userInfo].map(userInfo) ?? [:]
      if let along = fields[.along] {
        guard fields[.value] == nil else {
          throw bad(along, "a property mapping has a value or an along, not both")
        }
        return .init(name, .along(try self.value(along, mapping, name)), userInfo: info)
      }
      return .init(
        name, try fields[.value].map { try rowValue($0, mapping, name) } ?? .automatic,
        userInfo: info)
    }
  }

  private func rowValue(
    _ node: Node, _ mapping: String, _ property: String
  ) throws -> MappingDocument.Row.Value {
    switch try text(node) {
    case MappingText.automatic: .automatic
    case MappingText.unset: .unset
    default: .expression(try value(node, mapping, property))
    }
  }

  private func value(_ node: Node, _ mapping: String, _ property: String) throws -> ValueExpression
  {
    try parsed(node, mapping, property) { text throws(ExpressionError) in
      try ValueExpression(parsing: text)
    }
  }

  private func parsed<T>(
    _ node: Node, _ mapping: String, _ property: String?,
    _ parse: (String) throws(ExpressionError) -> T
  ) throws -> T {
    do {
      return try parse(try text(node))
    } catch let error as ExpressionError {
      throw MappingError.badExpression(mapping: mapping, property: property, error)
    }
  }
}

// MARK: - Nodes

extension MappingTextReader {
  private func bad(_ node: Node, _ problem: String, _ suggestion: String? = nil) -> MappingError {
    .badText(line: node.mark?.line ?? 1, problem: problem, suggestion: suggestion)
  }

  private func fields<Key: RawRepresentable & Hashable & CaseIterable>(
    of node: Node, _ type: Key.Type, what: String
  ) throws -> [Key: Node] where Key.RawValue == String {
    guard let pairs = node.mapping else { throw bad(node, "\(what) is keys with values") }
    var result: [Key: Node] = [:]
    for (key, value) in pairs {
      let name = try text(key)
      guard let known = Key(rawValue: name) else {
        throw bad(
          key, "\(what) has no key \(name)",
          Spelling.closest(to: name, among: Key.allCases.map(\.rawValue)))
      }
      result[known] = value
    }
    return result
  }

  /// Any scalar, as it is written: `5`, `YES` and `null` are parts of expressions here.
  private func text(_ node: Node) throws -> String {
    guard let scalar = node.scalar, !scalar.string.isEmpty else {
      throw bad(node, "a text is missing here")
    }
    return scalar.string
  }

  private func word<Word: RawRepresentable & CaseIterable>(
    _ node: Node, _ type: Word.Type
  ) throws -> Word where Word.RawValue == String {
    let name = try text(node)
    guard let word = Word(rawValue: name) else {
      let known = Word.allCases.map(\.rawValue)
      throw bad(
        node, "\(name) is none of \(known.joined(separator: ", "))",
        Spelling.closest(to: name, among: known))
    }
    return word
  }

  private func hash(_ node: Node) throws -> VersionHash {
    let data = Data(base64Encoded: try text(node)) ?? Data()
    guard let hash = VersionHash(bytes: Array(data)) else {
      throw bad(node, "a version hash is 32 bytes in base64")
    }
    return hash
  }

  private func userInfo(_ node: Node) throws -> [String: String] {
    guard let pairs = node.mapping else { throw bad(node, "user-info is keys with texts") }
    var result: [String: String] = [:]
    for (key, value) in pairs {
      guard let scalar = value.scalar else { throw bad(value, "user info holds texts only") }
      result[key.scalar?.string ?? ""] = scalar.string
    }
    return result
  }
}
