import GodwitKeyedArchive
import GodwitObjectModel
import GodwitSQLite

/// Makes the values of one attribute, in the form in which Core Data stores them.
///
/// Values keep to the attribute's validation rules where these are simple enough.
/// Source for storage classes: `core-data-sqlite-format.md` §5.
struct ValueSource: Sendable {
  let type: AttributeType
  private let nullThreshold: UInt64
  let low: Double?
  let high: Double?
  /// The same bounds of whole numbers: doubles beyond 2^53 are not all of them.
  let least: Int64?
  let most: Int64?
  private let bytes: ClosedRange<Int>
  /// Lengths come from the model: only ASCII has as many bytes as UTF-16 units.
  private let countsUnits: Bool
  let pattern: SimplePattern?
  let isUnique: Bool
  let largest: Int64?
  /// What every object gets where a rule is not understood.
  private let constant: StoredDefault?
  /// Whether values may break a rule that is not understood.
  let mayBreakRules: Bool
  private let allowsExternal: Bool
  private let externalThreshold: UInt64
  private let externalBytes: ClosedRange<Int>

  init(_ attribute: AttributeDescription, isUnique: Bool, options: StoreOptions) {
    type = attribute.type
    self.isUnique = isUnique
    largest = options.largestInteger
    var low: Double?
    var high: Double?
    var (least, most): (Int64?, Int64?)
    var shortest = attribute.type == .string ? options.textBytes.lowerBound : 0
    var longest = options.textBytes.upperBound
    var counts = false
    var lengths = 0...Int.max
    var expressions: [String] = []
    var isOpaque = false
    for rule in attribute.validation {
      switch rule {
      case .minimum(let value):
        low = max(low ?? value.real, value.real)
        least = Self.higher(least, value.whole ?? Int64(exactly: value.real.rounded(.up)))
      case .maximum(let value):
        high = min(high ?? value.real, value.real)
        most = Self.lower(most, value.whole ?? Int64(exactly: value.real.rounded(.down)))
      case .above(let value):
        low = max(low ?? value.real + 1, value.real + 1)
        let below = value.whole ?? Int64(exactly: value.real.rounded(.down))
        least = Self.higher(least, below.map { $0 == .max ? $0 : $0 + 1 })
      case .below(let value):
        high = min(high ?? value.real - 1, value.real - 1)
        let above = value.whole ?? Int64(exactly: value.real.rounded(.up))
        most = Self.lower(most, above.map { $0 == .min ? $0 : $0 - 1 })
      case .minimumLength(let value):
        (shortest, counts) = (max(shortest, value), true)
        let low = max(lengths.lowerBound, value)
        lengths = low...max(low, lengths.upperBound)
      case .maximumLength(let value):
        (longest, counts) = (min(longest, value), true)
        lengths = lengths.lowerBound...max(lengths.lowerBound, min(lengths.upperBound, value))
      case .matches(let text): expressions.append(text)
      case .other: isOpaque = true
      }
    }
    var pattern: SimplePattern?
    // Strings are made by one; whether they match another, nobody looks.
    if Set(expressions).count > 1 { isOpaque = true }
    for text in expressions {
      pattern = SimplePattern(text, bounds: counts ? lengths : nil)
      if pattern == nil { isOpaque = true }
    }
    let reach =
      attribute.type == .float ? Double(Float.greatestFiniteMagnitude) : .greatestFiniteMagnitude
    self.low = low.map { min(max($0, -reach), reach) }
    self.high = high.map { min(max($0, -reach), reach) }
    (self.least, self.most) = (least, most)
    self.pattern = pattern
    countsUnits = counts
    shortest = min(max(0, shortest), 1 << 16)
    bytes =
      attribute.type == .binary
      ? options.binaryBytes : shortest...max(shortest, min(longest, 1 << 16))
    allowsExternal = attribute.isExternal
    externalThreshold = allowsExternal ? threshold(options.externalFraction) : 0
    externalBytes = options.externalBytes
    // A rule that is not understood is kept by leaving the value out, or by the default.
    constant =
      isOpaque && !isUnique
      ? attribute.defaultValue.flatMap { attribute.holds($0) ? $0 : nil } : nil
    mayBreakRules = isOpaque && constant == nil && !attribute.traits.isOptional
    nullThreshold =
      attribute.traits.isOptional ? threshold(isOpaque ? 1 : options.nullFraction) : 0
  }

