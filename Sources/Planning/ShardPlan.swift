import GodwitSQLite

/// How a table's key range is cut into shards.
package struct ShardPlan: Sendable, Equatable {
  package let ranges: [ClosedRange<Int64>]

  /// Shards of a table at most. Beyond it shards grow, so that a plan stays a small file.
  static let mostShards: Int64 = 20_000

  /// Cuts a key range into pieces of about `budgetBytes` each.
  ///
  /// - Parameters:
  ///   - keys: The lowest and highest key; nil for a table without rows.
  ///   - rows: Number of rows in the range.
  ///   - bytes: Row bytes in the range; an estimate.
  ///   - budgetBytes: Row bytes that a shard should hold; at least 1.
  ///   - boundary: The key of the row with a given place in key order, from 0. Asked only where keys are
  ///     sparse, so that equal ranges would hold unequal numbers of rows, and for places that ascend.
  package init(
    keys: ClosedRange<Int64>?, rows: Int64, bytes: Int64, budgetBytes: Int64,
    boundary: (Int64) throws -> Int64?
  ) rethrows {
    precondition(budgetBytes > 0, "a shard must be allowed at least one byte")
    guard let keys, rows > 0 else {
      ranges = []
      return
    }
    // Rounded up, without a sum that a large budget would overflow.
    let pieces = bytes / budgetBytes + (bytes % budgetBytes > 0 ? 1 : 0)
    let wanted = min(max(1, pieces), rows, Self.mostShards)
    guard wanted > 1 else {
      ranges = [keys]
      return
    }
    let width = UInt64(bitPattern: keys.upperBound) &- UInt64(bitPattern: keys.lowerBound)
    var starts: [Int64] = [keys.lowerBound]
    let isDense = width / 2 <= UInt64(rows)
    for piece in 1..<wanted {
      let start: Int64
      if isDense {
        // 128 bits: the range may be all of Int64.
        let share = (UInt128(width) + 1) * UInt128(piece) / UInt128(wanted)
        start = Int64(bitPattern: UInt64(bitPattern: keys.lowerBound) &+ UInt64(share))
      } else if let found = try boundary(rows / wanted * piece) {
        start = found
      } else {
        break
      }
      if let last = starts.last, start > last, start <= keys.upperBound { starts.append(start) }
    }
    ranges = starts.indices.map { index in
      let end = index + 1 < starts.count ? starts[index + 1] - 1 : keys.upperBound
      return starts[index]...end
    }
    checkInvariants(keys)
  }

  /// Every key lies in exactly one range.
  private func checkInvariants(_ keys: ClosedRange<Int64>) {
    assert(
      ranges.first?.lowerBound == keys.lowerBound && ranges.last?.upperBound == keys.upperBound)
    assert(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound + 1 == $1.lowerBound })
  }
}
