import Foundation
import GodwitDurableFiles
import GodwitKeyedArchive
import SystemPackage

/// One version of a model, with what its file recorded beside it.
package struct ModelVersion: Sendable {
  /// As Xcode names it: the folder's or file's name without extension.
  package let name: String
  /// The model as it was read.
  package let model: ManagedObjectModel
  /// The version that new stores get. In a bundle that does not say, only a sole version is.
  package let isCurrent: Bool
  /// What a compiled bundle's `VersionInfo.plist` says of this version; nil for source models.
  package let recordedHashes: [EntityName: VersionHash]?
  /// The same for the checksum, which Xcode 15 and later record.
  package let recordedChecksum: String?
  /// The `.xcdatamodel` folder, `contents` or `.mom` file that was read.
  package let path: String
  /// The bundle that it is a version of; else its own path.
  package var bundlePath: String {
    let folder = FilePath(path).folder.named
    return ["xcdatamodeld", "momd"].contains(folder.extension ?? "") ? folder.string : path
  }
  /// The bundle's name, `Shop` of `Shop.xcdatamodeld` and of `Shop.momd`; nil for a version in none.
  package var bundleName: String? { bundlePath == path ? nil : FilePath(bundlePath).stem }
  /// Of a merger, the versions that it was made of; empty for any other.
  package private(set) var parts: [ModelVersion] = []
  /// Whether the record is of this version, by its name and since no other version of the bundle has these hashes.
  package let isRecordItsOwn: Bool
  private let memo = Memo<EntityHierarchy>()

  /// The model's inheritance, computed once, with the recorded version hashes where it is not certain how Core Data
  /// computes them: those are its own.
  ///
  /// - Throws: ``ModelError``.
  package func hierarchy() throws -> EntityHierarchy {
    try memo.value {
      let computed = try EntityHierarchy(model)
      guard isRecordItsOwn, let recordedHashes, recordedHashes != computed.versionHashes,
        computed.mayHave(recordedHashes)
      else { return computed }
      return try EntityHierarchy(model, recordedHashes: recordedHashes)
    }
  }

  /// Describes a version that was read, or made in memory.
  package init(
    name: String, model: ManagedObjectModel, isCurrent: Bool,
    recordedHashes: [EntityName: VersionHash]? = nil, recordedChecksum: String? = nil,
    isRecordItsOwn: Bool = true, path: String
  ) {
    self.name = name
    self.model = model
    self.isCurrent = isCurrent
    self.recordedHashes = recordedHashes
    self.recordedChecksum = recordedChecksum
    self.isRecordItsOwn = isRecordItsOwn
    self.path = path
  }

  /// The same version with the versions that it is the merger of.
  package func merged(of parts: [ModelVersion]) -> ModelVersion {
    var version = self
    version.parts = parts.flatMap { $0.parts.isEmpty ? [$0] : $0.parts }
    return version
  }

  /// Entities whose recorded hash is not the computed one, sorted; nil where none is recorded.
  /// Anything but an empty list is to be reported: see `core-data-models.md` §6, "Not settled".
  package func disagreements(with hierarchy: EntityHierarchy) -> [EntityName]? {
    guard let recordedHashes else { return nil }
    let computed = hierarchy.computedHashes
    return Set(computed.keys).union(recordedHashes.keys)
      .filter { computed[$0] != recordedHashes[$0] }.sorted()
  }

  /// For a person: entities whose recorded hash counts and is not the computed one; nil where there are none.
  /// - Throws: ``ModelError``.
  package func noteOfRecordedHashes() throws -> String? {
    let (known, computed) = try (hierarchy().recordedHashes, hierarchy().computedHashes)
    let names = known.keys.filter { known[$0] != computed[$0] }.sorted()
    guard !names.isEmpty else { return nil }
    return
      "For \(names.map(\.rawValue).joined(separator: ", ")), VersionInfo.plist records another version hash in "
      + "\(name) than the computed one. The recorded one counts."
  }
}

