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
  /// Of the thread that works. What other threads of the process spend says nothing: some microseconds a
  /// second would do for a process that gets on.
  private let clock: clockid_t
  private let limit: Double
  private let beat: @Sendable () throws -> Void

  /// - Parameters:
  ///   - thread: The one that works, until the process ends.
  ///   - limit: How long it may be silent, in seconds.
  ///   - beat: Called when it has worked since the last time. An error ends the heartbeat: nobody listens.
  /// - Throws: `Errno` where the system allows no further thread.
  package static func start(
    watching thread: pthread_t, limit: Double = WorkerTimeout.seconds,
    _ beat: @escaping @Sendable () throws -> Void
  ) throws {
    var clock = clockid_t()
    let code = pthread_getcpuclockid(thread, &clock)
    guard code == 0 else { throw Errno(rawValue: code) }
    let heartbeat = Heartbeat(clock: clock, limit: limit, beat: beat)
    try OwnThread.start { heartbeat.run() }
  }

  private func run() {
    let milliseconds = Int32(max(20, min(5_000, limit * 1_000 / 5)))
    var before = processorTime
    while true {
      _ = poll(nil, 0, milliseconds)
      let now = processorTime
      guard now > before else { continue }
      before = now
      guard (try? beat()) != nil else { return }
    }
  }

  /// In nanoseconds.
  private var processorTime: Int64 {
    var time = timespec()
    guard clock_gettime(clock, &time) == 0 else { return 0 }
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
