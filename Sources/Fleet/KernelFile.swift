import SystemPackage

/// A file that the kernel makes up while it is read, in `/proc` or `/sys`.
///
/// It tells no size, and one read may give less than there is without being the last: Foundation ends there.
enum KernelFile {
  static func text(of path: FilePath) throws -> String {
    let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
    return try file.closeAfter {
      var bytes: [UInt8] = []
      while true {
        let more = try [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
          count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
        }
        if more.isEmpty { return String(decoding: bytes, as: UTF8.self) }
        bytes += more
      }
    }
  }
}
