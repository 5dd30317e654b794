import Foundation
import Testing

@testable import GodwitObjectModel

@Suite struct `A written contents file` {
  @Test func `reads back as the model it was written from`() throws {
    let model = try Samples.model(Samples.everything)
    let text = try ModelXMLWriter.write(model)
    #expect(try ManagedObjectModel(xml: Array(text.utf8), path: "contents") == model)
    #expect(try ModelXMLWriter.write(model) == text)
  }

  @Test(.enabled(if: Corpus.isHere)) func `does so for every XML model of the corpus`() throws {
    for file in Corpus.files where !file.hasSuffix(".mom") {
      let model = try ModelFile.model(at: file)
      let text = try ModelXMLWriter.write(model)
      #expect(try ManagedObjectModel(xml: Array(text.utf8), path: file) == model, "\(file)")
    }
  }

  @Test(.enabled(if: Corpus.isHere)) func `keeps the version hashes of compiled models`() throws {
    for file in Corpus.files where file.hasSuffix(".mom") {
      let model = try ModelFile.model(at: file)
      let text = try ModelXMLWriter.write(model)
      let copy = try ManagedObjectModel(xml: Array(text.utf8), path: file)
      #expect(
        try EntityHierarchy(copy).versionHashes == EntityHierarchy(model).versionHashes, "\(file)")
    }
  }

  @Test(
    .enabled(if: Corpus.isHere),
    arguments: ["alemar11__CoreDataPlus__SampleModel_V1", "alemar11__CoreDataPlus__SampleModel_V2"])
  func `is byte for byte what Xcode 15 wrote`(folder: String) throws {
    let path = Corpus.models + "/" + folder + "/contents.xml"
    let original = String(decoding: try Corpus.bytes(path), as: UTF8.self)
    #expect(try ModelXMLWriter.write(ModelFile.model(at: path)) == original)
  }

  @Test func `keeps text that XML has marks for`() {
    #expect(MarkupLines.escaped("a<b>&\"'\n\u{1}é") == "a&lt;b&gt;&amp;&quot;'&#10;é")
  }
}
