import Foundation
import SystemPackage

/// A folder of the test's own, removed with the value.
final class TemporaryFolder {
  let path: FilePath

  init() throws {
    path = FilePath(NSTemporaryDirectory() + "godwit-" + UUID().uuidString)
    try FileManager.default.createDirectory(
      atPath: path.string, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path.string) }

  func file(_ name: String) -> FilePath { path.appending(name) }

  func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path.string).sorted()
  }
}

func contents(of path: FilePath) -> [UInt8]? {
  FileManager.default.contents(atPath: path.string).map { Array($0) }
}
