import Glibc
import GodwitDurableFiles
import SystemPackage

/// How long a worker may be silent before it is replaced.
package enum WorkerTimeout {
  /// 60 s, or what the environment variable `GODWIT_WORKER_TIMEOUT` says, in seconds.
  package static var seconds: Double {
    TimeVariable.workerTimeout.seconds ?? 60
  }
}

/// An environment variable that gives a time in seconds.
package enum TimeVariable: String, CaseIterable {
  case workerTimeout = "GODWIT_WORKER_TIMEOUT"
  case lease = "GODWIT_LEASE"

  /// Nil where it is not set, or ``isValid`` is false.
  package var seconds: Double? {
    guard let seconds = text.flatMap({ Double($0) }), seconds > 0, seconds <= 86_400 else {
      return nil
    }
    return seconds
  }

  /// False where it is set to what is no time of at most a day.
  package var isValid: Bool { text?.isEmpty ?? true || seconds != nil }

  private var text: String? { getenv(rawValue).map { String(cString: $0) } }
}

/// Tells the coordinator, several times within ``WorkerTimeout``, that this process has got on since
/// the last time.
///
/// What counts is processor time: it stands still in a process that is stopped, and in a thread that
/// waits for a volume that does not answer.
package struct Heartbeat: Sendable {
  /// Of the thread that works; nil where any thread of the process but the heartbeat's own may.
  private let clock: clockid_t?
  private let beat: @Sendable () throws -> Void

  /// - Throws: `Errno` where the system allows no further thread.
  static func start(watching thread: pthread_t, _ output: WorkerOutput) throws {
    var clock = clockid_t()
    let code = pthread_getcpuclockid(thread, &clock)
    guard code == 0 else { throw Errno(rawValue: code) }
    let heartbeat = Heartbeat(clock: clock) { try output.send(.beat) }
    try OwnThread.start { heartbeat.run() }
  }

  /// - Parameter beat: Called when a thread of this process has worked since the last time. An error
  ///   ends the heartbeat: nobody listens.
  /// - Throws: `Errno` where the system allows no further thread.
  package static func start(_ beat: @escaping @Sendable () throws -> Void) throws {
    let heartbeat = Heartbeat(clock: nil, beat: beat)
    try OwnThread.start { heartbeat.run() }
  }

  private func run() {
    let milliseconds = Int32(max(20, min(5_000, WorkerTimeout.seconds * 1_000 / 5)))
    var before = processorTime
    while true {
      _ = poll(nil, 0, milliseconds)
      let now = processorTime
      guard now - before > (clock == nil ? Self.leastOfProcess : 0) else { continue }
      before = now
      guard (try? beat()) != nil else { return }
    }
  }

  /// 0.1 ms: the process's time and that of this thread are not read at one moment.
  private static let leastOfProcess: Int64 = 100_000

  private var processorTime: Int64 {
    if let clock { return Self.nanoseconds(clock) }
    let own = Self.nanoseconds(CLOCK_THREAD_CPUTIME_ID)
    return Self.nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - own
  }

  private static func nanoseconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    guard clock_gettime(clock, &time) == 0 else { return 0 }
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
