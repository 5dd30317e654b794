/// A set of primary keys, kept as ranges: keys of lost rows mostly follow each other.
package struct KeyRanges: Sendable, Equatable {
  /// Ascending and apart from each other.
  package private(set) var ranges: [ClosedRange<Int64>] = []

  package init() {}

  package init(_ keys: some Sequence<Int64>) {
    for key in keys.sorted() { insert(key...key) }
  }

  package init(_ range: ClosedRange<Int64>) { ranges = [range] }

  package init(union sets: some Sequence<KeyRanges>) {
    for set in sets { formUnion(set) }
  }

  package var isEmpty: Bool { ranges.isEmpty }

  /// Saturates.
  package var count: Int64 {
    ranges.reduce(0) { sum, range in
      let (width, isPast) = range.upperBound.subtractingReportingOverflow(range.lowerBound)
      return isPast || width >= .max - 1 - sum ? .max : sum + width + 1
    }
  }

  package func contains(_ key: Int64) -> Bool {
    let place = firstRange(endingFrom: key)
    return place < ranges.count && ranges[place].lowerBound <= key
  }

  package mutating func insert(_ key: Int64) { insert(key...key) }

  package mutating func insert(_ range: ClosedRange<Int64>) {
    let before = range.lowerBound == .min ? .min : range.lowerBound - 1
    let after = range.upperBound == .max ? .max : range.upperBound + 1
    let first = firstRange(endingFrom: before)
    var (low, high, end) = (range.lowerBound, range.upperBound, first)
    while end < ranges.count, ranges[end].lowerBound <= after {
      low = min(low, ranges[end].lowerBound)
      high = max(high, ranges[end].upperBound)
      end += 1
    }
    ranges.replaceSubrange(first..<end, with: [low...high])
  }

  package mutating func formUnion(_ other: KeyRanges) {
    for range in other.ranges { insert(range) }
  }

  /// The first range that does not end before a key.
  private func firstRange(endingFrom key: Int64) -> Int {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].upperBound < key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

extension KeyRanges: CustomStringConvertible {
  private static let mostRanges = 20

  /// `3, 5–9, 12`; long lists are cut.
  package var description: String {
    let texts = ranges.prefix(Self.mostRanges).map { range in
      if range.count == 1 { return "\(range.lowerBound)" }
      return range.upperBound == .max
        ? "from \(range.lowerBound) on" : "\(range.lowerBound)–\(range.upperBound)"
    }
    let rest = ranges.count - texts.count
    return texts.joined(separator: ", ")
      + (rest > 0 ? " and \(rest) more ranges, which --json lists" : "")
  }
}

extension KeyRanges: Encodable {
  /// Pairs: the first and the last key of each range.
  package func encode(to encoder: any Encoder) throws {
    try ranges.map { [$0.lowerBound, $0.upperBound] }.encode(to: encoder)
  }
}
