/// A regular expression of the simple kind that models use, as a recipe for strings that match it.
///
/// Literals, `.`, classes with ranges, `\d \w \s`, and the quantifiers `? * + {n} {n,} {n,m}`;
/// anchors at the ends. Groups, alternatives and look-around are not understood.
struct SimplePattern: Sendable, Equatable {
  struct Piece: Sendable, Equatable {
    var choices: [UInt8]
    var repeats: ClosedRange<Int>
  }

  private(set) var pieces: [Piece] = []

  /// The most repeats of a piece without upper bound.
  private static let openEnd = 6

  /// - Returns: nil when the expression has anything that is not understood.
  init?(_ expression: String) {
    var rest = Array(expression.utf8)[...]
    if rest.first == UInt8(ascii: "^") { rest.removeFirst() }
    if rest.last == UInt8(ascii: "$"), !rest.dropLast().hasSuffix(UInt8(ascii: "\\")) {
      rest.removeLast()
    }
    while let byte = rest.popFirst() {
      guard var choices = Self.choices(byte, &rest) else { return nil }
      choices.removeAll { $0 >= 0x7F }
      guard !choices.isEmpty, let repeats = Self.repeats(&rest) else { return nil }
      pieces.append(Piece(choices: choices, repeats: repeats))
    }
  }

  /// The fewest and most bytes of a match.
  var length: ClosedRange<Int> {
    let low = pieces.reduce(0) { $0 + $1.repeats.lowerBound }
    return low...max(low, pieces.reduce(0) { $0 + $1.repeats.upperBound })
  }

  func write(into bytes: UnsafeMutableRawPointer, _ random: inout SplitMix64) -> Int {
    var count = 0
    for piece in pieces {
      for _ in 0..<random.within(piece.repeats) {
        bytes.storeBytes(
          of: piece.choices[random.below(piece.choices.count)], toByteOffset: count,
          as: UInt8.self)
        count += 1
      }
    }
    return count
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
