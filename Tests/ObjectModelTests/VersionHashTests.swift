import Foundation
import Testing

@testable import GodwitObjectModel

@Suite struct `A version hash` {
  /// The worked example of the format notes.
  static let event = EntityDescription(
    name: "Event",
    properties: [
      .attribute(AttributeDescription(traits: PropertyTraits(name: "timeStamp"), type: .date))
    ])

  @Test func `of the worked example is the known one`() throws {
    let hierarchy = try EntityHierarchy(ManagedObjectModel(entities: [Self.event]))
    #expect(
      hierarchy.versionHashes["Event"]?.hexadecimal
        == "5431c046d30e7f32c2cc809958add1e7579ad104a3aa8fc4846e97d7af01cc79")
  }

  @Test func `of an empty model has the known checksum`() throws {
    let hierarchy = try EntityHierarchy(ManagedObjectModel(entities: []))
    #expect(hierarchy.versionChecksum == "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
  }

  @Test(arguments: [
    (text: "", valid: false),
    (text: String(repeating: "0", count: 63), valid: false),  // half a byte short
    (text: String(repeating: "aF", count: 32), valid: true),
    (text: String(repeating: "g0", count: 32), valid: false),  // no digit
    (text: String(repeating: "00", count: 33), valid: false),  // one byte long
  ])
  func `is 64 hexadecimal digits`(text: String, valid: Bool) {
    #expect((VersionHash(hexadecimal: text) != nil) == valid)
  }

  @Test func `survives JSON`() throws {
    let hash = try #require(VersionHash(bytes: Array(0..<32)))
    let data = try JSONEncoder().encode([hash])
    #expect(try JSONDecoder().decode([VersionHash].self, from: data) == [hash])
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode([VersionHash].self, from: Data("[\"00\"]".utf8))
    }
  }

  // What Apple's guide or the data say is in the hash, and what is not.
  @Test(arguments: [
    ("optionality", true), ("type", true), ("modifier", true), ("external storage", true),
    ("transience", true), ("default", false), ("renaming", false), ("class", false),
    ("user info", false), ("validation", false), ("index", false),
  ])
  func `changes with the definition and with nothing else`(change: String, matters: Bool) throws {
    var entity = Self.event
    guard case .attribute(var attribute) = entity.properties[0] else { return }
    switch change {
    case "optionality": attribute.traits.isOptional = false
    case "type": attribute.type = .double
    case "modifier": attribute.traits.versionHashModifier = "2"
    case "external storage": attribute.allowsExternalBinaryDataStorage = true
    case "transience": attribute.traits.isTransient = true
    case "default": attribute.defaultValue = .integer(0)
    case "renaming": attribute.traits.renamingIdentifier = "date"
    case "class": entity.managedObjectClassName = "Event"
    case "user info": attribute.traits.userInfo = ["a": "b"]
    case "validation": attribute.validation = [.minimum(0)]
    default: entity.fetchIndexes = [.init(name: "i", elements: [.init(propertyName: "timeStamp")])]
    }
    entity.properties = [.attribute(attribute)]
    let before = ManagedObjectModel(entities: [Self.event])
    let after = ManagedObjectModel(entities: [entity])
    let hashes = try EntityHierarchy(before).versionHashes
    #expect(try (EntityHierarchy(after).versionHashes == hashes) == !matters)
  }

  // `NSFlagsKey` of the archive: 4 is external storage, 16 keeps a value on deletion.
  @Test(arguments: [(0, false), (4, false), (16, false), (20, true), (8, true), (36, true)])
  func `is not certain with flags whose part in it is not known, which are kept`(
    flags: Int64, isUnsettled: Bool
  ) throws {
    for isElement in [false, true] {
      var attribute = AttributeDescription(
        traits: PropertyTraits(name: "a"), type: .binary,
        allowsExternalBinaryDataStorage: flags & 4 != 0,
        preservesValueInHistoryOnDeletion: flags & 16 != 0)
      attribute.otherFlags = flags & ~20
      if isElement {
        attribute = AttributeDescription(
          traits: PropertyTraits(name: "c"), type: .composite, compositeElements: [attribute])
      }
      let entity = EntityDescription(name: "E", properties: [.attribute(attribute)])
      let model = ManagedObjectModel(entities: [entity])
      #expect(try EntityHierarchy(model).hasUnsettledHash("E") == isUnsettled)
      let read = try ManagedObjectModel(modelCache: model.modelCacheBytes())
      #expect(read.entities.first?.properties.first?.attribute == attribute)
    }
  }

  @Test(arguments: [("a", "b", false), ("\u{E9}", "b", true), ("a", "\u{E9}", true)])
  func `is not certain with a name that is not ASCII, of a composite's element either`(
    name: String, element: String, isUnsettled: Bool
  ) throws {
    let part = AttributeDescription(traits: PropertyTraits(name: element), type: .string)
    let composite = AttributeDescription(
      traits: PropertyTraits(name: name), type: .composite, compositeElements: [part])
    let entity = EntityDescription(name: "E", properties: [.attribute(composite)])
    let hierarchy = try EntityHierarchy(ManagedObjectModel(entities: [entity]))
    #expect(hierarchy.hasUnsettledHash("E") == isUnsettled)
  }

  @Test(.enabled(if: Corpus.isHere)) func `equals each of the known answers`() throws {
    let text = String(
      decoding: try Corpus.bytes(Corpus.models + "/hash-vectors.jsonl"), as: UTF8.self)
    var count = 0
    for line in text.split(separator: "\n") {
      let vector = try HashVector(String(line))
      #expect(vector.computed.hexadecimal == vector.expected, "\(vector.name)")
      count += 1
    }
    #expect(count == 259)
  }
}
