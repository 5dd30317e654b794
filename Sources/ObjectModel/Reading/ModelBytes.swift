import GodwitDurableFiles
import SystemPackage

/// Reads whole model files: regular ones, up to a size. An error of the file system is thrown as it is.
enum ModelBytes {
  /// 256 MiB. Model files are kilobytes.
  static let byteLimit = 256 << 20

  static func exists(_ path: String) throws -> Bool {
    try FileKind(following: FilePath(path)) != .none
  }

  /// All names in a folder. Foundation's listing ends in silence where the system fails to read on: a
  /// bundle would lose versions.
  ///
  /// - Throws: ``ModelError/unreadable(path:reason:)``.
  static func names(in folder: String) throws -> [String] {
    let path = FilePath(folder)
    do {
      return try DurableFile.names(in: path.resolved ?? path)
    } catch let error as DurabilityError where !error.isOfMachine {
      throw ModelError.unreadable(
        path: folder, reason: "the folder cannot be listed (\(reason(error)))")
    }
  }

  /// - Throws: ``ModelError/unreadable(path:reason:)``.
  static func read(_ path: String) throws -> [UInt8] {
    do {
      return try RegularFile.bytes(of: FilePath(path), limit: byteLimit, links: .followed)
    } catch let error as DurabilityError where !error.isOfMachine {
      throw ModelError.unreadable(path: path, reason: reason(error))
    }
  }

  private static func reason(_ error: DurabilityError) -> String {
    switch error {
    case .notRegular(_, let kind): "it is \(kind), not a regular file"
    case .tooLarge: "it has more than \(byteLimit >> 20) MiB"
    default: error.errno.map { "\($0)".lowercased() } ?? "\(error)"
    }
  }
}
