import GodwitDurableFiles

/// Cuts stores into bundles: minutes of work each, and enough of them for every slot.
struct BundleCutter: Sendable {
  var mostStores: Int
  var mostBytes: Int64
  /// How many bundles can be under way at a time.
  var slots: Int

  /// A store costs something however small it is: as much as so many bytes.
  static let bytesOfStore: Int64 = 256 << 10
  /// 4 for each slot: bundles do not take equally long, and the last ones decide when all are done.
  private static let bundlesOfSlot = 4
  /// 16 stores of no size, about two seconds: what a task costs to start should be little beside it.
  private static let leastBytes = 16 * bytesOfStore

  init(_ settings: ClusterSettings, slots: Int) {
    (mostStores, mostBytes, self.slots) = (settings.bundleStores, settings.bundleBytes, slots)
  }

  static func cost(_ store: FoundStore) -> Int64 { store.bytes.added(bytesOfStore) }

  /// Whether a store is cut over machines.
  func isCut(_ store: FoundStore) -> Bool { store.bytes > mostBytes }

  /// The stores in bundles, those that take longest first. Neighbours stay together.
  func bundles(_ stores: [FoundStore]) -> [[FoundStore]] {
    let whole = stores.map(Self.cost).total
    let share = whole / Int64(max(1, slots) * Self.bundlesOfSlot)
    let limit = min(mostBytes, max(share, Self.leastBytes))
    var bundles: [(cost: Int64, stores: [FoundStore])] = []
    for store in stores {
      let cost = Self.cost(store)
      if let last = bundles.indices.last, bundles[last].cost.added(cost) <= limit,
        bundles[last].stores.count < mostStores
      {
        bundles[last].cost += cost
        bundles[last].stores.append(store)
      } else {
        bundles.append((cost, [store]))
      }
    }
    return bundles.enumerated()
      .sorted { ($1.element.cost, $0.offset) < ($0.element.cost, $1.offset) }
      .map(\.element.stores)
  }

  /// Units of a store's stage in bundles.
  func bundles(units: [Int], shardBytes: Int64) -> [[Int]] {
    let most = max(1, Int(clamping: mostBytes / max(1, shardBytes)))
    let share = (units.count + max(1, slots) - 1) / max(1, slots)
    let size = max(1, min(most, share))
    return stride(from: 0, to: units.count, by: size).map {
      Array(units[$0..<min(units.count, $0 + size)])
    }
  }
}
