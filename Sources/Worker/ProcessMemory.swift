import Glibc

/// Memory of this process, as the kernel counts it.
package enum ProcessMemory {
  /// Highest resident set so far, in bytes.
  ///
  /// Source: proc(5), "VmHWM". What getrusage(2) calls the peak begins with that of the process which started this one.
  package static var peakResidentBytes: Int64 {
    let file = open("/proc/self/status", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return 0 }
    defer { close(file) }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { text in
      guard let start = text.baseAddress else { return 0 }
      let count = read(file, start, text.count - 1)
      guard count > 0 else { return 0 }
      text[count] = 0
      guard let place = strstr(start, "\nVmHWM:") else { return 0 }
      return Int64(strtoll(place + 7, nil, 10)) * 1024
    }
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
