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
    let bytes = try [UInt8](unsafeUninitializedCapacity: 20) { buffer, count in
      count = try failing("read", path) {
        try file.read(fromAbsoluteOffset: 0, into: UnsafeMutableRawBufferPointer(buffer))
      }
    }
    self.path = path.string
    epoch = UInt64(String(decoding: bytes, as: UTF8.self)) ?? 0
    (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
  }
}
