import Foundation

/// Runs blocking work on a thread of its own, so that the few threads of the concurrency runtime
/// stay free to talk to the workers.
func onOwnThread<Result: Sendable>(
  _ work: @escaping @Sendable () throws -> Result
) async throws -> Result {
  try await withCheckedThrowingContinuation { continuation in
    let thread = Thread { continuation.resume(with: Swift.Result { try work() }) }
    // 8 MiB, as the main thread has: SQLite's parser and JSON want more than a thread's default.
    thread.stackSize = 8 << 20
    thread.start()
  }
}
