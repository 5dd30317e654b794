import Glibc

/// Memory of this process, as the kernel counts it.
package enum ProcessMemory {
  /// Highest resident set so far, in bytes.
  package static var peakResidentBytes: Int64 {
    var usage = rusage()
    guard getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 else { return 0 }
    return Int64(usage.ru_maxrss) * 1024
  }
}

/// Time of the calling thread, as the kernel counts it.
enum ThreadTime {
  /// Seconds for which a processor has worked for it: no others count, however busy the machine.
  static var processorSeconds: Double {
    var time = timespec()
    guard clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0 else { return 0 }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
