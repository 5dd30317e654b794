import Foundation
import GodwitMapping
import Testing

@Suite struct `A mapping document` {
  @Test(.enabled(if: Corpus.isThere), arguments: Corpus.names)
  func `of the corpus loses nothing as text`(name: String) throws {
    let path = try #require(Corpus.path(of: name))
    let document = try MappingDocument(path: path)
    #expect(!document.entityMappings.isEmpty)
    let text = try document.text()
    #expect(try MappingDocument(bytes: Array(text.utf8), name: name) == document)
  }

  @Test(.enabled(if: Corpus.isThere)) func `stands for each of the 57 of the corpus`() {
    #expect(Corpus.names.count == 57)
  }
}
