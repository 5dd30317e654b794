private import Glibc
import SystemPackage

/// Runs a call of swift-system and tells its error with the call's name and the path.
func failing<Result>(_ call: String, _ path: FilePath, _ body: () throws -> Result) throws
  -> Result
{
  do {
    return try body()
  } catch let errno as Errno {
    throw DurabilityError.failed(call: call, path: path, errno)
  }
}

/// Runs a call of the C library that gives a negative number on failure, again when a signal came
/// between.
@discardableResult
func calling<Result: SignedInteger>(
  _ call: String, _ path: FilePath, _ body: () -> Result
) throws -> Result {
  while true {
    let result = body()
    if result >= 0 { return result }
    let errno = Errno(rawValue: errno)
    if errno != .interrupted { throw DurabilityError.failed(call: call, path: path, errno) }
  }
}

extension FilePath {
  /// The folder that has this name in it; `.` for a name alone.
  var folder: FilePath {
    let folder = removingLastComponent()
    return folder.isEmpty ? "." : folder
  }
}

/// Writes all the bytes, however many calls that takes.
func writeAll(_ bytes: UnsafeRawBufferPointer, to file: FileDescriptor, _ path: FilePath) throws {
  _ = try failing("write", path) { try file.writeAll(bytes) }
}

/// Flushes an open file to the disk. A failure is final: the kernel may have dropped the pages, and
/// a second fsync would then succeed without having written them.
func sync(_ file: FileDescriptor, _ path: FilePath) throws {
  guard fsync(file.rawValue) == 0 else {
    throw DurabilityError.failed(call: "fsync", path: path, Errno(rawValue: errno))
  }
}
