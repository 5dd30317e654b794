private import Glibc
private import Synchronization
package import SystemPackage

/// The folders that this process fills and removes again, for a process that is stopped before that.
package enum TemporaryFolders {
  private struct Folders {
    var paths: Set<String> = []
    /// Another process's.
    var borrowed: FilePath?
    var areRemoved = false
  }

  private static let known = Mutex(Folders())

  /// Whoever makes a folder says so, and again when it has removed it.
  package static func add(_ folder: FilePath) {
    _ = known.withLock { $0.paths.insert(name(folder)) }
  }

  /// The same for a folder whose name is known when it is there: a stop waits for that.
  package static func adding(_ make: () throws -> FilePath) rethrows -> FilePath {
    try known.withLock { known in
      let folder = try make()
      known.paths.insert(name(folder))
      return folder
    }
  }

  package static func forget(_ folder: FilePath) {
    _ = known.withLock { $0.paths.remove(name(folder)) }
  }

  /// Says which folder this process is at work in that another one has made, and may remove at any moment.
  package static func borrow(_ folder: FilePath) {
    known.withLock { $0.borrowed = folder.lexicallyNormalized() }
  }

  /// Makes a folder, unless it is one of these and they have been removed, or is needed for another
  /// process's, which has removed it then: a thread that was at work in it would make it again, with the
  /// folders above its own, and nobody would remove it any more.
  ///
  /// - Throws: `DurabilityError/failed(call:path:_:)` with `ECANCELED` then.
  static func making(_ folder: FilePath, _ make: () throws -> Void) throws {
    let normal = folder.lexicallyNormalized()
    let (isOwn, isBorrowed) = known.withLock {
      ($0.paths.contains(normal.string), $0.borrowed?.starts(with: normal) == true)
    }
    func canceled() -> DurabilityError { .failed(call: "mkdir", path: folder, .canceled) }
    if isBorrowed { throw canceled() }
    // Elsewhere, and on a volume that hangs, nobody waits for it who ends the process.
    guard isOwn else { return try make() }
    try known.withLock { known in
      guard !known.areRemoved else { throw canceled() }
      try make()
    }
  }

  /// As ``DurableFile/makeFolder(_:below:permissions:surviving:)`` has it.
  private static func name(_ folder: FilePath) -> String { folder.lexicallyNormalized().string }

  /// Removes them all, while others may be at work in them: none is made from here on, and what comes into
  /// one meanwhile is removed, too. What cannot be removed stays: the process ends.
  package static func removeAll() {
    known.withLock { known in
      known.areRemoved = true
      var rounds = 0
      while rounds < 100,
        known.paths.contains(where: { (try? DurableFile.exists(FilePath($0))) != false })
      {
        for path in known.paths {
          try? DurableFile.removeTree(FilePath(path), surviving: .processCrash)
        }
        usleep(1_000)
        rounds += 1
      }
    }
  }
}
