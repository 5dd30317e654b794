/// The 128-bit hash of one row.
///
/// Two chains of 64-bit multiplications over 16-byte blocks, each block little-endian words
/// (w0, w1), the last padded with zeros; the length goes in first, so padding is never mistaken for
/// data. With `m(x, y) = (x ⊕ low) + (y ⊕ high)` of the 128-bit product x·y:
///
///     a = S0 ⊕ length               b = S1 + length
///     for each block:               a = m(a ⊕ w0, w1 ⊕ S2)     b = m(b ⊕ w1, w0 ⊕ S3)
///     at the end:                   a = m(a ⊕ S1, b ⊕ S0)      b = m(b ⊕ S3, a ⊕ S2)
///                                   high = m(a, b ⊕ S1)        low = m(b, a ⊕ S0) ⊕ high
///
/// `m` keeps a factor whose partner is zero, where a bare product would lose it. The chains depend
/// on nothing in each other until the end, so the processor runs them side by side.
@frozen public struct RowHash {
  @usableFromInline var a: UInt64
  @usableFromInline var b: UInt64

  /// - Parameter length: Of the row; any number that tells forms of rows apart where words are added.
  @inlinable @inline(__always)
  public init(length: Int) {
    a = seeds.0 ^ UInt64(truncatingIfNeeded: length)
    b = seeds.1 &+ UInt64(truncatingIfNeeded: length)
  }

  /// Takes in one block.
  @inlinable @inline(__always)
  public mutating func add(_ first: UInt64, _ second: UInt64) {
    a = mixed(a ^ first, second ^ seeds.2)
    b = mixed(b ^ second, first ^ seeds.3)
  }

  /// Takes in bytes, padded to whole blocks.
  @inlinable
  public mutating func add(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    var place = start
    let end = start + bytes.count
    while end - place >= 16 {
      add(
        UInt64(littleEndian: place.loadUnaligned(as: UInt64.self)),
        UInt64(littleEndian: (place + 8).loadUnaligned(as: UInt64.self)))
      place += 16
    }
    let rest = end - place
    if rest > 0 {
      add(word(at: place, count: min(rest, 8)), rest > 8 ? word(at: place + 8, count: rest - 8) : 0)
    }
  }

  /// The hash of what was taken in.
  @inlinable @inline(__always)
  var words: (high: UInt64, low: UInt64) {
    let first = mixed(a ^ seeds.1, b ^ seeds.0)
    let second = mixed(b ^ seeds.3, first ^ seeds.2)
    let high = mixed(first, second ^ seeds.1)
    return (high, mixed(second, first ^ seeds.0) ^ high)
  }
}

/// Odd, about half of the bits set, and otherwise without meaning: the first fractional bits of the
/// square roots of 2, 3, 5 and 7, made odd.
@inlinable @inline(__always)
var seeds: (UInt64, UInt64, UInt64, UInt64) {
  (0x6A09_E667_F3BC_C909, 0xBB67_AE85_84CA_A73B, 0x3C6E_F372_FE94_F82B, 0xA54F_F53A_5F1D_36F1)
}

@inlinable @inline(__always)
func mixed(_ x: UInt64, _ y: UInt64) -> UInt64 {
  let product = x.multipliedFullWidth(by: y)
  return (x ^ product.low) &+ (y ^ product.high)
}

/// Up to eight bytes as a little-endian word.
@inlinable @inline(__always)
func word(at place: UnsafeRawPointer, count: Int) -> UInt64 {
  if count == 8 { return UInt64(littleEndian: place.loadUnaligned(as: UInt64.self)) }
  var word: UInt64 = 0
  for index in 0..<count { word |= UInt64((place + index).load(as: UInt8.self)) &<< (index &* 8) }
  return word
}
