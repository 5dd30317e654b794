import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// Finds the stores of a pipeline.
///
/// Nothing outside of a root is looked at: symbolic links are never followed, but those on the way
/// to a root. What is not a regular file is not a store. Backups, logs and run directories of Godwit are
/// left out, whatever the patterns say.
struct StoreSearch {
  /// What was found.
  struct Findings: Sendable {
    /// Those that are taken up, in the byte order of their paths.
    var stores: [FoundStore] = []
    /// All of the pipeline's, likewise.
    var all: [FoundStore] = []
    /// Files in the places of outputs beside stores, none of the above.
    var besides: [Beside] = []
    /// Folders that could not be read, and what in them could not be looked at: there may be stores.
    var unreadable: [Unreadable] = []
    /// Symbolic links that a pattern means, or that may lead to something that it means.
    var links = 0
    /// FIFOs, sockets and devices that a pattern means.
    var special = 0
    /// Files that a pattern names outright, and that are not searched since Godwit or SQLite gives such
    /// names to files beside a store.
    var leftOut: [FilePath] = []
    /// Paths of a list of stores that are none of the pipeline's.
    var unknown: [String] = []
    /// Patterns of a selection that mean none of the pipeline's stores.
    var unmatched: [String] = []
    /// Patterns of the pipeline that mean no file below any root, where others do.
    var idlePatterns: [String] = []
    /// Roots with no file that a pattern means, where others have some.
    var emptyRoots: [FilePath] = []
    /// Main files of backups of stores that the patterns mean, in no order.
    var backups: [FoundBackup] = []
  }

  /// A file that lies where the pipeline writes the destination of a store beside that.
  struct Beside: Sendable {
    var source: FilePath
    var file: FoundStore
  }

  /// A place that counts as a store that failed, since there may be stores of which nothing is known.
  struct Unreadable: Sendable {
    enum Kind: String, Sendable {
      case folder = "unreadable-folder"
      /// A root that could be searched, and has lost its stores.
      case emptyRoot = "empty-root"
      /// The first root of a pipeline that has no store at all.
      case noStores = "no-stores"
    }

    var path: FilePath
    var reason: String
    /// What to do about it.
    var advice = "Let this user read it, or exclude it."
    var kind = Kind.folder
  }

  private let pipeline: Pipeline
  private let state: FilePath?

  /// - Parameter state: The state folder of the run, in which no store is taken up.
  init(_ pipeline: Pipeline, state: FilePath?) {
    self.pipeline = pipeline
    self.state = state?.resolved
  }

  /// - Throws: ``PipelineError/noRoot(file:path:reason:)``; nothing is searched then.
  func run() throws -> Findings {
    let roots = try pipeline.stores.roots.map { root in
      guard let resolved = root.resolved, try FileKind(following: resolved) == .folder else {
        throw PipelineError.noRoot(
          file: pipeline.file.string, path: root.string,
          reason: try FileKind(following: root) == .none
            ? "it does not exist" : "it is not a folder")
      }
      // The text of every path in it would stand for other files, too.
      guard String(validating: resolved) != nil else {
        throw PipelineError.noRoot(
          file: pipeline.file.string, path: root.string,
          reason: "it leads to \(resolved.unambiguousText), which is not UTF-8")
      }
      return resolved
    }
    var findings = Findings()
    var known: Set<FilePath> = []
    var used: Set<String> = []
    for root in roots {
      var usedHere: Set<String> = []
      search(root, &findings, &known, &usedHere)
      if usedHere.isEmpty { findings.emptyRoots.append(root) }
      used.formUnion(usedHere)
    }
    findings.idlePatterns = pipeline.stores.include.map(\.text).filter { !used.contains($0) }
    findings.stores.sortByPath()
    // What an earlier run wrote beside a store, or else see ``run(_:destinations:warn:)``.
    if case .beside = pipeline.commit {
      let sources = Dictionary(
        findings.stores.compactMap { store in pipeline.output(of: store.path).map { ($0, store) } },
        uniquingKeysWith: { first, _ in first })
      findings.besides = findings.stores.compactMap { file in
        sources[file.path].map { Beside(source: $0.path, file: file) }
      }
      findings.stores.removeAll { sources[$0.path] != nil }
    }
    findings.all = findings.stores
    if findings.all.isEmpty { (findings.idlePatterns, findings.emptyRoots) = ([], []) }
    return findings
  }

