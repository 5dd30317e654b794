import GodwitBarriers
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

/// Where a table of object URIs may be written: to a new file, or over an earlier table.
struct URITablePlace {
  let path: FilePath

  init(_ path: FilePath) { self.path = path }

  /// - Throws: ``FleetError/uriTable(path:message:)``.
  func check(_ request: MigrationRequest, _ directory: RunDirectory) throws {
    let folder = path.removingLastComponent()
    guard path.lastComponent != nil,
      try FileKind(following: folder.isEmpty ? "." : folder) == .folder
    else {
      throw refusal("its folder does not exist")
    }
    let limit = PendingFile.longestName(in: folder.isEmpty ? "." : folder)
    guard path.lastComponent?.string.utf8.count ?? 0 <= limit else {
      throw refusal(
        "a name there may have \(limit) bytes, since it is longer while the table is written")
    }
    let place = path.lexicallyNormalized().resolvingFolders
    guard !request.stores.contains(where: { $0.lexicallyNormalized().isSamePlace(as: place) })
    else {
      throw refusal("the store itself goes there")
    }
    do {
      try NewFilePlace(path, beside: request.stores).check()
    } catch let error as PlaceError {
      throw refusal(error.reason)
    }
    guard !directory.holds(path) else {
      throw refusal("the run directory is removed at the end")
    }
    switch try FileKind(at: path) {
    case .none: return
    case .regular where try isTable(): return
    case .regular: throw refusal("it is another file, which is not overwritten")
    case .folder, .symbolicLink, .special: throw refusal("it is not a regular file")
    }
  }

  /// Looks at a table that is there when a store is about to be migrated: that of another store cannot
  /// be made again, once that one is migrated.
  ///
  /// - Throws: ``FleetError/uriTable(path:message:)``.
  static func checkReplacement(_ path: FilePath?, by request: MigrationRequest) throws {
    // A step of a chain writes into the chain's own folder.
    guard let path, request.identitySeed == nil, try FileKind(at: path) == .regular,
      let uuid = StoreFiles(request.store).storedUUID,
      let object = try URITable.firstObject(in: path),
      !object.starts(with: ObjectURI.prefix(store: uuid, entity: "").dropLast("/p".count))
    else { return }
    throw URITablePlace(path).refusal(
      "it is the table of another store, or of an earlier form of it")
  }

  /// True for what an earlier run wrote, by its first line.
  private func isTable() throws -> Bool {
    let first = Array((URITable.header + "\n").utf8)
    let file = try RegularFile.open(path)
    return try file.closeAfter {
      var bytes = [UInt8](repeating: 0, count: first.count)
      let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
      return Array(bytes.prefix(count)) == first
    }
  }

  private func refusal(_ message: String) -> FleetError {
    .uriTable(path: path.string, message: message)
  }
}

extension StoreAttempt {
  /// Writes the table of object URIs, if one is wanted. It lies on the disk before the commit, so
  /// that no store is ever published without it.
  ///
  /// - Parameter written: The destination, assembled or in its place.
  mutating func writeURITable(_ plan: MigrationPlan, written: FilePath) async throws {
    guard let path = run.settings.uriTable else { return }
    let directory = directory
    let start = ContinuousClock.now
    let isThinned = try setsObjectsAside
    let count = try await onOwnThread {
      try URITable(plan: plan, run: directory, written: written, isThinned: isThinned)
        .write(to: path)
    }
    result.uriTable = MigrationResult.URITable(path: path.string, pairs: count)
    let cost = MigrationResult.StageCost(
      stage: "uri-table", seconds: (ContinuousClock.now - start).inSeconds, rows: count,
      bytes: DiskSpace.size(of: path), units: 1, reused: 0)
    stages.append(cost)
    finish(cost)
  }
}
