import Foundation
import Testing

@testable import GodwitObjectModel

@Suite struct `A model's archive` {
  @Test(.enabled(if: Corpus.isHere)) func `reads back as the model it was written from`() throws {
    for file in Corpus.files {
      let model = try ModelFile.model(at: file)
      let copy = try ManagedObjectModel(archive: try model.archiveBytes(), path: file)
      #expect(copy == model, "\(file)")
      #expect(try ManagedObjectModel(modelCache: try model.modelCacheBytes()) == model)
    }
  }
}
