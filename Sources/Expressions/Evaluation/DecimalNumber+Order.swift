// Order and conversion.
extension DecimalNumber: Comparable {
  /// By value.
  public static func < (a: DecimalNumber, b: DecimalNumber) -> Bool { a.order(to: b) < 0 }

  /// −1, 0 or 1.
  func order(to other: DecimalNumber) -> Int {
    if self == other { return 0 }
    if isNegative != other.isNegative { return isNegative ? -1 : 1 }
    let magnitude = magnitudeOrder(to: other)
    return isNegative ? -magnitude : magnitude
  }

  func magnitudeOrder(to other: DecimalNumber) -> Int {
    if mantissa == 0 || other.mantissa == 0 {
      return mantissa == other.mantissa ? 0 : mantissa == 0 ? -1 : 1
    }
    let (a, b) = (digitCount + exponent, other.digitCount + other.exponent)
    if a != b { return a < b ? -1 : 1 }
    let x = mantissa * Self.powersOfTen[Self.digits - digitCount]
    let y = other.mantissa * Self.powersOfTen[Self.digits - other.digitCount]
    return x == y ? 0 : x < y ? -1 : 1
  }

  var digitCount: Int {
    var count = 1
    while count < Self.digits, mantissa >= Self.powersOfTen[count] { count += 1 }
    return count
  }

  /// The nearest double.
  public var double: Double {
    // Both are doubles, so that the result is rounded once.
    if mantissa < 1 << 53, abs(exponent) <= 22 {
      let (digits, scale) = (Double(UInt64(mantissa)), Self.realPower(abs(exponent)))
      let magnitude = exponent < 0 ? digits / scale : digits * scale
      return isNegative ? -magnitude : magnitude
    }
    // Through text: only a decimal reader rounds once.
    return Double("\(isNegative ? "-" : "")\(mantissa)e\(exponent)") ?? .nan
  }

  /// 10^`exponent`, up to 22.
  private static func realPower(_ exponent: Int) -> Double {
    var power = 1.0
    for _ in 0..<exponent { power *= 10 }
    return power
  }

  /// The number cut to an integer; nil outside the range of `Int64`.
  public var truncated: Int64? {
    let whole = rounded(.towardZero)
    guard whole.exponent <= 19 else { return nil }
    guard whole.mantissa <= UInt128(UInt64.max) else { return nil }
    let (value, overflows) = whole.mantissa.multipliedReportingOverflow(
      by: Self.powersOfTen[whole.exponent])
    guard !overflows, value <= UInt128(Int64.max.magnitude) + (isNegative ? 1 : 0) else {
      return nil
    }
    return isNegative ? Int64(truncatingIfNeeded: 0 &- value) : Int64(value)
  }

  /// The integer, where it is one.
  public var integral: Int64? { exponent >= 0 ? truncated : nil }

  /// The integer, where it is one and not negative.
  var unsignedIntegral: UInt64? {
    guard exponent >= 0, exponent <= 19, !isNegative || mantissa == 0, mantissa <= UInt64.max
    else { return nil }
    return UInt64(exactly: mantissa * Self.powersOfTen[exponent])
  }
}

extension DecimalNumber: CustomStringConvertible {
  /// Plain digits, without an exponent, as `-[NSDecimalNumber stringValue]` writes them.
  public var description: String {
    var digits = String(mantissa)
    if exponent >= 0 {
      if mantissa != 0 { digits += String(repeating: "0", count: exponent) }
    } else {
      let places = -exponent
      if digits.utf8.count <= places {
        digits = String(repeating: "0", count: places - digits.utf8.count + 1) + digits
      }
      digits.insert(".", at: digits.index(digits.endIndex, offsetBy: -places))
    }
    return (isNegative ? "-" : "") + digits
  }
}
