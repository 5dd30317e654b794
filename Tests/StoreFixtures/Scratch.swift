import Foundation
import GodwitDurableFiles
import SystemPackage

/// A folder of its own that goes away with the value.
package final class Scratch: Sendable {
  package let path: FilePath

  package init(in parent: FilePath? = nil) throws {
    let parent = parent ?? FilePath(FileManager.default.temporaryDirectory.path)
    path = parent.appending("godwit-scratch-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      atPath: path.string, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path.string) }

  package func folder(_ name: String) throws -> FilePath {
    let folder = path.appending(name)
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: true)
    return folder
  }
}

/// Every file below a folder, by its path from there.
package func files(below folder: FilePath) -> [String] {
  let all =
    FileManager.default.enumerator(atPath: folder.string)?.compactMap { $0 as? String } ?? []
  return all.filter { (try? FileKind(at: FilePath(folder.string + "/" + $0))) != .folder }.sorted()
}
