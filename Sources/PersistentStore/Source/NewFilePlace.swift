import GodwitDurableFiles
import GodwitSQLite
import SystemPackage

/// A path at which a command is about to make a file, a folder or a store.
///
/// Some names belong to a store. SQLite takes `STORE-wal`, `STORE-shm` and `STORE-journal` for its own
/// files, plays them back and deletes them, whatever they are. Core Data keeps external data in
/// `.STEM_SUPPORT`, which stores share whose names differ in their last extension only. Every command
/// asks here before it writes.
package struct NewFilePlace: Sendable {
  package let path: FilePath
  private let stores: [FilePath]
  /// Elsewhere that name stands for standard output, and a file of it is hard to remove.
  private let isDash: Bool

  /// - Parameter stores: What the command reads and makes, whether it is there yet or not.
  package init(_ path: FilePath, beside stores: [FilePath] = []) {
    (self.path, self.stores) = (path.resolvingFolders, stores.map(\.resolvingFolders))
    isDash = path.string == "-"
  }

  /// The path is that of no part of a store.
  ///
  /// - Throws: ``PlaceError``; ``StoreError/cannotRead(_:errno:)``.
  package func check() throws {
    if isDash {
      throw PlaceError("-", "it stands for standard output, which nothing is written to here")
    }
    guard String(validating: path) != nil else {
      throw PlaceError(path, "it leads to \(path.unambiguousText), which is not UTF-8")
    }
    let path = path.lexicallyNormalized()
    guard let name = path.lastComponent?.string else {
      throw PlaceError(path.isEmpty ? "." : path, "it is not the name of a file")
    }
    if let folder = path.components.first(where: Self.isSupportFolder) {
      throw PlaceError(path, "Core Data keeps external data in folders such as \(folder)")
    }
    for suffix in StoreFiles.companionSuffixes {
      guard let own = name.before(suffix), !own.isEmpty else { continue }
      let store = path.removingLastComponent().appending(own)
      if try isAmongStores(store) || StoreFiles.kind(at: store) == .regular {
        throw PlaceError(path, "SQLite takes a file of that name for a part of \(store)")
      }
    }
  }

  /// The same of a path for a store, whose external data has a folder of its own. Where there is no such
  /// folder yet, no other store keeps anything in it.
  ///
  /// - Throws: As ``check()``.
  package func checkForStore() throws {
    try check()
    let files = StoreFiles(path)
    if try FileKind(at: files.supportFolder) == .none { return }
    let known = stores.filter {
      !$0.isSamePlace(as: path) && files.sharesFolder(with: StoreFiles($0))
    }
    guard let other = try known.first ?? files.sharers().first else { return }
    throw PlaceError(
      path,
      "its external data would lie in \(files.supportFolder), as that of \(other.unambiguousText) does; "
        + "a name that differs before its last extension, or another folder, keeps them apart")
  }

  private func isAmongStores(_ path: FilePath) -> Bool {
    stores.contains { $0.isSamePlace(as: path) }
  }

  private static func isSupportFolder(_ name: FilePath.Component) -> Bool {
    let name = name.string
    return name.begins(with: ".") && name.ends(with: "_SUPPORT")
  }
}

extension StoreFiles {
  package static let companionSuffixes = ["-wal", "-shm", "-journal"]

  /// Other databases beside this one that keep external data in the same folder: their names differ
  /// in the last extension only, or the volume takes both folders' names for one. One that this user may not
  /// read counts; SQLite's own files beside a store do not.
  ///
  /// - Throws: ``StoreError/cannotRead(_:errno:)`` for a folder or a file that cannot be read otherwise.
  /// - Complexity: O(*n*) in the names of the folder; those that may be meant are looked at.
  package func sharers() throws -> [FilePath] {
    guard let own = store.lastComponent else { return [] }
    let folder = store.removingLastComponent()
    let place: FilePath = folder.isEmpty ? "." : folder
    guard try FileKind(following: place) == .folder else { return [] }
    // No text can name some of them, and their rows refer to files all the same.
    let names = try StoreFiles.reading(place) { try DurableFile.allNames(in: place) }
    let stems = try spellings(of: own, in: folder, names)
    return try names.filter { stems.contains(Self.folded($0.lastComponent?.stem ?? "")) }
      .map { folder.pushing($0) }.filter { other in
        guard let name = other.lastComponent, name != own,
          !StoreFiles.companionSuffixes.contains(where: name.string.ends(with:)),
          sharesFolder(with: StoreFiles(other)), try StoreFiles.kind(at: other) == .regular
        else { return false }
        return try StoreFiles.isDatabase(other)
      }
  }

  /// Stems of stores whose external data may be in the same folder, folded: applications may wait for a commit that
  /// looks for them, and a folder may have very many names.
  private func spellings(
    of own: FilePath.Component, in folder: FilePath, _ names: [FilePath]
  ) throws -> Set<String> {
    var stems: Set<String> = [Self.folded(own.stem)]
    guard try StoreFiles.kind(at: supportFolder) != .none else { return stems }
    for name in names {
      guard let text = name.lastComponent?.string.before("_SUPPORT"), text.begins(with: "."),
        folder.pushing(name).isSameFile(as: supportFolder)
      else { continue }
      stems.insert(Self.folded(String(text.dropFirst())))
    }
    return stems
  }

  private static func folded(_ text: String) -> String { text.uppercased().lowercased() }

  /// Whether another store keeps external data in the same folder. Where that is there, its name does not tell: to
  /// some volumes two spellings, or capitals, are one name.
  func sharesFolder(with other: StoreFiles) -> Bool {
    supportFolder.isSamePlace(as: other.supportFolder)
      || supportFolder.isSameFile(as: other.supportFolder)
  }

  /// Whether a regular file has the header of a database, or may not be read.
  package static func isDatabase(_ path: FilePath) throws -> Bool {
    do {
      return DatabaseHeader.isMagic(try firstBytes(of: path, count: 16))
    } catch StoreError.cannotRead(_, errno: Errno.permissionDenied.rawValue) {
      return true
    }
  }
}

/// Why nothing may be written to a path. Nothing was.
package struct PlaceError: Error, Sendable, Equatable, CustomStringConvertible {
  package let path: FilePath
  /// Half a sentence.
  package let reason: String

  package init(_ path: FilePath, _ reason: String) { (self.path, self.reason) = (path, reason) }

  package var description: String {
    "\(path) cannot be written: \(reason). Give another path."
  }
}
