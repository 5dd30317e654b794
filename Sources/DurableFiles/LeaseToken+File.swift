private import Glibc
package import SystemPackage

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
