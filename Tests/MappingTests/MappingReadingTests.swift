import Foundation
import GodwitKeyedArchive
import GodwitObjectModel
import Testing

@testable import GodwitExpressions
@testable import GodwitMapping

@Suite struct `The text form of a mapping model` {
  private func read(_ text: String) throws -> MappingDocument {
    try MappingDocument(bytes: Array(text.utf8), name: "test")
  }

  @Test func `says everything that there is to say`() throws {
    let hash = String(repeating: "A", count: 43) + "="
    let document = try read(
      """
      mapping-model: 1
      source-model: V1.xcdatamodel
      destination-model: V2.xcdatamodel
      entity-mappings:
        - name: N
          type: custom
          source: A
          destination: B
          filter: x > 1
          policy: Module.Policy
          source-hash: \(hash)
          destination-hash: \(hash)
          attributes:
            a: 5
            b: automatic
            c: default
            d: '#automatic'
            e: { value: "$source.e", user-info: { why: because } }
          relationships:
            f: { along: $source.g }
            h: { along: g.i }
          others: none
          user-info: { k: v, "": empty }
      """)
    let entry = document.entityMappings[0]
    #expect(
      entry.attributes == [
        .init("a", .expression(.constant(.integer(5)))), .init("b", .automatic),
        .init("c", .unset),
        .init("d", .expression(.keyPath(base: .evaluatedObject, keys: [.key("automatic")]))),
        .init("e", .expression(.sourceKeyPath("e")), userInfo: ["why": "because"]),
      ])
    let path = ValueExpression.keyPath(base: .variable("source"), keys: [.key("g"), .key("i")])
    #expect(
      entry.relationships == [
        .init("f", .along(.sourceKeyPath("g"))), .init("h", .along(path)),
      ])
    #expect(entry.sourceHash == VersionHash(bytes: [UInt8](repeating: 0, count: 32)))
    #expect(try read(try document.text()) == document)
  }

  @Test(arguments: [
    ("", "it is empty"),
    ("entity-mappings: []", "the key mapping-model is missing"),
    ("mapping-model: 2", "this build reads version 1"),
    ("mapping-model: 1\nentity-mapings: []", "Did you mean entity-mappings?"),
    ("mapping-model: 1\nentity-mappings:\n  - sorce: A", "Line 3"),
    ("mapping-model: 1\nentity-mappings:\n  - sorce: A", "Did you mean source?"),
    ("mapping-model: 1\nentity-mappings:\n  - type: transfrom", "Did you mean transform?"),
    ("mapping-model: 1\nentity-mappings:\n  - source-hash: abc", "32 bytes in base64"),
    ("mapping-model: 1\nentity-mappings:\n  - source: A\n    type: copy", "Line 4"),
    (
      "mapping-model: 1\nentity-mappings:\n  - { source: A, type: copy }",
      "of the type copy needs a source and a destination"
    ),
    (
      "mapping-model: 1\nentity-mappings:\n  - { destination: A, type: transform }",
      "of the type transform needs a source and a destination"
    ),
    (
      "mapping-model: 1\nentity-mappings:\n  - { source: A, destination: A, type: custom }",
      "of the type custom needs a policy"
    ),
    (
      "mapping-model: 1\nentity-mappings:\n  - { filter: a == 1, source-expression: b }", "not both"
    ),
    ("mapping-model: 1\nentity-mappings:\n  - attributes: { a: }", "a text is missing here"),
    (
      "mapping-model: 1\nentity-mappings:\n  - attributes: { a: '&source.b' }",
      "did you mean $source?"
    ),
    (
      "mapping-model: 1\nentity-mappings:\n  - attributes: { a: abs:(1), b: max:(1, 2) }",
      "a comma ends a YAML value"
    ),
    ("mapping-model: 1\nmapping-model: 1", "mapping-model"),
    ("[", "cannot be read"),
    ("a: [b", "cannot be read"),
  ])
  func `is refused with the line and a suggestion`(text: String, part: String) {
    let error = #expect(throws: MappingError.self) { try read(text) }
    #expect(error?.description.contains(part) == true, "\(String(describing: error))")
  }

  @Test(arguments: [
    "source: A, destination: A, type: copy", "source: A, destination: B, type: transform",
    "source: A, type: custom, policy: P", "type: custom, policy: P",
    "source: A, destination: A, type: transform, policy: P",
  ])
  func `takes a type that what is written can be`(entry: String) throws {
    let document = try read("mapping-model: 1\nentity-mappings: [{ \(entry) }]")
    #expect(document.entityMappings.count == 1)
  }

  @Test func `leaves out the type custom of a compiled file that names no policy`() throws {
    let entry = MappingDocument.Entry(kind: .custom, source: "A", destination: "A")
    let text = try MappingDocument(entityMappings: [entry]).text()
    #expect(try read(text).entityMappings.map(\.kind) == [nil])
  }

  @Test func `is named where it lies, whatever is wrong in it`() throws {
    let path = NSTemporaryDirectory() + "godwit-\(UUID().uuidString).yaml"
    defer { try? FileManager.default.removeItem(atPath: path) }
    for text in ["", "mapping-model: 1\nentity-mapings: []"] {
      try Data(text.utf8).write(to: URL(filePath: path))
      let error = #expect(throws: MappingError.self) { try MappingDocument(path: path) }
      #expect(error?.description.hasPrefix(path) == true, "\(String(describing: error))")
    }
  }

  @Test func `refuses aliases that would grow without bound`() {
    var text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in 1...12 {
      let inner = Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
      text += "a\(level): &a\(level) [\(inner)]\n"
    }
    #expect(throws: MappingError.self) { try read(text) }
    #expect(throws: MappingError.self) { try read(String(repeating: "[", count: 100_000)) }
    #expect(throws: MappingError.self) { try read(String(repeating: "{a: ", count: 100_000)) }
    #expect(throws: MappingError.self) { try read(String(repeating: "- ", count: 100_000)) }
  }

  @Test(.enabled(if: SchemaFile.isThere))
  func `has a schema that knows the same keys`() throws {
    let data = try Data(contentsOf: SchemaFile.url)
    let schema = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    let definitions = try #require(schema["$defs"] as? [String: Any])
    func keys(_ object: Any?) -> Set<String> {
      Set(((object as? [String: Any])?["properties"] as? [String: Any] ?? [:]).keys)
    }
    #expect(keys(schema) == Set(MappingText.Key.allCases.map(\.rawValue)))
    #expect(
      keys(definitions["entity-mapping"]) == Set(MappingText.EntryKey.allCases.map(\.rawValue)))
    #expect(schema["$schema"] as? String == "https://json-schema.org/draft/2020-12/schema")
  }
}