extension ModelVersion {
  /// Whether the other one was read from the same path. Two versions of a bundle may have paths that differ only in
  /// Unicode normalisation.
  package func isAtPath(of other: ModelVersion?) -> Bool {
    other.map { path.isSameName(as: $0.path) } ?? false
  }

  /// For a person, one text for each bundle of versions none of which is current.
  /// - Throws: ``ModelError``.
  package static func lacks(ofCurrent versions: [ModelVersion]) throws -> [String] {
    var paths: [String] = []
    for path in versions.map(\.bundlePath) where !paths.contains(path) { paths.append(path) }
    return try paths.map { path in
      try ModelFile.namedCurrent(of: path).map {
        "\(path) names \($0) as its current version and does not have it"
      } ?? "\(path) has no current version"
    }
  }
}

/// Reads model files of every kind that Xcode writes.
///
/// | path | holds |
/// | --- | --- |
/// | `X.xcdatamodeld` | versions, the current one named in `.xccurrentversion` |
/// | `X.xcdatamodel`, or its `contents` | one version as XML |
/// | `X.momd` | compiled versions and `VersionInfo.plist` |
/// | `X.mom` | one compiled version |
///
/// An `.omo` is skipped: it repeats a `.mom` beside it. Source: `core-data-models.md` §1 and §3.
package enum ModelFile {
  /// All versions at a path, sorted by name as Xcode lists them.
  /// - Throws: ``ModelError``.
  package static func read(_ path: String) throws -> [ModelVersion] {
    let path = FilePath(path).named.string
    switch try FileKind(following: FilePath(path)) {
    case .none, .symbolicLink:
      throw ModelError.unreadable(path: path, reason: "there is no such file")
    case .regular, .special: return [try file(path)]
    case .folder: break
    }
    let names = try ModelBytes.names(in: path)
    if names.contains("contents") { return [try source(path, isCurrent: true)] }
    if names.contains("elements") { throw ModelError.oldBinaryModel(path: path) }
    let sources = names.filter { $0.ends(with: ".xcdatamodel") }
    if !sources.isEmpty || path.ends(with: ".xcdatamodeld") {
      return try sourceBundle(path, sources: sources)
    }
    let compiled = names.filter { $0.ends(with: ".mom") }
    guard !compiled.isEmpty else {
      let isOptimized = names.contains { $0.ends(with: ".omo") }
      throw ModelError.unreadable(
        path: path,
        reason: isOptimized
          ? "its versions are there as .omo files alone, which are not read; give a bundle with its .mom "
            + "files"
          : "the folder has no model in it")
    }
    return try CompiledBundle.read(path, files: compiled.sorted(by: inOrder))
  }

  /// The version that `spec` names: a path, for a bundle its current version, or `PATH:VERSION`.
  /// - Throws: ``ModelError``.
  package static func version(at spec: String) throws -> ModelVersion {
    let (path, part) = try parts(of: spec)
    guard let name = part else { return try current(of: try read(path), path: path) }
    let versions = try read(path)
    guard let version = versions.first(where: { $0.name.isSameName(as: name) }) else {
      if try CompiledBundle.lacksFile(of: name, in: path, versions) {
        throw ModelError.unreadable(
          path: "\(path)/\(name).mom",
          reason: "VersionInfo.plist names this version, and there is no such file")
      }
      throw ModelError.noSuchVersion(path: path, version: name, known: versions.map(\.name))
    }
    return version
  }

  /// The path in `PATH:VERSION`, and the version: nil where the whole is a path. A folder's name may have a colon,
  /// so that what is there as a whole is a path, and else the last colon ends it.
  package static func parts(of spec: String) throws -> (path: String, version: String?) {
    guard try !ModelBytes.exists(spec),
      let colon = spec.utf8.lastIndex(of: UInt8(ascii: ":")), colon > spec.startIndex
    else { return (spec, nil) }
    return (String(spec[..<colon]), String(spec[spec.utf8.index(after: colon)...]))
  }

  /// The model of ``version(at:)``.
  /// - Throws: ``ModelError``.
  package static func model(at spec: String) throws -> ManagedObjectModel {
    try version(at: spec).model
  }

  private static func current(of versions: [ModelVersion], path: String) throws -> ModelVersion {
    guard let version = versions.first(where: \.isCurrent) else {
      throw ModelError.noCurrentVersion(
        path: path, named: try namedCurrent(of: path), known: versions.map(\.name))
    }
    return version
  }

  /// The version that a bundle names as its current one, whether it has it or not; nil where it names none.
  /// - Throws: ``ModelError``.
  package static func namedCurrent(of bundle: String) throws -> String? {
    if let folder = try currentSource(bundle) { return name(of: folder) }
    return try CompiledBundle.versionInfo(bundle).current
  }

  /// `Shop 2` before `Shop 10`, as people count.
  static func inOrder(_ a: String, _ b: String) -> Bool {
    let order = a.compare(b, options: [.numeric, .caseInsensitive])
    return order == .orderedSame ? a.precedesInBytes(b) : order == .orderedAscending
  }
}

