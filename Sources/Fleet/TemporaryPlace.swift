import Foundation
import GodwitDurableFiles
import SystemPackage

/// A private folder for the length of a task, in the system's folder for temporary files.
package enum TemporaryPlace {
  package static func with<Result>(_ body: (FilePath) throws -> Result) throws -> Result {
    let folder = try make()
    defer { remove(folder) }
    return try body(folder)
  }

  package static func remove(_ folder: FilePath) {
    try? FileManager.default.removeItem(atPath: folder.string)
    TemporaryFolders.forget(folder)
  }

  /// Makes one, which the caller removes by ``remove(_:)``.
  ///
  /// - Throws: ``FleetError/noTemporaryFolder(parent:message:)``.
  package static func make() throws -> FilePath {
    let parent = FileManager.default.temporaryDirectory.path
    let path = (FilePath(parent).resolved ?? FilePath(parent)).appending("godwit-XXXXXX").string
    return try TemporaryFolders.adding {
      var template = Array(path.utf8CString)
      guard mkdtemp(&template) != nil else {
        throw FleetError.noTemporaryFolder(
          parent: parent, message: "\(Errno(rawValue: errno))")
      }
      return FilePath(
        String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }
  }

  /// Finds out whether one can be made, before work is begun that needs some.
  package static func check() throws { try with { _ in } }
}
