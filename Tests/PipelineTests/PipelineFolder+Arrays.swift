import Foundation
import Testing

extension Godwit {
  /// How many bundles a manifest has.
  static func bundles(_ manifest: String) throws -> Int {
    let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: manifest)), as: UTF8.self)
    let header = try #require(text.split(separator: "\n").first)
    let fields = try JSONSerialization.jsonObject(with: Data(header.utf8)) as? [String: Any]
    return try #require(fields?["bundles"] as? [Any]).count
  }

  /// What a scheduler starts.
  static func task(_ manifest: String, _ index: Int, killAfter step: Int? = nil) throws -> Run {
    try run(["worker", "--manifest", manifest, "--index", "\(index)"], killAfter: step)
  }
}

extension PipelineFolder {
  /// The manifests of the pipeline's arrays.
  func manifests() throws -> [String] {
    let arrays = path("state/cluster")
    guard FileManager.default.fileExists(atPath: arrays) else { return [] }
    return try FileManager.default.contentsOfDirectory(atPath: arrays).sorted()
      .map { "\(arrays)/\($0)/manifest.jsonl" }
      .filter(FileManager.default.fileExists)
  }

  /// Does every bundle of them.
  func doAll() throws {
    for manifest in try manifests() {
      for index in try 0..<Godwit.bundles(manifest) {
        #expect(try Godwit.task(manifest, index).status == 0)
      }
    }
  }
}
