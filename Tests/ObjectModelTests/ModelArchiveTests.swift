import Foundation
import GodwitKeyedArchive
import Testing

@testable import GodwitObjectModel

@Suite struct `A model's archive` {
  @Test func `reads back as the model it was written from`() throws {
    let model = try Samples.model(Samples.everything)
    let bytes = try model.archiveBytes()
    #expect(try ManagedObjectModel(archive: bytes, path: "mom") == model)
    #expect(try model.archiveBytes() == bytes)
  }

  @Test(.enabled(if: Corpus.isHere)) func `does so for every model of the corpus`() throws {
    for file in Corpus.files {
      let model = try ModelFile.model(at: file)
      #expect(try ManagedObjectModel(modelCache: try model.modelCacheBytes()) == model, "\(file)")
    }
  }

  // Not every whole number beyond 2^53 is a floating-point one.
  @Test(arguments: [
    "9007199254740993", "-9007199254740993", "1234567890123456789", "9223372036854775807",
    "-9223372036854775808", "9223372036854775808", "1e18", "1e20", "1.25", "0",
  ])
  func `keeps a decimal default value as XML has it`(digits: String) throws {
    let model = try Samples.model(
      "<entity name='A'><attribute name='d' attributeType='Decimal' defaultValueString='\(digits)'/>"
        + "</entity>")
    #expect(try ManagedObjectModel(archive: model.archiveBytes(), path: "mom") == model)
  }

  // Without its predicate it would be an index that the store lacks.
  @Test(arguments: [
    ("name != nil", true), ("age >= 3 AND age < 9", true), ("name BEGINSWITH \"a\"", false),
    ("name LIKE \"a*\"", false), ("age BETWEEN {1, 9}", false), ("age IN {1, 2}", false),
    ("name.length > 3 AND name ENDSWITH[c] \"z\"", false),
  ])
  func `has a partial index with its predicate or not at all`(
    predicate: String, isThere: Bool
  ) throws {
    var model = try Samples.model(
      """
      <entity name="E"><attribute name="age" optional="YES" attributeType="Integer 16"/>
      <attribute name="name" optional="YES" attributeType="String"/></entity>
      """)
    let plain = FetchIndexDescription(name: "a", elements: [.init(propertyName: "name")])
    var partial = plain
    (partial.name, partial.partialIndexPredicate) = ("b", predicate)
    model.entities[0].fetchIndexes = [plain, partial]
    let read = try ManagedObjectModel(archive: model.archiveBytes(), path: "mom")
    let text = read.entities[0].fetchIndexes.map { "\($0.name) \($0.partialIndexPredicate ?? "-")" }
    #expect(text.count == (isThere ? 2 : 1) && text.first == "a -")
  }

  /// Of one entity with one attribute.
  private static func model(
    _ className: String, _ fields: (inout KeyedArchiveWriter) -> [(String, PropertyList)]
  ) throws -> ManagedObjectModel {
    var writer = KeyedArchiveWriter()
    let (entityName, name) = (writer.string("A"), writer.string("a"))
    let made = fields(&writer)
    let attribute = writer.object(className, made + [("NSPropertyName", name.uid)])
    let properties = writer.dictionary([(key: name, value: attribute)])
    let entity = writer.object(
      "NSEntityDescription", [("NSEntityName", entityName.uid), ("NSProperties", properties.uid)])
    let entities = writer.dictionary([(key: entityName, value: entity)])
    let root = writer.object("NSManagedObjectModel", [("NSEntities", entities.uid)])
    return try ManagedObjectModel(archive: writer.bytes(root: root), path: "mom")
  }

