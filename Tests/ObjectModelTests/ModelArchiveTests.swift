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
