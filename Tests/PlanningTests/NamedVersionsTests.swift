import Foundation
import GodwitMapping
import GodwitObjectModel
import Testing

@testable import GodwitPlanning

private func entity(_ name: EntityName, _ attributes: String...) -> EntityDescription {
  EntityDescription(
    name: name,
    properties: attributes.map {
      .attribute(AttributeDescription(traits: PropertyTraits(name: $0), type: .string))
    })
}

private func version(
  _ name: String, _ entities: [EntityDescription], configurations: [String: [EntityName]] = [:]
) -> ModelVersion {
  ModelVersion(
    name: name, model: ManagedObjectModel(entities: entities, configurations: configurations),
    isCurrent: false, path: name)
}

/// A mapping model of an entity and the versions that it names, if any.
private func file(
  _ name: String, _ entity: EntityName = "Item", from: String? = nil, to: String? = nil
) -> MappingFile {
  MappingFile(
    file: name,
    document: MappingDocument(
      entityMappings: [MappingDocument.Entry(source: entity, destination: entity)],
      sourceModelPath: from, destinationModelPath: to))
}

private func planner(
  _ files: [MappingFile], _ models: [ModelVersion], from source: ModelVersion,
  to destination: ModelVersion, part: EntityHierarchy? = nil, isShared: Bool = false
) throws -> MappedPlanner {
  var request = MigrationRequest(
    store: "store", models: models, destination: destination, output: nil, snapshotFolder: "",
    mappings: files)
  request.sharesMappings = isShared
  return try MappedPlanner(
    request, source: part ?? source.hierarchy(), destination: destination.hierarchy(),
    whole: (try source.hierarchy(), try destination.hierarchy()))
}

@Suite struct `Mapping models of the steps between` {
  private let a = version("A", [entity("Item", "name")])
  private let b = version("B", [entity("Item", "name", "x")])
  private let c = version("C", [entity("Item", "name", "x", "y")])
  private let ab = file("ab", from: "Shop.xcdatamodeld/A.xcdatamodel", to: "B.xcdatamodel")
  private let bc = file("bc", from: "B", to: "C")
  private let ac = file("ac", from: "A", to: "C")

  @Test func `are not run for one that goes over them`() throws {
    let none = try planner([ab, bc], [a, b, c], from: a, to: c)
    #expect(!none.isUsed)
    #expect(
      none.notes == [
        "ab is not used: it names B as its destination model.",
        "bc is not used: it names B as its source model.",
      ])
    #expect(try planner([ab, ac, bc], [a, b, c], from: a, to: c).files.map(\.file) == ["ac"])
    #expect(try planner([ab, bc], [a, b, c], from: b, to: c).files.map(\.file) == ["bc"])
  }

  @Test func `are an error alone, and a note where the file is for several stores`() throws {
    let error = #expect(throws: MappingError.self) {
      try planner([bc], [a, b, c], from: a, to: c)
    }
    #expect(error?.code == 134_140)
    #expect(error?.description.contains("it names B as its source model") == true)
    #expect(try planner([bc], [a, b, c], from: a, to: c, isShared: true).notes.count == 1)
  }

  @Test func `are known by every name of a version, in one step and in a chain`() throws {
    let twin = version("A twin", a.model.entities)
    let named = file("twin", from: "A twin", to: "B")
    for models in [[a, twin, b, c], [twin, a, b, c], [a, a, twin, b, b, c]] {
      #expect(try planner([named], models, from: a, to: b).files.map(\.file) == ["twin"])
      let chain = try VersionChain(
        source: a, destination: c, models: models, mappings: [named, bc])
      let lines = try #require(chain).lines
      #expect(lines.count == 2 && lines[0].hasSuffix(": twin") && lines[1].hasSuffix(": bc"))
    }
  }

  @Test func `are for what becomes of a store whose version has no name`() throws {
    let own = version("checksum", [entity("Item", "name", "z")])
    #expect(try !planner([bc, ac], [a, b, c], from: own, to: c).isUsed)
    let files = [bc, file("free"), file("old", from: "Old", to: "C")]
    #expect(
      try planner(files, [a, b, c], from: own, to: c).files.map(\.file) == ["free", "old"])
  }
}

@Suite struct `Mapping models of what no version changes` {
  private let versions = [
    version("1", [entity("Tag", "word"), entity("Item", "name")]),
    version("2", [entity("Tag", "word"), entity("Item", "name", "x")]),
    version("3", [entity("Tag", "word"), entity("Item", "name", "x", "y")]),
  ]

  /// With hashes, which fit every step where the entity is `Tag`.
  private func file(
    _ entity: EntityName = "Tag", hashesOf places: (Int, Int) = (0, 0), from: String? = nil,
    to: String? = nil
  ) throws -> MappingFile {
    var entry = MappingDocument.Entry(source: entity, destination: entity)
    entry.sourceHash = try versions[places.0].hierarchy().versionHashes[entity]
    entry.destinationHash = try versions[places.1].hierarchy().versionHashes[entity]
    return MappingFile(
      file: "\(from ?? "any") to \(to ?? "any")",
      document: MappingDocument(
        entityMappings: [entry], sourceModelPath: from, destinationModelPath: to))
  }

