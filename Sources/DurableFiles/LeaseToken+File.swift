private import Glibc
package import SystemPackage

extension Lease {
  /// What a file holds that may be a lease's.
  package enum Mark: Sendable {
    case absent
    /// Nothing, or zeros: whoever made it was cut off before it wrote its epoch, or before that was on the disk.
    case unwritten
    case epoch
    /// What no holder writes.
    case other
  }

  /// - Throws: ``DurabilityError`` where that cannot be told.
  package static func mark(at path: FilePath) throws -> Mark {
    do {
      guard let bytes = try RegularFile.bytesIfPresent(of: path, limit: 20) else { return .absent }
      if bytes.allSatisfy({ $0 == 0 }) { return .unwritten }
      return UInt64(String(decoding: bytes, as: UTF8.self)) == nil ? .other : .epoch
    } catch let error as DurabilityError where error.errno == nil {
      return .other  // a folder or a link, or too large
    }
  }
}

extension LeaseToken {
  /// What a file allows for as long as it is there: whoever made it removes it to forbid it again.
  ///
  /// Machines that share a volume may number it differently, so each makes the token for itself.
  ///
  /// - Throws: An error whose `isNotFound` is true when there is no such file.
  package init(ofFileAt path: FilePath) throws {
    let file = try RegularFile.open(path)
    defer { try? file.close() }
    var status = stat()
    try calling("fstat", path) { fstat(file.rawValue, &status) }
    self.path = path.string
    epoch = try Lease.epoch(in: file, path)
    (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
  }
}
