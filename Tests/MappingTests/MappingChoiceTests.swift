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
    sourceNames: Set<String> = ["A", "A again"]
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
