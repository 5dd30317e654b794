import Glibc
import GodwitDurableFiles
import SystemPackage

/// The files that make up one store.
///
/// Source: `core-data-sqlite-format.md` §1.
public struct StoreFiles: Sendable, Hashable {
  public let store: FilePath

  public init(_ store: FilePath) {
    self.store = store
  }

  /// The newest rows are often only here.
  public var wal: FilePath { beside("-wal") }
  /// SQLite's shared memory. Never needed to read.
  public var shm: FilePath { beside("-shm") }
  /// The rollback journal of stores that do not use a WAL.
  public var journal: FilePath { beside("-journal") }

  /// `.STEM_SUPPORT` beside the store, where STEM is the file's name without its last extension.
  public var supportFolder: FilePath {
    let stem = store.lastComponent?.stem ?? ""
    return store.removingLastComponent().appending(".\(stem)_SUPPORT")
  }

  /// One file for each large binary value, named by a UUID.
  public var externalDataFolder: FilePath { supportFolder.appending("_EXTERNAL_DATA") }

  private func beside(_ suffix: String) -> FilePath {
    FilePath(store.string + suffix)
  }
}

extension StoreFiles {
  /// Whether every file of the store is a regular one and every folder a folder, not a link to one:
  /// SQLite would follow links that a backup or a copy leaves behind.
  ///
  /// - Throws: ``StoreError/unusualFile(_:_:of:)``.
  public func checkKinds() throws {
    for path in [store, wal, shm, journal] { try check(path, is: .regular) }
    for path in [supportFolder, externalDataFolder] { try check(path, is: .folder) }
  }

  /// Whether every file of external binary data is a regular one. A link would be left out of every
  /// copy. Names that are not UUIDs are not looked at: no row can refer to them.
  ///
  /// - Throws: ``StoreError/unusualFile(_:_:of:)``.
  /// - Complexity: O(*n*) in the files, each of which costs one lstat(2).
  public func checkExternalDataKinds() throws {
    guard FileKind(at: externalDataFolder) == .folder else { return }
    let names: [String]
    do {
      names = try DurableFile.names(in: externalDataFolder)
    } catch let error as DurabilityError {
      guard let errno = error.errno else { throw error }
      throw StoreError.cannotRead(externalDataFolder, errno: errno.rawValue)
    }
    for name in names where StoreMetadata.isUUID(name) {
      try check(externalDataFolder.appending(name), is: .regular)
    }
  }

  private func check(_ path: FilePath, is kind: FileKind) throws {
    let found = FileKind(at: path)
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
  public func requireReadable() throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    defer { buffer.deallocate() }
    for path in [store, wal, journal] where (try? FileFacts(path))?.isRegular == true {
      do {
        let file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec])
        try file.closeAfter { while try file.read(into: buffer) > 0 {} }
      } catch let error as Errno {
        throw StoreError.cannotRead(path, errno: error.rawValue)
      }
    }
  }
}

/// What `lstat(2)` says of a file.
struct FileFacts {
  let size: Int64
  let inode: UInt64
  let modificationSeconds: Int64
  let modificationNanoseconds: Int64
  let isRegular: Bool

  init(_ path: FilePath) throws {
    var facts = stat()
    guard lstat(path.string, &facts) == 0 else {
      throw errno == ENOENT || errno == ENOTDIR
        ? StoreError.notFound(path) : StoreError.cannotRead(path, errno: errno)
    }
    size = Int64(facts.st_size)
    inode = UInt64(facts.st_ino)
    modificationSeconds = Int64(facts.st_mtim.tv_sec)
    modificationNanoseconds = Int64(facts.st_mtim.tv_nsec)
    isRegular = facts.st_mode & S_IFMT == S_IFREG
  }

  /// As many bytes as the file has, `count` at most.
  static func firstBytes(of path: FilePath, count: Int) throws -> [UInt8] {
    do {
      let file = try RegularFile.open(path)
      return try file.closeAfter {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
          let read = try bytes.withUnsafeMutableBytes {
            try file.read(
              fromAbsoluteOffset: Int64(filled),
              into: UnsafeMutableRawBufferPointer(rebasing: $0[filled...]))
          }
          if read == 0 { break }
          filled += read
        }
        return Array(bytes.prefix(filled))
      }
    } catch let error as Errno {
      throw StoreError.cannotRead(path, errno: error.rawValue)
    } catch let error as DurabilityError {
      guard let errno = error.errno else { throw error }
      throw StoreError.cannotRead(path, errno: errno.rawValue)
    }
  }
}

extension FileFacts {
  static func isFolder(_ path: FilePath) -> Bool {
    var facts = stat()
    guard lstat(path.string, &facts) == 0 else { return !DurableFile.meansAbsent(errno) }
    return facts.st_mode & S_IFMT == S_IFDIR
  }
}
