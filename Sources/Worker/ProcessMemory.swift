import Glibc

/// Memory of this process, as the kernel counts it.
public enum ProcessMemory {
  /// Highest resident set so far, in bytes.
  public static var peakResidentBytes: Int64 {
    var usage = rusage()
    guard getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 else { return 0 }
    return Int64(usage.ru_maxrss) * 1024
  }
}
