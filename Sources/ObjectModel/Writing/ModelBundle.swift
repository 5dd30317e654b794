import GodwitDurableFiles
import SystemPackage

/// An `.xcdatamodeld` folder: the versions of one model, one of them current.
///
/// What is written is what Xcode writes, so that a project's diff shows the change and nothing
/// else. Every change is one rename: a reader sees the folder before or after it.
///
/// Source: `core-data-models.md` §1.
package struct ModelBundle: Sendable {
  /// The folder, with symbolic links resolved where that is possible.
  package let path: FilePath

  /// The bundle at a path.
  ///
  /// - Throws: ``ModelError/notABundle(path:)``.
  package init(path: String) throws {
    let given = FilePath(path).named
    guard given.string.ends(with: ".xcdatamodeld"), try DurableFile.isFolder(given) else {
      throw try Self.notABundle(given.string)
    }
    self.path = given.resolved ?? given
  }
}

extension ModelBundle {
  /// Makes a bundle of a plain `.xcdatamodel` folder, as Xcode does when it adds a version to one: a
  /// folder of the same name with that version in it, which is the current one.
  ///
  /// The bundle gets its name in one step, complete, and then the plain folder goes. After a crash
  /// in between both are there.
  ///
  /// - Throws: ``ModelError/notABundle(path:)`` for anything else;
  ///   ``ModelError/bundleExists(path:)``; ``ModelError/moreThanFiles(path:name:)``;
  ///   ``ModelError/symbolicLink(path:)``; `DurabilityError`.
  package init(wrapping path: String) throws {
    let given = FilePath(path).named
    guard given.string.ends(with: ".xcdatamodel"), try DurableFile.isFolder(given) else {
      throw try Self.notABundle(given.string)
    }
    // The folder itself would become a bundle, and the link would lead nowhere.
    guard try FileKind(at: given) == .folder else {
      throw ModelError.symbolicLink(path: given.string)
    }
    let plain = given.resolved ?? given
    let folder = plain.removingLastComponent()
    if let bundle = folder.lastComponent, bundle.extension == "xcdatamodeld" {
      throw ModelError.versionOfABundle(path: plain.string, bundle: folder.string)
    }
    let bundle = FilePath(plain.string + "d")
    if try DurableFile.exists(bundle) { throw ModelError.bundleExists(path: bundle.string) }
    let files = try DurableFile.names(in: plain)
    // What is not copied would be gone with the plain folder.
    for file in files where try FileKind(at: plain.appending(file)) != .regular {
      throw ModelError.moreThanFiles(path: plain.string, name: file)
    }
    // What cannot be read as a model is no version.
    _ = try ModelFile.read(plain.string)
    guard let name = plain.lastComponent, let version = plain.stem else {
      throw ModelError.notABundle(path: path)
    }
    let unfinished = folder.appending(".\(name)d.partial-0")
    try DurableFile.removeTree(unfinished)
    do {
      try DurableFile.makeFolder(
        unfinished.appending(name), permissions: Self.folderPermissions)
      for file in files {
        try DurableFile.copy(
          plain.appending(file), to: unfinished.appending(name).appending(file))
      }
      try DurableFile.create(
        Array(Self.currentVersionFile(version).utf8),
        at: unfinished.appending(".xccurrentversion"), permissions: Self.filePermissions)
      try DurableFile.renameNew(unfinished, to: bundle)
    } catch {
      try? DurableFile.removeTree(unfinished)
      throw error
    }
    try DurableFile.removeTree(plain)
    self.path = bundle
  }

  /// Adds a version to a bundle, or to a plain `.xcdatamodel`, which becomes a bundle first: see
  /// ``addVersion(_:from:)`` and ``init(wrapping:)``. Nothing is changed where the version cannot be
  /// added.
  ///
  /// - Returns: The new version's folder.
  /// - Throws: ``ModelError``, `DurabilityError`.
  package static func adding(
    _ name: String, to path: String, from origin: String? = nil
  ) throws -> FilePath {
    let given = FilePath(path).named
    guard given.string.ends(with: ".xcdatamodel") else {
      return try ModelBundle(path: path).addVersion(name, from: origin)
    }
    let own = given.stem ?? ""
    let wanted = try checked(name).version
    if wanted.lowercased() == own.lowercased() {
      throw ModelError.versionExists(path: path, version: own)
    }
    if let origin, !origin.droppingExtension.isSameBytes(as: own) {
      throw ModelError.noSuchVersion(path: path, version: origin, known: [own])
    }
    return try ModelBundle(wrapping: path).addVersion(name, from: origin)
  }

