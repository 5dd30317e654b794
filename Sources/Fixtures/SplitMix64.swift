/// A small seeded generator: the same seed gives the same numbers on every machine.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014); the
/// constants are those of Vigna's public-domain `splitmix64.c`.
package struct SplitMix64: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  @inline(__always)
  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return Self.mix(state)
  }

  /// The output function alone: spreads any number over 64 bits.
  @inline(__always)
  package static func mix(_ value: UInt64) -> UInt64 {
    var z = value
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  /// A number that depends on nothing but `seed` and `index`: a table that needs no memory.
  @inline(__always)
  package static func at(_ index: Int, seed: UInt64) -> UInt64 {
    mix(mix(seed) &+ UInt64(bitPattern: Int64(index)) &* 0x9E37_79B9_7F4A_7C15)
  }

  /// A seed for one purpose, so that two columns of one store do not share their numbers.
  package static func seed(_ base: UInt64, _ purpose: String) -> UInt64 {
    var hash = mix(base ^ 0x243F_6A88_85A3_08D3)
    for byte in purpose.utf8 { hash = mix((hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3) }
    return hash
  }

  /// 0 ..< `bound`; 0 when `bound` is not positive.
  @inline(__always)
  package mutating func below(_ bound: Int) -> Int {
    bound > 0 ? Int(next().multipliedFullWidth(by: UInt64(bound)).high) : 0
  }

  @inline(__always)
  package mutating func within(_ range: ClosedRange<Int>) -> Int {
    range.lowerBound + below(range.upperBound - range.lowerBound + 1)
  }

  /// 0 ..< 1.
  @inline(__always)
  package mutating func fraction() -> Double { Double(next() >> 11) * 0x1p-53 }
}

/// A probability as a number to compare 64 random bits with.
@inline(__always)
func threshold(_ probability: Double) -> UInt64 {
  probability >= 1 ? .max : probability <= 0 ? 0 : UInt64(probability * 0x1p64)
}

/// A shuffle of 0 ..< `count` that is computed in both directions and holds no list.
struct Shuffle: Sendable {
  let count: Int
  private let factor: Int
  private let back: Int
  private let offset: Int

  /// - Parameter seed: nil leaves everything in its place.
  init(count: Int, seed: UInt64?) {
    self.count = count
    guard let seed, count > 2 else {
      (factor, back, offset) = (1, 1, 0)
      return
    }
    var random = SplitMix64(seed: seed)
    var chosen = 1
    var inverse = 1
    for _ in 0..<64 {
      let candidate = 1 + random.below(count - 1)
      let (divisor, x) = Self.bezout(candidate, count)
      if divisor == 1 {
        (chosen, inverse) = (candidate, (x % count + count) % count)
        break
      }
    }
    (factor, back, offset) = (chosen, inverse, random.below(count))
  }

  /// The greatest common divisor of `a` and `n`, and x with a·x ≡ divisor (mod n).
  private static func bezout(_ a: Int, _ n: Int) -> (Int, Int) {
    var (old, rest) = (a, n)
    var (x, y) = (1, 0)
    while rest != 0 {
      let quotient = old / rest
      (old, rest) = (rest, old - quotient * rest)
      (x, y) = (y, x - quotient * y)
    }
    return (old, x)
  }

  // Counts stay far below 2^31, so that the products fit.
  @inline(__always)
  func forward(_ place: Int) -> Int { (place * factor + offset) % count }

  @inline(__always)
  func backward(_ place: Int) -> Int { (place + count - offset) % count * back % count }
}
