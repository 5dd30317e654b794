import GodwitObjectModel

/// Numbers within the bounds of the rules and of the type.
extension ValueSource {
  /// Small numbers mostly; now and then the ends of the type.
  func integer(_ ordinal: Int, _ least: Int64, _ most: Int64, _ tools: ValueTools) -> Int64 {
    let (bottom, top) = ends(within: least...most)
    if isUnique { return distinct(ordinal, bottom ?? least, top ?? most, from: bottom ?? 0) }
    let random = tools.random.next()
    let (first, last) = bounded(bottom, top, within: least...most)
    if first != nil || last != nil {
      let from = first ?? min(least, last ?? 0)
      let to = max(from, last ?? most)
      let width = to.subtractingReportingOverflow(from)
      guard !width.overflow, width.partialValue < .max else { return from }
      return from + Int64(random % UInt64(width.partialValue + 1))
    }
    switch random & 15 {
    case 0: return random & 16 == 0 ? least : most
    case 1...4:
      return max(least, min(most, Int64(bitPattern: random) >> Int64(random >> 58)))
    default: return Int64(random >> 32 & 1023) - 64
    }
  }

  /// Counts from `start` to the top, and goes on at the bottom.
  private func distinct(_ ordinal: Int, _ bottom: Int64, _ top: Int64, from start: Int64) -> Int64 {
    let count = Self.count(bottom, top)
    guard count > 0 else { return start &+ Int64(ordinal) }
    let first = UInt64(bitPattern: min(max(start, bottom), top) &- bottom)
    let place = (first % count + UInt64(ordinal) % count) % count
    return bottom &+ Int64(bitPattern: place)
  }

  /// How many integers there are from one to another; 0 for all 2^64.
  static func count(_ bottom: Int64, _ top: Int64) -> UInt64 {
    top < bottom ? 1 : UInt64(bitPattern: top &- bottom) &+ 1
  }

  /// The rules' bounds that a type can keep.
  func ends(within type: ClosedRange<Int64>) -> (Int64?, Int64?) {
    func inside(_ bound: Int64) -> Int64 { min(max(bound, type.lowerBound), type.upperBound) }
    return (least.map(inside), most.map(inside))
  }

  func isWithin(_ number: Double) -> Bool {
    number >= low ?? number && number <= high ?? number
  }

  /// As a Float holds it, and within the bounds where one does.
  func rounded(_ number: Double) -> Double {
    func keeps(_ number: Float) -> Bool { number.isFinite && isWithin(Double(number)) }
    let nearest = Float(number)
    if !keeps(nearest) {
      if keeps(nearest.nextDown) { return Double(nearest.nextDown) }
      if keeps(nearest.nextUp) { return Double(nearest.nextUp) }
    }
    return Double(nearest)
  }

  /// The rules' bounds, and those of ``StoreOptions/largestInteger`` inside them.
  private func bounded(
    _ bottom: Int64?, _ top: Int64?, within type: ClosedRange<Int64>
  ) -> (Int64?, Int64?) {
    guard let largest = largest.map({ min($0, type.upperBound) }) else { return (bottom, top) }
    let least = max(bottom ?? -largest, min(-largest, top ?? -largest))
    return (least, max(least, min(top ?? largest, largest)))
  }

  /// What lies between two different numbers: 1 where the bounds leave that much room and numbers are that close.
  var step: Double {
    let (low, most) = (low ?? 0, Double(KeySpace.largestCount))
    func gap(_ furthest: Double) -> Double {
      type == .float ? Double(Float(furthest).ulp) : furthest.ulp
    }
    guard let high, high > low, high - low < most else {
      return max(1, type == .float ? gap(abs(low)) : gap(max(abs(low), abs(low + most))))
    }
    // Rounding may move a number by one gap, at a bound by two.
    let least = max(4 * gap(max(abs(low), abs(high))), type == .decimal ? 0.01 : 0)
    return max(least, min(1, (high - low) / most))
  }

  /// The lowest of numbers that all differ: one that rounding leaves as it is.
  var lowest: Double {
    let low = low ?? 0
    switch type {
    case .float:
      let nearest = Float(low)
      return Double(Double(nearest) < low ? nearest.nextUp : nearest)
    case .decimal where abs(low) < 0x1p46:
      let hundredths = (low * 100).rounded(.up) / 100
      return isWithin(hundredths) ? hundredths : low
    default: return low
    }
  }

  func number(_ ordinal: Int, _ tools: ValueTools) -> Double {
    if isUnique { return lowest + Double(ordinal) * step }
    let from = low ?? min(-1_000, high ?? 0)
    let to = max(from, high ?? max(100_000, from))
    let random = tools.random.next()
    let part = tools.random.fraction()
    let width = to - from
    let value = width.isFinite ? from + width * part : from * (1 - part) + to * part
    return random & 3 == 0 ? min(to, max(from, value.rounded())) : value
  }

  /// Whole seconds half of the time: SQLite then stores an integer.
  func date(_ ordinal: Int, _ tools: ValueTools) -> Double {
    if isUnique { return lowest + Double(ordinal) * step }
    let from = low ?? min(0, high ?? 0)
    let to = max(from, high ?? max(800_000_000, from))
    let width = min(to - from, .greatestFiniteMagnitude)
    let whole = (from + width * tools.random.fraction()).rounded(.down)
    let part = tools.random.next()
    return part & 1 == 0
      ? max(from, whole) : min(to, max(from, whole) + Double(part >> 44) * 0x1p-20)
  }
}

extension AttributeDescription {
  /// Whether a default value is one that the column can hold as it is.
  func holds(_ value: StoredDefault) -> Bool {
    switch (type, value) {
    case (.integer16, .integer(let number)): Int16(exactly: number) != nil
    case (.integer32, .integer(let number)): Int32(exactly: number) != nil
    case (.integer64, .integer): true
    case (.boolean, .integer(let number)): number == 0 || number == 1
    case (.double, .real(let number)), (.float, .real(let number)), (.decimal, .real(let number)),
      (.date, .real(let number)):
      number.isFinite
    case (.double, .integer), (.float, .integer), (.decimal, .integer), (.date, .integer): true
    case (.string, .text), (.uri, .text): true
    case (.uuid, .blob(let bytes)): bytes.count == 16
    case (.binary, .blob), (.transformable, .blob): !isExternal
    default: false
    }
  }
}
