import ArgumentParser
import Foundation
import GodwitDurableFiles
import GodwitFleet
import SystemPackage

/// Which of a pipeline's stores a command takes up.
struct RunSelection: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Takes up only the stores that the pattern means, as in stores.include: relative to a root, or a "
        + "whole path. May repeat.",
      valueName: "pattern"))
  var only: [String] = []

  @Option(
    help: ArgumentHelp(
      "Takes up only the stores listed in the file, one path a line; a pipe may be given, and - is "
        + "standard input. A path outside of the roots is refused.",
      valueName: "file"), completion: .file())
  var filesFrom: String?

  @Flag(name: .customLong("null"), help: "The paths of --files-from are separated by zero bytes.")
  var isPartedByZero = false

  func validate() throws {
    if isPartedByZero, filesFrom == nil { throw ValidationError("--null needs --files-from.") }
    if filesFrom?.isEmpty == true { throw ValidationError("--files-from is a path, or -.") }
    do {
      _ = try StoreSelection(patterns: only, paths: nil)
    } catch {
      throw ValidationError("--only: \(error)")
    }
  }

  /// Whether the stores are those of a list, which another start may not find.
  var isFromFile: Bool { filesFrom != nil }

  /// 1 GiB: some ten million paths.
  private static let byteLimit = 1 << 30

  /// - Throws: `SelectionError`, `CommandError` for a list that cannot be read.
  func selection() throws -> StoreSelection {
    let paths = try filesFrom.map { file in
      try StoreSelection.paths(in: Self.bytes(of: file), partedByZero: isPartedByZero)
    }
    return try StoreSelection(patterns: only, paths: paths)
  }

  private static func isPipe(_ file: String) -> Bool {
    var status = stat()
    return stat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
  }

  /// Everything until the other end is closed.
  private static func bytes(of input: FileDescriptor) throws -> [UInt8] {
    let handle = FileHandle(fileDescriptor: input.rawValue, closeOnDealloc: false)
    return try [UInt8](handle.readToEnd() ?? Data())
  }

  private static func bytes(of file: String) throws -> [UInt8] {
    do {
      if file == "-" { return try bytes(of: .standardInput) }
      if isPipe(file) {
        // As the shell's `<(find …)`: whoever writes to it may take its time.
        let pipe = try FileDescriptor.open(FilePath(file), .readOnly, options: .closeOnExec)
        return try pipe.closeAfter { try bytes(of: pipe) }
      }
      return try RegularFile.bytes(of: FilePath(file), limit: byteLimit, links: .followed)
    } catch let error as DurabilityError where error.isOfMachine {
      throw error
    } catch {
      throw CommandError(.badInput, "list", "The list of stores \(file) cannot be read: \(error)")
    }
  }
}
