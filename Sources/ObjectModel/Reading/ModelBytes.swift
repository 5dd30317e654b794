#if canImport(Glibc)
  private import Glibc
#elseif canImport(Musl)
  private import Musl
#elseif canImport(Darwin)
  private import Darwin
#endif

/// Reads whole model files: regular ones, up to a size.
enum ModelBytes {
  /// 256 MiB. Model files are kilobytes.
  static let byteLimit = 256 << 20

  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// - Throws: ``ModelError/unreadable(path:reason:)``.
  static func read(_ path: String) throws -> [UInt8] {
    func failure(_ reason: String) -> ModelError { .unreadable(path: path, reason: reason) }
    func systemFailure() -> ModelError { failure(String(cString: strerror(errno)).lowercased()) }
    // Not blocking: a named pipe in the place of a model must not hang the run.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw systemFailure() }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw systemFailure() }
    guard status.st_mode & S_IFMT == S_IFREG else { throw failure("it is not a regular file") }
    guard status.st_size <= byteLimit else {
      throw failure("it has more than \(byteLimit >> 20) MiB")
    }
    let size = Int(status.st_size)
    var count = 0
    let bytes = try [UInt8](unsafeUninitializedCapacity: size) { place, filled in
      while count < size {
        let step = readBytes(descriptor, place.baseAddress?.advanced(by: count), size - count)
        if step < 0, errno == EINTR { continue }
        guard step >= 0 else { throw systemFailure() }
        if step == 0 { break }
        count += step
      }
      filled = count
    }
    return bytes
  }
}

/// `read(2)`, which inside ``ModelBytes`` its own function hides.
private func readBytes(
  _ descriptor: Int32, _ place: UnsafeMutableRawPointer?, _ count: Int
) -> Int { read(descriptor, place, count) }
