import GodwitMapping
import GodwitObjectModel
import Testing

@Suite struct `A check of the corpus` {
  @Test(.enabled(if: Corpus.isThere), arguments: Corpus.namesWithModels)
  func `names the policies that are missing and nothing else`(name: String) throws {
    let source = try Corpus.hierarchy("source", of: name)
    let destination = try Corpus.hierarchy("destination", of: name)
    let document = try MappingDocument(path: #require(Corpus.path(of: name)))
    let model = MappingModel(document, source: source, destination: destination)
    let check = MappingCheck(model, source: source, destination: destination)
    let policies = Set(document.entityMappings.compactMap(\.policy))
    let named = check.findings.filter { $0.kind == .missingPolicy }
    #expect(Set(model.entityMappings.compactMap(\.policy)) == policies)
    #expect(Set(named.compactMap(\.mapping)).isEmpty == policies.isEmpty)
    let errors = check.findings.filter { $0.severity == .error }.filter {
      $0.kind != .missingPolicy && $0.kind != .missingPolicySelector
    }
    #expect(errors.map(\.description) == [])
    let warnings = check.findings.filter {
      $0.severity == .warning && $0.kind != .uncoveredSource && $0.kind != .uncoveredDestination
    }
    #expect(warnings.map { "\(name): \($0.kind.rawValue) \($0.mapping ?? "")" } == known(name))
  }

  /// What is really wrong with some of them.
  private func known(_ name: String) -> [String] {
    switch name {
    case "kodecocodes-cdt-materials__UnCloudNotesMappingModel-v3-to-v4":
      // The row names NoteToNote where AttachmentToImageAttachment was meant.
      ["\(name): yields-nothing NoteToNote"]
    case "rileytestut-Delta__Delta4ToDelta5":
      ["\(name): empty-mapping Mapping"]
    // An optional attribute becomes a required one, and is handed on as it is.
    case "kodecocodes-cdt-materials__UnCloudNotesMappingModel-v2-to-v3":
      Array(repeating: "\(name): required-without-value NoteToAttachment", count: 2)
    case "rileytestut-Delta__Delta3ToDelta4":
      ["\(name): required-without-value CheatToCheat"]
    default: []
    }
  }
}
