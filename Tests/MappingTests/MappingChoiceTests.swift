import GodwitMapping
import GodwitObjectModel
import Testing

@Suite struct `A mapping model without hashes` {
  private let source: EntityHierarchy
  private let destination: EntityHierarchy

  init() throws {
    source = try model(entity("Item", attribute("name")))
    destination = try model(entity("Item", attribute("name"), attribute("rank", .integer16)))
  }

  private func choice(
    _ from: String?, _ to: String?, entries: [MappingDocument.Entry]? = nil,
    sourceNames: Set<VersionName> = ["A", "A again"]
  ) -> MappingChoice {
    let entry = MappingDocument.Entry(source: "Item", destination: "Item")
    let document = MappingDocument(
      entityMappings: entries ?? [entry], sourceModelPath: from, destinationModelPath: to)
    return MappingChoice(
      among: [("file", document)], source: source, destination: destination,
      versions: VersionNames(
        source: sourceNames, destination: ["C"], given: ["A", "A again", "B", "C", "Shop 1.2"]))
  }

  /// The models that a file names, and which of them forbids it from A to C.
  private static let cases: [(String?, String?, String?)] = [
    (nil, nil, nil), ("A", "C", nil), ("A again", "C.mom", nil),
    ("Model/Shop.xcdatamodeld/A.xcdatamodel", "/Users/x/C.xcdatamodel/", nil),
    ("A.xcdatamodel/contents", "Shop.xcdatamodeld:C", nil),
    // A bundle is no version, and of versions that are not at hand nothing is known.
    ("B.xcdatamodeld", "B.momd", nil), ("Old", "New", nil), ("Old", "C", nil), ("A", "New", nil),
    ("Shop 1.3.xcdatamodel", nil, nil),
    ("A", "B", "names B as its destination model"), ("B", "C", "names B as its source model"),
    ("C", "A", "names C as its source model"), ("B", nil, "names B as its source model"),
    (nil, "B", "names B as its destination model"), ("B", "New", "names B as its source model"),
    ("Old", "B.xcdatamodel", "names B as its destination model"),
    ("Shop.xcdatamodeld:B", "C", "names B as its source model"),
    ("Shop 1.2", "C", "names Shop 1.2 as its source model"),
    ("Shop.momd/Shop 1.2.mom", "C", "names Shop 1.2 as its source model"),
  ]

  @Test(arguments: cases)
  func `is for the versions that it names, as far as they are at hand`(
    from: String?, to: String?, reason: String?
  ) throws {
    let choice = choice(from, to)
    #expect(choice.matching == (reason == nil ? [0] : []))
    #expect(
      choice.mismatches.map(\.description) == (reason.map { ["file is not used: it \($0)."] } ?? [])
    )
    #expect(choice.mismatches.allSatisfy { $0.namesOtherModels && $0.reason == .otherVersion })
  }

  @Test func `is not for a store of a version without a name where it names one`() {
    #expect(choice("B", "C", sourceNames: []).matching == [])
    #expect(choice("Old", "C", sourceNames: []).matching == [0])
    #expect(choice(nil, nil, sourceNames: []).matching == [0])
  }

  @Test func `names another version though an entity is misspelt, too`() {
    let entries = [MappingDocument.Entry(source: "Itm", destination: "Item")]
    #expect(choice("B", "C", entries: entries).mismatches.map(\.namesOtherModels) == [true])
    #expect(choice("A", "C", entries: entries).mismatches.map(\.namesOtherModels) == [false])
  }

  @Test func `is judged by its hashes where it has some, whatever it names`() {
    var document = MappingDocument(defaultFor: source, to: destination)
    document.sourceModelPath = "B"
    document.destinationModelPath = "A"
    #expect(choice("B", "A", entries: document.entityMappings).matching == [0])
  }
}

@Suite struct `A mapping model of one of several bundles` {
  private static let given: Set<VersionName> = [
    VersionName("Model", bundle: "Notes"), VersionName("Model 2", bundle: "Notes"),
    VersionName("Model", bundle: "Songs"), VersionName("Model 2", bundle: "Songs"), "Alone",
  ]

  /// What a file names, and the bundles whose version is meant.
  @Test(arguments: [
    ("Model", ["Notes", "Songs"]), ("Model.xcdatamodel", ["Notes", "Songs"]),
    ("App/Notes.xcdatamodeld/Model.xcdatamodel", ["Notes"]),
    ("Songs.xcdatamodeld/Model.xcdatamodel/contents", ["Songs"]),
    ("Songs.xcdatamodeld:Model", ["Songs"]),
    ("Notes.momd/Model.mom", ["Notes"]), ("App/Notes.momd:Model", ["Notes"]),
    // The bundle has another name by now.
    ("Old.xcdatamodeld/Model.xcdatamodel", ["Notes", "Songs"]),
    ("Notes.xcdatamodeld", []), ("Notes.xcdatamodeld/Model 3.xcdatamodel", []),
  ])
  func `means the versions of the bundle that it names`(path: String, bundles: [String]) throws {
    let found = VersionName(path: path).map { Self.given.meant(by: $0) } ?? []
    #expect(Set(found.compactMap(\.bundle)) == Set(bundles))
    #expect(found.allSatisfy { $0.name == "Model" })
    #expect(Self.given.meant(by: VersionName("Alone", bundle: "Notes")) == ["Alone"])
  }

