/// ± `mantissa` · 10^`exponent`: a number of at most 38 decimal digits, as `NSDecimalNumber`
/// keeps it.
///
/// Every operation gives the exact result rounded once to 38 digits, halves away from zero, and none where
/// that is too large or too near to 0. A trivial type: arithmetic allocates nothing. Mantissas have no trailing
/// zeros, so equal numbers are equal member by member, and zero is never negative.
///
/// Source: Foundation's `NSDecimalNumber` ("mantissa … up to 38 digits, exponent from −128
/// through 127"), whose default behaviour raises `NSDecimalNumberOverflowException` and
/// `NSDecimalNumberUnderflowException`; `core-data-migration.md` §4.5.
public struct DecimalNumber: Sendable, Hashable, BitwiseCopyable {
  /// True below zero.
  public let isNegative: Bool
  /// Below 10^38.
  public let mantissa: UInt128
  /// The power of ten that the mantissa is multiplied by, within ``exponents``.
  public let exponent: Int

  /// The exponents that a number may have. Source: Foundation's `NSDecimalNumber`.
  public static let exponents = -128...127
  static let digits = 38
  /// The number 0.
  public static let zero = DecimalNumber(0 as Int64)

  private init(checked isNegative: Bool, mantissa: UInt128, exponent: Int) {
    self.isNegative = isNegative
    self.mantissa = mantissa
    self.exponent = exponent
  }

  /// The same number as the integer. Always exact.
  public init(_ integer: Int64) {
    var (mantissa, exponent) = (UInt128(integer.magnitude), 0)
    while mantissa != 0, mantissa % 10 == 0 {
      mantissa /= 10
      exponent += 1
    }
    self.init(checked: integer < 0, mantissa: mantissa, exponent: exponent)
  }

  /// A number of any mantissa, rounded to 38 digits; nil where it is too large or too near to 0.
  public init?(isNegative: Bool, mantissa: UInt128, exponent: Int) {
    self.init(isNegative: isNegative, wide: (0, mantissa), exponent: exponent)
  }

  /// A whole number of 64 bits as it is, as a decimal column holds the double; else the shortest decimal
  /// that reads back as it: `0.1` is a tenth. Nil where that is too large or too near to 0, or no number.
  ///
  /// Source: Foundation's `NSNumber.decimalValue` ("The value returned isn't guaranteed to be exact for
  /// float and double values").
  public init?(real: Double) {
    guard real.isFinite else { return nil }
    if let short = DecimalNumber(short: real) {
      self = short
    } else if let whole = Int64(exactly: real) {
      self.init(whole)
    } else {
      self.init(text: real.description)
    }
  }

  /// A double that is the nearest to a decimal of at most 15 digits, which no other such decimal is: the
  /// shortest one, then, found without a text.
  private init?(short real: Double) {
    var (places, scale) = (0, 1.0)
    // Up to 10^22 a power of ten is a double, so that the quotient is rounded once.
    while places <= 22 {
      let mantissa = (real * scale).rounded()
      guard abs(mantissa) < 1e15 else { return nil }
      if mantissa / scale == real {
        self.init(isNegative: mantissa < 0, mantissa: UInt128(abs(mantissa)), exponent: -places)
        return
      }
      (places, scale) = (places + 1, scale * 10)
    }
    return nil
  }

  /// Reads `-12.5e3`; nil for anything else, and for what is too large or too near to 0. At most 200 characters.
  public init?(text: String) {
    let units = Array(text.utf8)
    guard units.count <= 200 else { return nil }
    var place = 0
    let isNegative = units.first == UInt8(ascii: "-")
    if isNegative || units.first == UInt8(ascii: "+") { place += 1 }
    var (mantissa, exponent, digitCount) = (UInt128(0), 0, 0)
    var isBehindPoint = false
    var half: UInt8?  // the first digit that found no room
    while place < units.count {
      let unit = units[place]
      if unit == UInt8(ascii: "."), !isBehindPoint {
        isBehindPoint = true
      } else if unit >= UInt8(ascii: "0"), unit <= UInt8(ascii: "9") {
        digitCount += 1
        let digit = unit - UInt8(ascii: "0")
        if half == nil, mantissa < Self.limit / 10 {
          mantissa = mantissa * 10 + UInt128(digit)
          if isBehindPoint { exponent -= 1 }
        } else {
          if half == nil { half = digit }
          if !isBehindPoint { exponent += 1 }
        }
      } else {
        break
      }
      place += 1
    }
    guard digitCount > 0 else { return nil }
    if place < units.count {
      guard units[place] | 0x20 == UInt8(ascii: "e"),
        let power = Int(String(decoding: units[(place + 1)...], as: UTF8.self)),
        power.magnitude < 10_000
      else { return nil }
      exponent += power
    }
    if let half, half >= 5 { mantissa += 1 }
    self.init(isNegative: isNegative, wide: (0, mantissa), exponent: exponent)
  }

