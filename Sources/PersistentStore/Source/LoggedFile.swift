import GodwitDurableFiles
import SystemPackage

/// Which of two database files a WAL belongs to. Nothing in a WAL says so: SQLite finds it by its name.
///
/// A page that a transaction changes keeps most of its bytes. So the file is the one that the pages of the
/// WAL have more bytes in common with, each at its place.
package enum LoggedFile {
  case old, new

  /// No more frames are compared than this: their pages are at hand, and tell enough.
  private static let frameLimit = 4096

  /// Nil where the WAL has committed nothing, or where its pages are in both files alike: then it reads the
  /// same beside either.
  ///
  /// - Throws: ``StoreError``.
  package init?(_ log: FilePath, old: FilePath, new: FilePath) throws {
    let frames = try CommittedLog(log).size
    guard frames > 0 else { return nil }
    let common = try StoreFiles.reading(log) {
      let log = try RegularFile.open(log)
      return try log.closeAfter {
        let old = try RegularFile.open(old)
        return try old.closeAfter {
          let new = try RegularFile.open(new)
          return try new.closeAfter { try LoggedFile.bytesInCommon(log, frames, old, new) }
        }
      }
    }
    if common.old == common.new { return nil }
    self = common.old > common.new ? .old : .new
  }

  private static func bytesInCommon(
    _ log: FileDescriptor, _ size: Int64, _ old: FileDescriptor, _ new: FileDescriptor
  ) throws -> (old: Int, new: Int) {
    var header = [UInt8](repeating: 0, count: CommittedLog.headerSize)
    _ = try header.withUnsafeMutableBytes { try log.read(fromAbsoluteOffset: 0, into: $0) }
    let pageSize = header.withUnsafeBytes { Int($0.bigEndian(at: 8)) }
    let frameSize = CommittedLog.frameHeaderSize + pageSize
    var frame = [UInt8](repeating: 0, count: frameSize)
    var page = [UInt8](repeating: 0, count: pageSize)
    var common = (old: 0, new: 0)
    for offset in stride(from: Int64(CommittedLog.headerSize), to: size, by: frameSize)
      .prefix(frameLimit)
    {
      let count = try frame.withUnsafeMutableBytes {
        try log.read(fromAbsoluteOffset: offset, into: $0)
      }
      guard count == frameSize else { break }
      let number = frame.withUnsafeBytes { Int64($0.bigEndian(at: 0)) }
      for (file, isOld) in [(old, true), (new, false)] {
        let read = try page.withUnsafeMutableBytes {
          try file.read(fromAbsoluteOffset: (number - 1) * Int64(pageSize), into: $0)
        }
        guard read == pageSize else { continue }
        let equal = zip(page, frame.dropFirst(CommittedLog.frameHeaderSize)).count { $0 == $1 }
        if isOld { common.old += equal } else { common.new += equal }
      }
    }
    return common
  }
}
