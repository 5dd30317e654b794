private import CLinux
private import Glibc
package import SystemPackage

extension DurableFile {
  /// Copies a file under a new name: bytes, holes, mode, owner and extended attributes.
  ///
  /// The copy shares its blocks with the source where the file system can (`FICLONE`), is made in
  /// the kernel where that can (`copy_file_range`), and by reading and writing otherwise. The source
  /// must not change meanwhile. The owner and attributes of other namespaces than `user` are kept
  /// as far as this user may set them, and nobody has more rights to the copy than to the source: what its
  /// folder gives new files is taken away.
  ///
  /// - Parameter model: The file whose mode, owner and access control list the copy gets instead of the source's.
  /// - Returns: What the copy could not have.
  /// - Throws: ``DurabilityError/alreadyExists(_:)`` when there is a file of the new name.
  @discardableResult
  package static func copy(
    _ source: FilePath, to destination: FilePath, rightsOf model: FilePath? = nil
  ) throws -> LostRights {
    let input = try RegularFile.open(source)
    defer { try? input.close() }
    var output = try PendingFile(for: destination)
    try copyBytes(from: input, source, to: output.descriptor, output.temporaryPath)
    let rights = try model.flatMap { try FileRights(at: $0) }
    let lost = try copyStatus(
      from: input, source, to: output.descriptor, output.temporaryPath, rights: rights)
    try output.publish(after: .copied, replacing: false)
    return lost
  }

  /// Gives a file the mode, owner and extended attributes of another, and flushes it to the disk
  /// unless somebody else does.
  ///
  /// - Returns: What it could not have.
  @discardableResult
  package static func copyAttributes(
    from source: FilePath, to destination: FilePath, surviving durability: Durability = .powerCut
  ) throws -> LostRights {
    let input = try RegularFile.open(source)
    defer { try? input.close() }
    let output = try RegularFile.open(destination)
    defer { try? output.close() }
    let lost = try copyStatus(from: input, source, to: output, destination)
    if durability == .powerCut { try syncFile(output, destination) }
    return lost
  }
}

extension DurableFile {
  /// Gives a folder the mode, owner and access control lists of another one, or, where there is none, those of a
  /// file, by which whoever may read the file finds what lies in the folder.
  ///
  /// Who made it may be root, and nobody else would find anything in it. The owner is kept as far as this
  /// user may set it. Where there is no other folder, what an application makes in it later has the rights that
  /// the folder above gives.
  package static func copyRights(
    ofFolder original: FilePath?, orFile file: FilePath, to folder: FilePath
  ) throws {
    let target = try Folder(folder)
    if let original, let rights = try FileRights(at: original), rights.isFolder {
      return try target.withDescriptor {
        let lost = try giveRights(rights, to: $0, folder)
        try giveDefaultList(of: original, to: $0, folder, isForAnotherGroup: lost.group != nil)
      }
    }
    guard let rights = try FileRights(at: file) else { return }
    try target.withDescriptor { _ = try giveRights(rights.forFolder, to: $0, folder) }
  }

  /// Gives a copy that its owner is to write to the mode, owner and access control list of a file. A copy that has
  /// them is not touched: its state stays the same.
  ///
  /// - Returns: What it could not have.
  package static func copyRights(
    ofFile file: FilePath, toWritable copy: FilePath
  ) throws -> LostRights {
    guard var rights = try FileRights(at: file) else { return LostRights() }
    rights.mode = rights.mode & 0o777 | 0o600
    rights.list?.letOwnerWrite()
    let output = try RegularFile.open(copy)
    defer { try? output.close() }
    return try giveRights(rights, to: output, copy)
  }
}

extension DurableFile {
  /// Whether two files have one owner, one group, one mode and one access control list.
  package static func haveSameRights(_ a: FilePath, _ b: FilePath) throws -> Bool {
    guard let first = try FileRights(at: a), let second = try FileRights(at: b) else {
      return false
    }
    return first == second
  }
}

private func copyBytes(
  from input: FileDescriptor, _ source: FilePath, to output: FileDescriptor,
  _ destination: FilePath
) throws {
  if linux_clone_file(output.rawValue, input.rawValue) == 0 { return }
  var status = stat()
  try calling("fstat", source) { fstat(input.rawValue, &status) }
  let size = Int64(status.st_size)
  try calling("ftruncate", destination) { ftruncate(output.rawValue, off_t(size)) }
  var offset: Int64 = 0
  while offset < size {
    offset = input.nextData(from: offset, size: size)
    let hole = Int64(lseek(input.rawValue, off_t(offset), linux_seek_hole))
    let end = hole > offset ? min(hole, size) : size
    try copyRange(offset..<end, from: input, source, to: output, destination)
    offset = end
  }
}

extension FileDescriptor {
  /// Where the next bytes are that are no hole, from an offset on; the size where there are none, and the offset
  /// itself where the file system does not tell.
  package func nextData(from offset: Int64, size: Int64) -> Int64 {
    guard offset < size else { return size }
    let start = seekData(rawValue, offset)
    if start < 0 { return errno == ENXIO ? size : offset }
    return min(start, size)
  }

