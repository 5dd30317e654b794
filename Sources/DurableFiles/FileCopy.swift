private import CLinux
private import Glibc
package import SystemPackage

extension DurableFile {
  /// Copies a file under a new name: bytes, holes, mode, owner and extended attributes.
  ///
  /// The copy shares its blocks with the source where the file system can (`FICLONE`), is made in
  /// the kernel where that can (`copy_file_range`), and by reading and writing otherwise. The source
  /// must not change meanwhile. The owner and attributes of other namespaces than `user` are kept
  /// as far as this user may set them.
  ///
  /// - Parameter model: The file whose mode and owner the copy gets instead of the source's.
  /// - Throws: ``DurabilityError/alreadyExists(_:)`` when there is a file of the new name.
  package static func copy(
    _ source: FilePath, to destination: FilePath, rightsOf model: FilePath? = nil
  ) throws {
    let input = try RegularFile.open(source)
    defer { try? input.close() }
    var output = try PendingFile(for: destination)
    try copyBytes(from: input, source, to: output.descriptor, output.temporaryPath)
    try copyStatus(from: input, source, to: output.descriptor, output.temporaryPath)
    if let model, let status = try FileKind.status(of: model) {
      try giveRights(status, to: output.descriptor, output.temporaryPath)
    }
    try output.publish(after: .copied, replacing: false)
  }

  /// Gives a file the mode, owner and extended attributes of another, and flushes it to the disk
  /// unless somebody else does.
  package static func copyAttributes(
    from source: FilePath, to destination: FilePath, surviving durability: Durability = .powerCut
  ) throws {
    let input = try RegularFile.open(source)
    defer { try? input.close() }
    let output = try RegularFile.open(destination)
    defer { try? output.close() }
    try copyStatus(from: input, source, to: output, destination)
    if durability == .powerCut { try syncFile(output, destination) }
  }
}

extension DurableFile {
  /// Gives a folder the mode and owner of another one, or, where there is none, the owner of a file and
  /// the mode by which whoever may read the file finds what lies in the folder.
  ///
  /// Who made it may be root, and nobody else would find anything in it. The owner is kept as far as this
  /// user may set it.
  package static func copyRights(
    ofFolder original: FilePath?, orFile file: FilePath, to folder: FilePath
  ) throws {
    let status: stat
    if let original, let found = try FileKind.status(of: original),
      FileKind(mode: found.st_mode) == .folder
    {
      status = found
    } else if var found = try FileKind.status(of: file) {
      found.st_mode = S_IRWXU | found.st_mode & 0o777 | (found.st_mode & 0o444) >> 2
      status = found
    } else {
      return
    }
    let target = try Folder(folder)
    try target.withDescriptor { try giveRights(status, to: $0, folder) }
  }
}

extension DurableFile {
  /// Whether two files have one owner, one group and one mode.
  package static func haveSameRights(_ a: FilePath, _ b: FilePath) throws -> Bool {
    guard let first = try FileKind.status(of: a), let second = try FileKind.status(of: b) else {
      return false
    }
    return (first.st_mode, first.st_uid, first.st_gid)
      == (second.st_mode, second.st_uid, second.st_gid)
  }

  /// The numbers of a file's owner and group, each where another file's is not the same.
  package static func ownership(
    of path: FilePath, unlikeThatOf other: FilePath
  ) throws -> (owner: UInt32?, group: UInt32?) {
    guard let first = try FileKind.status(of: path), let second = try FileKind.status(of: other)
    else { return (nil, nil) }
    return (
      first.st_uid == second.st_uid ? nil : first.st_uid,
      first.st_gid == second.st_gid ? nil : first.st_gid
    )
  }
}

private func giveRights(
  _ status: stat, to output: FileDescriptor, _ destination: FilePath
) throws {
  // Only root may give a file away; the group alone may still be possible. The mode comes
  // after, since a new owner clears parts of it.
  var mode = status.st_mode & 0o7777
  if fchown(output.rawValue, status.st_uid, status.st_gid) != 0,
    fchown(output.rawValue, uid_t.max, status.st_gid) != 0
  {
    // What was for one group is not for another: that has the rights that everybody has.
    mode = mode & ~0o2070 | (mode & 0o007) << 3
  }
  try calling("fchmod", destination) { fchmod(output.rawValue, mode) }
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
    let start = lseek(input.rawValue, off_t(offset), linux_seek_data)
    if start < 0, errno == ENXIO { break }  // a hole up to the end
    let isKnown = start >= 0
    offset = isKnown ? Int64(start) : offset
    let next = isKnown ? lseek(input.rawValue, start, linux_seek_hole) : -1
    let end = next > start ? min(Int64(next), size) : size
    try copyRange(offset..<end, from: input, source, to: output, destination)
    offset = end
  }
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

private func copyStatus(
  from input: FileDescriptor, _ source: FilePath, to output: FileDescriptor,
  _ destination: FilePath
) throws {
  var status = stat()
  try calling("fstat", source) { fstat(input.rawValue, &status) }
  try giveRights(status, to: output, destination)
  try copyExtendedAttributes(from: input, source, to: output, destination)
}

/// 64 KiB: what Linux allows a list of names, and a value, at most. See xattr(7).
private let largestAttribute = 64 << 10

private func copyExtendedAttributes(
  from input: FileDescriptor, _ source: FilePath, to output: FileDescriptor,
  _ destination: FilePath
) throws {
  let names = UnsafeMutableBufferPointer<CChar>.allocate(capacity: largestAttribute + 1)
  defer { names.deallocate() }
  let size = flistxattr(input.rawValue, names.baseAddress, largestAttribute)
  if size < 0, errno == ENOTSUP || errno == ENOSYS { return }
  if size < 0 {
    throw DurabilityError.failed(call: "flistxattr", path: source, Errno(rawValue: errno))
  }
  guard size > 0, let first = names.baseAddress else { return }
  first[size] = 0  // names end with a zero each; a last one that does not, ends here
  let value = UnsafeMutableRawBufferPointer.allocate(byteCount: largestAttribute, alignment: 8)
  defer { value.deallocate() }
  var offset = 0
  while offset < size {
    let name = first + offset
    let length = strlen(name)
    offset += length + 1
    if length == 0 { continue }
    let count = fgetxattr(input.rawValue, name, value.baseAddress, value.count)
    if count < 0 { continue }  // removed meanwhile, or not for this user to read
    if fsetxattr(output.rawValue, name, value.baseAddress, count, 0) == 0 { continue }
    switch errno {
    case EPERM, EACCES, ENOTSUP, EINVAL: continue  // not for this user or volume to set
    default:
      throw DurabilityError.failed(call: "fsetxattr", path: destination, Errno(rawValue: errno))
    }
  }
}
