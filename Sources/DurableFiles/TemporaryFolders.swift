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

  package static func forget(_ folder: FilePath) {
    _ = known.withLock { $0.remove(folder.string) }
  }

  /// Removes them all, while others may be at work in them. What cannot be removed stays: the process
  /// ends.
  package static func removeAll() {
    for folder in known.withLock({ $0 }) {
      // A file that is made meanwhile keeps its folder.
      for _ in 0..<100 {
        do {
          try DurableFile.removeTree(FilePath(folder), surviving: .processCrash)
          break
        } catch { usleep(1_000) }
      }
    }
  }
}
