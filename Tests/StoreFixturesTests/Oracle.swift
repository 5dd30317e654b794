import Foundation
import StoreFixtures

extension OracleJudge {
  /// Models of real applications: every `step`-th `.xcdatamodel` folder, sorted.
  static func corpusModels(every step: Int) -> [String] {
    guard isHere else { return [] }
    let corpus = FixtureModels.packageRoot.deletingLastPathComponent()
      .appendingPathComponent("shared/corpus")
    var found: [String] = []
    for case let url as URL in FileManager.default.enumerator(
      at: corpus, includingPropertiesForKeys: nil) ?? .init()
    where url.pathExtension == "xcdatamodel"
      && FileManager.default.fileExists(atPath: url.appendingPathComponent("contents").path)
    {
      found.append(url.path)
    }
    found.sort()
    return stride(from: 0, to: found.count, by: step).map { found[$0] }
  }
}

/// A folder for one test, gone when the test is over.
final class Scratch {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory
      .appendingPathComponent("store-fixtures-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func path(_ name: String) -> String { url.appendingPathComponent(name).path }

  func bytes(_ name: String) throws -> Data {
    try Data(contentsOf: URL(fileURLWithPath: path(name)))
  }
}
