import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

/// A store that a pipeline found.
package struct FoundStore: Sendable, Hashable {
  package var path: FilePath
  /// The root it lies in, with every link on the way to it resolved.
  package var root: FilePath
  /// Of the main file and its WAL.
  package var bytes: Int64
  /// Which file the path is a name of, where the search has seen that. Hard links and mounts give a file several.
  var inode: Inode?
  /// The name of the state of which a snapshot was migrated before, where the books say so to tasks that
  /// have others.
  var snapshotIdentity: String?

  package init(path: FilePath, root: FilePath, bytes: Int64) {
    (self.path, self.root, self.bytes) = (path, root, bytes)
  }

  struct Inode: Sendable, Hashable {
    var device: UInt64
    var number: UInt64
  }
}

extension FoundStore {
  /// Why the store must not be opened after all: some name on the way to it, or one of its files,
  /// is a symbolic link, which may lead out of the root. Looked at again just before it is opened,
  /// since a search over many stores takes its time.
  var escapingSymlink: FilePath? {
    let files = StoreFiles(path)
    var places = [path, files.wal, files.shm, files.journal, files.supportFolder]
    places.append(files.externalDataFolder)
    var folder = path.removingLastComponent()
    while folder != root, !folder.components.isEmpty {
      places.append(folder)
      folder.removeLastComponent()
    }
    return places.first { (try? FileKind(at: $0)) == .symbolicLink }
  }
}

extension [FoundStore] {
  /// In the byte order of their paths.
  mutating func sortByPath() {
    sort { $0.path.string.utf8.lexicographicallyPrecedes($1.path.string.utf8) }
  }
}

extension Pipeline {
  /// Where the destination of a store goes; nil for into its place.
  package func output(of store: FilePath) -> FilePath? {
    guard case .beside(let suffix) = commit, let name = store.lastComponent else { return nil }
    let extended = name.extension.map { "." + $0 } ?? ""
    return store.removingLastComponent().appending(name.stem + suffix + extended)
  }

  /// Whether a path is that of an output beside a store, with whatever suffix.
  static func isOutput(_ path: FilePath, of store: FilePath) -> Bool {
    let files = StoreFiles(store)
    guard let name = store.lastComponent, ![files.wal, files.shm, files.journal].contains(path),
      path.removingLastComponent() == store.removingLastComponent(),
      let rest = path.lastComponent?.string.after(name.stem),
      let suffix = rest.before(name.extension.map { "." + $0 } ?? "")
    else { return false }
    return !suffix.isEmpty && !suffix.begins(with: ".")
  }
}
