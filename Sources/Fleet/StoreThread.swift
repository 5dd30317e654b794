import Foundation
import Glibc
import GodwitDurableFiles
import GodwitWorker
import Synchronization

/// One thread on which everything of a small store happens, its stages among it: going from thread
/// to thread would cost more than many a step itself.
///
/// Work that blocks may run here, see ``onOwnThread(_:)``: nothing else waits for this thread.
final class StoreThread: TaskExecutor {
  private let jobs = Mutex<[UnownedJob]>([])
  private let work = DispatchSemaphore(value: 0)
  /// Zero before the thread runs.
  private let thread = Atomic<UInt>(0)
  private let isRunning = DispatchSemaphore(value: 0)

  /// The one of this process, made with the first small store.
  private static let shared = Mutex<StoreThread?>(nil)

  /// - Throws: `Errno` where the system allows no further thread.
  static func ofProcess() throws -> StoreThread {
    try shared.withLock { shared in
      if let shared { return shared }
      let made = StoreThread()
      // 8 MiB, as the main thread has: SQLite's parser and JSON need more than a thread's default.
      try OwnThread.start(stackBytes: 8 << 20) { made.serve() }
      made.isRunning.wait()
      shared = made
      return made
    }
  }

  /// Calls `beat` while work on this thread gets on, see ``Heartbeat``.
  func watch(_ beat: @escaping @Sendable () throws -> Void) throws {
    try Heartbeat.start(watching: pthread_t(thread.load(ordering: .relaxed)), beat)
  }

  /// Whether the caller runs on such a thread.
  static var isCurrent: Bool {
    shared.withLock { $0?.thread.load(ordering: .relaxed) } == UInt(pthread_self())
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
    work.signal()
  }

  private func serve() -> Never {
    CoordinatorWatch.allowSignals()
    thread.store(UInt(pthread_self()), ordering: .relaxed)
    isRunning.signal()
    while true {
      work.wait()
      let job = jobs.withLock { $0.removeFirst() }
      job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }
}
