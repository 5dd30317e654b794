import Foundation
import GodwitKeyedArchive

@testable import GodwitObjectModel

/// Third-party models beside the checkout, read in place where they are.
enum Corpus {
  static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("shared").path
  static let models = root + "/corpus-models"
  static let isHere = FileManager.default.fileExists(atPath: models)

  static func bytes(_ path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
  }

  /// Folders of the corpus in which a store's model cache lies inflated, with its metadata.
  static let storeFolders: [String] = folders { $0.contains("metadata.json") }

  private static func folders(where wanted: ([String]) -> Bool) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: models)) ?? []).sorted()
      .map { models + "/" + $0 }
      .filter { wanted((try? FileManager.default.contentsOfDirectory(atPath: $0)) ?? []) }
  }

  /// Every model file of all corpora: `contents`, `contents.xml` and `.mom`.
  static let files: [String] = {
    var found: [String] = []
    for folder in ["corpus-models", "corpus", "corpus-mappings"] {
      let base = root + "/" + folder
      let walker = FileManager.default.enumerator(atPath: base)
      while let path = walker?.nextObject() as? String {
        let name = (path as NSString).lastPathComponent
        if name == "contents"
          ? path.contains(".xcdatamodel/") : name == "contents.xml" || name.hasSuffix(".mom")
        {
          found.append(base + "/" + path)
        }
      }
    }
    return found.sorted()
  }()

  static func json(_ path: String) throws -> [String: Any] {
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    return try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
  }

  /// The version hashes that a store's metadata holds.
  static func recordedHashes(_ metadata: [String: Any]) -> [EntityName: VersionHash] {
    let texts = metadata["NSStoreModelVersionHashes"] as? [String: String] ?? [:]
    var hashes: [EntityName: VersionHash] = [:]
    for (name, text) in texts {
      hashes[EntityName(name)] = Data(base64Encoded: text).flatMap {
        VersionHash(bytes: [UInt8]($0))
      }
    }
    return hashes
  }
}
