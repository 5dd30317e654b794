private import CLinux
private import Glibc
package import SystemPackage

/// Runs a call of swift-system and reports its error with the call's name and the path.
package func failing<Result>(_ call: String, _ path: FilePath, _ body: () throws -> Result) throws
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
  package var folder: FilePath {
    let folder = removingLastComponent()
    return folder.isEmpty ? "." : folder
  }
}

/// Runs the body with an open folder and a name in it. No part of the folder's path may be a link.
@discardableResult
func withName<Result>(
  _ path: FilePath, _ body: (Int32, UnsafePointer<CInterop.PlatformChar>) throws -> Result
) throws -> Result {
  guard let name = path.lastComponent else {
    throw DurabilityError.failed(call: "open", path: path, .isDirectory)
  }
  let folder = try Folder(forNamesIn: path.folder)
  return try folder.withDescriptor { descriptor in
    try name.withPlatformString { try body(descriptor.rawValue, $0) }
  }
}

/// The same for two names.
func withNames(
  _ first: FilePath, _ second: FilePath,
  _ body: (
    Int32, UnsafePointer<CInterop.PlatformChar>, Int32, UnsafePointer<CInterop.PlatformChar>
  ) throws -> Void
) throws {
  try withName(first) { folder, name in
    try withName(second) { try body(folder, name, $0, $1) }
  }
}

/// Gives a file another name that nothing has yet.
///
/// - Returns: 0, or the error's number.
func renameNew(_ source: FilePath, to destination: FilePath) throws -> Int32 {
  var code: Int32 = 0
  try withNames(source, destination) { folder, name, newFolder, newName in
    if linux_rename_new_at(folder, name, newFolder, newName) == 0 { return }
    code = errno
    guard code == EINVAL || code == ENOSYS else { return }
    // A file system without that call: a second name, which must be new, then one less.
    let isDone =
      linkat(folder, name, newFolder, newName, 0) == 0 && unlinkat(folder, name, 0) == 0
    code = isDone ? 0 : errno
  }
  return code
}

/// Writes all the bytes, however many calls that takes.
func writeAll(_ bytes: UnsafeRawBufferPointer, to file: FileDescriptor, _ path: FilePath) throws {
  _ = try failing("write", path) { try file.writeAll(bytes) }
}

/// Flushes an open file to the disk. A failure is final: the kernel may have dropped the pages, and
/// a second fsync would then succeed without having written them.
func sync(_ file: FileDescriptor, _ path: FilePath) throws {
  while fsync(file.rawValue) != 0 {
    let errno = Errno(rawValue: errno)
    // A signal that came between is not a failure: nothing was dropped.
    if errno != .interrupted { throw DurabilityError.failed(call: "fsync", path: path, errno) }
  }
}
