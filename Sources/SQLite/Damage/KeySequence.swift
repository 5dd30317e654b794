/// The keys of a leaf, of which some may be damaged: sound are those of the longest ascending run
/// within the bounds that the pages above give.
struct KeySequence {
  /// As found; where only one key can have been there, that one.
  private(set) var keys: [Int64]
  private(set) var isSound: [Bool]
  private(set) var isAscending = true

  init(_ found: [Int64], after: Int64?, upTo: Int64?) {
    keys = found
    isSound = Array(repeating: true, count: found.count)
    var last = after
    for key in found {
      if last.map({ key <= $0 }) ?? false || upTo.map({ key > $0 }) ?? false {
        isAscending = false
        break
      }
      last = key
    }
    guard !isAscending else { return }
    let kept = Set(Self.longestRun(found, after: after, upTo: upTo))
    for place in found.indices { isSound[place] = kept.contains(place) }
    var place = 0
    while place < found.count {
      guard !isSound[place] else {
        place += 1
        continue
      }
      let end = found[place...].indices.first { isSound[$0] } ?? found.count
      let low = place > 0 ? keys[place - 1] : after
      let high = end < found.count ? keys[end] : upTo.flatMap { $0 == .max ? nil : $0 + 1 }
      // As many places as there are keys: each is known.
      if let low, let high, high > low,
        high.subtractingReportingOverflow(low) == (Int64(end - place + 1), false)
      {
        for offset in place..<end {
          keys[offset] = low + Int64(offset - place + 1)
          isSound[offset] = true
        }
      }
      place = end
    }
  }

  /// Places of a longest ascending subsequence.
  private static func longestRun(_ keys: [Int64], after: Int64?, upTo: Int64?) -> [Int] {
    var tails: [Int] = []
    var before = Array(repeating: -1, count: keys.count)
    for (place, key) in keys.enumerated() {
      guard after.map({ key > $0 }) ?? true, upTo.map({ key <= $0 }) ?? true else { continue }
      var (low, high) = (0, tails.count)
      while low < high {
        let middle = (low + high) / 2
        if keys[tails[middle]] < key { low = middle + 1 } else { high = middle }
      }
      before[place] = low > 0 ? tails[low - 1] : -1
      if low == tails.count { tails.append(place) } else { tails[low] = place }
    }
    var run: [Int] = []
    var place = tails.last ?? -1
    while place >= 0 {
      run.append(place)
      place = before[place]
    }
    return run
  }
}