  /// 10^38: no mantissa reaches it.
  static let limit: UInt128 = powersOfTen[38]

  /// 10^0 … 10^38.
  static let powersOfTen: [UInt128] = {
    var powers: [UInt128] = [1]
    for _ in 0..<38 { powers.append(powers[powers.count - 1] * 10) }
    return powers
  }()

  /// Rounds a mantissa of 256 bits to 38 digits.
  ///
  /// Only the last digit that is taken off decides, since halves go away from zero: a mantissa
  /// that was cut off below may be passed as it is, if 38 digits of it are there.
  fileprivate init?(isNegative: Bool, wide: (high: UInt128, low: UInt128), exponent: Int) {
    var (high, low, exponent) = (wide.high, wide.low, exponent)
    var last: UInt128 = 0
    while high != 0 || low >= Self.limit {
      let top = high.quotientAndRemainder(dividingBy: 10)
      let rest = (10 as UInt128).dividingFullWidth((top.remainder, low))
      (high, low) = (top.quotient, rest.quotient)
      last = rest.remainder
      exponent += 1
    }
    if last >= 5 { low += 1 }
    self.init(isNegative: isNegative, fitting: low, exponent: exponent)
  }

  /// Takes off trailing zeros and brings the exponent into its range. A number too near to 0 is not rounded to fewer
  /// digits: it would become another, or 0.
  private init?(isNegative: Bool, fitting mantissa: UInt128, exponent: Int) {
    var (mantissa, exponent) = (mantissa, exponent)
    guard mantissa != 0 else {
      self = .zero
      return
    }
    while mantissa % 10 == 0 {
      mantissa /= 10
      exponent += 1
    }
    while exponent > Self.exponents.upperBound, mantissa < Self.limit / 10 {
      mantissa *= 10
      exponent -= 1
    }
    guard Self.exponents.contains(exponent) else { return nil }
    self.init(checked: isNegative, mantissa: mantissa, exponent: exponent)
  }
}

// MARK: - Arithmetic. Nil: the result is too large or too near to 0.

extension DecimalNumber {
  /// The number with the other sign; zero stays zero.
  public static prefix func - (a: DecimalNumber) -> DecimalNumber {
    DecimalNumber(
      checked: !a.isNegative && a.mantissa != 0, mantissa: a.mantissa, exponent: a.exponent)
  }

  /// The sum.
  public func adding(_ other: DecimalNumber) -> DecimalNumber? {
    if mantissa == 0 { return other }
    if other.mantissa == 0 { return self }
    let (a, b) = exponent >= other.exponent ? (self, other) : (other, self)
    // `a` is brought toward the exponent of `b`, to 76 digits at most: 256 bits hold 77.
    let distance = a.exponent - b.exponent
    let padding = min(distance, Self.digits - a.digitCount)
    let shift = min(distance - padding, Self.digits)
    let padded = a.mantissa * Self.powersOfTen[padding]
    var wide: (high: UInt128, low: UInt128) = padded.multipliedFullWidth(
      by: Self.powersOfTen[shift])
    let exponent = a.exponent - padding - shift
    // What remains of `b` below that is far below the 38 digits of the result: it is cut off.
    let lost = exponent - b.exponent
    var (small, rest) =
      lost <= Self.digits
      ? b.mantissa.quotientAndRemainder(dividingBy: Self.powersOfTen[lost]) : (0, b.mantissa)
    if a.isNegative == b.isNegative {
      let (low, carries) = wide.low.addingReportingOverflow(small)
      wide = (wide.high + (carries ? 1 : 0), low)
      return DecimalNumber(isNegative: a.isNegative, wide: wide, exponent: exponent)
    }
    // Cutting off must make the difference smaller, never larger.
    if rest != 0 {
      small += 1
      rest = 0
    }
    if wide.high == 0, wide.low < small {
      return DecimalNumber(
        isNegative: b.isNegative, wide: (0, small - wide.low), exponent: exponent)
    }
    let (low, borrows) = wide.low.subtractingReportingOverflow(small)
    wide = (wide.high - (borrows ? 1 : 0), low)
    return DecimalNumber(isNegative: a.isNegative, wide: wide, exponent: exponent)
  }

