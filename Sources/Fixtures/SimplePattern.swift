/// A regular expression of the simple kind that models use, as a recipe for strings that match it.
///
/// Literals, `.`, classes with ranges, `\d \w \s`, and the quantifiers `? * + {n} {n,} {n,m}`;
/// anchors at the ends. Groups, alternatives and look-around are not understood.
struct SimplePattern: Sendable, Equatable {
  struct Piece: Sendable, Equatable {
    var choices: [UInt8]
    var repeats: ClosedRange<Int>
    /// Whether the expression has no upper bound.
    var isOpen = false
  }

  private(set) var pieces: [Piece] = []
  private var bounds: ClosedRange<Int>?
  /// How often each piece is repeated in the longest match.
  private var mostRepeats: [Int] = []

  /// The most repeats of a piece without upper bound.
  private static let openEnd = 6

  /// - Parameter bounds: The fewest and most bytes that a match may have by other rules.
  /// - Returns: nil when the expression has anything that is not understood, or no match of such a
  ///   length.
  init?(_ expression: String, bounds: ClosedRange<Int>? = nil) {
    var rest = Array(expression.utf8)[...]
    if rest.first == UInt8(ascii: "^") { rest.removeFirst() }
    if rest.last == UInt8(ascii: "$"), !rest.dropLast().hasSuffix(UInt8(ascii: "\\")) {
      rest.removeLast()
    }
    while let byte = rest.popFirst() {
      guard var choices = Self.choices(byte, &rest) else { return nil }
      choices.removeAll { $0 >= 0x7F }
      let isOpen = Self.isOpen(rest)
      guard !choices.isEmpty, let repeats = Self.repeats(&rest) else { return nil }
      pieces.append(Piece(choices: choices, repeats: repeats, isOpen: isOpen))
    }
    defer { mostRepeats = longest() }
    guard let bounds else { return }
    for place in pieces.indices where pieces[place].isOpen {
      let low = pieces[place].repeats.lowerBound
      let high = max(pieces[place].repeats.upperBound, min(bounds.lowerBound, Self.mostBytes))
      pieces[place].repeats = low...max(low, high)
    }
    let own = length
    guard own.lowerBound <= bounds.upperBound, own.upperBound >= bounds.lowerBound else {
      return nil
    }
    self.bounds = bounds
  }

  /// As for strings without an expression.
  private static let mostBytes = 1 << 16

  /// Whether a quantifier without upper bound is next.
  private static func isOpen(_ rest: ArraySlice<UInt8>) -> Bool {
    switch rest.first {
    case UInt8(ascii: "*"), UInt8(ascii: "+"): true
    case UInt8(ascii: "{"):
      rest.firstIndex(of: UInt8(ascii: "}")).map {
        rest[..<$0].last == UInt8(ascii: ",")
      } ?? false
    default: false
    }
  }

  /// The fewest and most bytes of a match.
  var length: ClosedRange<Int> {
    let low = pieces.reduce(0) { $0 + $1.repeats.lowerBound }
    return low...max(low, pieces.reduce(0) { $0 + $1.repeats.upperBound })
  }

  func write(into bytes: UnsafeMutableRawPointer, _ random: inout SplitMix64) -> Int {
    var count = 0
    var (fewest, most) = (length.lowerBound, length.upperBound)
    for piece in pieces {
      var repeats = piece.repeats
      fewest -= repeats.lowerBound
      most -= repeats.upperBound
      if let bounds {
        // As many as leave the pieces that follow room, and ask no more of them than they have.
        let low = max(repeats.lowerBound, bounds.lowerBound - count - most)
        let high = min(repeats.upperBound, bounds.upperBound - count - fewest)
        repeats = low...max(low, high)
      }
      for _ in 0..<random.within(repeats) {
        bytes.storeBytes(
          of: piece.choices[random.below(piece.choices.count)], toByteOffset: count,
          as: UInt8.self)
        count += 1
      }
    }
    return count
  }

  /// How many matches ``write(match:into:)`` tells apart; `Int.max` for more than can be counted.
  var matchCount: Int {
    zip(pieces, mostRepeats).reduce(1) { product, piece in
      let choices = Set(piece.0.choices).count
      return (0..<piece.1).reduce(product) { count, _ in
        let (next, isPast) = count.multipliedReportingOverflow(by: choices)
        return isPast ? .max : next
      }
    }
  }

