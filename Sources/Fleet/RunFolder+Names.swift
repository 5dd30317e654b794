import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitPlanning
import SystemPackage

// What a run can have put into its directory. Anything else is somebody's who would lose it.
extension RunFolder {
  /// Files whose names other programs give, too. A run has its lock before it makes one of them.
  private static let commonNames: Set<String> = [
    "plan.json", "journal.json", "events.jsonl", "name", "chain.json", "result.json",
    "offsets.json",
  ]
  private static let ownFolders = Set(
    Stage.allCases.map(\.rawValue) + ["snapshot", "external", "steps", "associations", ".sound"])
  private static let lockNames: Set<String> = ["lock", ".lock-takeover", ".lock-next"]

  /// The first name in the folder that no run can have given, below it as `FOLDER/NAME`; nil where there is none.
  ///
  /// A run that was killed at its beginning has left folders without anything in them, and no lock.
  func stranger() throws -> String? {
    var common: [String] = []
    for place in try allNames(in: directory.path) {
      let path = directory.path.pushing(place)
      let name = place.string
      switch try FileKind(at: path) {
      case .none: continue  // removed since
      case .folder:
        guard Self.ownFolders.contains(name) else { return name }
        let other = try allNames(in: path).map(\.string)
          .first { !Self.isTemporary($0) && !isMember($0, of: name) }
        if let other { return "\(name)/\(other)" }
      case .regular, .symbolicLink, .special:
        if Self.isCommon(name) {
          common.append(name)
        } else if !Self.lockNames.contains(name) && !Self.isTemporary(name)
          && !name.hasPrefix("assembled.sqlite")
        {
          return name
        }
      }
    }
    let lock = try Lease.mark(at: directory.lock)
    switch lock {
    case .other: return try FileKind(at: directory.lock) == .regular ? "lock" : nil
    case .epoch: return nil
    case .unwritten, .absent:
      if try common.contains(where: { try isMark($0) }) { return nil }
      return try common.first { try !holdsOwn($0, hasLock: lock == .unwritten) }
    }
  }

  /// Whether a file says of itself that it is a run's, of this version or another, and sound or altered since: what
  /// is wrong with it says whoever reads it. A power cut may have taken what was in the lock, or its name.
  private func isMark(_ name: String) throws -> Bool {
    switch name {
    case "plan.json", "result.json": return isSealed(name)
    case "journal.json": return CommitJournal.isPresent(in: directory)
    case "offsets.json": return (try? MappedOffsets.kept(in: directory)) != nil
    case "chain.json": return try isSealed(name) || ChainFolder(directory: directory).isNamed
    default: return false
    }
  }

  private func isSealed(_ name: String) -> Bool {
    let bytes = try? RegularFile.bytesIfPresent(
      of: directory.path.appending(name), limit: RunDirectory.largestFileBytes, isPrivate: true)
    return bytes.map(SealedJSON.isSealed) == true
  }

  /// Whether a file that is no ``isMark(_:)`` holds what a run writes there.
  private func holdsOwn(_ name: String, hasLock: Bool) throws -> Bool {
    let path = directory.path.appending(name)
    let first = try RegularFile.firstBytes(of: path, count: 16)
    // Empty, or zeros.
    guard first.contains(where: { $0 != 0 }) else { return true }
    switch name {
    case "name": return try earlierName() != nil
    // Torn, it says no more.
    case "result.json":
      let keys = [#"{"backup"#, #"{"digest"#, #"{"ending"#]
      return keys.contains { first.starts(with: $0.utf8) }
    case "events.jsonl":
      let line = try RegularFile.firstBytes(of: path, count: 65_536).prefix { $0 != 0x0A }
      return (try? JSONDecoder().decode(RunEvent.self, from: Data(line))) != nil
    default: return hasLock && !Self.commonNames.contains(name)
    }
  }

  private static func isCommon(_ name: String) -> Bool {
    commonNames.contains(name) || name.hasPrefix("edges.sqlite") || name.hasPrefix("rejects.sqlite")
  }

  private static func isTemporary(_ name: String) -> Bool {
    PendingFile.isTemporaryName(name) || RunDirectory.isSQLiteTemporary(name)
      // What NFS makes of a file that is removed while somebody has it open.
      || (name.hasPrefix(".nfs") && name.dropFirst(4).allSatisfy(\.isHexDigit))
  }

  /// Whether a run gives a name in a folder of ``ownFolders``.
  private func isMember(_ name: String, of folder: String) -> Bool {
    switch folder {
    case ".sound": return name.hasPrefix("store")
    case "snapshot": return name.hasPrefix("store-")
    case "external": return name.utf8.count == 36 && UUID(uuidString: name) != nil
    case "steps": return name.utf8.allSatisfy { (0x30...0x39).contains($0) }
    case "associations":
      let rest = String(name.drop { $0.isASCII && $0.isNumber })
      return name.hasPrefix("user-info-after-")
        || rest != name
          && (rest.hasPrefix(".pairs") || rest.hasPrefix(".forward") || rest.hasPrefix(".reverse"))
    default: return CheckpointName(path: FilePath(folder).appending(name)) != nil
    }
  }

  /// Those that are no text included, which no run gives. None for a folder that has been removed since.
  private func allNames(in folder: FilePath) throws -> [FilePath] {
    do {
      return try DurableFile.allNames(in: folder)
    } catch let error as DurabilityError where error.isNotFound {
      return []
    }
  }
}