  private func chain(_ files: MappingFile...) throws -> [String] {
    let chain = try VersionChain(
      source: versions[0], destination: versions[2], models: versions, mappings: files)
    return try #require(chain).lines
  }

  private func direct(_ files: MappingFile...) throws -> [String] {
    try planner(files, versions, from: versions[0], to: versions[2]).files.map(\.file)
  }

  @Test func `are each for the step that it names, in a chain`() throws {
    let files = try (file(from: "1", to: "2"), file(from: "2", to: "3"))
    #expect(try chain(files.0, files.1) == ["1 → 2: 1 to 2", "2 → 3: 2 to 3"])
    #expect(try chain(files.1) == ["1 → 2: inferred", "2 → 3: 2 to 3"])
    #expect(try chain(files.0) == ["1 → 2: 1 to 2", "2 → 3: inferred"])
    #expect(try chain(file(from: "1", to: "3")) == ["1 → 3: 1 to 3"])
  }

  @Test func `are for what fits their hashes, where these do not fit what they name`() throws {
    #expect(
      try chain(file("Item", hashesOf: (0, 2), from: "2", to: "3")) == ["1 → 3: 2 to 3"])
    for (from, to) in [(nil, nil), ("1", nil), ("Old", "3"), ("Old", "New")] as [(String?, String?)]
    {
      let file = try file(from: from, to: to)
      #expect(try chain(file) == ["1 → 3: \(file.file)"])
    }
  }

  @Test func `are for one direct step by their hashes, unless another file names it`() throws {
    let files = try (file(from: "1", to: "2"), file(from: "2", to: "3"))
    #expect(try direct(files.1) == ["2 to 3"])
    #expect(try direct(files.0, files.1) == ["1 to 2", "2 to 3"])
    let own = try file(from: "1", to: "3")
    #expect(try direct(files.0, own, files.1) == ["1 to 3"])
    #expect(try direct(files.0, file()) == ["any to any"])
    let notes = try planner([files.0, own], versions, from: versions[0], to: versions[2]).notes
    #expect(notes == ["1 to 2 is not used: it names 2 as its destination model."])
  }
}

@Suite struct `Mapping models of a part of the model` {
  @Test func `are for the merger of the versions that they name`() throws {
    let notes = (
      version("Notes", [entity("Note", "text")]),
      version("Notes 2", [entity("Note", "text", "mark")])
    )
    let labels = (
      version("Labels", [entity("Label", "title")]),
      version("Labels 2", [entity("Label", "title", "color")])
    )
    let old = try ModelVersion.merging([notes.0, labels.0])
    let new = try ModelVersion.merging([notes.1, labels.1])
    let twin = version("Labels twin", labels.0.model.entities)
    let files = [
      file("notes", "Note", from: "Notes", to: "Notes 2"),
      file("back", "Note", from: "Notes 2", to: "Notes"),
      file("labels", "Label", from: "Labels twin", to: "Labels 2"),
    ]
    let models = [notes.0, notes.1, labels.0, twin, labels.1, old, new]
    let merged = try planner(files, models, from: old, to: new)
    #expect(merged.files.map(\.file) == ["notes", "labels"])
    let chain = try VersionChain(source: old, destination: new, models: models, mappings: files)
    #expect(chain?.lines == ["Notes + Labels → Notes 2 + Labels 2: notes, labels"])
  }

  /// A store of one configuration may be of any version that has it alike.
  @Test func `are for the store's own version, or else for one that it may be of`() throws {
    let local: [String: [EntityName]] = ["Local": ["Item"], "Cloud": ["Post"]]
    let one = version("1", [entity("Item", "name"), entity("Post", "a")], configurations: local)
    let two = version("2", [entity("Item", "name"), entity("Post", "b")], configurations: local)
    let three = version(
      "3", [entity("Item", "name", "x"), entity("Post", "b")], configurations: local)
    let part = try EntityHierarchy(one.model.restricted(to: ["Item"]))
    let files = [file("2 to 3", from: "2", to: "3"), file("1 to 3", from: "1", to: "3")]
    func used(_ files: [MappingFile], _ part: EntityHierarchy?) throws -> [String] {
      try planner(files, [one, two, three], from: one, to: three, part: part, isShared: true)
        .files.map(\.file)
    }
    #expect(try used(files, part) == ["1 to 3"])
    #expect(try used([files[0]], part) == ["2 to 3"])
    #expect(try used([files[0]], nil) == [])
  }
}

@Suite struct `Mapping models that take the same objects` {
  private let old = version("1", [entity("Item", "name", "old"), entity("Tag", "word")])
  private let new = version("2", [entity("Item", "name"), entity("Tag", "word")])