  @Test func `means the version that is spelled as it says, else one that looks the same`() {
    let both: Set<VersionName> = ["caf\u{E9}", "cafe\u{301}"]
    #expect(both.count == 2)
    for name in both { #expect(both.meant(by: name) == [name]) }
    let composed: Set<VersionName> = ["caf\u{E9}"]
    #expect(composed.meant(by: "cafe\u{301}") == composed)
  }

  @Test(arguments: ["S\u{6DD}.xcdatamodeld/V\u{6DD}.xcdatamodel", "S\u{6DD}.momd:V\u{6DD}"])
  func `is named whatever letter stands before a dot or a slash`(path: String) {
    #expect(VersionName(path: "a\u{6DD}/" + path) == VersionName("V\u{6DD}", bundle: "S\u{6DD}"))
  }

  /// The bundle of the store's versions, and whether a file for those of Notes is for it.
  @Test(arguments: [("Notes", true), ("Songs", false)])
  func `is not for those of another that are called alike`(bundle: String, isOwn: Bool) throws {
    let models = try model(entity("User", attribute("name")))
    let document = MappingDocument(
      entityMappings: [MappingDocument.Entry(source: "User", destination: "User")],
      sourceModelPath: "Notes.xcdatamodeld/Model.xcdatamodel",
      destinationModelPath: "Notes.xcdatamodeld/Model 2.xcdatamodel")
    let choice = MappingChoice(
      among: [("file", document)], source: models, destination: models,
      versions: VersionNames(
        source: [VersionName("Model", bundle: bundle)],
        destination: [VersionName("Model 2", bundle: bundle)], given: Self.given))
    #expect(choice.matching == (isOwn ? [0] : []))
    #expect(
      choice.mismatches.map(\.description)
        == (isOwn ? [] : ["file is not used: it names Model of Notes as its source model."]))
    #expect(choice.mismatches.allSatisfy { $0.namesOtherModels })
  }
}

@Suite struct `A choice among mapping models` {
  private func document(_ text: String) throws -> MappingDocument {
    try MappingDocument(bytes: Array(text.utf8), name: "test")
  }

  /// A file that does not match, and whether the names of its models say that it is for others.
  @Test(arguments: [
    ("", false), ("source-model: Shop.xcdatamodeld/Old.xcdatamodel\n", false),
    ("source-model: Other.xcdatamodel\n", true),
    ("source-model: Old\ndestination-model: New 2.xcdatamodel\n", true),
  ])
  func `tells a misspelt file from one for other models`(head: String, isOther: Bool) throws {
    let models = try model(entity("A", attribute("x")))
    let text = "mapping-model: 1\n" + head + "entity-mappings: [{ source: B, destination: A }]"
    let choice = MappingChoice(
      among: [("file", try document(text))], source: models, destination: models,
      names: (["Old"], ["New"]))
    #expect(choice.mismatches.map(\.namesOtherModels) == [isOther])
  }

  @Test func `leaves out the rows of a mapping without a source`() throws {
    let models = try model(entity("A", attribute("x", .binary)))
    let added = try document(
      "mapping-model: 1\nentity-mappings: [{ destination: A, attributes: { x: stable, y: 0 } }]")
    let choice = MappingChoice(
      among: [("file", added)], source: models, destination: models)
    #expect(choice.mismatches == [])
    let check = MappingCheck(
      MappingModel(added, source: models, destination: models), source: models,
      destination: models)
    #expect(check.isSound && check.findings.count >= 2)
  }

  @Test func `names the entity that differs`() throws {
    let old = try model(entity("A", attribute("x")))
    let new = try model(entity("A", attribute("x"), attribute("y")))
    let other = try model(entity("A", attribute("z")), entity("B"))
    let right = MappingDocument(defaultFor: old, to: new)
    let wrong = MappingDocument(defaultFor: other, to: new)
    let choice = MappingChoice(
      among: [("wrong", wrong), ("right", right)], source: old, destination: new)
    #expect(choice.matching == [1])
    #expect(
      choice.mismatches == [
        MappingMismatch(
          file: "wrong", mapping: "AToA", side: .source, entity: "A", reason: .otherVersion,
          namesOtherModels: true)
      ])
    let both = MappingChoice(
      among: [("one", right), ("two", right)], source: old, destination: new)
    #expect(both.matching == [0, 1])
  }

  @Test func `compares names where a file has no hashes`() throws {
    let models = try model(entity("A", attribute("x")))
    let choice = MappingChoice(
      among: [
        ("entity", try document("mapping-model: 1\nentity-mappings: [{ destination: C }]")),
        (
          "property",
          try document(
            "mapping-model: 1\nentity-mappings: [{ source: A, destination: A, attributes: { y: 1 } }]"
          )
        ),
        (
          "right",
          try document(
            "mapping-model: 1\nentity-mappings: [{ destination: A, attributes: { x: 1 } }]")
        ),
      ], source: models, destination: models)
    #expect(choice.matching == [2])
    #expect(choice.mismatches.map(\.reason) == [.unknownEntity, .unknownProperty("y")])
    #expect(
      choice.mismatches.map(\.description) == [
        "entity is not used: it names the destination entity C (C), which the model does not have. "
          + "Did you mean A?",
        "property is not used: it names A.y (AToA), which the destination model does not have. "
          + "Did you mean x?",
      ])
  }
}
