import Foundation
import GodwitDurableFiles
import Synchronization

/// Runs blocking work on a thread of its own, so that the few threads of the concurrency runtime
/// stay free to talk to the workers. What runs on a ``StoreThread`` stays there.
///
/// - Throws: What the work throws; `Errno` where the system allows no further thread.
func onOwnThread<Result: Sendable>(
  _ work: @escaping @Sendable () throws -> Result
) async throws -> Result {
  if StoreThread.isCurrent { return try work() }
  return try await withCheckedThrowingContinuation { continuation in
    do {
      try BlockingThread.run { continuation.resume(with: Swift.Result { try work() }) }
    } catch {
      continuation.resume(throwing: error)
    }
  }
}

/// A thread for blocking work, kept for the next: with its stack and its share of the heap, a new
/// one costs as much as opening ten files.
final class BlockingThread: Sendable {
  private let body: Mutex<(@Sendable () -> Void)?>
  private let work = DispatchSemaphore(value: 0)

  private static let idle = Mutex<[BlockingThread]>([])
  /// 4: more do not work at the same time in a process that coordinates one store.
  private static let mostIdle = 4

  private init(_ body: @escaping @Sendable () -> Void) { self.body = Mutex(body) }

  /// Runs the body on a thread that nobody waits for.
  ///
  /// - Throws: `Errno` where the system allows no further thread.
  static func run(_ body: @escaping @Sendable () -> Void) throws {
    if let thread = idle.withLock({ $0.popLast() }) {
      thread.body.withLock { $0 = body }
      thread.work.signal()
      return
    }
    let thread = BlockingThread(body)
    // 8 MiB, as the main thread has: SQLite's parser and JSON need more than a thread's default.
    try OwnThread.start(stackBytes: 8 << 20) { thread.serve() }
  }

  /// What the body holds is let go on return: a thread that waits for its next work would keep a lease for as
  /// long.
  @inline(never) private func performNext() -> Bool {
    guard let next = body.withLock({ $0.take() }) else { return false }
    next()
    return true
  }

  private func serve() {
    CoordinatorWatch.allowSignals()
    while performNext() {
      let isKept = Self.idle.withLock { idle in
        if idle.count < Self.mostIdle { idle.append(self) }
        return idle.last === self
      }
      guard isKept else { return }
      work.wait()
    }
  }
}