/// The published schema, in `Pipelines`.
enum SchemaFile {
  static let url = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Pipelines/mapping.schema.json")
  static var isThere: Bool { FileManager.default.fileExists(atPath: url.path) }
}

@Suite struct `Damaged mapping models` {
  /// Bytes are changed at seeded places; the only claim is that an error or a document comes back.
  @Test(
    .enabled(if: Corpus.isThere),
    arguments: [
      "alemar11-CoreDataPlus__V2toV3-cdm", "objcio-core-data__Moody-4-Moody-5",
    ])
  func `end in an error, never in a crash`(name: String) throws {
    var path = try #require(Corpus.path(of: name))
    if path.hasSuffix(".xcmappingmodel") { path += "/xcmapping.xml" }
    var whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    if path.hasSuffix(".xml") { whole = trimmed(whole) }
    var state: UInt64 = 42
    func next(_ bound: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int((state >> 33) % UInt64(bound))
    }
    var read = 0
    for _ in 0..<150 {
      var bytes = whole
      for _ in 0...next(4) { bytes[next(bytes.count)] = UInt8(next(256)) }
      if next(4) == 0 { bytes = Array(bytes[..<next(bytes.count)]) }
      do {
        let document = try MappingDocument(bytes: bytes, name: name)
        _ = try document.text()
        read += 1
      } catch is MappingError {
      }
    }
    #expect(read < 150)
  }

  /// Without the copies of the two models, which nobody reads and which are most of the file.
  private func trimmed(_ bytes: [UInt8]) -> [UInt8] {
    let text = String(decoding: bytes, as: UTF8.self)
    return Array(
      text.split(separator: "\n").filter { $0.utf8.count < 400 }.joined(separator: "\n").utf8)
  }
}

@Suite struct `A hostile archive` {
  @Test func `whose parts repeat ends in an error`() throws {
    var writer = KeyedArchiveWriter()
    var part = writer.object(
      "NSVariableExpression", [("NSVariable", writer.string("source").uid)])
    for _ in 0..<60 {
      let arguments = writer.collection([part, part])
      part = writer.object(
        "NSFunctionExpression",
        [
          ("NSSelectorName", writer.string("a:b:").uid), ("NSOperand", part.uid),
          ("NSArguments", arguments.uid),
        ])
    }
    let row = writer.object(
      "NSPropertyMapping",
      [
        ("NSDestinationPropertyName", writer.string("x").uid), ("NSValueExpression", part.uid),
      ])
    let mapping = writer.object(
      "NSEntityMapping", [("NSAttributeMappings", writer.collection([row]).uid)])
    let root = writer.object(
      "NSMappingModel", [("NSEntityMappings", writer.collection([mapping]).uid)])
    let bytes = writer.bytes(root: root)
    let error = #expect(throws: MappingError.self) {
      try MappingDocument(bytes: bytes, name: "test")
    }
    #expect(error?.description.contains("too many parts") == true, "\(String(describing: error))")
  }
}

