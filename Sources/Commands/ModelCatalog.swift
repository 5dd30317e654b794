import Foundation
import GodwitDurableFiles
import GodwitFleet
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// The model versions that a command was given.
///
/// A MODEL is any of: an `.xcdatamodel` folder, a `contents` file, an `.xcdatamodeld` or `.momd`
/// (its current version, or `PATH:VERSION`), a `.mom`, or a store (its cached model).
struct ModelCatalog {
  /// Everything that was given, apart by argument.
  let models: GivenModels
  /// Every version of it, in the order given.
  var versions: [ModelVersion] { models.versions }
  /// The current versions in the order given, those of bundles after those of single versions: of one
  /// model the last one counts.
  let currents: [ModelVersion]

  init(_ arguments: [String]) throws {
    var bundles: [[ModelVersion]] = []
    var (single, ofBundles): ([ModelVersion], [ModelVersion]) = ([], [])
    for argument in arguments {
      let read = try Self.versions(at: argument)
      bundles.append(read)
      guard let current = read.first(where: \.isCurrent) else { continue }
      if read.count > 1 || argument.isBundlePath {
        ofBundles.append(current)
      } else {
        single.append(current)
      }
    }
    models = GivenModels(bundles)
    currents = single + ofBundles
  }

  /// A request for a store with everything that was given.
  ///
  /// - Parameter named: What ``destinations(named:as:advice:)`` found for the version that was asked for;
  ///   empty where none was.
  func request(for store: FilePath, named: [ModelVersion]) -> MigrationRequest {
    var request = MigrationRequest(
      store: store, models: versions, destination: named.last ?? currents.last, output: nil,
      snapshotFolder: "")
    (request.given, request.named, request.currents) = (models, named, currents)
    return request
  }

  /// The versions of that name among those given, else the MODEL of that path.
  ///
  /// - Parameter advice: What to correct where there is neither.
  /// - Throws: `CommandError` when there is neither; ``ModelError``.
  func destinations(
    named name: String, as shown: String? = nil, advice: String = "Check --to and --models."
  ) throws -> [ModelVersion] {
    let own = versions.filter { $0.name.isSameName(as: name) }
    if !own.isEmpty { return own }
    let path = try ModelFile.parts(of: name).path
    guard try Self.exists(name) || Self.exists(path) else {
      let known = versions.map(\.name)
      throw CommandError(
        .badInput, "model",
        "There is no version \(shown ?? name)"
          + (known.isEmpty
            ? "" : " in the models given, which have \(known.joined(separator: ", "))")
          + ", nor a model at that path.\(known.noteOfLookalike(of: shown ?? name)) \(advice)")
    }
    let version = try Self.version(at: name)
    // One of those given, by whatever path.
    guard let place = FilePath(version.path).resolved else { return [version] }
    return [versions.last { FilePath($0.path).resolved == place } ?? version]
  }

  /// One version: what a MODEL stands for where one is wanted.
  static func version(at argument: String) throws -> ModelVersion {
    if let cached = try cachedVersion(at: argument) { return cached }
    return try ModelFile.version(at: argument)
  }

  private static func versions(at argument: String) throws -> [ModelVersion] {
    if let cached = try cachedVersion(at: argument) { return [cached] }
    if try exists(argument) { return try ModelFile.read(argument) }
    // Asked for by name, it is the one that is meant.
    let version = try ModelFile.version(at: argument)
    return [
      ModelVersion(
        name: version.name, model: version.model, isCurrent: true,
        recordedHashes: version.recordedHashes, recordedChecksum: version.recordedChecksum,
        isRecordItsOwn: version.isRecordItsOwn, path: version.path)
    ]
  }

  private static func exists(_ path: String) throws -> Bool {
    try FileKind(following: FilePath(path)) != .none
  }

  /// The model that a store carries; nil for whatever is not an SQLite file.
  private static func cachedVersion(at path: String) throws -> ModelVersion? {
    // What is not a regular file is refused by whoever reads it as a model.
    let head: [UInt8]
    do {
      head = try RegularFile.firstBytes(of: FilePath(path), count: 16, links: .followed)
    } catch let error as DurabilityError where !error.isOfMachine {
      return nil
    }
    guard head == Array("SQLite format 3\0".utf8) else { return nil }
    return try TemporaryFolder.with { folder in
      let store = try SourceStore(
        path: FilePath(path).resolved ?? FilePath(path), snapshotFolder: folder)
      guard let whole = try store.wholeCachedHierarchy(), let part = try store.cachedModel() else {
        throw CommandError(
          .badInput, "model",
          "\(path) is a store without a cached model, as those of old frameworks are. "
            + "Give the model that wrote it.")
      }
      // The whole model alone says of which configuration the store is.
      let isOfConfiguration =
        StoreBinding.fitting(whole, to: store).order.count < whole.order.count
      let name = FilePath(path).stem ?? path
      return ModelVersion(
        name: name, model: isOfConfiguration ? whole.model : part, isCurrent: true, path: path)
    }
  }
}

extension String {
  fileprivate var isBundlePath: Bool {
    let path = FilePath(self).named.string
    return path.ends(with: ".xcdatamodeld") || path.ends(with: ".momd")
  }
}

/// A folder for the length of a command: for the private clone of a store with a WAL.
enum TemporaryFolder {
  static func with<Result>(_ body: (FilePath) throws -> Result) throws -> Result {
    try TemporaryPlace.with { path in
      TemporaryFiles.useFolder(path.string)
      defer { TemporaryFiles.useFolder(nil) }
      return try body(path)
    }
  }
}
