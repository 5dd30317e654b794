import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import SystemPackage

/// The state folder of a pipeline, for who is about to work in it.
///
/// It is never removed, so other files may lie in it, such as a log or a volume's `lost+found`. But a run replaces
/// and removes files of its own names, and must not take another program's for them.
struct StateFolder {
  private let places: PipelinePlaces
  private var path: FilePath { places.state }

  init(_ places: PipelinePlaces) { self.places = places }

  private static let ownFiles = [
    "lock", "command", "run.json", "endings.json", "ledger.jsonl", "waves.json", "control.json",
    "progress.json", "pace",
  ]
  private static let ownFolders = ["stores", "cluster", "rollbacks"]
  /// Of its files, those that nobody writes but the holder of the lock.
  private static let heldFiles = [
    "command", "run.json", "endings.json", "ledger.jsonl", "waves.json", "progress.json",
  ]

  /// Makes the folder, or takes the one that is there.
  ///
  /// - Throws: As ``check()``.
  func take() throws {
    try NewFilePlace(path).check()
    try DurableFile.makeFolder(path)
    try check()
  }

  /// What ``take()`` would say of a folder that is there.
  ///
  /// - Throws: ``FleetError/stateFolder(path:message:)`` where it holds what a run would take for its own;
  ///   `DurabilityError` where others may write to it, or where a folder has the name of a file.
  func check() throws {
    try Folder(path).checkPrivate()
    if try !isKnown, let stranger = try self.stranger() {
      throw FleetError.stateFolder(
        path: path.string, message: "no run was in it, and it holds \(stranger)")
    }
    // Some are only replaced or removed, which nobody would notice before the end of a run.
    for name in Self.ownFiles {
      let place = path.appending(name)
      if try FileKind(at: place) == .folder { throw DurabilityError.notRegular(place, .folder) }
    }
  }

  /// Removes what killed processes have left of files that they were writing, the ledger's among them. For the holder
  /// of the lock: nobody else writes these. What cannot be removed is left, since nobody reads it.
  func removeUnfinished() {
    for file in Self.heldFiles.map({ path.appending($0) }) + [places.ledger.resolvingFolders] {
      try? DurableFile.removeUnfinished([file])
    }
  }

  /// Whether a run, or another command, was at work in it: any of its marks may have been removed, or cut off.
  private var isKnown: Bool {
    get throws {
      if try Lease.mark(at: path.appending("lock")) == .epoch { return true }
      if try Self.ignoringOthers({ try PipelineLedger.knowsRun(path) }) == true { return true }
      if try Self.ignoringOthers({ try HolderMark.isThere(in: path) }) == true { return true }
      guard places.ledger.removingLastComponent() == path else { return false }
      return (try? Ledger(readingAt: places.ledger)) != nil
    }
  }

  /// What is no regular file, or too large, is nothing of a run's.
  private static func ignoringOthers(_ body: () throws -> Bool) throws -> Bool? {
    do {
      return try body()
    } catch let error as DurabilityError where !error.isOfMachine {
      return nil
    }
  }

  /// The first thing that a run would take for its own, if there is something in it.
  private func stranger() throws -> String? {
    let file = try Self.ownFiles.first { name in
      let place = path.appending(name)
      switch try FileKind(at: place) {
      case .none: return false
      // A power cut may leave zeros.
      case .regular: return try RegularFile.firstBytes(of: place, count: 16).contains { $0 != 0 }
      case .folder, .symbolicLink, .special: return true
      }
    }
    return try file
      ?? Self.ownFolders.first { name in
        let place = path.appending(name)
        switch try FileKind(at: place) {
        case .none: return false
        case .folder: return try DurableFile.names(in: place).contains { !Self.isOwn($0) }
        case .regular, .symbolicLink, .special: return true
        }
      }
  }

  /// Whether a name is one of a run directory, see ``PipelineRun/name(of:)``, or of a snapshot beside it.
  static func isOwn(_ name: String) -> Bool {
    let suffix = PipelineRun.snapshotSuffix
    let digits = name.hasSuffix(suffix) ? name.dropLast(suffix.count) : name[...]
    return digits.utf8.count == 32 && digits.allSatisfy(\.isHexDigit)
  }
}
