import GodwitDurableFiles

/// What migrating the stores of a plan will take, from a few of them that were migrated privately.
package struct FleetForecast: Codable, Sendable, Equatable {
  package var stores: Int
  package var sampled: Int
  /// How long it will take, in seconds: the middle of the likely range.
  package var seconds: Double
  package var leastSeconds: Double
  package var mostSeconds: Double
  /// The size of the destinations' files, in bytes.
  package var bytes: Int64
  /// How many more bytes the volumes hold when all is done: backups, or the outputs beside the stores.
  package var keptBytes: Int64
  /// How many more bytes they hold at most, while it is done.
  package var peakBytes: Int64

  /// One store that was migrated privately.
  struct Sample: Sendable {
    var bytes: Int64
    /// 0 for one that is done in one process.
    var workers: Int
    var seconds: Double
    var destinationBytes: Int64
  }

  /// How far a forecast may be off at the least: a machine is never the same twice.
  private static let leastSpread = (low: 0.7, high: 1.5)

  /// - Parameters:
  ///   - stores: The bytes of each store that would be migrated, and the workers it may have.
  ///   - isInPlace: Whether sources are kept as backups.
  /// - Returns: Nil without a sample.
  init?(
    of stores: [(bytes: Int64, workers: Int)], samples: [Sample], workerCount: Int,
    isInPlace: Bool
  ) {
    guard !samples.isEmpty, !stores.isEmpty else { return nil }
    // Two small stores for each worker make progress at a time, while others wait for their line in the
    // progress file; a large one has its workers.
    func share(_ workers: Int) -> Double {
      workers == 0 ? 1 / Double(2 * workerCount) : Double(workers) / Double(workerCount)
    }
    var ratios: [Double] = []
    seconds = 0
    for isSmall in [true, false] {
      let kind = samples.filter { ($0.workers == 0) == isSmall }
      let line = Line(kind.isEmpty ? samples : kind)
      ratios += kind.map { $0.seconds / max(1e-3, line.seconds($0.bytes)) }
      seconds += stores.filter { ($0.workers == 0) == isSmall }
        .reduce(0) { $0 + line.seconds($1.bytes) * share($1.workers) }
    }
    // No store is done in less than its own time.
    let longest = Line(samples)
    let largest = stores.map(\.bytes).max() ?? 0
    seconds = max(seconds, min(seconds * 2, longest.seconds(largest)))
    leastSeconds = seconds * min(Self.leastSpread.low, ratios.min() ?? 1)
    mostSeconds = seconds * max(Self.leastSpread.high, ratios.max() ?? 1)
    self.stores = stores.count
    sampled = samples.count
    let all = stores.map(\.bytes).total
    let sampledBytes = samples.map(\.bytes).total
    let written = samples.map(\.destinationBytes).total
    bytes = Int64(nearest: Double(all) * Double(written) / Double(max(1, sampledBytes)))
    keptBytes = isInPlace ? max(all, bytes) : bytes
    peakBytes = Self.peakBytes(
      of: stores.map(\.bytes), keptBytes: keptBytes, workerCount: workerCount,
      isInPlace: isInPlace)
  }

  /// What the volumes hold more at most: what is kept, and the work on the largest of the stores, as many
  /// as are under way at a time.
  static func peakBytes(
    of stores: [Int64], keptBytes: Int64, workerCount: Int, isInPlace: Bool
  ) -> Int64 {
    let underWay = stores.sorted(by: >).prefix(StoreQueue.smallStoresPerWorker * workerCount)
      .total
    return keptBytes.added(
      DiskSpace.needed(sourceBytes: underWay, externalBytes: 0, isInPlace: isInPlace))
  }

  /// Seconds over bytes, by least squares: neither part is ever negative.
  private struct Line {
    private var offset = 0.0
    private var slope = 0.0

    init(_ samples: [Sample]) {
      let count = Double(samples.count)
      let (x, y) = (samples.map { Double($0.bytes) }, samples.map(\.seconds))
      let (middleX, middleY) = (x.reduce(0, +) / count, y.reduce(0, +) / count)
      let spread = x.reduce(0) { $0 + ($1 - middleX) * ($1 - middleX) }
      let together = zip(x, y).reduce(0) { $0 + ($1.0 - middleX) * ($1.1 - middleY) }
      slope = spread > 0 ? max(0, together / spread) : 0
      offset = middleY - slope * middleX
      guard offset < 0 else { return }
      (offset, slope) = (0, middleX > 0 ? middleY / middleX : 0)
    }

    func seconds(_ bytes: Int64) -> Double { offset + slope * Double(bytes) }
  }
}

extension FleetForecast {
  /// Stores of all sizes, the largest aside where it alone would take too long: a few that lie evenly
  /// in the order of their sizes.
  static func sample(
    of stores: [FoundStore], count: Int, mostBytes: Int64 = 256 << 20
  ) -> [FoundStore] {
    let order = stores.filter { $0.bytes <= mostBytes }
      .sorted { ($0.bytes, $0.path.string) < ($1.bytes, $1.path.string) }
    guard !order.isEmpty, count > 0 else { return [] }
    let places = Set((0..<count).map { ($0 * (order.count - 1)) / max(1, count - 1) })
    var left = mostBytes
    return places.sorted().map { order[$0] }.filter { store in
      left -= store.bytes
      return left >= 0
    }
  }
}