  /// Of an object of the application's that refers to itself.
  @Test func `keeps a default value that no column holds`() throws {
    let model = try Self.model("NSAttributeDescription") { writer in
      let cover = writer.reserve()
      let list = writer.collection([cover, writer.value(.real(0.5))])
      writer.fill(cover, "App.Cover", [("text", writer.string("plain").uid), ("list", list.uid)])
      return [("NSAttributeType", .integer(1800)), ("NSDefaultValue", cover.uid)]
    }
    let attribute = try #require(model.entities[0].properties[0].attribute)
    #expect(attribute.hasUnstorableDefault && attribute.defaultValue == nil)
    let cover = try KeyedArchive(bytes: try #require(attribute.archived[.defaultValue])).root()
    #expect(cover.className == "App.Cover" && cover.string("text") == "plain")
    #expect(cover.elements("list").first?.object == cover)
    let bytes = try model.archiveBytes()
    #expect(try ManagedObjectModel(archive: bytes, path: "mom") == model)
  }

  @Test(arguments: [(["x"], true), ([], false)])
  func `keeps a composite's default value`(keys: [String], isUnstorable: Bool) throws {
    let model = try Self.model("NSCompositeAttributeDescription") { writer in
      let pairs = keys.map { (key: writer.string($0), value: writer.string("plain")) }
      return [("NSDefaultValue", writer.dictionary(pairs).uid)]
    }
    let attribute = try #require(model.entities[0].properties[0].attribute)
    #expect(attribute.hasUnstorableDefault == isUnstorable)
    #expect(attribute.archived[.defaultValue] != nil)
    let bytes = try model.archiveBytes()
    #expect(try ManagedObjectModel(archive: bytes, path: "mom") == model)
  }

  /// An empty text is a number's missing default.
  @Test(arguments: [
    (300, "", StoredDefault?.none, false),
    (300, "9007199254740993", .integer(9_007_199_254_740_993), false), (700, "", .text(""), false),
    (300, "x", nil, true),
  ])
  func `may have numbers as texts`(
    type: Int64, text: String, value: StoredDefault?, isUnstorable: Bool
  ) throws {
    let model = try Self.model("NSAttributeDescription") { writer in
      [("NSAttributeType", .integer(type)), ("NSDefaultValue", writer.string(text).uid)]
    }
    let attribute = try #require(model.entities[0].properties[0].attribute)
    #expect(attribute.defaultValue == value && attribute.hasUnstorableDefault == isUnstorable)
  }

  @Test func `keeps the filter of a derivation, which then is not understood`() throws {
    func attribute(isFiltered: Bool) throws -> AttributeDescription {
      let model = try Self.model("NSDerivedAttributeDescription") { writer in
        let filter = isFiltered ? writer.object("NSTruePredicate", []) : .null
        return [
          ("NSAttributeType", .integer(300)), ("NSFilteringPredicate", filter.uid),
          ("NSDerivationExpression", writer.string("count:(pages)").uid),
        ]
      }
      let bytes = try model.archiveBytes()
      #expect(try ManagedObjectModel(archive: bytes, path: "mom") == model)
      return try #require(model.entities[0].properties[0].attribute)
    }
    let (all, some) = try (attribute(isFiltered: false), attribute(isFiltered: true))
    #expect(all.countedRelationship == "pages" && some.countedRelationship == nil)
    #expect(some.derivationExpression == "count:(pages) where TRUEPREDICATE")
    #expect(VersionHashRecipe.hash(of: some) == VersionHashRecipe.hash(of: all))
    let kept = try KeyedArchive(bytes: try #require(some.archived[.filter])).root()
    #expect(kept.className == "NSTruePredicate")
  }

  @Test func `refers back from everything to what holds it`() throws {
    let archive = try KeyedArchive(bytes: Samples.model(Samples.everything).archiveBytes())
    let root = try archive.root()
    let recipe = try #require(
      root.entries("NSEntities").first { $0.key == "Recipe" }?.value.object)
    #expect(recipe.object("NSManagedObjectModel") == root)
    #expect(recipe.entries("NSSubentities").map(\.key) == ["Soup"])
    let properties = recipe.entries("NSProperties")
    #expect(properties.allSatisfy { $0.value.object?.object("NSEntity") == recipe })
    let steps = try #require(properties.first { $0.key == "steps" }?.value.object)
    let inverse = try #require(steps.object("NSInverseRelationship"))
    #expect(inverse.object("NSInverseRelationship") == steps)
    #expect(inverse.object("NSDestinationEntity") == recipe)
  }

  // `_P` repeats the named keys as bits.
  @Test(arguments: [
    ("title", Int64(0x01)),  // required, and validation, user info and modifier clear the rest
    ("binary", 0xF3), ("transient", 0xFB), ("steps", 0x4F3), ("fetched", 0xFF),
    ("secret", 0x1F3), ("rating", 0xC1), ("count", 0xF7),
  ])
  func `sums up its properties' flags`(name: String, bits: Int64) throws {
    let root = try KeyedArchive(bytes: Samples.model(Samples.everything).archiveBytes()).root()
    let recipe = root.entries("NSEntities").first { $0.key == "Recipe" }?.value.object
    let property = recipe?.entries("NSProperties").first { $0.key == name }?.value.object
    #expect(property?.integer("_P") == bits)
  }

  @Test(.enabled(if: Oracle.isHere)) func `has the same hashes for the oracle`() throws {
    var files = Corpus.files.filter { $0.hasPrefix(Corpus.models) }
    let sample = NSTemporaryDirectory() + "godwit-sample-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: sample) }
    // Its reader leaves the elements of a composite in XML out of the hash, so none here.
    let text = Samples.text(Samples.everything.replacing("attributeType=\"Composite\"", with: ""))
    try Data(text.utf8).write(to: URL(fileURLWithPath: sample))
    files.append(sample)
    #expect(try Oracle.disagreements(over: files) == [])
  }
}

@Suite struct `A model cache` {
  @Test func `of a deflate bomb is refused before it fills the memory`() throws {
    // 256 MiB of zeros.
    let bomb = try ModelCache.deflate([UInt8](repeating: 0, count: 256 << 20))
    #expect(bomb.count < 1 << 20)
    #expect(throws: ModelError.modelCache(reason: "it inflates to more than 67108864 bytes")) {
      try ManagedObjectModel(modelCache: bomb)
    }
  }