@Suite struct `An archived mapping model` {
  /// One entity mapping of `Doc` with one attribute row.
  private func document(
    _ writer: inout KeyedArchiveWriter, _ value: KeyedArchiveWriter.Reference,
    policy: String? = nil
  ) throws -> MappingDocument {
    let row = writer.object(
      "NSPropertyMapping",
      [
        ("NSDestinationPropertyName", writer.string("n").uid), ("NSValueExpression", value.uid),
      ])
    let names =
      [("NSSourceEntityName", "Doc"), ("NSDestinationEntityName", "Doc")]
      + (policy.map { [("NSEntityMigrationPolicyClassName", $0)] } ?? [])
    let mapping = writer.object(
      "NSEntityMapping",
      names.map { ($0.0, writer.string($0.1).uid) }
        + [("NSAttributeMappings", writer.collection([row]).uid)])
    let root = writer.object(
      "NSMappingModel", [("NSEntityMappings", writer.collection([mapping]).uid)])
    return try MappingDocument(bytes: writer.bytes(root: root), name: "test")
  }

  @Test func `has aggregates as the text has them`() throws {
    var writer = KeyedArchiveWriter()
    let source = writer.object(
      "NSVariableExpression", [("NSVariable", writer.string("source").uid)])
    let self_ = writer.object("NSSelfExpression", [])
    let aggregate = writer.object(
      "NSAggregateExpression", [("NSCollection", writer.collection([source, self_]).uid)])
    let read = try document(&writer, aggregate)
    #expect(
      read.entityMappings[0].attributes[0].value
        == .expression(.aggregate([.variable("source"), .evaluatedObject])))
  }

  @Test(arguments: [("NSEntityMigrationPolicy", nil), ("App.Policy", "App.Policy")])
  func `needs no code for Core Data's own policy`(name: String, policy: String?) throws {
    var writer = KeyedArchiveWriter()
    let read = try document(&writer, writer.object("NSSelfExpression", []), policy: name)
    #expect(read.entityMappings[0].policy == policy)
  }

  @Test(arguments: [
    ("NSMappingName", PropertyList.integer(1)), ("NSMappingType", .string("copy")),
    ("NSSourceEntityName", .data([1])), ("NSDestinationEntityName", .boolean(true)),
    ("NSEntityMigrationPolicyClassName", .data([1])),
    ("NSSourceEntityVersionHash", .data(Array(repeating: 7, count: 31))),
    ("NSDestinationEntityVersionHash", .string("hash")), ("NSSourceExpression", .string("none")),
    ("NSAttributeMappings", .string("none")), ("NSRelationshipMappings", .integer(0)),
  ])
  func `that holds a value of another kind is not read without it`(
    key: String, value: PropertyList
  ) {
    var writer = KeyedArchiveWriter()
    let mapping = writer.object("NSEntityMapping", [(key, value)])
    let root = writer.object(
      "NSMappingModel", [("NSEntityMappings", writer.collection([mapping]).uid)])
    let bytes = writer.bytes(root: root)
    let error = #expect(throws: MappingError.self) {
      try MappingDocument(bytes: bytes, name: "test")
    }
    #expect(error?.description.contains(key) == true, "\(String(describing: error))")
  }

  @Test(arguments: [
    // Its number, source and destination, and whether they can be meant.
    (1, true, true, true), (1, true, false, true), (2, false, true, true),
    (2, true, true, false), (3, true, false, true), (3, true, true, false),
    (4, true, true, true), (4, true, false, false), (5, true, true, true),
    (5, false, true, false), (0, true, true, true), (0, true, false, true),
  ])
  func `has a type that its entities can be of`(
    type: Int64, source: Bool, destination: Bool, isMeant: Bool
  ) throws {
    var writer = KeyedArchiveWriter()
    var fields = [
      ("NSMappingName", writer.string("Docs").uid), ("NSMappingType", PropertyList.integer(type)),
    ]
    if source { fields.append(("NSSourceEntityName", writer.string("Doc").uid)) }
    if destination { fields.append(("NSDestinationEntityName", writer.string("Doc").uid)) }
    let mapping = writer.object("NSEntityMapping", fields)
    let root = writer.object(
      "NSMappingModel", [("NSEntityMappings", writer.collection([mapping]).uid)])
    let bytes = writer.bytes(root: root)
    guard !isMeant else {
      _ = try MappingDocument(bytes: bytes, name: "test")
      return
    }
    let error = #expect(throws: MappingError.self) {
      try MappingDocument(bytes: bytes, name: "test")
    }
    #expect(
      error?.description.contains("Docs: an entity mapping of the type ") == true,
      "\(String(describing: error))")
  }

  @Test func `has no row without a property`() {
    var writer = KeyedArchiveWriter()
    let row = writer.object("NSPropertyMapping", [])
    let mapping = writer.object(
      "NSEntityMapping",
      [
        ("NSMappingName", writer.string("DocToDoc").uid),
        ("NSRelationshipMappings", writer.collection([row]).uid),
      ])
    let root = writer.object(
      "NSMappingModel", [("NSEntityMappings", writer.collection([mapping]).uid)])
    let bytes = writer.bytes(root: root)
    let error = #expect(throws: MappingError.self) {
      try MappingDocument(bytes: bytes, name: "test")
    }
    #expect(error?.description.contains("DocToDoc") == true, "\(String(describing: error))")
  }
}
