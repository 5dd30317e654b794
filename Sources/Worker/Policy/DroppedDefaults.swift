import GodwitPlanning

/// References that relationship mappings gave and a to-one has no room for.
struct DroppedDefaults {
  private struct Place: Hashable {
    var entity: Int64
    var relationship: Int
  }

  /// Each object once, however often a policy has its defaults set.
  private var tallies:
    [Place: (names: (entity: String, relationship: String), RowTally, OrdinalSet)] =
      [:]

  mutating func add(_ count: Int, _ object: WorkingObject, _ relationship: Int, key: Int64) {
    let plan = object.kind.plan
    let place = Place(entity: plan.number, relationship: relationship)
    var (names, rows, seen) =
      tallies.removeValue(forKey: place)
      ?? ((plan.entity.rawValue, plan.relationships[relationship].name), RowTally(), OrdinalSet())
    if seen.insert(object.ordinal) { for _ in 0..<count { rows.add(key) } }
    tallies[place] = (names, rows, seen)
  }

  var losses: [Loss] {
    tallies.sorted {
      ($0.key.entity, $0.key.relationship) < ($1.key.entity, $1.key.relationship)
    }.compactMap { _, found in
      Loss(withoutRoomIn: found.names.relationship, of: found.names.entity, found.1)
    }
  }
}

/// Ordinals that were met, a bit each.
struct OrdinalSet {
  private var words: [UInt64] = []

  /// - Returns: False when it was there already.
  mutating func insert(_ ordinal: Int64) -> Bool {
    let place = Int(max(0, ordinal))
    let word = place >> 6
    if word >= words.count { words += Array(repeating: 0, count: word + 1 - words.count) }
    let bit = UInt64(1) << UInt64(place & 63)
    defer { words[word] |= bit }
    return words[word] & bit == 0
  }
}
