import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

/// Puts a generated store where a user asked for it, whole or not at all.
package struct FixtureFile {
  private let generator: StoreGenerator

  package init(_ generator: StoreGenerator) { self.generator = generator }

  /// Writes the store into a folder of its own beside `path`, and moves it into place: external data
  /// and write-ahead log first, so that whoever sees the store sees all of it.
  ///
  /// - Throws: ``FixtureError/alreadyThere(path:)`` where one of the store's files exists;
  ///   `PlaceError` for a name that belongs to another store; `DurabilityError` where the folder cannot be written.
  package func write(to given: String) throws -> StoreReport {
    let path = FilePath(given).resolvingFolders
    guard let name = path.lastComponent, let stem = path.stem else {
      throw FixtureError.notWritable(path: given, reason: "it is not the name of a file")
    }
    let parent = path.removingLastComponent()
    let folder = parent.isEmpty ? "." : parent
    guard try FileKind(following: folder) == .folder else {
      throw FixtureError.notWritable(path: path.string, reason: "\(folder) is not a folder")
    }
    try NewFilePlace(path).checkForStore()
    let support = FilePath.Component(".\(stem)_SUPPORT") ?? name
    let files = ["", "-wal", "-shm", "-journal"].map { FilePath(path.string + $0) }
    for file in files + [folder.appending(support)] {
      if try DurableFile.exists(file) { throw FixtureError.alreadyThere(path: file.string) }
    }
    let draft = folder.appending(".\(name).fixture-\(SystemRandomNumberGenerator.name())")
    TemporaryFolders.add(draft)
    try DurableFile.makeFolder(draft, surviving: .processCrash)
    defer {
      try? DurableFile.removeTree(draft, surviving: .processCrash)
      TemporaryFolders.forget(draft)
    }
    var report = try generator.write(to: draft.appending(name).string)
    report.notes += try notes(on: draft.appending(name), in: draft)
    var moved: [FilePath] = []
    do {
      for part in [support.string, "\(name)-wal", name.string] {
        let source = draft.appending(part)
        guard try DurableFile.exists(source) else { continue }
        let destination = folder.appending(part)
        try DurableFile.renameNew(source, to: destination)
        moved.append(destination)
      }
    } catch {
      for place in moved { try? DurableFile.removeTree(place, surviving: .processCrash) }
      throw error
    }
    report.path = path.string
    return report
  }

  /// Which of the model's validation rules a store breaks, or may break.
  private func notes(on store: FilePath, in folder: FilePath) throws -> [String] {
    let snapshot = folder.appending(".\(store.lastComponent?.string ?? "")-snapshot")
    try DurableFile.makeFolder(snapshot, surviving: .processCrash)
    let binding = StoreBinding(
      try SourceStore(path: store, snapshotFolder: snapshot), generator.rules)
    return try generator.unknownRules().map {
      "\($0) has a validation rule that the values may break"
    }
      + StoreSoundness.validation(of: binding).filter { $0.kind == .validation }
      .map(\.description)
  }
}

extension SystemRandomNumberGenerator {
  /// Letters and digits that no other process chooses.
  fileprivate static func name() -> String {
    var random = SystemRandomNumberGenerator()
    return String(random.next() as UInt64, radix: 36)
  }
}
