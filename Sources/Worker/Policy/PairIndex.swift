import GodwitExpressions

/// Pairs by one of their two objects. In memory: what a policy asks for is seldom all.
struct PairIndex {
  /// One more than the number of an object's last pair.
  private var last: [LinkTargets.Target: Int] = [:]
  /// Of each pair likewise the one before it of the same object; 0 for none.
  private var earlier: [Int] = []

  var count: Int { earlier.count }

  /// - Parameter object: Of the next pair.
  mutating func append(_ object: LinkTargets.Target) {
    earlier.append(last.updateValue(earlier.count + 1, forKey: object) ?? 0)
  }

  /// Their numbers, ascending.
  func pairs(of object: LinkTargets.Target) -> [Int] {
    var found: [Int] = []
    var next = last[object] ?? 0
    while next > 0 {
      found.append(next - 1)
      next = earlier[next - 1]
    }
    return found.reversed()
  }
}

/// What became of one source object, in the order in which it was associated, each object once.
struct MadeObjects {
  /// A few are looked through faster.
  private static let mostSearched = 64

  private(set) var all: [ObjectReference] = []
  /// All, where they are many.
  private var known: Set<ObjectReference> = []

  /// - Returns: False for one that is there already.
  mutating func insert(_ object: ObjectReference) -> Bool {
    if all.count < Self.mostSearched {
      if all.contains(object) { return false }
    } else {
      if known.isEmpty { known = Set(all) }
      guard known.insert(object).inserted else { return false }
    }
    all.append(object)
    return true
  }

  mutating func removeAll() {
    all.removeAll(keepingCapacity: true)
    if !known.isEmpty { known = [] }
  }
}
