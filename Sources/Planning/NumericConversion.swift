import GodwitSQLite

/// Converts a number to another numeric attribute type, as its column would hold it.
///
/// Apple documents that inference converts between numeric types and not how a value that does
/// not fit is narrowed: integers are truncated toward zero and clamped to the type's range, and every number but 0
/// is true, so that the result is always a value of the type.
/// Source: `core-data-migration.md` §2.2; storage classes: `core-data-sqlite-format.md` §5.
package enum NumericConversion {
  /// The number as a column of the type holds it. What is not a number is returned unchanged.
  ///
  /// - Parameter type: The raw value of an ``AttributeType``. An integer or real is returned
  ///   unchanged for a type that is not numeric.
  @inlinable @inline(__always)
  package static func convert(_ value: RawValue, to type: Int32) -> RawValue {
    switch value.kind {
    case .integer: convert(integer: value.bits, to: type)
    case .real: convert(real: value.real, to: type)
    case .null, .text, .blob: value
    }
  }

  @inlinable @inline(__always)
  static func convert(integer: Int64, to type: Int32) -> RawValue {
    switch type {
    case 100: .integer(max(-0x8000, min(0x7FFF, integer)))
    case 200: .integer(max(-0x8000_0000, min(0x7FFF_FFFF, integer)))
    case 300: .integer(integer)
    // As that double has it: one form of one value, whichever number becomes it.
    case 400: integer == .min ? .real(Double(integer)) : .integer(integer)
    case 500: .real(Double(integer))
    case 600: .real(Double(Float(integer)))
    case 800: .integer(integer == 0 ? 0 : 1)
    default: .integer(integer)
    }
  }

  @inlinable @inline(__always)
  static func convert(real: Double, to type: Int32) -> RawValue {
    switch type {
    case 100: return .integer(clamp(real, -0x8000, 0x7FFF))
    case 200: return .integer(clamp(real, -0x8000_0000, 0x7FFF_FFFF))
    case 300: return .integer(clamp(real, .min, .max))
    case 400:
      // DECIMAL has numeric affinity: integral values are integers. SQLite leaves −2^63 out.
      if let integral = Int64(exactly: real), integral > .min { return .integer(integral) }
      return .real(real)
    case 500: return .real(real)
    case 600: return .real(Double(Float(real)))
    case 800: return .integer(real == 0 ? 0 : 1)
    default: return .real(real)
    }
  }

  @inlinable @inline(__always)
  static func clamp(_ real: Double, _ low: Int64, _ high: Int64) -> Int64 {
    if real.isNaN { return 0 }
    if real <= Double(low) { return low }
    if real >= Double(high) { return high }
    return Int64(real)
  }
}