  /// Writes a match that no other number below ``matchCount`` has. All have one length.
  func write(match number: Int, into bytes: UnsafeMutableRawPointer) -> Int {
    var (count, rest) = (0, number)
    for (piece, repeats) in zip(pieces, mostRepeats) {
      let choices = Set(piece.choices).sorted()
      for _ in 0..<repeats {
        bytes.storeBytes(of: choices[rest % choices.count], toByteOffset: count, as: UInt8.self)
        rest /= choices.count
        count += 1
      }
    }
    return count
  }

  /// The most repeats of each piece that leave the ones that follow room.
  private func longest() -> [Int] {
    guard let bounds else { return pieces.map(\.repeats.upperBound) }
    var room = bounds.upperBound - length.lowerBound
    return pieces.map { piece in
      let more = min(piece.repeats.upperBound - piece.repeats.lowerBound, max(0, room))
      room -= more
      return piece.repeats.lowerBound + more
    }
  }

  private static let digits = Array(UInt8(ascii: "0")...UInt8(ascii: "9"))
  private static let word =
    digits + Array(UInt8(ascii: "A")...UInt8(ascii: "Z"))
    + Array(UInt8(ascii: "a")...UInt8(ascii: "z")) + [UInt8(ascii: "_")]

  private static func escaped(_ byte: UInt8) -> [UInt8]? {
    switch byte {
    case UInt8(ascii: "d"): digits
    case UInt8(ascii: "w"): word
    case UInt8(ascii: "s"): [UInt8(ascii: " ")]
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      nil
    default: [byte]
    }
  }

  private static func choices(_ byte: UInt8, _ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
    switch byte {
    case UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "|"), UInt8(ascii: "*"),
      UInt8(ascii: "+"), UInt8(ascii: "?"), UInt8(ascii: "{"), UInt8(ascii: "^"),
      UInt8(ascii: "$"):
      return nil
    case UInt8(ascii: "."): return word
    case UInt8(ascii: "\\"): return rest.popFirst().flatMap(escaped)
    case UInt8(ascii: "["): return characterClass(&rest)
    default: return byte < 0x80 ? [byte] : nil
    }
  }

  private static func characterClass(_ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
    let isNegated = rest.first == UInt8(ascii: "^")
    if isNegated { rest.removeFirst() }
    var found: [UInt8] = []
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "]"):
        return isNegated ? word.filter { !found.contains($0) } : found
      case UInt8(ascii: "["): return nil
      case UInt8(ascii: "\\"):
        guard let set = rest.popFirst().flatMap(escaped) else { return nil }
        found += set
      case UInt8(ascii: "-"):
        if let low = found.last, let high = rest.first, high != UInt8(ascii: "]"), low <= high {
          rest.removeFirst()
          found += Array(low...high)
        } else {
          found.append(byte)
        }
      default: found.append(byte)
      }
    }
    return nil
  }

  private static func repeats(_ rest: inout ArraySlice<UInt8>) -> ClosedRange<Int>? {
    switch rest.first {
    case UInt8(ascii: "?"): rest.removeFirst(); return 0...1
    case UInt8(ascii: "*"): rest.removeFirst(); return 0...openEnd
    case UInt8(ascii: "+"): rest.removeFirst(); return 1...openEnd
    case UInt8(ascii: "{"):
      guard let close = rest.firstIndex(of: UInt8(ascii: "}")) else { return nil }
      let inside = String(decoding: rest[rest.startIndex + 1..<close], as: UTF8.self)
      rest = rest[(close + 1)...]
      let parts = inside.split(separator: ",", omittingEmptySubsequences: false)
      guard let low = parts.first.flatMap({ Int($0) }), low >= 0, low <= 1000 else { return nil }
      if parts.count == 1 { return low...low }
      if parts[1].isEmpty { return low...(low + openEnd) }
      guard let high = Int(parts[1]), high >= low, high <= 1000 else { return nil }
      return low...high
    default: return 1...1
    }
  }
}

extension ArraySlice<UInt8> {
  fileprivate func hasSuffix(_ byte: UInt8) -> Bool { last == byte }
}
