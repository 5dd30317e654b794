import Foundation
import GodwitDurableFiles
import Synchronization
import Testing

@testable import GodwitWorker

@Suite(.timeLimit(.minutes(5))) struct `A heartbeat` {
  private final class Counter: Sendable {
    let beats = Atomic(0)
    let isOver = Atomic(false)
  }

  /// Runs a body on a thread that a heartbeat watches.
  private func watched(_ counter: Counter, _ body: @escaping @Sendable () -> Void) throws
    -> DispatchSemaphore
  {
    let (begun, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let failure = Mutex<(any Error)?>(nil)
    try OwnThread.start {
      do {
        // 0.02 s between two looks.
        try Heartbeat.start(watching: pthread_self(), limit: 0.1) {
          counter.beats.add(1, ordering: .relaxed)
          if counter.isOver.load(ordering: .relaxed) { throw CancellationError() }
        }
      } catch {
        failure.withLock { $0 = error }
      }
      begun.signal()
      body()
      ended.signal()
    }
    begun.wait()
    try failure.withLock { if let error = $0 { throw error } }
    return ended
  }

  /// What other threads spend, as those of a runtime or of a policy's library, is no progress.
  @Test func `stands still with its thread, whatever others do`() throws {
    let counter = Counter()
    let go = DispatchSemaphore(value: 0)
    let ended = try watched(counter) { go.wait() }
    var number: UInt64 = 1
    for _ in 0..<30_000_000 { number = number &* 6_364_136_223_846_793_005 &+ 1 }
    #expect(number != 0)
    // Its thread may have been on its way to the wait at the first look.
    #expect(counter.beats.load(ordering: .relaxed) <= 1)
    counter.isOver.store(true, ordering: .relaxed)
    go.signal()
    ended.wait()
  }

  @Test func `beats as long as its thread works`() throws {
    let counter = Counter()
    let ended = try watched(counter) {
      var number: UInt64 = 1
      while counter.beats.load(ordering: .relaxed) < 3 { number = number &* 3 &+ 1 }
    }
    ended.wait()
    counter.isOver.store(true, ordering: .relaxed)
    #expect(counter.beats.load(ordering: .relaxed) >= 3)
  }
}
