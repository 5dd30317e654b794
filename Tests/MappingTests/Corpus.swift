import Foundation
import GodwitObjectModel

/// Third-party mapping models beside the repository, read in place where they are.
enum Corpus {
  static let shared = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("shared")

  static var mappings: URL { shared.appendingPathComponent("corpus-mappings") }

  static var isThere: Bool { FileManager.default.fileExists(atPath: mappings.path) }

  /// The folders of the corpus that hold a mapping model.
  static let names: [String] = {
    let found = (try? FileManager.default.contentsOfDirectory(atPath: mappings.path)) ?? []
    return found.sorted().filter { path(of: $0) != nil }
  }()

  /// Those whose models can be read as well; one has a source model of Xcode 3.
  static let namesWithModels = names.filter {
    !$0.hasPrefix("thepost-iPhoneCoreDataRecipesMigration")
  }

  static func path(of name: String) -> String? {
    ["mapping.xcmappingmodel", "mapping.cdm"].map {
      mappings.appendingPathComponent(name).appendingPathComponent($0).path
    }.first { FileManager.default.fileExists(atPath: $0) }
  }
}

extension Corpus {
  /// A pair of models with what the independent judge says about inferring a mapping.
  struct ModelPair: Decodable, Sendable, CustomStringConvertible {
    struct Reason: Decodable, Hashable, Sendable {
      let reason: String
      let `where`: String
      let by: String
      let certainty: String
    }

    let source_model: String
    let destination_model: String
    let inferable: Bool
    let reasons: [Reason]?

    var description: String {
      URL(fileURLWithPath: source_model).deletingLastPathComponent().lastPathComponent
    }
  }

  private struct Cases: Decodable {
    let model_pairs: [ModelPair]
  }

  static let modelPairs: [ModelPair] = {
    let file = shared.appendingPathComponent("corpus/cases.json")
    guard let data = try? Data(contentsOf: file) else { return [] }
    return (try? JSONDecoder().decode(Cases.self, from: data).model_pairs) ?? []
  }()

  static func hierarchy(_ path: String) throws -> EntityHierarchy {
    try EntityHierarchy(try ModelFile.model(at: path))
  }

  /// A model that lies beside a mapping model: `source` or `destination`.
  static func hierarchy(_ side: String, of name: String) throws -> EntityHierarchy {
    try hierarchy(
      mappings.appendingPathComponent(name).appendingPathComponent("\(side).xcdatamodel").path)
  }

  /// A model of the cases, whose paths are relative to the corpus.
  static func hierarchy(case path: String) throws -> EntityHierarchy {
    try hierarchy(shared.appendingPathComponent("corpus").appendingPathComponent(path).path)
  }
}
