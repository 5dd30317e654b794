import Glibc
import GodwitDurableFiles
import SystemPackage

/// The files of large binary values: `.STEM_SUPPORT/_EXTERNAL_DATA`, format reference §5.1.
///
/// Each is written once and never changed, under a name that no other value gets. So a file may
/// have names in two stores' folders, and copying stops at names that are there.
package enum ExternalDataFolder {
  /// The names of a folder's files, in byte order; none when there is no folder.
  ///
  /// Symbolic links and folders are left out, and so are names that begin with a dot: Core Data
  /// makes none.
  package static func names(in folder: FilePath) throws -> [String] {
    guard try FileKind(at: folder) == .folder else { return [] }
    return try DurableFile.names(in: folder).filter { name in
      try isSound(name) && FileMark(folder.appending(name)) != nil
    }
  }

  /// One component of a path, and no hidden one. Names also come from journals and run
  /// directories, which are files like any other.
  package static func isSound(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= 255 && name.utf8.first != UInt8(ascii: ".")
      && !name.utf8.contains(UInt8(ascii: "/")) && !name.utf8.contains(0)
  }

  /// Makes a folder of external data of a store, and the one above it, with the rights of an original
  /// folder and the one above that. Those that are there stay as they are, and these have their names once they
  /// have their rights: what a crash leaves has another, see ``DurableFile/removeUnfinished(_:)``.
  ///
  /// - Parameter store: The file of which the rights follow where there is no original. It is there, unless its volume
  ///   is away.
  /// - Throws: `DurabilityError.unreachable` where it is not there, or what the two are made in: nothing is made in the
  ///   place of a store's folder, nor on a mount point.
  package static func make(_ folder: FilePath, like original: FilePath?, of store: FilePath) throws
  {
    if try DurableFile.isFolder(folder) { return }
    guard try FilePresence.isThere(store) else {
      throw DurabilityError.unreachable(store, obstacle: "there is no such file")
    }
    let support = folder.removingLastComponent()
    let made = try DurableFile.isFolder(support) ? folder : support
    let new = try PendingFile.freeTemporaryPath(of: made)
    let inner = folder.lastComponent.map { made == folder ? new : new.appending($0) } ?? new
    do {
      try DurableFile.makeFolder(inner, below: new.removingLastComponent())
      try DurableFile.copyRights(ofFolder: original, orFile: store, to: inner)
      if made != folder {
        try DurableFile.copyRights(
          ofFolder: original?.removingLastComponent(), orFile: store, to: new)
      }
      try DurableFile.rename(new, to: made)
    } catch let error as DurabilityError
      where error.isNotFound || error.errno == .directoryNotEmpty || error.errno == .fileExists
    {
      _ = try FilePresence.isThere(support)
      // An application, or the commit of a store that shares the folder, was faster: it may have had the temporary
      // name, too. Where that is still there, something else is missing.
      if error.isNotFound, try DurableFile.exists(new) { throw error }
      try DurableFile.removeTree(new)
      try make(folder, like: original, of: store)
    }
  }

  /// Copies files that are not there yet. A file under its name is whole, so one that a crashed
  /// attempt left needs no second copy.
  ///
  /// - Parameters:
  ///   - store: Who may read it may read the files, which are private to a run until then; nil where they keep
  ///     their own mode and owner.
  ///   - originals: A folder whose files keep theirs.
  /// - Throws: ``CommitError/damagedExternalData(path:)`` for a file that is neither here nor there.
  static func copy(
    _ names: [String], from folders: [FilePath], to destination: FilePath,
    rightsOf store: FilePath?, originals: FilePath?
  ) throws {
    for name in names where try isSound(name) && !DurableFile.exists(destination.appending(name)) {
      guard
        let source = try folders.map({ $0.appending(name) })
          .first(where: { try FileMark($0) != nil })
      else {
        // Of a source that stays where it is, an application may remove a file: who copies looks for those
        // that rows refer to.
        guard originals != nil else {
          throw CommitError.damagedExternalData(path: destination.appending(name))
        }
        continue
      }
      let isOriginal = try originals.map { try FileMark($0.appending(name)) != nil } ?? false
      try DurableFile.copy(
        source, to: destination.appending(name), rightsOf: isOriginal ? nil : store)
    }
  }

  /// Gives all files of a folder but some a second name in another one.
  ///
  /// - Parameter store: The store that the folder belongs to.
  package static func link(
    from folder: FilePath, of store: FilePath, to destination: FilePath, except excluded: [String]
  ) throws {
    let excluded = Set(excluded)
    let names = try names(in: folder).filter { !excluded.contains($0) }
    guard !names.isEmpty else { return }
    try make(destination, like: folder, of: store)
    for name in names {
      let target = destination.appending(name)
      let original = try FileMark(folder.appending(name))
      // A copy, where links cannot be made, is whole once it has its name.
      let there = try FileMark(target)
      if let there, there.isSameFile(as: original) || there.size == original?.size { continue }
      try DurableFile.link(folder.appending(name), to: target, syncingFolder: false)
    }
    try DurableFile.syncFolder(destination)
  }

  /// Removes files, and what a crash left of copies of them.
  package static func remove(_ names: [String], from folder: FilePath) throws {
    guard !names.isEmpty, try FileKind(at: folder) == .folder else { return }
    for name in names where isSound(name) {
      try DurableFile.removeIfPresent(folder.appending(name))
    }
  }

  /// Whether two files hold the same bytes.
  package static func areEqual(_ a: FilePath, _ b: FilePath) throws -> Bool {
    guard let first = try FileMark(a), let second = try FileMark(b), first.size == second.size
    else {
      return false
    }
    if first.isSameFile(as: second) { return true }
    let left = try RegularFile.open(a)
    defer { try? left.close() }
    let right = try RegularFile.open(b)
    defer { try? right.close() }
    var one = [UInt8](repeating: 0, count: Int(min(max(first.size, 1), 1 << 16)))
    var other = one
    var offset: Int64 = 0
    while offset < first.size {
      let count = min(one.count, Int(first.size - offset))
      guard try fill(&one, count, from: left, a, offset),
        try fill(&other, count, from: right, b, offset),
        memcmp(one, other, count) == 0
      else { return false }
      offset += Int64(count)
      // A log may be a hole of many TiB.
      if count == one.count, isZero(one) {
        offset = min(
          left.nextData(from: offset, size: first.size),
          right.nextData(from: offset, size: first.size))
      }
    }
    return true
  }

  private static func isZero(_ bytes: [UInt8]) -> Bool {
    bytes[0] == 0
      && bytes.withUnsafeBytes { bytes in
        bytes.count == 1
          || bytes.baseAddress.map { memcmp($0, $0 + 1, bytes.count - 1) == 0 } ?? true
      }
  }

  private static func fill(
    _ bytes: inout [UInt8], _ count: Int, from file: FileDescriptor, _ path: FilePath,
    _ offset: Int64
  ) throws -> Bool {
    var filled = 0
    do {
      while filled < count {
        let read = try bytes.withUnsafeMutableBytes {
          try file.read(
            fromAbsoluteOffset: offset + Int64(filled),
            into: UnsafeMutableRawBufferPointer(rebasing: $0[filled..<count]))
        }
        if read == 0 { return false }
        filled += read
      }
    } catch let errno as Errno {
      throw DurabilityError.failed(call: "pread", path: path, errno)
    }
    return true
  }
}
