import GodwitPlanning
import Testing

@Suite struct `A shard plan` {
  // 300 keys of 100 bytes: 30 000 bytes in all.
  @Test(arguments: [
    (budgetBytes: Int64(30_000), shards: 1),
    (budgetBytes: 29_999, shards: 2),  // one byte short of everything
    (budgetBytes: Int64.max, shards: 1),  // more than any sum can hold
    (budgetBytes: 100, shards: 300),  // one row each
    (budgetBytes: 1, shards: 300),  // a row is never cut in two
  ])
  func `cuts a table by its byte budget`(budgetBytes: Int64, shards: Int) {
    let plan = ShardPlan(
      keys: 1...300, rows: 300, bytes: 30_000, budgetBytes: budgetBytes, boundary: { _ in nil })
    #expect(plan.ranges.count == shards)
  }

  @Test(arguments: [
    Int64(1)...300, -5...5, Int64.min...Int64.max, Int64.max...Int64.max, 7...1_000_007,
    0...Int64.max,
  ])
  func `covers every key exactly once`(keys: ClosedRange<Int64>) {
    for rows in [Int64(1), 2, 17, 300] {
      let plan = ShardPlan(
        keys: keys, rows: rows, bytes: rows * 64, budgetBytes: 100,
        boundary: { place in
          // Sparse rows stand evenly in the range.
          let width = UInt64(bitPattern: keys.upperBound) &- UInt64(bitPattern: keys.lowerBound)
          return Int64(
            bitPattern: UInt64(bitPattern: keys.lowerBound)
              &+ width / UInt64(rows) * UInt64(place))
        })
      #expect(plan.ranges.first?.lowerBound == keys.lowerBound)
      #expect(plan.ranges.last?.upperBound == keys.upperBound)
      for (before, after) in zip(plan.ranges, plan.ranges.dropFirst()) {
        #expect(before.upperBound &+ 1 == after.lowerBound)
      }
    }
  }

  @Test func `asks where rows stand when keys are sparse`() {
    var asked: [Int64] = []
    let plan = ShardPlan(
      keys: 1...1_000_000_000, rows: 4, bytes: 400, budgetBytes: 100,
      boundary: { place in
        asked.append(place)
        return [1, 2, 3, 1_000_000_000][Int(place)]
      })
    #expect(asked == [1, 2, 3])
    #expect(plan.ranges == [1...1, 2...2, 3...999_999_999, 1_000_000_000...1_000_000_000])
  }

  @Test func `begins no shard behind the last key`() {
    let plan = ShardPlan(
      keys: 1...1_000, rows: 4, bytes: 400, budgetBytes: 100,
      boundary: { [1, 1_000, 1_001, .max][Int($0)] })
    #expect(plan.ranges == [1...999, 1_000...1_000])
  }

  @Test func `has no shard for a table without rows`() {
    #expect(
      ShardPlan(keys: nil, rows: 0, bytes: 0, budgetBytes: 1, boundary: { _ in nil }).ranges == [])
  }

  @Test func `stays a small list whatever the table's size`() {
    let plan = ShardPlan(
      keys: 1...Int64(1) << 40, rows: 1 << 40, bytes: 1 << 50, budgetBytes: 1,
      boundary: { _ in nil })
    #expect(plan.ranges.count <= 20_000)
  }
}
