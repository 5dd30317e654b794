import GodwitWorker

/// Runs blocking work on a thread of its own, so that the few threads of the concurrency runtime
/// stay free to talk to the workers.
///
/// - Throws: What the work throws; `Errno` where the system allows no further thread.
func onOwnThread<Result: Sendable>(
  _ work: @escaping @Sendable () throws -> Result
) async throws -> Result {
  try await withCheckedThrowingContinuation { continuation in
    do {
      // 8 MiB, as the main thread has: SQLite's parser and JSON need more than a thread's default.
      try OwnThread.start(stackBytes: 8 << 20) {
        continuation.resume(with: Swift.Result { try work() })
      }
    } catch {
      continuation.resume(throwing: error)
    }
  }
}
