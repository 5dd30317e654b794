import Foundation
import GodwitExpressions
import GodwitMapping
import GodwitObjectModel
import Testing

@Suite struct `A mapping document` {
  @Test func `that maps a property twice is not written as text, which cannot hold it`() {
    let rows = ["é", "e\u{301}"].map { MappingDocument.Row($0, .automatic) }
    for pair in [rows, [rows[0], rows[0]]] {
      let entry = MappingDocument.Entry(
        source: EntityName("A"), destination: EntityName("A"), attributes: pair)
      #expect {
        try MappingDocument(entityMappings: [entry]).text()
      } throws: { error in
        guard case MappingError.unwritable(let reason) = error else { return false }
        return reason.contains("twice") && reason.contains("AToA")
      }
    }
  }

  /// Many words that YAML could take for aliases, and a name that is an anchor elsewhere.
  @Test func `with texts that look like YAML's own signs loses nothing as text`() throws {
    let words =
      (0..<18).map { "name CONTAINS \" *a\($0) & b\"" } + ["name != \"&D\" ", "name != \"'*\""]
    var entry = MappingDocument.Entry(
      source: "A", destination: "A",
      selection: .filter(try PredicateExpression(parsing: words.joined(separator: " AND "))))
    entry.userInfo = ["*k": "&v", "plain": "*"]
    let document = MappingDocument(entityMappings: [entry])
    #expect(try MappingDocument(bytes: Array(document.text().utf8), name: "a") == document)
  }

  /// The normal form of an expression may be longer than the text that it was read from.
  @Test func `that could not be read back is not written as text`() throws {
    let words = Array(repeating: "n=1", count: 16_000).joined(separator: "&&")
    let entry = MappingDocument.Entry(
      source: "A", destination: "A",
      selection: .filter(try PredicateExpression(parsing: words)))
    #expect {
      try MappingDocument(entityMappings: [entry]).text()
    } throws: { error in
      guard case MappingError.unwritable(let reason) = error else { return false }
      return reason.contains("read back")
    }
  }

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

@Suite struct `A mapping model` {
  /// The one pair of which the source and Xcode's compiled form are both at hand.
  @Test(.enabled(if: Corpus.isThere)) func `is completed as Xcode's compiler does it`() throws {
    let name = "alemar11-CoreDataPlus__V2toV3"
    let source = try Corpus.hierarchy("source", of: name)
    let destination = try Corpus.hierarchy("destination", of: name)
    func model(_ name: String) throws -> MappingModel {
      let path = try #require(Corpus.path(of: name))
      return MappingModel(
        try MappingDocument(path: path), source: source, destination: destination)
    }
    var compiled = try model(name + "-cdm")
    var ours = try model(name)
    for place in compiled.entityMappings.indices {
      // The hashes are in the compiled file only.
      compiled.entityMappings[place].sourceHash = nil
      compiled.entityMappings[place].destinationHash = nil
      ours.entityMappings[place].sourceHash = nil
      ours.entityMappings[place].destinationHash = nil
    }
    #expect(ours.entityMappings.map(\.name) == compiled.entityMappings.map(\.name))
    for (a, b) in zip(ours.entityMappings, compiled.entityMappings) { #expect(a == b) }
  }

  @Test(.enabled(if: Corpus.isThere)) func `of a compiled file has its models' hashes`() throws {
    let name = "alemar11-CoreDataPlus__V2toV3-cdm"
    let path = try #require(Corpus.path(of: name))
    let source = try Corpus.hierarchy("source", of: name).versionHashes
    let destination = try Corpus.hierarchy("destination", of: name).versionHashes
    for entry in try MappingDocument(path: path).entityMappings {
      #expect(entry.source.flatMap { source[$0] } == entry.sourceHash)
      #expect(entry.destination.flatMap { destination[$0] } == entry.destinationHash)
    }
  }
}

@Suite struct `A simplified mapping document` {
  @Test(.enabled(if: Corpus.isThere), arguments: Corpus.namesWithModels)
  func `means the same and is never longer`(name: String) throws {
    let source = try Corpus.hierarchy("source", of: name)
    let destination = try Corpus.hierarchy("destination", of: name)
    let document = try MappingDocument(path: #require(Corpus.path(of: name)))
    let simplified = document.simplified(source: source, destination: destination)
    #expect(
      MappingModel(simplified, source: source, destination: destination)
        == MappingModel(document, source: source, destination: destination))
    let text = try simplified.text()
    #expect(text.count <= (try document.text()).count)
    #expect(try MappingDocument(bytes: Array(text.utf8), name: name) == simplified)
  }
}
