import GodwitSQLite

/// The arithmetic of ``Number`` where one side is decimal. A decimal number that was reckoned lies in a
/// register as a blob that points nowhere: its mantissa where bits and address are, its exponent and sign
/// in the count.
enum CompiledDecimal {
  @inline(__always)
  static func apply(
    _ operation: Number.Operation, _ a: RawValue, _ b: RawValue
  ) throws(EvaluationProblem) -> RawValue {
    if a.kind == .null || b.kind == .null { return .null }
    guard let a = number(a), let b = number(b) else { throw .overflow }
    return packed(try Number.decimal(operation, a, b))
  }

  /// The value as a decimal column holds it: whole ones are integers.
  static func assign(_ value: RawValue) throws(EvaluationProblem) -> RawValue {
    guard let decimal = number(value) else { throw .beyond(.decimal, value.real) }
    if let integer = decimal.integral, integer > .min { return .integer(integer) }
    return CompiledArithmetic.numeric(decimal.double)
  }

  private static func number(_ value: RawValue) -> DecimalNumber? {
    switch value.kind {
    case .integer: return DecimalNumber(value.bits)
    case .real: return DecimalNumber(real: value.real)
    default:
      let high = UInt128(UInt(bitPattern: value.bytes)) << 64
      return DecimalNumber(
        isNegative: value.count & 1 == 1,
        mantissa: high | UInt128(UInt64(bitPattern: value.bits)), exponent: value.count >> 1)
    }
  }

  private static func packed(_ number: DecimalNumber) -> RawValue {
    RawValue(
      kind: .blob, bits: Int64(truncatingIfNeeded: number.mantissa),
      bytes: UnsafeRawPointer(bitPattern: UInt(number.mantissa >> 64)),
      count: number.exponent << 1 | (number.isNegative ? 1 : 0))
  }
}