  /// The difference.
  public func subtracting(_ other: DecimalNumber) -> DecimalNumber? { adding(-other) }

  /// The product.
  public func multiplied(by other: DecimalNumber) -> DecimalNumber? {
    let wide = mantissa.multipliedFullWidth(by: other.mantissa)
    return DecimalNumber(
      isNegative: isNegative != other.isNegative, wide: (wide.high, wide.low),
      exponent: exponent + other.exponent)
  }

  /// The quotient, rounded to 38 digits; nil where it is too large or too near to 0.
  ///
  /// - Precondition: `other` is not zero.
  public func divided(by other: DecimalNumber) -> DecimalNumber? {
    precondition(other.mantissa != 0, "the caller tells division by zero apart")
    if mantissa == 0 { return .zero }
    let isNegative = self.isNegative != other.isNegative
    let padding = Self.digits - digitCount
    let numerator = mantissa * Self.powersOfTen[padding]
    var exponent = self.exponent - other.exponent - padding
    var (quotient, remainder) = numerator.quotientAndRemainder(dividingBy: other.mantissa)
    /// The next digit of the long division.
    func nextDigit() -> UInt128 {
      let wide = remainder.multipliedFullWidth(by: 10)
      let next = other.mantissa.dividingFullWidth((wide.high, wide.low))
      remainder = next.remainder
      return next.quotient
    }
    while remainder != 0, quotient < Self.limit / 10 {
      quotient = quotient * 10 + nextDigit()
      exponent -= 1
    }
    if remainder != 0, nextDigit() >= 5 { quotient += 1 }
    return DecimalNumber(isNegative: isNegative, wide: (0, quotient), exponent: exponent)
  }

  /// What a division by a whole number of times leaves, exactly, with the sign of this number.
  ///
  /// - Precondition: `other` is not zero.
  func remainder(dividingBy other: DecimalNumber) -> DecimalNumber? {
    precondition(other.mantissa != 0, "the caller tells division by zero apart")
    guard magnitudeOrder(to: other) >= 0 else { return self }
    // As the larger of the two, this number has room for the other's digits at its own exponent.
    let shift = max(0, other.exponent - exponent)
    let divisor = other.mantissa * Self.powersOfTen[shift]
    var rest = mantissa % divisor
    for _ in 0..<max(0, exponent - other.exponent) where rest != 0 {
      let wide = rest.multipliedFullWidth(by: 10)
      rest = divisor.dividingFullWidth((wide.high, wide.low)).remainder
    }
    return DecimalNumber(
      isNegative: isNegative && rest != 0, mantissa: rest, exponent: min(exponent, other.exponent))
  }

  /// A whole number: `.down` is the next one below and `.up` the next one above. Every other rule
  /// cuts toward zero.
  public func rounded(_ rule: FloatingPointRoundingRule) -> DecimalNumber {
    guard exponent < 0 else { return self }
    let places = -exponent
    let (whole, rest) =
      places <= 38
      ? mantissa.quotientAndRemainder(dividingBy: Self.powersOfTen[places]) : (0, mantissa)
    var result = whole
    if rest != 0, (rule == .down && isNegative) || (rule == .up && !isNegative) { result += 1 }
    return DecimalNumber(isNegative: isNegative, mantissa: result, exponent: 0) ?? .zero
  }
}