  private struct Folder {
    var path: FilePath
    var include: [PathPattern.Cursor]
    var exclude: [PathPattern.Cursor]
    /// The state folder, or below it: stores are not taken up there.
    var isOfState = false
  }

  /// What a run makes in its state folder that holds databases.
  private static let stateFolders: Set<String> = ["stores", "rollbacks", "cluster"]

  /// - Parameter used: Gets the patterns that mean a file.
  private func search(
    _ root: FilePath, _ findings: inout Findings, _ known: inout Set<FilePath>,
    _ used: inout Set<String>
  ) {
    var inState: [FilePath] = []
    defer { if let first = inState.first { add(first, count: inState.count, to: &findings) } }
    var waiting = [
      Folder(
        path: root, include: pipeline.stores.include.map(\.start),
        exclude: pipeline.stores.exclude.map(\.start))
    ]
    while let folder = waiting.popLast() {
      let entries: [(name: FilePath.Component, kind: Kind)]
      do {
        entries = try Self.entries(of: folder.path)
      } catch {
        let reason = (error as? DurabilityError)?.errno.map { "\($0)" } ?? "\(error)"
        findings.unreadable.append(Unreadable(path: folder.path, reason: reason))
        continue
      }
      for (component, kind) in entries {
        let name = component.string
        if case .file(let bytes, _) = kind, let backup = FoundBackup(name, in: folder.path, bytes) {
          let store = backup.store.lastComponent?.string ?? ""
          if folder.include.contains(where: { $0.advanced(by: store).isMatch }) {
            findings.backups.append(backup)
          }
        }
        let include = folder.include.map { $0.advanced(by: name) }.filter { !$0.isOver }
        let exclude = folder.exclude.map { $0.advanced(by: name, meetsHidden: true) }
          .filter { !$0.isOver }
        guard !include.isEmpty, !exclude.contains(where: \.isMatch) else { continue }
        let path = folder.path.appending(component)
        if Self.isOurs(name, kind) {
          if case .file = kind, include.contains(where: \.isNamedOutright),
            known.insert(path).inserted
          {
            findings.leftOut.append(path)
          }
          continue
        }
        guard String(validating: component) != nil else {
          // Results, ledger and messages are text: no such store could be named in them.
          if kind.mayHold(include) {
            findings.unreadable.append(
              Unreadable(
                path: path, reason: "its name is not UTF-8", advice: "Rename it, or exclude it."))
          }
          continue
        }
        switch kind {
        case .folder:
          if folder.path == state, Self.stateFolders.contains(name) { continue }
          waiting.append(
            Folder(
              path: path, include: include, exclude: exclude,
              isOfState: folder.isOfState || path == state))
        case .file(let bytes, let inode):
          let matches = include.filter(\.isMatch)
          guard !matches.isEmpty, !Self.isLedger(path, name) else { continue }
          for match in matches { used.insert(match.text) }
          guard known.insert(path).inserted else { continue }
          if folder.isOfState {
            inState.append(path)
            continue
          }
          let log = DiskSpace.size(of: StoreFiles(path).wal)
          var store = FoundStore(path: path, root: root, bytes: bytes.added(log))
          store.inode = inode
          findings.stores.append(store)
        case .link: findings.links += 1
        case .unknown(let error):
          findings.unreadable.append(Unreadable(path: path, reason: "\(error)"))
        case .other: if include.contains(where: \.isMatch) { findings.special += 1 }
        }
      }
    }
  }

  /// Files in the state folder that patterns mean: which of them are stores is not looked at.
  private func add(_ first: FilePath, count: Int, to findings: inout Findings) {
    guard let state else { return }
    findings.unreadable.append(
      Unreadable(
        path: state,
        reason: "it is the state folder, and holds \(count) "
          + "\(count == 1 ? "file" : "files") that stores.include means, such as "
          + first.unambiguousText,
        advice: "Give another folder with --state, move the stores out of it, or exclude them."))
  }