  @Test func `that is damaged anywhere is an error or a model, never a crash`() throws {
    let bytes = try Samples.model(Samples.everything).modelCacheBytes()
    for length in stride(from: 0, to: bytes.count, by: 97) {
      #expect(throws: ModelError.self) {
        try ManagedObjectModel(modelCache: Array(bytes[..<length]))
      }
    }
  }

  @Test(arguments: [UInt64(1), 2, 3])
  func `whose archive has flipped bits is an error or a model`(seed: UInt64) throws {
    let bytes = try Samples.model(Samples.everything).archiveBytes()
    var state = seed &* 0x9E37_79B9_7F4A_7C15
    for _ in 0..<300 {
      var damaged = bytes
      for _ in 0..<3 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        damaged[Int(state >> 33) % damaged.count] ^= UInt8(1 << (state >> 60 & 7))
      }
      do { _ = try ManagedObjectModel(archive: damaged, path: "mom") } catch is ModelError {}
    }
  }
}

@Suite struct `A hostile model archive` {
  /// An archive of `count` entities that all share what `fields` makes.
  private static func archive(
    entities count: Int, sharing fields: (inout KeyedArchiveWriter) -> [(String, PropertyList)]
  ) -> [UInt8] {
    var writer = KeyedArchiveWriter()
    let shared = fields(&writer)
    let pairs = (0..<count).map { number in
      let name = writer.string("E\(number)")
      let entity = writer.object("NSEntityDescription", [("NSEntityName", name.uid)] + shared)
      return (key: name, value: entity)
    }
    let entities = writer.dictionary(pairs)
    let root = writer.object("NSManagedObjectModel", [("NSEntities", entities.uid)])
    return writer.bytes(root: root)
  }

  @Test func `cannot make millions of properties by sharing them`() {
    let bytes = Self.archive(entities: 3_000) { writer in
      let property = writer.object("NSAttributeDescription", [])
      let pairs = (0..<3_000).map { (key: writer.string("p\($0)"), value: property) }
      return [("NSProperties", writer.dictionary(pairs).uid)]
    }
    #expect(throws: ModelError.tooLarge(what: "items", limit: ReadingBudget.limit)) {
      try ManagedObjectModel(archive: bytes, path: "mom")
    }
  }

  @Test func `cannot nest composites or predicates in circles`() throws {
    var writer = KeyedArchiveWriter()
    let attribute = writer.reserve()
    let predicate = writer.reserve()
    let itself = writer.collection([predicate])
    writer.fill(
      predicate, "NSCompoundPredicate",
      [("NSCompoundPredicateType", .integer(1)), ("NSSubpredicates", itself.uid)])
    writer.fill(
      attribute, "NSAttributeDescription",
      [("NSPropertyName", writer.string("a").uid), ("NSValidationPredicates", itself.uid)])
    let composite = writer.reserve()
    writer.fill(
      composite, "NSCompositeAttributeDescription",
      [
        ("NSPropertyName", writer.string("c").uid),
        ("NSCompositeElements", writer.collection([composite, composite]).uid),
      ])
    func model(_ property: KeyedArchiveWriter.Reference) throws -> ManagedObjectModel {
      var writer = writer
      let properties = writer.dictionary([(key: writer.string("a"), value: property)])
      let entity = writer.object(
        "NSEntityDescription",
        [("NSEntityName", writer.string("E").uid), ("NSProperties", properties.uid)])
      let entities = writer.dictionary([(key: writer.string("E"), value: entity)])
      let root = writer.object("NSManagedObjectModel", [("NSEntities", entities.uid)])
      return try ManagedObjectModel(archive: writer.bytes(root: root), path: "mom")
    }
    #expect(try model(attribute).entities[0].properties[0].attribute?.validation == [])
    #expect(throws: ModelError.self) { try model(composite) }
  }

  @Test func `cannot inherit without end`() {
    let entities = (0..<3_000).map { number in
      EntityDescription(
        name: EntityName("E\(number)"),
        superentity: number == 0 ? nil : EntityName("E\(number - 1)"))
    }
    let error = ModelError.tooLarge(
      what: "entities with those they inherit from", limit: 4_000_000)
    #expect(throws: error) {
      try EntityHierarchy(ManagedObjectModel(entities: entities))
    }
  }
}
