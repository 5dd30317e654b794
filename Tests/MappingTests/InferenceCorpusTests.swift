import Foundation
import GodwitMapping
import GodwitObjectModel
import Testing

@Suite struct `Inference over the corpus` {
  @Test(.enabled(if: Corpus.isThere), arguments: Corpus.modelPairs)
  func `agrees with the independent judge`(pair: Corpus.ModelPair) throws {
    let mapping = InferredMapping(
      source: try Corpus.hierarchy(case: pair.source_model),
      destination: try Corpus.hierarchy(case: pair.destination_model))
    let ours = Set(
      mapping.refusals.map { "\($0.reason.rawValue) \($0.place) \($0.certainty.rawValue)" })
    let theirs = Set(
      (pair.reasons ?? []).filter { $0.by == "model" }.map {
        "\($0.reason) \($0.where) \($0.certainty)"
      })
    #expect(ours == theirs)
    #expect(mapping.isPossible == pair.inferable)
  }

  @Test(.enabled(if: Corpus.isThere)) func `covers all 56 pairs`() {
    #expect(Corpus.modelPairs.count == 56)
  }

  @Test(.enabled(if: Corpus.isThere), arguments: Corpus.namesWithModels)
  func `makes a mapping model that reads back from text`(name: String) throws {
    let mapping = InferredMapping(
      source: try Corpus.hierarchy("source", of: name),
      destination: try Corpus.hierarchy("destination", of: name))
    let document = MappingDocument(mapping.mappingModel)
    let text = try document.text()
    let read = try MappingDocument(bytes: Array(text.utf8), name: name)
    #expect(read == document)
    #expect(
      MappingModel(read, source: mapping.source, destination: mapping.destination)
        == mapping.mappingModel)
  }
}
