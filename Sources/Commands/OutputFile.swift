import GodwitDurableFiles
import GodwitFleet
import GodwitPersistentStore
import SystemPackage

/// A file that a command writes each time anew, such as a report. It takes the place of an earlier one
/// of its kind and of nothing else: a mistyped name must not cost a store.
struct OutputFile {
  /// What is written, with how it begins.
  enum Kind: CaseIterable {
    /// `plan --out`.
    case plan
    case html, json, junit
    case metrics

    var name: String {
      switch self {
      case .plan: "plan of a pipeline"
      case .html: "report of Godwit in HTML"
      case .json: "report of Godwit in JSON"
      case .junit: "JUnit report of Godwit"
      case .metrics: "file of Godwit's metrics"
      }
    }

    /// True for the first ``OutputFile/beginning`` bytes of such a file.
    fileprivate func isBegun(by text: String) -> Bool {
      switch self {
      case .plan: text.hasPrefix(#"{"formatVersion":"#) && text.contains(#","pipeline":"#)
      case .html:
        text.hasPrefix("<!DOCTYPE html>")
          && text.contains(#"<meta name="generator" content="godwit">"#)
      case .json: text.hasPrefix(#"{"counts":{"#)
      case .junit: text.hasPrefix("<?xml ") && text.contains(#"<testsuites name="godwit" "#)
      case .metrics: text.hasPrefix("# HELP godwit_")
      }
    }
  }

  private static let beginning = 512
  private static let readable: FilePermissions = [.ownerReadWrite, .groupRead, .otherRead]

  private let path: FilePath
  private let kind: Kind

  /// Looks at what is there, before any work is done.
  ///
  /// - Throws: `CommandError` where something else lies there, or where there is no such folder;
  ///   `PlaceError` for a part of a store; `DurabilityError`.
  init(_ path: String, _ kind: Kind) throws { try self.init(FilePath(path), kind) }

  /// - Parameter made: A folder that is made, with those above it, before the file is written.
  /// - Throws: As ``init(_:_:)``.
  init(_ path: FilePath, _ kind: Kind, afterMaking made: FilePath? = nil) throws {
    self.path = path.resolvingFolders
    self.kind = kind
    try NewFilePlace(path).check()
    let parent = self.path.folder
    guard
      try FileKind(following: parent) == .folder
        || made?.absolute.starts(with: parent.absolute) == true
    else {
      throw CommandError(
        .cannotCreateOutput, "output",
        "\(path) cannot be made: there is no folder \(parent). Make it, or give another path.")
    }
    let limit = PendingFile.longestName(in: parent)
    guard self.path.lastComponent?.string.utf8.count ?? 0 <= limit else {
      throw CommandError(
        .cannotCreateOutput, "output",
        "\(path) cannot be made: a name there may have \(limit) bytes, since it is longer while the file is "
          + "written. Give a shorter one.")
    }
    _ = try isThere()
  }

  /// - Parameter isPrivate: Whether only this user may read it.
  /// - Throws: As ``init(_:_:)``.
  func write(_ text: String, isPrivate: Bool = false) throws {
    try write([text], isPrivate: isPrivate)
  }

  /// - Parameter parts: The text.
  /// - Throws: As ``init(_:_:)``.
  func write(_ parts: some Sequence<String>, isPrivate: Bool = false) throws {
    let isReplacing = try isThere()
    var file = try PendingFile(
      for: path, permissions: isPrivate ? .ownerReadWrite : Self.readable)
    for var part in parts { try part.withUTF8 { try file.write(UnsafeRawBufferPointer($0)) } }
    try file.publish(replacing: isReplacing)
  }

  /// Whether an earlier file of the kind, or an empty one, lies there.
  private func isThere() throws -> Bool {
    switch try FileKind(at: path) {
    case .none: return false
    case .regular:
      let bytes = try RegularFile.firstBytes(of: path, count: Self.beginning)
      if bytes.isEmpty || kind.isBegun(by: String(decoding: bytes, as: UTF8.self)) { return true }
      throw CommandError(
        .cannotCreateOutput, "output",
        "\(path) is not a \(kind.name), and is not replaced. Give another path, or remove it.")
    case let other:
      throw CommandError(
        .cannotCreateOutput, "output",
        "\(path) is \(other), and is not replaced. Give another path.")
    }
  }
}

/// A file that a command makes and never overwrites.
enum NewFile {
  /// - Throws: `DurabilityError`: already there, or not to be made; `PlaceError` for a part of a store.
  static func write(_ text: String, to path: String) throws {
    try NewFilePlace(FilePath(path)).check()
    try DurableFile.create(
      Array(text.utf8), at: FilePath(path).resolvingFolders,
      permissions: [.ownerReadWrite, .groupRead, .otherRead])
  }
}