  /// - Parameter ordinal: Different for every row of the table.
  @inline(__always)
  func value(ordinal: Int, _ tools: ValueTools) throws -> RawValue {
    if nullThreshold > 0, tools.random.next() < nullThreshold { return .null }
    if let constant { return Self.value(constant, tools) }
    switch type {
    case .integer16: return .integer(integer(ordinal, -0x8000, 0x7FFF, tools))
    case .integer32: return .integer(integer(ordinal, -0x8000_0000, 0x7FFF_FFFF, tools))
    case .integer64: return .integer(integer(ordinal, .min, .max, tools))
    case .boolean:
      let (first, last) = ends(within: 0...1)
      let drawn = isUnique ? Int64(ordinal & 1) : Int64(tools.random.next() & 1)
      return .integer(min(max(drawn, first ?? 0), max(first ?? 0, last ?? 1)))
    case .double: return .real(number(ordinal, tools))
    case .float: return .real(rounded(number(ordinal, tools)))
    case .decimal:
      let value = number(ordinal, tools)
      let hundredths = (value * 100).rounded() / 100
      // Larger ones have none.
      return .real(abs(value) < 0x1p46 && isWithin(hundredths) ? hundredths : value)
    case .date: return .real(date(ordinal, tools))
    case .string: return string(ordinal, tools)
    case .uuid: return uuid(tools)
    case .uri: return uri(ordinal, tools)
    case .transformable: return archive(tools)
    case .binary: return try binary(ordinal, tools)
    case .undefined, .objectID, .composite: return .null
    }
  }

  private static func value(_ constant: StoredDefault, _ tools: ValueTools) -> RawValue {
    switch constant {
    case .integer(let number): return .integer(number)
    case .real(let number): return .real(number)
    case .text(let text):
      let bytes = Array(text.utf8)
      return .text(copy(bytes, tools), count: bytes.count)
    case .blob(let bytes): return .blob(copy(bytes, tools), count: bytes.count)
    }
  }

  private static func copy(_ bytes: [UInt8], _ tools: ValueTools) -> UnsafeMutableRawPointer {
    let room = tools.arena.allocate(max(1, bytes.count))
    bytes.withUnsafeBytes {
      if let base = $0.baseAddress { room.copyMemory(from: base, byteCount: $0.count) }
    }
    return room
  }

  private static func higher(_ a: Int64?, _ b: Int64?) -> Int64? {
    b.map { max(a ?? $0, $0) } ?? a
  }

  private static func lower(_ a: Int64?, _ b: Int64?) -> Int64? { b.map { min(a ?? $0, $0) } ?? a }

  /// How many texts of digits a maximum length leaves room for; nil for more than there can be rows.
  private var textCount: Int? {
    guard countsUnits, bytes.upperBound < 12 else { return nil }
    return (0..<bytes.upperBound).reduce(1) { count, _ in count * 36 }
  }

  /// The most objects that can have different values; nil where there is no such number to mind.
  var mostDifferent: Int? {
    guard isUnique else { return nil }
    func integers(_ least: Int64, _ most: Int64) -> Int? {
      let (bottom, top) = ends(within: least...most)
      let count = Self.count(bottom ?? least, top ?? most)
      return count == 0 ? nil : Int(exactly: count)
    }
    switch type {
    case .integer16: return integers(-0x8000, 0x7FFF)
    case .integer32: return integers(-0x8000_0000, 0x7FFF_FFFF)
    case .integer64: return integers(.min, .max)
    case .boolean: return integers(0, 1)
    case .double, .float, .decimal, .date:
      guard let high else { return nil }
      let steps = ((high - lowest) / step).rounded(.down) + 1
      return steps < 1 ? 1 : Int(exactly: min(steps, 0x1p52))
    case .string:
      if let pattern { return pattern.matchCount }
      return textCount
    default: return nil
    }
  }

