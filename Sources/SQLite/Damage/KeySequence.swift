/// The keys of a leaf, of which some may be damaged: sound are those of the longest ascending run
/// within the bounds that the pages above give.
struct KeySequence {
  /// As found; where only one key can have been there, that one.
  private(set) var keys: [Int64]
  private(set) var states: [KeyState]
  private(set) var isAscending = true

  init(_ found: [Int64], after: Int64?, upTo: Int64?) {
    keys = found
    states = Array(repeating: .sound, count: found.count)
    func isInside(_ key: Int64) -> Bool {
      after.map { key > $0 } ?? true && upTo.map { key <= $0 } ?? true
    }
    let ascends = zip(found, found.dropFirst()).allSatisfy(<)
    isAscending = ascends && found.allSatisfy(isInside)
    guard !isAscending else { return }
    // A whole leaf in another one's place: its keys are right, and the bounds are not its own.
    if ascends, found.count > 1, !found.contains(where: isInside) {
      states = Array(repeating: .misplaced, count: found.count)
      return
    }
    let kept = Set(Self.longestRun(found, after: after, upTo: upTo))
    for place in found.indices where !kept.contains(place) { states[place] = .doubtful }
    for place in found.indices where !kept.contains(place) {
      let (isFirst, isLast) = (place == 0, place == found.count - 1)
      // At least one neighbour bears out that the leaf belongs here.
      guard !(isFirst && isLast), isFirst || kept.contains(place - 1),
        isLast || kept.contains(place + 1),
        let low = isFirst ? after : found[place - 1],
        let high = isLast ? upTo.flatMap({ $0 == .max ? nil : $0 + 1 }) : found[place + 1],
        high.subtractingReportingOverflow(low) == (2, false)
      else { continue }
      keys[place] = low + 1
      states[place] = .onlyPossible
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
