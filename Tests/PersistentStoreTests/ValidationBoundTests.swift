import GodwitSQLite
import Testing

@testable import GodwitPersistentStore

@Suite struct `A bound of a number` {
  @Test(
    arguments: [
      (RawValue.integer(9_007_199_254_740_993), 9_007_199_254_740_992, 1),
      (.integer(9_007_199_254_740_992), 9_007_199_254_740_992, 0),
      (.integer(9_007_199_254_740_991), 9_007_199_254_740_992, -1),
      (.integer(.max), 9_223_372_036_854_775_808, -1),
      (.integer(.min), -9_223_372_036_854_775_808, 0),
      (.integer(.max), .infinity, -1), (.integer(3), 3.5, -1), (.integer(4), 3.5, 1),
      (.real(3.5), 3.5, 0), (.real(-0.0), 0, 0), (.real(.infinity), 1, 1),
    ] as [(RawValue, Double, Int)])
  func `is compared exactly`(value: RawValue, bound: Double, order: Int) {
    #expect(ValidationJudge.compare(value, bound) == order)
  }

  @Test(arguments: [RawValue.null, .real(.nan)])
  func `says nothing of what is no number`(value: RawValue) {
    #expect(ValidationJudge.compare(value, 0) == nil)
  }
}