  private func string(_ ordinal: Int, _ tools: ValueTools) -> RawValue {
    if let pattern {
      let place = tools.arena.allocate(pattern.length.upperBound)
      if isUnique { return .text(place, count: pattern.write(match: ordinal, into: place)) }
      return .text(place, count: pattern.write(into: place, &tools.random))
    }
    let length = tools.random.within(bytes)
    let pool = countsUnits ? tools.plainText : tools.text
    guard isUnique else {
      let words = pool.string(bytes: length, &tools.random)
      if words.count >= bytes.lowerBound || !countsUnits {
        return .text(words.baseAddress, count: words.count)
      }
      // The pool ended before the string was long enough: begin where there is room.
      return .text(pool.text.baseAddress, count: length)
    }
    let room = tools.arena.allocate(bytes.upperBound + 20)
    let digits = tools.digits(of: textCount.map { ordinal % $0 } ?? ordinal)
    let words = pool.string(bytes: max(0, length - digits.count - 1), &tools.random)
    if let base = words.baseAddress { room.copyMemory(from: base, byteCount: words.count) }
    var count = words.count
    while count + digits.count < bytes.lowerBound {
      room.storeBytes(of: UInt8(ascii: "-"), toByteOffset: count, as: UInt8.self)
      count += 1
    }
    if count > 0, count + digits.count < bytes.upperBound {
      room.storeBytes(of: UInt8(ascii: "#"), toByteOffset: count, as: UInt8.self)
      count += 1
    }
    for digit in digits {
      room.storeBytes(of: digit, toByteOffset: count, as: UInt8.self)
      count += 1
    }
    return .text(room, count: count)
  }

  private func uuid(_ tools: ValueTools) -> RawValue {
    let place = tools.arena.allocate(16)
    tools.uuidBytes(into: place)
    return .blob(place, count: 16)
  }

  private func uri(_ ordinal: Int, _ tools: ValueTools) -> RawValue {
    let digits = tools.digits(of: isUnique ? ordinal : tools.random.below(1 << 30))
    let place = tools.arena.allocate(ValueTools.uriStart.count + digits.count)
    for (index, byte) in ValueTools.uriStart.enumerated() {
      place.storeBytes(of: byte, toByteOffset: index, as: UInt8.self)
    }
    for (index, byte) in digits.enumerated() {
      place.storeBytes(
        of: byte, toByteOffset: ValueTools.uriStart.count + index, as: UInt8.self)
    }
    return .text(place, count: ValueTools.uriStart.count + digits.count)
  }

  /// A keyed archive of a string of eight letters, which are drawn.
  private func archive(_ tools: ValueTools) -> RawValue {
    let place = tools.arena.allocate(tools.archive.count)
    tools.archive.withUnsafeBytes {
      if let base = $0.baseAddress { place.copyMemory(from: base, byteCount: $0.count) }
    }
    if let letters = tools.archiveLetters {
      var random = tools.random.next()
      for index in letters {
        place.storeBytes(
          of: UInt8(ascii: "a") + UInt8(random & 15), toByteOffset: index, as: UInt8.self)
        random >>= 8
      }
    }
    return .blob(place, count: tools.archive.count)
  }

  /// Source for the markers: `core-data-sqlite-format.md` §5.1.
  private func binary(_ ordinal: Int, _ tools: ValueTools) throws -> RawValue {
    if allowsExternal, externalThreshold > 0, tools.random.next() < externalThreshold {
      let name = try tools.writeExternalFile(bytes: tools.random.within(externalBytes))
      let place = tools.arena.allocate(name.count + 2)
      place.storeBytes(of: 2, as: UInt8.self)
      for (index, byte) in name.enumerated() {
        place.storeBytes(of: byte, toByteOffset: index + 1, as: UInt8.self)
      }
      place.storeBytes(of: 0, toByteOffset: name.count + 1, as: UInt8.self)
      return .blob(place, count: name.count + 2)
    }
    let count = max(isUnique ? 8 : 0, tools.random.within(bytes))
    let marker = allowsExternal ? 1 : 0
    let place = tools.arena.allocate(count + marker + 8)
    if allowsExternal { place.storeBytes(of: 1, as: UInt8.self) }
    var offset = marker
    while offset < count + marker {
      place.storeBytes(of: tools.random.next().littleEndian, toByteOffset: offset, as: UInt64.self)
      offset += 8
    }
    if isUnique {
      place.storeBytes(of: ordinal.littleEndian, toByteOffset: marker, as: Int.self)
    }
    return .blob(place, count: count + marker)
  }
}
