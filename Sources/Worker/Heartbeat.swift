import Glibc
import SystemPackage

/// How long a worker may be silent before it is replaced.
public enum WorkerTimeout {
  /// 60 s, or what the environment variable `GODWIT_WORKER_TIMEOUT` says, in seconds.
  public static var seconds: Double {
    guard let text = getenv("GODWIT_WORKER_TIMEOUT").map({ String(cString: $0) }),
      let seconds = Double(text), seconds > 0, seconds <= 86_400
    else { return 60 }
    return seconds
  }
}

/// Tells the coordinator, several times within ``WorkerTimeout``, that the thread that works has
/// run since the last time.
///
/// What counts is the thread's processor time: it stands still in a process that is stopped, and in
/// a thread that waits for a volume that does not answer.
struct Heartbeat {
  private let output: WorkerOutput
  private let clock: clockid_t

  /// - Throws: `Errno` where the system allows no further thread.
  static func start(watching thread: pthread_t, _ output: WorkerOutput) throws {
    var clock = clockid_t()
    let code = pthread_getcpuclockid(thread, &clock)
    guard code == 0 else { throw Errno(rawValue: code) }
    let heartbeat = Heartbeat(output: output, clock: clock)
    try OwnThread.start { heartbeat.run() }
  }

  private func run() {
    let milliseconds = Int32(max(20, min(5_000, WorkerTimeout.seconds * 1_000 / 5)))
    var before = processorTime
    while true {
      _ = poll(nil, 0, milliseconds)
      let now = processorTime
      guard now != before else { continue }
      before = now
      guard (try? output.send(.beat)) != nil else { return }
    }
  }

  private var processorTime: Int64 {
    var time = timespec()
    guard clock_gettime(clock, &time) == 0 else { return 0 }
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
