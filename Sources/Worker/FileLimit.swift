import Glibc

/// Whether this process may still open files.
///
/// Policies and handlers that leave files open take them from every store that comes after: such a process is
/// of no more use, and nothing is wrong with what it could not open.
package enum FileLimit {
  /// 24, as EMFILE: the exit code of a process that may open no more files.
  package static let exitCode: Int32 = 24

  package static var isReached: Bool {
    let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
    if file >= 0 { close(file) }
    return file < 0 && errno == EMFILE
  }
}
