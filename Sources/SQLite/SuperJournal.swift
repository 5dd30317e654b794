#if canImport(Glibc)
  private import Glibc
#elseif canImport(Musl)
  private import Musl
#elseif canImport(Darwin)
  private import Darwin
#endif

/// The name of another file at the end of a rollback journal.
///
/// SQLite deletes the file of that name when it plays back the journal, whatever the file is. So a
/// journal that has one is never given to SQLite.
///
///     offset from the end  size  field
///                     -16     4  length of the name, which stands before it
///                     -12     4  sum of the name's bytes
///                      -8     8  the magic number of a journal's header
///
/// Source: https://sqlite.org/fileformat2.html §3 and https://sqlite.org/atomiccommit.html §5.3.
public enum SuperJournal {
  private static let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]

  /// Whether a journal's last bytes can be read as such a name. Any length but 0 counts, and the sum
  /// is not looked at: no journal without a name ends with the magic number.
  static func isNamed(inJournalEndingWith tail: [UInt8]) -> Bool {
    guard tail.count >= 16, tail.suffix(8).elementsEqual(magic) else { return false }
    return tail[(tail.count - 16)..<(tail.count - 12)].contains { $0 != 0 }
  }

  /// Whether the journal beside a database names another file.
  ///
  /// - Throws: ``SQLiteError/cannotOpen(path:code:message:)`` when the journal is there and cannot be
  ///   read, or is not a regular file.
  public static func isNamed(besideDatabase path: String) throws -> Bool {
    let journal = path + "-journal"
    var file: Int32
    repeat {
      file = open(journal, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
    } while file < 0 && errno == EINTR
    guard file >= 0 else {
      if errno == ENOENT || errno == ENOTDIR { return false }
      throw refusal(path, "its journal cannot be opened (errno \(errno))")
    }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw refusal(path, "its journal is not a regular file")
    }
    guard status.st_size >= 16 else { return false }
    var tail = [UInt8](repeating: 0, count: 16)
    var count = 0
    while count < 16 {
      let read = tail.withUnsafeMutableBytes { bytes in
        let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[count...])
        return pread(file, rest.baseAddress, rest.count, status.st_size - 16 + count)
      }
      if read < 0, errno == EINTR { continue }
      guard read > 0 else { throw refusal(path, "its journal cannot be read") }
      count += read
    }
    return isNamed(inJournalEndingWith: tail)
  }

  static func refuse(besideDatabase path: String) throws {
    guard try isNamed(besideDatabase: path) else { return }
    throw refusal(path, "its journal names another file, which SQLite would delete")
  }

  private static func refusal(_ path: String, _ message: String) -> SQLiteError {
    // 14 is SQLITE_CANTOPEN.
    .cannotOpen(path: path, code: 14, message: message)
  }
}
