import Foundation
import GodwitMapping

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

  static func path(of name: String) -> String? {
    ["mapping.xcmappingmodel", "mapping.cdm"].map {
      mappings.appendingPathComponent(name).appendingPathComponent($0).path
    }.first { FileManager.default.fileExists(atPath: $0) }
  }
}
