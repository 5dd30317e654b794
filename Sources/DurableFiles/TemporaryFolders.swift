private import Glibc
private import Synchronization
package import SystemPackage

/// The folders that this process fills and removes again, for a process that is stopped before that.
package enum TemporaryFolders {
  private static let known = Mutex<Set<String>>([])

  /// Whoever makes a folder says so, and again when it has removed it.
  package static func add(_ folder: FilePath) {
    _ = known.withLock { $0.insert(folder.string) }
  }

  /// The same for a folder whose name is known when it is there: a stop waits for that.
  package static func adding(_ make: () throws -> FilePath) rethrows -> FilePath {
    try known.withLock { known in
      let folder = try make()
      known.insert(folder.string)
      return folder
    }
  }

  package static func forget(_ folder: FilePath) {
    _ = known.withLock { $0.remove(folder.string) }
  }

  /// Removes them all, while others may be at work in them: no other is made from here on, and one that
  /// comes back within a moment is removed again. What cannot be removed stays: the process ends.
  package static func removeAll() {
    known.withLock { known in
      var rounds = 0
      while rounds < 100,
        known.contains(where: { (try? DurableFile.exists(FilePath($0))) != false })
      {
        for path in known {
          try? DurableFile.removeTree(FilePath(path), surviving: .processCrash)
        }
        usleep(1_000)
        rounds += 1
      }
    }
  }
}
