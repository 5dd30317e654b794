import Glibc
import GodwitDurableFiles
import SystemPackage

/// A process and those that it has started.
///
/// A store's process has workers, which end when they lose it. One that a signal has stopped does not notice that.
enum ProcessTree {
  /// Ends them at once.
  ///
  /// - Parameter pid: Of a child of this process that nobody has waited for.
  static func kill(_ pid: pid_t) {
    // Who stands still waits for no child: their numbers stay theirs until they are signalled.
    _ = Glibc.kill(pid, SIGSTOP)
    for child in children(of: pid) { kill(child) }
    _ = Glibc.kill(pid, SIGKILL)
  }

  /// Source: proc(5), `/proc/pid/task/tid/children`.
  private static func children(of pid: pid_t) -> [pid_t] {
    let threads = FilePath("/proc/\(pid)/task")
    return ((try? DurableFile.names(in: threads)) ?? []).flatMap { name in
      let list = try? KernelFile.text(of: threads.appending(name).appending("children"))
      return (list ?? "").split(whereSeparator: \.isWhitespace).compactMap { pid_t($0) }
    }
  }
}
