import Glibc
import GodwitDurableFiles
import GodwitSQLite
import SystemPackage

/// The files that make up one store.
///
/// Source: `core-data-sqlite-format.md` §1.
package struct StoreFiles: Sendable, Hashable {
  package let store: FilePath

  package init(_ store: FilePath) {
    self.store = store
  }

  /// The newest rows are often only here.
  package var wal: FilePath { beside("-wal") }
  /// SQLite's shared memory. Never needed to read.
  package var shm: FilePath { beside("-shm") }
  /// The rollback journal of stores that do not use a WAL.
  package var journal: FilePath { beside("-journal") }

  /// Whether a path is that of one of these files, or leads through the folder of external data: by its
  /// names alone, since folders may be spelled in several ways.
  package func names(_ path: FilePath) -> Bool {
    [store, wal, shm, journal].contains { $0.lastComponent == path.lastComponent }
      || supportFolder.lastComponent.map(path.components.contains) ?? false
  }

  /// `.STEM_SUPPORT` beside the store, where STEM is the file's name without its last extension.
  package var supportFolder: FilePath {
    let stem = store.lastComponent?.stem ?? ""
    return store.removingLastComponent().appending(".\(stem)_SUPPORT")
  }

  /// One file for each large binary value, named by a UUID.
  package var externalDataFolder: FilePath { supportFolder.appending("_EXTERNAL_DATA") }

  /// A file of external data larger than this is not taken into a row: SQLite's own limit is near.
  package static let mostExternalBytes = 1 << 29

  private func beside(_ suffix: String) -> FilePath {
    FilePath(store.string + suffix)
  }
}

extension StoreFiles {
  /// The UUID in the metadata of the main file; nil where that cannot be read.
  package var storedUUID: String? {
    guard let connection = try? Connection(path: store.string, mode: .immutable),
      (try? connection.holds(["Z_UUID"], in: "Z_METADATA")) == true
    else { return nil }
    return try? connection.rows("SELECT Z_UUID FROM Z_METADATA LIMIT 1").first?.first?.text
  }

  /// Whether every file of the store is a regular one and every folder a folder, not a link to one:
  /// SQLite would follow links that a backup or a copy leaves behind. It takes paths as text, too.
  ///
  /// - Throws: ``StoreError/unusualFile(_:_:of:)``; ``StoreError/notText(_:)``;
  ///   ``StoreError/cannotRead(_:errno:)`` where this user may not look for external data: who took it for absent
  ///   would leave it behind.
  package func checkKinds() throws {
    guard String(validating: store) != nil else { throw StoreError.notText(store) }
    for path in [store, wal, shm, journal] { try check(path, is: .regular) }
    for path in [supportFolder, externalDataFolder] { try check(path, is: .folder) }
    if case .unreachable(let error) = FilePresence(of: externalDataFolder),
      try StoreFiles.kind(at: supportFolder) == .folder
    {
      throw StoreError.cannotRead(externalDataFolder, errno: error.rawValue)
    }
  }

  /// Whether every file of external binary data is a regular one. A link would be left out of every
  /// copy. Names that are not UUIDs are not looked at: no row can refer to them.
  ///
  /// - Throws: ``StoreError/unusualFile(_:_:of:)``.
  /// - Complexity: O(*n*) in the files, each of which costs one lstat(2).
  package func checkExternalDataKinds() throws {
    guard try StoreFiles.kind(at: externalDataFolder) == .folder else { return }
    let names = try StoreFiles.reading(externalDataFolder) {
      try DurableFile.names(in: externalDataFolder)
    }
    for name in names where StoreMetadata.isUUID(name) {
      try check(externalDataFolder.appending(name), is: .regular)
    }
  }

  private func check(_ path: FilePath, is kind: FileKind) throws {
    let found = try StoreFiles.kind(at: path)
    guard found == kind || found == .none else {
      throw StoreError.unusualFile(path, found, of: store)
    }
  }
}

extension StoreFiles {
  /// Reads every byte of the store and its logs: what SQLite reports as damage may be a volume
  /// that cannot be read.
  ///
  /// - Throws: ``StoreError/cannotRead(_:errno:)``.
  package func requireReadable() throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    defer { buffer.deallocate() }
    for path in [store, wal, journal] where try StoreFiles.markIfThere(path) != nil {
      do {
        let file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking])
        try file.closeAfter {
          let size = try file.seek(offset: 0, from: .end)
          var offset = Int64(0)
          while true {
            // A hole can be read whatever the volume, and may be as long as a number.
            offset = file.nextData(from: offset, size: size)
            let read = try file.read(fromAbsoluteOffset: offset, into: buffer)
            if read == 0 { break }
            offset += Int64(read)
          }
        }
      } catch let error as Errno {
        throw StoreError.cannotRead(path, errno: error.rawValue)
      }
    }
  }
}

extension StoreFiles {
  /// A regular file that must be there, as lstat(2) shows it.
  ///
  /// - Throws: ``StoreError/notFound(_:)``, ``StoreError/cannotRead(_:errno:)``.
  static func mark(_ path: FilePath) throws -> FileMark {
    guard let mark = try markIfThere(path) else { throw StoreError.notFound(path) }
    return mark
  }

  /// The same of a file that need not be there. One that cannot be looked at is not absent.
  ///
  /// - Throws: ``StoreError/cannotRead(_:errno:)``.
  static func markIfThere(_ path: FilePath) throws -> FileMark? {
    try reading(path) { try FileMark(path) }
  }

  /// What lies at a path.
  ///
  /// - Throws: ``StoreError/cannotRead(_:errno:)``.
  static func kind(at path: FilePath) throws -> FileKind {
    try reading(path) { try FileKind(at: path) }
  }

  /// - Throws: ``StoreError/cannotRead(_:errno:)`` for what the operating system refused;
  ///   ``StoreError/inUse(_:)`` for a file that another process keeps from being opened.
  package static func reading<Result>(_ path: FilePath, _ body: () throws -> Result) throws
    -> Result
  {
    do {
      return try body()
    } catch let error as DurabilityError {
      guard let errno = error.errno else { throw error }
      throw error.isLeased ? StoreError.inUse(path) : .cannotRead(path, errno: errno.rawValue)
    } catch let error as Errno {
      throw StoreError.cannotRead(path, errno: error.rawValue)
    }
  }

  /// As many bytes as the file has, `count` at most.
  static func firstBytes(of path: FilePath, count: Int) throws -> [UInt8] {
    try reading(path) { try RegularFile.firstBytes(of: path, count: count) }
  }
}
