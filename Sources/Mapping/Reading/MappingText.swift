import Foundation
import GodwitExpressions
import GodwitObjectModel

/// The text form of a mapping model: YAML, made for review.
///
///     # yaml-language-server: $schema=../mapping.schema.json
///     mapping-model: 1                    # the format's version
///     source-model: V1.xcdatamodel        # which versions it is for, in a chain
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
///           image: { along: note.image }  # automatic, along another key path of the source
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
    do {
      return try MappingTextReader().document(YAMLValue(bytes: bytes, byteLimit: byteLimit))
    } catch let problem as YAMLProblem {
      guard let line = problem.line else {
        throw MappingError.unreadable(file: file, reason: problem.problem)
      }
      throw MappingError.badText(
        line: line, problem: problem.problem, suggestion: problem.suggestion)
    }
  }
}

/// Walks the values. Depth is fixed by the format.
private struct MappingTextReader {
  func document(_ root: YAMLValue) throws -> MappingDocument {
    let fields = try root.fields(MappingText.Key.self, of: "a mapping model")
    guard let version = fields[.version] else {
      throw root.problem(
        "the key \(MappingText.Key.version.rawValue) is missing; write "
          + "\(MappingText.Key.version.rawValue): \(MappingText.version)")
    }
    guard try version.text() == MappingText.version else {
      throw version.problem("this build reads version \(MappingText.version) of the format")
    }
    var document = MappingDocument(entityMappings: [])
    document.sourceModelPath = try fields[.sourceModel]?.text()
    document.destinationModelPath = try fields[.destinationModel]?.text()
    if let list = fields[.entityMappings] {
      guard let items = list.list else { throw list.problem("entity-mappings is a list") }
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

  private func entry(_ value: YAMLValue) throws -> MappingDocument.Entry {
    let fields = try value.fields(MappingText.EntryKey.self, of: "an entity mapping")
    var entry = MappingDocument.Entry(
      name: try fields[.name]?.text(),
      kind: try fields[.type]?.word(MappingDocument.Kind.self),
      source: try fields[.source].map { EntityName(try $0.text()) },
      destination: try fields[.destination].map { EntityName(try $0.text()) },
      policy: try fields[.policy]?.text(),
      sourceHash: try fields[.sourceHash].map(hash),
      destinationHash: try fields[.destinationHash].map(hash),
      others: try fields[.others]?.word(MappingDocument.Others.self) ?? .automatic,
      userInfo: try fields[.userInfo].map(userInfo) ?? [:])
    if let type = fields[.type], let problem = entry.kindProblem { throw type.problem(problem) }
    let name = entry.effectiveName
    if let filter = fields[.filter] {
      guard fields[.sourceExpression] == nil else {
        throw filter.problem("an entity mapping has a filter or a source-expression, not both")
      }
      entry.selection = .filter(
        try parsed(filter, name, nil) { text throws(ExpressionError) in
          try PredicateExpression(parsing: text)
        })
    } else if let expression = fields[.sourceExpression] {
      entry.selection = .expression(try self.expression(expression, name, "source-expression"))
    }
    entry.attributes = try fields[.attributes].map { try rows($0, of: name) } ?? []
    entry.relationships = try fields[.relationships].map { try rows($0, of: name) } ?? []
    return entry
  }

  private func rows(
    _ value: YAMLValue, of mapping: String
  ) throws -> [MappingDocument.Row] {
    guard let pairs = value.pairs else {
      throw value.problem("property names with expressions go here")
    }
    return try pairs.map { key, value in
      let name = try key.text()
      return try row(name, value, mapping)
    }
  }

  private func row(
    _ name: String, _ value: YAMLValue, _ mapping: String
  ) throws -> MappingDocument.Row {
    guard value.pairs != nil else {
      return MappingDocument.Row(name, try rowValue(value, mapping, name))
    }
    let fields = try value.fields(MappingText.RowKey.self, of: "a property mapping")
    let info = try fields[.userInfo].map(userInfo) ?? [:]
    if let along = fields[.along] {
      guard fields[.value] == nil else {
        throw along.problem("a property mapping has a value or an along, not both")
      }
      return .init(
        name, .along(try expression(along, mapping, name).ofSource), userInfo: info)
    }
    return .init(
      name, try fields[.value].map { try rowValue($0, mapping, name) } ?? .automatic,
      userInfo: info)
  }

  private func rowValue(
    _ value: YAMLValue, _ mapping: String, _ property: String
  ) throws -> MappingDocument.Row.Value {
    switch try value.text() {
    case MappingText.automatic: .automatic
    case MappingText.unset: .unset
    default: .expression(try expression(value, mapping, property))
    }
  }

  private func expression(
    _ value: YAMLValue, _ mapping: String, _ property: String
  ) throws -> ValueExpression {
    try parsed(value, mapping, property) { text throws(ExpressionError) in
      try ValueExpression(parsing: text)
    }
  }

  private func parsed<T>(
    _ value: YAMLValue, _ mapping: String, _ property: String?,
    _ parse: (String) throws(ExpressionError) -> T
  ) throws -> T {
    do {
      return try parse(try value.text())
    } catch let error as ExpressionError {
      throw MappingError.badExpression(mapping: mapping, property: property, error)
    }
  }
}

extension MappingTextReader {
  private func hash(_ value: YAMLValue) throws -> VersionHash {
    let data = Data(base64Encoded: try value.text()) ?? Data()
    guard let hash = VersionHash(bytes: Array(data)) else {
      throw value.problem("a version hash is 32 bytes in base64")
    }
    return hash
  }

  private func userInfo(_ value: YAMLValue) throws -> [String: String] {
    guard let pairs = value.pairs else { throw value.problem("user-info is keys with texts") }
    var result: [String: String] = [:]
    for (key, value) in pairs {
      guard let text = value.scalar else { throw value.problem("user info holds texts only") }
      guard result.updateValue(text, forKey: key.scalar ?? "") == nil else {
        throw key.problem(
          "user info has this key twice, or another one that differs only in Unicode normalisation")
      }
    }
    return result
  }
}

extension MappingDocument.Entry {
  /// Why the type that is given cannot be meant, as a sentence without its full stop.
  var kindProblem: String? {
    switch kind {
    case .remove? where destination != nil:
      "an entity mapping of the type remove has no destination"
    case .add? where source != nil: "an entity mapping of the type add has no source"
    case .copy? where source == nil || destination == nil:
      "an entity mapping of the type copy needs a source and a destination"
    case .transform? where source == nil || destination == nil:
      "an entity mapping of the type transform needs a source and a destination"
    case .custom? where policy == nil: "an entity mapping of the type custom needs a policy"
    default: nil
    }
  }
}

extension ValueExpression {
  /// A key path without a variable begins at the source object: nothing else has one to go along.
  fileprivate var ofSource: ValueExpression {
    guard case .keyPath(.evaluatedObject, let keys) = self else { return self }
    return .keyPath(base: .variable("source"), keys: keys)
  }
}