  /// The same in whole steps from the offset: what is passed over is a hole, all of it.
  package func nextData(from offset: Int64, size: Int64, step: Int64) -> Int64 {
    offset + (nextData(from: offset, size: size) - offset) / step * step
  }
}

// The descriptor has a method of this name.
private func seekData(_ descriptor: Int32, _ offset: Int64) -> Int64 {
  Int64(lseek(descriptor, off_t(offset), linux_seek_data))
}

private func copyRange(
  _ range: Range<Int64>, from input: FileDescriptor, _ source: FilePath,
  to output: FileDescriptor, _ destination: FilePath
) throws {
  var from = off_t(range.lowerBound)
  var to = from
  while Int64(from) < range.upperBound {
    let size = Int(min(range.upperBound - Int64(from), 1 << 30))
    let copied = linux_copy_file_range(input.rawValue, &from, output.rawValue, &to, size)
    if copied < 0, errno == EINTR { continue }
    if copied < 0, errno == ENOSPC || errno == EDQUOT || errno == EIO {
      throw DurabilityError.failed(
        call: "copy_file_range", path: destination, Errno(rawValue: errno))
    }
    // Volumes and file systems for which the kernel cannot do it; 0 is what some of them say.
    if copied <= 0 { break }
  }
  try copyByHand(Int64(from)..<range.upperBound, from: input, source, to: output, destination)
}

private func copyByHand(
  _ range: Range<Int64>, from input: FileDescriptor, _ source: FilePath,
  to output: FileDescriptor, _ destination: FilePath
) throws {
  guard !range.isEmpty else { return }
  // 1 MiB: larger pieces are no faster.
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
  defer { buffer.deallocate() }
  var offset = range.lowerBound
  while offset < range.upperBound {
    let size = Int(min(range.upperBound - offset, Int64(buffer.count)))
    let count = try failing("pread", source) {
      try input.read(
        fromAbsoluteOffset: offset, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<size]))
    }
    if count == 0 { return }  // the source became shorter
    _ = try failing("pwrite", destination) {
      try output.writeAll(toAbsoluteOffset: offset, UnsafeRawBufferPointer(buffer)[..<count])
    }
    offset += Int64(count)
  }
}

/// - Parameter rights: What the copy gets instead of the source's own rights.
private func copyStatus(
  from input: FileDescriptor, _ source: FilePath, to output: FileDescriptor,
  _ destination: FilePath, rights: FileRights? = nil
) throws -> LostRights {
  let own = try FileRights(of: input, source)
  return try giveRights(rights ?? own, to: output, destination) { kind in
    // The system's are rights, too, and those are another's.
    if kind == .system, rights != nil { return [] }
    return try copyExtendedAttributes(kind, from: input, source, to: output, destination)
  }
}

/// 64 KiB: what Linux allows a list of names, and a value, at most. See xattr(7).
private let largestAttribute = 64 << 10

/// Copies attributes of a kind, but for the list that is part of ``FileRights``.
///
/// - Returns: The names of those that the copy has not.
private func copyExtendedAttributes(
  _ kind: AttributeKind, from input: FileDescriptor, _ source: FilePath, to output: FileDescriptor,
  _ destination: FilePath
) throws -> [String] {
  let names = UnsafeMutableBufferPointer<CChar>.allocate(capacity: largestAttribute + 1)
  defer { names.deallocate() }
  let size = flistxattr(input.rawValue, names.baseAddress, largestAttribute)
  if size < 0, errno == ENOTSUP || errno == ENOSYS { return [] }
  if size < 0 {
    throw DurabilityError.failed(call: "flistxattr", path: source, Errno(rawValue: errno))
  }
  guard size > 0, let first = names.baseAddress else { return [] }
  first[size] = 0  // names end with a zero each; a last one that does not, ends here
  let value = UnsafeMutableRawBufferPointer.allocate(
    byteCount: 2 * largestAttribute, alignment: 8)
  defer { value.deallocate() }
  let own = UnsafeMutableRawBufferPointer(rebasing: value[largestAttribute...])
  var lost: [String] = []
  var offset = 0
  while offset < size {
    let name = first + offset
    let length = strlen(name)
    offset += length + 1
    if length == 0 || strcmp(name, AccessControlList.accessAttribute) == 0 { continue }
    if AttributeKind(of: String(cString: name)) != kind { continue }
    let count = fgetxattr(input.rawValue, name, value.baseAddress, largestAttribute)
    if count < 0 {
      // Removed meanwhile, or not for this user to read.
      if errno != ENODATA { lost.append(String(cString: name)) }
      continue
    }
    if fsetxattr(output.rawValue, name, value.baseAddress, count, 0) == 0 { continue }
    switch errno {
    case EPERM, EACCES, ENOTSUP, EINVAL, ENOSPC, E2BIG, ERANGE:
      // Not for this user or volume to set. ext4 has about 4 KB for all attributes of a file, and calls itself
      // full; one that is full says so again when bytes are written. What the system gives each file may be the
      // same.
      let found = fgetxattr(output.rawValue, name, own.baseAddress, largestAttribute)
      if found != count || !own[..<count].elementsEqual(value[..<count]) {
        lost.append(String(cString: name))
      }
    default:
      throw DurabilityError.failed(call: "fsetxattr", path: destination, Errno(rawValue: errno))
    }
  }
  return lost
}
