import GodwitRepair
import Testing

@Suite struct `A set of keys` {
  @Test(
    arguments: [
      ([], ""), ([5], "5"), ([1, 2, 3], "1–3"), ([3, 1, 2], "1–3"), ([1, 3], "1, 3"),
      ([1, 3, 2], "1–3"), ([2, 2], "2"), ([-1, 0, 9], "-1–0, 9"),
      ([.max, .max - 1], "from 9223372036854775806 on"), ([.min], "-9223372036854775808"),
    ] as [([Int64], String)])
  func `joins keys that follow each other`(keys: [Int64], text: String) {
    let ranges = KeyRanges(keys)
    #expect("\(ranges)" == text)
    #expect(keys.allSatisfy { ranges.contains($0) })
    #expect(ranges.count == Int64(Set(keys).count))
  }

  @Test func `counts no further than a number can`() {
    var all = KeyRanges(Int64.min...Int64.max)
    #expect(all.count == .max)
    all.insert(7)
    #expect(all.ranges == [Int64.min...Int64.max])
  }

  @Test(arguments: 1...20)
  func `holds what a set holds`(seed: UInt64) {
    var random = SeededBits(seed: seed)
    var (ranges, set) = (KeyRanges(), Set<Int64>())
    for _ in 0..<60 {
      let low = Int64(random.below(100))
      let high = low + Int64(random.below(6))
      ranges.insert(low...high)
      set.formUnion(low...high)
    }
    #expect((-1...110).allSatisfy { ranges.contains($0) == set.contains($0) })
    #expect(ranges.count == Int64(set.count))
    #expect(
      zip(ranges.ranges, ranges.ranges.dropFirst()).allSatisfy { $0.upperBound + 1 < $1.lowerBound }
    )
  }
}
