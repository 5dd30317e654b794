import Glibc
import GodwitDigests
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

/// What tells later that a store is still the one that was looked at.
public struct StoreIdentity: Codable, Sendable, Hashable {
  public var size: Int64
  public var modificationSeconds: Int64
  public var modificationNanoseconds: Int64
  public var inode: UInt64
  /// SHA-256 of the first 100 bytes, in hexadecimal. They hold SQLite's change counter.
  public var headerDigest: String
  /// 0 where there is none.
  public var walSize: Int64
  /// The 32 bytes of the WAL's header in hexadecimal, its two salts among them: they change when
  /// the WAL begins anew.
  public var walHeader: String
  /// 0 where there is none.
  public var journalSize: Int64

  /// True when the newest rows are not, or not only, in the main file.
  public var hasPendingChanges: Bool { walSize > 0 || journalSize > 0 }

  /// A short name for this state of this store.
  public var name: String {
    let text =
      "\(size) \(modificationSeconds) \(modificationNanoseconds) \(inode) \(headerDigest) "
      + "\(walSize) \(walHeader) \(journalSize)"
    return String(Hexadecimal.text(of: SHA256.digest(of: Array(text.utf8))).prefix(32))
  }
}

extension StoreFiles {
  /// Looks at the files as they are now. Nothing is written, and no lock is taken.
  ///
  /// - Throws: ``StoreError``.
  public func identity() throws -> StoreIdentity {
    let main = try FileFacts(store)
    guard main.isRegular else { throw StoreError.notAFile(store) }
    let head = try FileFacts.firstBytes(of: store, count: 100)
    let log = try? FileFacts(wal)
    let walSize = log.map { $0.isRegular ? $0.size : 0 } ?? 0
    let walHead = walSize > 0 ? try FileFacts.firstBytes(of: wal, count: 32) : []
    return StoreIdentity(
      size: main.size, modificationSeconds: main.modificationSeconds,
      modificationNanoseconds: main.modificationNanoseconds, inode: main.inode,
      headerDigest: Hexadecimal.text(of: SHA256.digest(of: head)), walSize: walSize,
      walHeader: Hexadecimal.text(of: walHead), journalSize: try hotJournalSize())
  }

  /// The size of the rollback journal; 0 where it is absent or was made invalid after a commit,
  /// which zeroes its first bytes. Source: https://sqlite.org/atomiccommit.html §7.6.
  private func hotJournalSize() throws -> Int64 {
    guard let facts = try? FileFacts(journal), facts.isRegular, facts.size > 0 else { return 0 }
    let first = try FileFacts.firstBytes(of: journal, count: 1)
    return first.first == 0 ? 0 : facts.size
  }
}

/// What `stat(2)` says of a file.
struct FileFacts {
  let size: Int64
  let inode: UInt64
  let modificationSeconds: Int64
  let modificationNanoseconds: Int64
  let isRegular: Bool

  init(_ path: FilePath) throws {
    var facts = stat()
    guard stat(path.string, &facts) == 0 else {
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
      let file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec])
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
    }
  }
}

extension FileFacts {
  static func isFolder(_ path: FilePath) -> Bool {
    var facts = stat()
    return stat(path.string, &facts) == 0 && facts.st_mode & S_IFMT == S_IFDIR
  }
}
