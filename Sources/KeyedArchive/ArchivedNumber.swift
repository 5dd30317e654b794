/// A number of a keyed archive.
package enum ArchivedNumber: Sendable, Hashable {
  case integer(Int64)
  case real(Double)
  /// ± `mantissa` · 10^`exponent`, as `NSDecimalNumber` keeps it.
  case decimal(negative: Bool, mantissa: UInt128, exponent: Int)
  /// An `NSDecimalNumber` that is not a number.
  case notANumber

  /// Reads an `NSNumber` or an `NSDecimalNumber`; nil for an object of another class.
  ///
  /// A decimal keeps `NS.length` 16-bit words of mantissa, least significant word first, in the
  /// byte order that `NS.mantissa.bo` names (1 is little-endian). Seen in stores; the class is
  /// archived as `NSDecimalNumberPlaceholder`.
  init?(_ object: ArchivedObject) {
    if let exponent = object["NS.exponent"], object.isKind(of: "NSDecimalNumber") {
      guard case .integer(let power) = exponent, (-128...127).contains(power),
        let digits = object["NS.mantissa"]?.data,
        case .integer(let length)? = object["NS.length"] ?? .integer(0), (0...8).contains(length)
      else { return nil }
      let negative: Bool = if case .boolean(true)? = object["NS.negative"] { true } else { false }
      guard length > 0 || !negative else {
        self = .notANumber  // no digits and a minus sign is how NSDecimal spells it
        return
      }
      let isLittle = if case .integer(1)? = object["NS.mantissa.bo"] { true } else { false }
      var mantissa: UInt128 = 0
      for word in (0..<min(Int(length), digits.count / 2)).reversed() {
        let (a, b) = (UInt128(digits[2 * word]), UInt128(digits[2 * word + 1]))
        mantissa = mantissa << 16 | (isLittle ? b << 8 | a : a << 8 | b)
      }
      self = .decimal(negative: negative, mantissa: mantissa, exponent: Int(power))
      return
    }
    guard object.isKind(of: "NSNumber") else { return nil }
    if case .integer(let value)? = object["NS.intval"] {
      self = .integer(value)
    } else if case .real(let value)? = object["NS.dblval"] {
      self = .real(value)
    } else if case .boolean(let value)? = object["NS.boolval"] {
      self = .integer(value ? 1 : 0)
    } else {
      return nil
    }
  }

  /// The whole number that it is, exactly; nil for any other and beyond 64 bits.
  package var integer: Int64? {
    switch self {
    case .integer(let value): return value
    case .real(let value): return Int64(exactly: value)
    case .decimal(let negative, var whole, var exponent):
      let limit = UInt128(UInt64.max)
      while exponent < 0, whole.isMultiple(of: 10) {
        (whole, exponent) = (whole / 10, exponent + 1)
      }
      while exponent > 0, whole <= limit { (whole, exponent) = (whole * 10, exponent - 1) }
      guard exponent == 0, whole <= limit else { return nil }
      return Int64(exactly: negative ? -Int128(whole) : Int128(whole))
    case .notANumber: return nil
    }
  }

  /// The nearest double.
  package var double: Double {
    switch self {
    case .integer(let value): Double(value)
    case .real(let value): value
    case .decimal(let negative, let mantissa, let exponent):
      // Through text: only a decimal reader rounds once.
      Double("\(negative ? "-" : "")\(mantissa)e\(exponent)") ?? .nan
    case .notANumber: .nan
    }
  }
}
