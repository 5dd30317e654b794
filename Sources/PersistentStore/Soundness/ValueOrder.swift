import Glibc
import GodwitSQLite

extension RawValue {
  /// SQLite's order of values under the collation BINARY: NULL, numbers, text, blobs.
  ///
  /// - Returns: Less than, equal to or greater than 0, as `a` stands before, with or after `b`.
  ///   Source: https://sqlite.org/datatype3.html §4.1.
  static func compare(_ a: RawValue, _ b: RawValue) -> Int {
    let (x, y) = (rank(a), rank(b))
    if x != y { return x - y }
    switch (a.kind, b.kind) {
    case (.integer, .integer): return a.bits < b.bits ? -1 : a.bits > b.bits ? 1 : 0
    case (.real, .real): return a.real < b.real ? -1 : a.real > b.real ? 1 : 0
    case (.integer, .real): return compare(a.bits, b.real)
    case (.real, .integer): return -compare(b.bits, a.real)
    case (.null, _): return 0
    default:
      let (left, right) = (a.buffer, b.buffer)
      if let x = left.baseAddress, let y = right.baseAddress {
        let difference = memcmp(x, y, min(left.count, right.count))
        if difference != 0 { return Int(difference) }
      }
      return left.count - right.count
    }
  }

  private static func rank(_ value: RawValue) -> Int {
    switch value.kind {
    case .null: 0
    case .integer, .real: 1
    case .text: 2
    case .blob: 3
    }
  }

  /// An integer against a real, without losing digits to a conversion.
  private static func compare(_ integer: Int64, _ real: Double) -> Int {
    if real >= 9_223_372_036_854_775_808.0 { return -1 }
    if real < -9_223_372_036_854_775_808.0 { return 1 }
    let whole = Int64(real)
    if integer != whole { return integer < whole ? -1 : 1 }
    let rest = real - Double(whole)
    return rest > 0 ? -1 : rest < 0 ? 1 : 0
  }
}
