import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitPersistentStore

@Suite struct `A bound of a number` {
  @Test(
    arguments: [
      (9_007_199_254_740_993, 9_007_199_254_740_992, 1),
      (9_007_199_254_740_992, 9_007_199_254_740_992, 0),
      (9_007_199_254_740_991, 9_007_199_254_740_992, -1),
      (.max, 9_223_372_036_854_775_808, -1), (.min, -9_223_372_036_854_775_808, 0),
      (.max, .infinity, -1), (3, 3.5, -1), (4, 3.5, 1),
    ] as [(Int64, Double, Int)])
  func `is compared exactly with an integer`(value: Int64, bound: Double, order: Int) {
    #expect(ValidationJudge.compare(.integer(value), ValidationBound(bound)) == order)
  }

  @Test(
    arguments: [
      (9_007_199_254_740_992, 9_007_199_254_740_993, -1),
      (9_007_199_254_740_993, 9_007_199_254_740_993, 0),
      (9_007_199_254_740_994, 9_007_199_254_740_993, 1),
      (.max - 1, .max, -1), (.max, .max, 0), (.max, .max - 1, 1), (.min, .min + 1, -1), (7, 7, 0),
    ] as [(Int64, Int64, Int)])
  func `is itself exact where it is an integer`(value: Int64, bound: Int64, order: Int) {
    #expect(ValidationJudge.compare(.integer(value), ValidationBound(bound)) == order)
  }

  @Test(arguments: [(3.5, 3.5, 0), (-0.0, 0, 0), (.infinity, 1, 1)] as [(Double, Double, Int)])
  func `is compared with a real`(value: Double, bound: Double, order: Int) {
    #expect(ValidationJudge.compare(.real(value), ValidationBound(bound)) == order)
  }

  @Test func `says nothing of what is no number`() {
    #expect(ValidationJudge.compare(.null, 0) == nil)
    #expect(ValidationJudge.compare(.real(.nan), 0) == nil)
  }
}

@Suite struct `A validation rule that nobody can judge` {
  @Test(arguments: [ValidationRules.Rule.Check.pattern("["), .other])
  func `is noted with the rows that it may be about`(check: ValidationRules.Rule.Check) {
    let rule = ValidationRules.Rule(place: 0, property: "n", check: check, isDate: false)
    let judge = ValidationJudge(ValidationRules(entity: "A", [rule])) { _ in nil }
    Array("x".utf8).withUnsafeBytes { bytes in
      judge.check([.text(bytes.baseAddress, count: bytes.count)], key: 7)
    }
    judge.check([.null], key: 8)
    let note = StoreFinding(
      kind: .note, entity: "A", property: "n",
      message: "has a validation rule that is not judged here", count: 1, examples: [7])
    #expect(judge.findings == [note])
  }
}
