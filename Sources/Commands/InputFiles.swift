import Foundation
import GodwitDurableFiles
import GodwitWorker
import SystemPackage

/// The models and mapping models that a command is given.
enum InputFiles {
  /// What `body` reads from the paths. Where it finds something wrong, the files are read whole and
  /// the body runs once more: a read that failed may look like a file that is wrong.
  ///
  /// - Parameter paths: Files and folders, `PATH:VERSION` among them.
  /// - Throws: `DurabilityError` where a file cannot be read; else what the body throws.
  static func read<Result>(_ paths: [String], _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      for path in paths { try requireReadable(path) }
      return try body()
    }
  }

  /// Larger files and folders are not models.
  private static let mostFiles = 10_000
  private static let mostBytes = 64 << 20

  private static func requireReadable(_ path: String) throws {
    var names = [path]
    if let folder = FileManager.default.enumerator(atPath: path) {
      while let name = folder.nextObject() as? String, names.count < mostFiles {
        names.append(path + "/" + name)
      }
    }
    for name in names {
      var status = stat()
      guard stat(name, &status) == 0 else {
        try refuse("stat", name, Errno(rawValue: errno))
        continue
      }
      // A FIFO would wait for a writer.
      guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= mostBytes else { continue }
      do {
        _ = try Data(contentsOf: URL(filePath: name))
      } catch {
        try refuse("read", name, Errno(underlying: error) ?? .ioError)
      }
    }
  }

  /// What a path or its permissions are to blame for, the body says better.
  private static func refuse(_ call: String, _ path: String, _ errno: Errno) throws {
    switch errno {
    case .noSuchFileOrDirectory, .notDirectory, .permissionDenied, .fileNameTooLong: return
    default: throw DurabilityError.failed(call: call, path: FilePath(path), errno)
    }
  }
}