  private func passes(_ entries: [String]) throws -> MappedPlanner {
    let files = try entries.enumerated().map { place, entries in
      let text = "mapping-model: 1\nentity-mappings: [\(entries)]"
      return MappingFile(
        file: "\(place).yaml", document: try MappingDocument(bytes: Array(text.utf8), name: "test"))
    }
    return try planner(files, [old, new], from: old, to: new)
  }

  private static let item = "{ source: Item, destination: Item }"
  private static let tag = "{ source: Tag, destination: Tag }"
  private static let low = #"{ source: Item, destination: Item, filter: 'name < "m"' }"#
  private static let high = #"{ source: Item, destination: Item, filter: 'name >= "m"' }"#
  private static let every = "{ source: Item, destination: Item, filter: TRUEPREDICATE }"
  private static let split =
    "{ name: A, source: Item, destination: Tag }, { name: B, source: Item, destination: Tag }"
  private static let removal = "{ source: Item, type: remove }"

  struct Case: Sendable {
    /// The entity mappings of each.
    var passes: [String]
    /// The entities whose objects would be repeated.
    var entities: [String] = []
    var isRefused = false
  }

  private static let cases: [Case] = [
    Case(passes: [item]), Case(passes: [item, tag]), Case(passes: ["\(item), \(tag)"]),
    Case(passes: [item, item], entities: ["Item"], isRefused: true),
    Case(passes: [item, tag, item], entities: ["Item"], isRefused: true),
    Case(passes: ["\(item), \(tag)", tag], entities: ["Tag"], isRefused: true),
    Case(
      passes: ["\(item), \(tag)", "\(tag), \(item)"], entities: ["Item", "Tag"], isRefused: true),
    Case(passes: [low, low], entities: ["Item"], isRefused: true),
    // Divided by filters, whatever else each of them makes.
    Case(passes: [low, high]), Case(passes: [every, item]),
    Case(passes: ["\(low), \(tag)", "\(high), \(tag)"], entities: ["Tag"]),
    Case(passes: ["\(low), \(tag)", "\(high), \(tag)", tag], entities: ["Tag"], isRefused: true),
    // One file may make two objects of one.
    Case(passes: [split]), Case(passes: [split, item]),
    Case(passes: [removal, removal]),
    Case(passes: ["{ destination: Tag }", "{ destination: Tag }"]),
  ]

  @Test(arguments: cases)
  func `are refused unless they divide some entity's objects`(example: Case) throws {
    let planner = try passes(example.passes)
    #expect(planner.repetitions.map(\.source.rawValue) == example.entities)
    let obstacles = planner.obstacles()
    let words = example.entities.map { _ in "repeated-mapping" }
    #expect((obstacles?.reasons ?? []).map(\.reason) == (example.isRefused ? words : []))
    #expect(obstacles?.code == (example.isRefused ? 134_110 : nil))
  }

  @Test func `are said with how often each object will exist`() throws {
    let planner = try passes([Self.item, Self.tag, Self.item, Self.item])
    let repetition = try #require(planner.repetitions.first)
    #expect(
      repetition.note(planner.files, count: 5)
        == "0.yaml and 2.yaml and 3.yaml take the 5 objects of Item to Item: each exists 3 times.")
    #expect(
      planner.obstacles()?.reasons.first?.message.contains("so each would exist 3 times") == true)
  }

  @Test func `are not set against each other where a policy decides`() throws {
    let policy = "{ source: Item, destination: Item, policy: P }"
    let planner = try passes([policy, Self.item])
    #expect(planner.repetitions.map(\.isWhole) == [false])
    #expect(
      planner.repetitions.first?.note(planner.files, count: 2)
        .hasSuffix("twice, unless a policy leaves it out.") == true)
  }

  @Test func `are read once, under whatever name or form`() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("godwit-mappings-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let texts = [
      "a": "mapping-model: 1\nentity-mappings: [\(Self.item)]",
      "b":
        "# The same.\nmapping-model: 1\nentity-mappings:\n  - source: Item\n    destination: Item\n",
      "c": "mapping-model: 1\nsource-model: A\nentity-mappings: [\(Self.item)]",
    ]
    func path(_ name: String) -> String { folder.appendingPathComponent(name + ".yaml").path }
    for (name, text) in texts { try Data(text.utf8).write(to: URL(fileURLWithPath: path(name))) }
    try FileManager.default.createSymbolicLink(
      atPath: path("link"), withDestinationPath: path("a"))
    #expect(try MappingFile.read([path("a"), path("c")]).map(\.file) == [path("a"), path("c")])
    for (other, words) in [
      ("a", "is given twice"), ("b", "says the same"), ("link", "says the same"),
    ] {
      let error = #expect(throws: PlanError.self) {
        try MappingFile.read([path("a"), path("c"), path(other)])
      }
      #expect(error?.description.contains(words) == true)
    }
  }
}