extension ModelFile {
  private static func name(of path: String) -> String {
    let name = path.parts(between: "/").last { !$0.isEmpty } ?? path
    guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex else {
      return name
    }
    return String(name[..<dot])
  }

  /// An `.xcdatamodel` folder.
  private static func source(_ path: String, isCurrent: Bool) throws -> ModelVersion {
    let contents = path + "/contents"
    guard try ModelBytes.exists(contents) else {
      if try ModelBytes.exists(path + "/elements") {
        throw ModelError.oldBinaryModel(path: path)
      }
      throw ModelError.unreadable(path: path, reason: "it has no file \"contents\"")
    }
    return ModelVersion(
      name: name(of: path),
      model: try ManagedObjectModel(xml: ModelBytes.read(contents), path: contents),
      isCurrent: isCurrent, path: path)
  }

  /// An `.xcdatamodeld` folder.
  private static func sourceBundle(_ path: String, sources: [String]) throws -> [ModelVersion] {
    guard !sources.isEmpty else {
      throw ModelError.unreadable(path: path, reason: "it has no version in it")
    }
    let named = try currentSource(path)
    // The file system that a bundle was copied to may spell names otherwise than the file in the bundle.
    let current = named.flatMap { named in
      sources.first { $0.isSameName(as: named) } ?? sources.first { $0 == named }
    }
    return try sources.sorted { inOrder(name(of: $0), name(of: $1)) }.map { source in
      try self.source(
        path + "/" + source,
        isCurrent: named == nil ? sources.count == 1 : current.isSameName(as: source))
    }
  }

  /// The folder that `.xccurrentversion` names; bundles of one version often have no such file.
  private static func currentSource(_ path: String) throws -> String? {
    let file = path + "/.xccurrentversion"
    guard try ModelBytes.exists(file) else { return nil }
    do {
      return try PropertyList(bytes: ModelBytes.read(file))["_XCCurrentVersionName"]?.string
    } catch let error as ArchiveError {
      throw ModelError.unreadable(path: file, reason: error.reason)
    }
  }

  private static func file(_ path: String) throws -> ModelVersion {
    let bytes = try ModelBytes.read(path)
    let folder = FilePath(path).lastComponent == "contents" ? FilePath(path).folder.named : nil
    return ModelVersion(
      name: name(of: folder?.string ?? path),
      model: try model(bytes, path: path), isCurrent: true, path: path)
  }

  /// The first bytes tell what a file is, whatever its name.
  static func model(_ bytes: [UInt8], path: String) throws -> ManagedObjectModel {
    if bytes.starts(with: "bplist".utf8) {
      return try ManagedObjectModel(archive: bytes, path: path)
    }
    if bytes.starts(with: "momv2$".utf8) {
      throw ModelError.unreadable(
        path: path, reason: "it is an optimised model; give the .mom of the same name beside it")
    }
    if bytes.starts(with: "SQLite format 3".utf8) {
      throw ModelError.unreadable(path: path, reason: "it is a store, not a model file")
    }
    return try ManagedObjectModel(xml: bytes, path: path)
  }
}
