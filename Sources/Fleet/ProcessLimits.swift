private import CLinux
import Glibc
import GodwitWorker

/// What the operating system lets this process have, tried before any work begins: a runtime that
/// gets no thread waits for ever, and one that gets no memory crashes.
package enum ProcessLimits {
  /// What a command takes at most: measured, and as much again.
  struct Need: Equatable {
    var descriptors: Int
    var threads: Int
    var addressBytes: Int

    /// - Parameter workers: Worker processes. They count as threads of the same user; descriptors
    ///   and address space each process has for itself.
    init(workers: Int) {
      descriptors = 64 + 4 * workers
      threads = 24 + 8 * workers
      addressBytes = 1 << 30
    }
  }

  /// Makes the process fit to work: standard descriptors that are open, the folder that workers begin in,
  /// and signals that are errors of calls.
  ///
  /// - Parameter workers: How many worker processes there may be; nil for a process whose
  ///   coordinator has tried the limits.
  /// - Throws: ``FleetError/limits(message:)``.
  package static func prepare(workers: Int?) throws {
    openStandardDescriptors()
    try requireNull()
    _ = WorkerProcess.folder
    // A pipe without a reader and a file at its size limit are errors of write(2).
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    guard let workers else { return }
    let need = Need(workers: workers)
    try requireDescriptors(need.descriptors)
    try requireAddressSpace(need.addressBytes)
    try requireThreads(need.threads)
  }

  /// Bounds what this process may allocate, in bytes; nil for what the system allows it at most.
  package static func limitMemory(to bytes: Int?) {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_DATA.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return }
    limit.rlim_cur = bytes.map { min(limit.rlim_cur, rlim_t($0)) } ?? limit.rlim_max
    _ = setrlimit(resource, &limit)
  }

  /// Keeps memory that was freed for the next store, instead of giving it back and taking it anew: the
  /// kernel zeroes every page of it. 8 MiB: what a small store needs.
  static func keepFreedMemory() { linux_keep_freed_memory(8 << 20, 1 << 20) }

  /// A file that is opened while standard error is closed would get its number, and our messages.
  private static func openStandardDescriptors() {
    for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) < 0 {
      _ = open("/dev/null", O_RDWR)
    }
  }

  /// Standard streams of processes lead there.
  private static func requireNull() throws {
    let descriptor = open("/dev/null", O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw FleetError.limits(
        message:
          "/dev/null cannot be opened (errno \(errno)): processes are given it for their input and output. "
          + "Make it (mknod -m 666 /dev/null c 1 3), or mount /dev, and run again.")
    }
    close(descriptor)
  }

  private static func requireDescriptors(_ count: Int) throws {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    if getrlimit(resource, &limit) == 0, limit.rlim_cur < rlim_t(count) + 32,
      limit.rlim_cur < limit.rlim_max
    {
      // The soft limit is only a default.
      limit.rlim_cur = min(limit.rlim_max, max(limit.rlim_cur, 1_024))
      _ = setrlimit(resource, &limit)
    }
    var opened: [Int32] = []
    defer { for descriptor in opened { close(descriptor) } }
    for _ in 0..<count {
      let descriptor = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
      if descriptor < 0 { break }
      opened.append(descriptor)
    }
    guard opened.count < count else { return }
    throw FleetError.limits(
      message: "Only \(opened.count) more files can be opened, and \(count) are needed. Raise the "
        + "limit of open files (ulimit -n), or use fewer workers.")
  }

  private static func requireAddressSpace(_ bytes: Int) throws {
    let space = mmap(
      nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    guard space != MAP_FAILED else {
      throw FleetError.limits(
        message: "There is not enough address space: \(bytes >> 20) MiB more are needed. Raise the "
          + "limits of virtual memory and data (ulimit -v, ulimit -d).")
    }
    munmap(space, bytes)
  }

  private static func requireThreads(_ count: Int) throws {
    var ends: [Int32] = [-1, -1]
    guard linux_pipe(&ends) == 0 else {
      throw FleetError.limits(message: "No pipe can be made: errno \(errno).")
    }
    // Each thread waits for the end of the pipe, so that all of them are there at once.
    let reader = ends[0]
    let waiting: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = {
      var byte: UInt8 = 0
      while read(Int32(Int(bitPattern: $0)), &byte, 1) < 0, errno == EINTR {}
      return nil
    }
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setstacksize(&attributes, 64 << 10)
    defer { pthread_attr_destroy(&attributes) }
    var threads: [pthread_t] = []
    for _ in 0..<count {
      var thread = pthread_t()
      guard
        pthread_create(
          &thread, &attributes, waiting, UnsafeMutableRawPointer(bitPattern: Int(reader))) == 0
      else { break }
      threads.append(thread)
    }
    close(ends[1])
    for thread in threads { pthread_join(thread, nil) }
    close(reader)
    guard threads.count < count else { return }
    throw FleetError.limits(
      message: "Only \(threads.count) more threads can be started, and \(count) are needed. Raise "
        + "the limit of processes (ulimit -u), or use fewer workers.")
  }
}
