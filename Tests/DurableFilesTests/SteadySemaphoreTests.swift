import Dispatch
import Testing

@testable import GodwitDurableFiles

@Suite struct `A semaphore of a clock that nobody sets` {
  private static let long = 60.0
  private static let short = 0.05

  /// How often it is signalled before somebody waits three times, and which of the waits end by a signal.
  @Test(arguments: [
    (0, [false, false, false]), (1, [true, false, false]), (2, [true, true, false]),
    (3, [true, true, true]),
  ])
  func `gives each signal to one wait`(signals: Int, waits: [Bool]) {
    let semaphore = SteadySemaphore()
    for _ in 0..<signals { semaphore.signal() }
    #expect(waits.map { _ in semaphore.wait(timeout: .now()) == .success } == waits)
  }

  @Test func `waits as long as it is to, and no longer`() {
    let semaphore = SteadySemaphore()
    let start = ContinuousClock.now
    #expect(semaphore.wait(timeout: .now() + Self.short) == .timedOut)
    let waited = ContinuousClock.now - start
    #expect(waited >= .seconds(Self.short) && waited < .seconds(Self.long / 2), "\(waited)")
  }

  @Test(arguments: [true, false])
  func `wakes who waits, whether or not that is for ever`(isForEver: Bool) throws {
    let semaphore = SteadySemaphore()
    let start = ContinuousClock.now
    try OwnThread.start { semaphore.signal() }
    #expect(semaphore.wait(timeout: isForEver ? nil : .now() + Self.long) == .success)
    #expect(ContinuousClock.now - start < .seconds(Self.long / 2))
  }
}
