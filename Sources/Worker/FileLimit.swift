import Glibc

/// Whether this process may still open the files that a store needs.
///
/// Policies and handlers that leave files open take them from every store that comes after: such a process is
/// of no more use, and nothing is wrong with what it could not open.
package enum FileLimit {
  /// 24, as EMFILE: the exit code of a process that may open no more files.
  package static let exitCode: Int32 = 24

  /// 32: more than a store needs at a time in one process. By the time of an error some of them are closed.
  private static let needed = 32

  package static var isReached: Bool {
    var files: [Int32] = []
    defer { for file in files { close(file) } }
    while files.count < needed {
      let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { return errno == EMFILE }
      files.append(file)
    }
    return false
  }
}
