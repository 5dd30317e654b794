private import Glibc
package import SystemPackage

/// A file of lines that grows at its end; what was appended is on the disk when the call returns.
///
/// A crash may leave a part of the last line: whoever reads leaves out what is not a whole line, and
/// whoever goes on writing begins a new one.
package struct DurableLog: ~Copyable {
  package let path: FilePath
  private let descriptor: FileDescriptor
  private var needsLineFeed: Bool

  /// Opens the file, or makes it.
  package init(at path: FilePath, permissions: FilePermissions = .ownerReadWrite) throws {
    if try !DurableFile.exists(path) {
      try DurableFile.write([], to: path, permissions: permissions)
    }
    let file = try RegularFile.open(path, .readWrite, options: .append, isSole: true)
    do {
      needsLineFeed = try failing("read", path) { try Self.isInsideLine(file) }
    } catch {
      try? file.close()  // the first error is the one to tell
      throw error
    }
    self.path = path
    descriptor = file
  }

  private static func isInsideLine(_ file: FileDescriptor) throws -> Bool {
    let size = try file.seek(offset: 0, from: .end)
    guard size > 0 else { return false }
    var last: UInt8 = 0
    let count = try withUnsafeMutableBytes(of: &last) {
      try file.read(fromAbsoluteOffset: size - 1, into: $0)
    }
    return count == 1 && last != UInt8(ascii: "\n")
  }

  deinit { try? descriptor.close() }

  /// Adds a line, given without its line feed.
  package mutating func append(_ line: String) throws { try append([line], surviving: .powerCut) }

  /// Adds lines, given without their line feeds. They are flushed together.
  package mutating func append(_ lines: [String], surviving durability: Durability) throws {
    let text = (needsLineFeed ? "\n" : "") + lines.map { $0 + "\n" }.joined()
    // Whatever comes of it, nothing must be appended to a line that is not whole.
    needsLineFeed = true
    try Array(text.utf8).withUnsafeBytes { try writeAll($0, to: descriptor, path) }
    needsLineFeed = false
    try DurableSteps.passed(.written, path)
    if durability == .powerCut { try DurableFile.syncFile(descriptor, path) }
  }
}
