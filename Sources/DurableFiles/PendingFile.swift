private import Glibc
package import SystemPackage

/// A file that is being written under a temporary name, and gets its own when it is whole.
///
/// Whoever looks at the destination sees the file that was there before, or none, or the whole new
/// one. If the value goes away unpublished, the temporary file does too; after a crash one named
/// `.NAME.partial-N` may be left, which nobody reads.
package struct PendingFile: ~Copyable {
  /// The name that the file will get.
  package let destination: FilePath
  /// The name that the file has until then, in the same folder.
  package let temporaryPath: FilePath
  package let descriptor: FileDescriptor
  private var isOpen = true
  private var isTemporary = true

  /// - Parameter permissions: The mode of the file, less the process's umask.
  package init(for destination: FilePath, permissions: FilePermissions = .ownerReadWrite) throws {
    // Names are tried until one is free: another process may be writing the same file, and one
    // that crashed may have left its own.
    for number in 0..<10_000 {
      guard let path = Self.temporaryPath(of: destination, number) else {
        throw DurabilityError.failed(call: "open", path: destination, .isDirectory)
      }
      do {
        descriptor = try RegularFile.open(
          path, .readWrite, options: [.create, .exclusiveCreate], permissions: permissions)
      } catch let error as DurabilityError where error.errno == .fileExists {
        continue
      }
      self.destination = destination
      temporaryPath = path
      return
    }
    throw DurabilityError.failed(call: "open", path: destination, .fileExists)
  }

  deinit {
    // Errors are of no use here: nothing of the file is wanted any more.
    if isOpen { try? descriptor.close() }
    if isTemporary { _ = temporaryPath.withPlatformString { unlink($0) } }
  }
}

extension PendingFile {
  /// Whether a file name is one that a crashed process may have left behind.
  package static func isTemporaryName(_ name: String) -> Bool {
    guard name.begins(with: "."), let number = name.parts(between: ".").last?.after("partial-")
    else { return false }
    return Int(number) != nil
  }

  /// The most bytes that the name of a file in a folder may have, so that its first temporary name fits, too.
  package static func longestName(in folder: FilePath) -> Int {
    DurableFile.longestName(in: folder) - "..partial-0".utf8.count
  }

  static func temporaryPath(of destination: FilePath, _ number: Int) -> FilePath? {
    destination.lastComponent.map {
      destination.folder.appending(".\($0.string).partial-\(number)")
    }
  }

  /// The temporary name that a folder has until it is whole.
  ///
  /// - Throws: As ``FileKind/init(at:)``.
  package static func freeTemporaryPath(of folder: FilePath) throws -> FilePath {
    for number in 0... {
      guard let path = temporaryPath(of: folder, number) else { break }
      if try !DurableFile.exists(path) { return path }
    }
    throw DurabilityError.failed(call: "mkdir", path: folder, .isDirectory)
  }

  /// Appends the bytes.
  package mutating func write(_ bytes: UnsafeRawBufferPointer) throws {
    try writeAll(bytes, to: descriptor, temporaryPath)
  }

  /// Writes the bytes at an offset, over what is there.
  package mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws {
    _ = try failing("pwrite", temporaryPath) {
      try descriptor.writeAll(toAbsoluteOffset: offset, bytes)
    }
  }

  /// Gives the file its name for good: fsync, rename, fsync of the folder.
  ///
  /// When this throws, the file may have its name or not, and is whole in both cases.
  ///
  /// - Parameters:
  ///   - replacing: Whether a file of that name is replaced.
  ///   - durability: Where no power cut is to be survived, nothing is flushed.
  /// - Throws: ``DurabilityError/alreadyExists(_:)`` when it is not and there is one.
  package mutating func publish(
    replacing: Bool = true, surviving durability: Durability = .powerCut
  ) throws {
    try publish(after: .written, replacing: replacing, surviving: durability)
  }

  mutating func publish(
    after step: DurableStep, replacing: Bool, surviving durability: Durability = .powerCut
  ) throws {
    try passed(step)
    if durability == .powerCut {
      try sync(descriptor, temporaryPath)
      try passed(.fileSynced)
    }
    isOpen = false
    try failing("close", temporaryPath) { try descriptor.close() }
    try giveName(replacing: replacing)
    isTemporary = false
    try DurableSteps.passed(.renamed, destination)
    if durability == .powerCut { try DurableFile.syncFolder(destination.folder) }
  }

  /// A crash leaves the temporary file where it is, and so does a simulated one.
  private mutating func passed(_ step: DurableStep) throws {
    do {
      try DurableSteps.passed(step, destination)
    } catch {
      isTemporary = false
      throw error
    }
  }

  private func giveName(replacing: Bool) throws {
    if replacing {
      try withNames(temporaryPath, destination) { folder, name, newFolder, newName in
        try calling("rename", destination) { renameat(folder, name, newFolder, newName) }
      }
      return
    }
    let code = try renameNew(temporaryPath, to: destination)
    if code == 0 { return }
    if code == EEXIST { throw DurabilityError.alreadyExists(destination) }
    throw DurabilityError.failed(call: "rename", path: destination, Errno(rawValue: code))
  }
}
