import Foundation
import StoreFixtures

/// The independent judge of stores, which lies beside the package on the machines of its authors.
enum Oracle {
  static let shared = FixtureModels.packageRoot.deletingLastPathComponent()
    .appendingPathComponent("shared")
  static let isThere = FileManager.default.fileExists(
    atPath: shared.appendingPathComponent("oracle/oracle").path)

  struct Verdict: Equatable {
    var status: Int32
    var output: String
  }

  static func run(_ arguments: String...) throws -> Verdict {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments =
      ["python3", shared.appendingPathComponent("oracle/oracle").path] + arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Verdict(
      status: process.terminationStatus, output: String(decoding: output, as: UTF8.self))
  }

  /// Models of real applications: every `step`-th `.xcdatamodel` folder, sorted.
  static func corpusModels(every step: Int) -> [String] {
    guard isThere else { return [] }
    let corpus = shared.appendingPathComponent("corpus")
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