  /// Adds a version that equals an existing one, as Xcode's "Add Model Version…" does.
  ///
  /// The `contents` are copied byte for byte: identifiers, renaming identifiers and the layout of
  /// the diagram stay as they are. The current version stays current; a bundle of one version,
  /// which need not say so, says so from then on.
  ///
  /// - Parameters:
  ///   - name: With or without `.xcdatamodel`.
  ///   - origin: The version to copy; nil is the current one.
  /// - Returns: The new version's folder.
  /// - Throws: ``ModelError``, `DurabilityError`.
  package func addVersion(_ name: String, from origin: String? = nil) throws -> FilePath {
    let name = try Self.checked(name)
    let versions = try ModelFile.read(path.string)
    let contents = try bytes(of: try version(origin, among: versions))
    let taken = try DurableFile.names(in: path).first {
      // Xcode's own file systems do not tell case apart.
      $0.lowercased() == name.folder.lowercased()
    }
    if let taken { throw ModelError.versionExists(path: path.string, version: taken) }
    if versions.count == 1, let only = versions.first, only.isCurrent {
      try write(current: only.name)
    }
    // A folder cannot be written in one step, but it can get its name in one.
    let unfinished = path.appending(".\(name.folder).partial-0")
    try DurableFile.removeTree(unfinished)
    try DurableFile.makeFolder(unfinished, permissions: Self.folderPermissions)
    let final = path.appending(name.folder)
    do {
      try DurableFile.create(
        contents, at: unfinished.appending("contents"), permissions: Self.filePermissions)
      try DurableFile.rename(unfinished, to: final)
    } catch {
      try? DurableFile.removeTree(unfinished)
      throw error
    }
    return final
  }

  /// Makes a version the one that new stores get. What `.xccurrentversion` says so far is not asked: this
  /// mends one that cannot be read.
  ///
  /// - Returns: The version's folder.
  /// - Throws: ``ModelError/noSuchVersion(path:version:known:)``, ``ModelError/symbolicLink(path:)``, `DurabilityError`.
  @discardableResult
  package func setCurrent(_ name: String) throws -> FilePath {
    let name = try Self.checked(name)
    let folders = try DurableFile.names(in: path).filter { $0.ends(with: ".xcdatamodel") }
    guard folders.contains(where: { $0.isSameBytes(as: name.folder) }) else {
      throw ModelError.noSuchVersion(
        path: path.string, version: name.version,
        known: folders.map(\.droppingExtension).sorted(by: ModelFile.inOrder))
    }
    // What cannot be read as a model is no version.
    let folder = path.appending(name.folder)
    _ = try ModelFile.read(folder.string)
    try write(current: name.version)
    return folder
  }

  /// `.xccurrentversion` as Xcode formats it, with tabs.
  static func currentVersionFile(_ version: String) -> String {
    let escaped = version.replacing("&", by: "&amp;").replacing("<", by: "&lt;")
      .replacing(">", by: "&gt;")
    return """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
      "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">
      <dict>
      \t<key>_XCCurrentVersionName</key>
      \t<string>\(escaped).xcdatamodel</string>
      </dict>
      </plist>

      """
  }

  private func write(current version: String) throws {
    let file = path.appending(".xccurrentversion")
    // What it leads to would stay as it is, and the link would be gone.
    if try FileKind(at: file) == .symbolicLink {
      throw ModelError.symbolicLink(path: file.string)
    }
    try DurableFile.write(
      Array(Self.currentVersionFile(version).utf8), to: file, permissions: Self.filePermissions)
  }

  private func version(_ name: String?, among versions: [ModelVersion]) throws -> ModelVersion {
    let known = versions.map(\.name)
    guard let name else {
      guard let current = versions.first(where: \.isCurrent) else {
        throw ModelError.noCurrentVersion(
          path: path.string, named: try ModelFile.namedCurrent(of: path.string), known: known)
      }
      return current
    }
    let wanted = name.droppingExtension
    guard let found = versions.first(where: { $0.name.isSameBytes(as: wanted) }) else {
      throw ModelError.noSuchVersion(path: path.string, version: wanted, known: known)
    }
    return found
  }

  /// Why a path is not that of a bundle. A plain model may have become one since.
  private static func notABundle(_ path: String) throws -> ModelError {
    guard try FileKind(following: FilePath(path)) == .none else { return .notABundle(path: path) }
    let bundle = path.ends(with: ".xcdatamodel") ? path + "d" : nil
    return try .unreadable(
      path: path,
      reason: "it does not exist"
        + (bundle.flatMap { try FileKind(following: FilePath($0)) == .folder ? $0 : nil }
          .map { ". Give \($0), which is there" } ?? ""))
  }

  private func bytes(of version: ModelVersion) throws -> [UInt8] {
    try ModelBytes.read(version.path + "/contents")
  }
}

extension ModelBundle {
  private static let filePermissions: FilePermissions = [.ownerReadWrite, .groupRead, .otherRead]
  private static let folderPermissions: FilePermissions = [
    .ownerReadWriteExecute, .groupReadExecute, .otherReadExecute,
  ]

  /// A name becomes a folder inside the bundle, and nothing else: no path, no hidden folder.
  private static func checked(_ given: String) throws -> (version: String, folder: String) {
    let version = given.droppingExtension
    func refuse(_ reason: String) -> ModelError { .badVersionName(given, reason: reason) }
    guard !version.isEmpty else { throw refuse("it is empty") }
    guard !version.begins(with: ".") else { throw refuse("it begins with a dot") }
    guard !version.unicodeScalars.contains("/"), !version.unicodeScalars.contains(":") else {
      throw refuse("it has a slash or colon in it")
    }
    guard version.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else {
      throw refuse("it has a control character in it")
    }
    let folder = version + ".xcdatamodel"
    // NAME_MAX is 255; the name that the folder has while it is made is longer by 12.
    guard folder.utf8.count <= 240 else { throw refuse("it is longer than 228 bytes") }
    return (version, folder)
  }
}

extension String {
  fileprivate var droppingExtension: String { before(".xcdatamodel") ?? self }
}