  /// A pipeline's ledger, its own or another's, or one that was put aside as damaged.
  private static func isLedger(_ path: FilePath, _ name: String) -> Bool {
    guard name.begins(with: Ledger.fileName),
      let bytes = try? RegularFile.firstBytes(of: path, count: DatabaseHeader.byteCount),
      let header = DatabaseHeader(bytes)
    else { return false }
    return Int64(header.applicationID) == LedgerFormat.applicationID
  }

  /// Files that SQLite keeps beside a store, and what Godwit itself makes. A folder may have a name
  /// like those of SQLite's files, and is searched.
  private static func isOurs(_ name: String, _ kind: Kind) -> Bool {
    let marks = ["backup", "snapshot", "rolled-back", "rejects"].map { ".godwit-\($0)-" }
    // `.STORE.godwit-RUN` and `.STORE.godwit-RUN-clone` are assembled files, see `StoreSwap`.
    if name.holds(".godwit-"), name.begins(with: ".") || marks.contains(where: name.holds) {
      return true
    }
    // A run directory has the name of its store.
    if case .folder = kind { return name.ends(with: ".godwit") }
    return StoreFiles.companionSuffixes.contains(where: name.ends(with:))
      || PendingFile.isTemporaryName(name)
  }

}

// Looking at files.
extension StoreSearch {
  private enum Kind {
    case folder
    case file(bytes: Int64, FoundStore.Inode)
    case link
    /// It could not be looked at.
    case unknown(Errno)
    case other

    /// Whether a store may be here, or below, as far as patterns go.
    func mayHold(_ include: [PathPattern.Cursor]) -> Bool {
      switch self {
      case .file: include.contains(where: \.isMatch)
      case .folder, .unknown: true
      case .link, .other: false
      }
    }
  }

  /// The names in a folder with what they stand for. A folder that has become a link since its name
  /// was read is not opened.
  private static func entries(
    of folder: FilePath
  ) throws -> [(name: FilePath.Component, kind: Kind)] {
    // A descriptor of its own: closedir(3) closes it.
    let opened = try GodwitDurableFiles.Folder(folder)
    let descriptor = try opened.descriptor.duplicate()
    _ = consume opened
    guard let stream = fdopendir(descriptor.rawValue) else {
      let error = Errno(rawValue: errno)
      try? descriptor.close()
      throw error
    }
    defer { closedir(stream) }
    var entries: [(name: FilePath.Component, kind: Kind)] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else { break }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        bytes.baseAddress.flatMap {
          FilePath(platformString: $0.assumingMemoryBound(to: CChar.self)).lastComponent
        }
      }
      // The two of every folder have no last component, or a special one.
      guard let name, name.kind == .regular else { continue }
      if let kind = try kind(of: name, in: descriptor) { entries.append((name, kind)) }
    }
    guard errno == 0 else { throw Errno(rawValue: errno) }
    return entries
  }

  /// nil for what is gone since its name was read.
  ///
  /// - Throws: An `Errno` for a folder whose names may be read and nothing else.
  private static func kind(
    of name: FilePath.Component, in folder: FileDescriptor
  ) throws -> Kind? {
    var status = stat()
    while name.withPlatformString({
      fstatat(folder.rawValue, $0, &status, AT_SYMLINK_NOFOLLOW)
    }) != 0 {
      let error = Errno(rawValue: errno)
      switch error {
      case .interrupted: continue
      case .noSuchFileOrDirectory: return nil
      case .permissionDenied: throw error
      default: return .unknown(error)
      }
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG:
      return .file(
        bytes: Int64(status.st_size),
        FoundStore.Inode(device: UInt64(status.st_dev), number: UInt64(status.st_ino)))
    case S_IFDIR: return .folder
    case S_IFLNK: return .link
    default: return .other
    }
  }
}

extension StoreSearch.Unreadable {
  /// What is wrong, and what to do about it.
  var message: String {
    switch kind {
    case .folder:
      "\(path.unambiguousText) cannot be searched for stores: \(reason). \(advice)"
    case .emptyRoot: "\(path) has lost its stores: \(reason). \(advice)"
    case .noStores: "No store was found in \(reason). \(advice)"
    }
  }
}

extension StoreSearch.Findings {
  /// How much was asked for by name and is none of the pipeline's stores; nil for nothing.
  var unknownCount: Int? {
    unknown.isEmpty && unmatched.isEmpty ? nil : unknown.count + unmatched.count
  }
}
