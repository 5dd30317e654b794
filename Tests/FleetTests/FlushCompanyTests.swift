import Testing

@testable import GodwitFleet

/// When lines are flushed together.
struct FlushCompanyTests {
  @Test(
    arguments: [
      // Nothing to write, and nobody else under way.
      (lines: 0, writers: 6, waits: false), (1, 0, false), (1, 1, false), (1, 2, false),
      (1, 3, true), (2, 4, false), (2, 6, true), (3, 6, false), (6, 6, false),
    ])
  func `a flush waits for half of those who are under way`(
    lines: Int, writers: Int, waits: Bool
  ) {
    var company = FlushCompany()
    company.writers = writers
    #expect(company.isWaitedFor(by: lines) == waits)
  }

  @Test func `it waits as long as two lines take to come, and 40 ms at most`() {
    var company = FlushCompany()
    var now: UInt64 = 1_000_000_000
    for _ in 1...64 {
      now += 3_000_000
      company.lineCame(at: now)
    }
    #expect(abs(Int64(company.waitsUntil - now) - 6_000_000) < 1000)
    for _ in 1...64 {
      now += 10_000_000_000
      company.lineCame(at: now)
    }
    #expect(company.waitsUntil <= now + 2 * FlushCompany.longestInterval)
  }
}
