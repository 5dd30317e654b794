/// Arithmetic and order of numbers.
///
/// Integers stay integers, and one that leaves 64 bits is an error; integer ÷ integer is cut
/// toward zero. An integer with a real is real. A decimal with any number is decimal, the real
/// taken at its shortest decimal form. Booleans count as 0 and 1.
///
/// Source: `core-data-migration.md` §4.5.
enum Number {
  enum Operation: UInt8, Sendable, BitwiseCopyable {
    case add, subtract, multiply, divide, modulus, power

    init?(function name: String) {
      switch name {
      case BuiltInFunction.Infix.add: self = .add
      case BuiltInFunction.Infix.subtract: self = .subtract
      case BuiltInFunction.Infix.multiply: self = .multiply
      case BuiltInFunction.Infix.divide: self = .divide
      case BuiltInFunction.Infix.power: self = .power
      case "modulus:by:": self = .modulus
      default: return nil
      }
    }
  }

  /// `a` operation `b`; nil where one of them is nil.
  static func apply(
    _ operation: Operation, _ a: ExpressionValue, _ b: ExpressionValue
  ) throws(EvaluationProblem) -> ExpressionValue {
    // The kinds come before nil: `NULL + "x"` is as wrong as `1 + "x"`.
    let (x, y) = (try number(a), try number(b))
    switch (x, y) {
    case (.null, _), (_, .null): return .null
    case (.integer(let x), .integer(let y)): return try integer(operation, x, y)
    case (.decimal, _), (_, .decimal):
      guard let x = decimal(x), let y = decimal(y) else { throw .overflow }
      return .decimal(try decimal(operation, x, y))
    default: return .real(try real(operation, double(x), double(y)))
    }
  }

  /// A number with Booleans made integers, or nil.
  private static func number(
    _ value: ExpressionValue
  ) throws(EvaluationProblem) -> ExpressionValue {
    switch value {
    case .null, .integer, .real, .decimal: return value
    case .boolean(let value): return .integer(value ? 1 : 0)
    default: throw .wrongKind(found: value.kind, needed: "a number")
    }
  }

  // MARK: - The kinds

  static func integer(
    _ operation: Operation, _ a: Int64, _ b: Int64
  ) throws(EvaluationProblem) -> ExpressionValue {
    if let whole = try whole(operation, a, b) { return .integer(whole) }
    guard b >= 0 else { return .real(try real(.power, Double(a), Double(b))) }
    return .integer(try power(a, b))
  }

  /// What stays whole whatever the operands; nil for a power, which may not.
  @inline(__always)
  static func whole(
    _ operation: Operation, _ a: Int64, _ b: Int64
  ) throws(EvaluationProblem) -> Int64? {
    let result: (partialValue: Int64, overflow: Bool)
    switch operation {
    case .add: result = a.addingReportingOverflow(b)
    case .subtract: result = a.subtractingReportingOverflow(b)
    case .multiply: result = a.multipliedReportingOverflow(by: b)
    case .divide:
      guard b != 0 else { throw .divisionByZero }
      result = a.dividedReportingOverflow(by: b)
    case .modulus:
      guard b != 0 else { throw .divisionByZero }
      return b == -1 ? 0 : a % b
    case .power: return nil
    }
    guard !result.overflow else { throw .overflow }
    return result.partialValue
  }

  private static func power(_ base: Int64, _ exponent: Int64) throws(EvaluationProblem) -> Int64 {
    switch base {
    case 0: return exponent == 0 ? 1 : 0
    case 1: return 1
    case -1: return exponent & 1 == 0 ? 1 : -1
    default: break
    }
    guard exponent < 64 else { throw .overflow }
    var result: Int64 = 1
    for _ in 0..<exponent {
      let (product, overflows) = result.multipliedReportingOverflow(by: base)
      guard !overflows else { throw .overflow }
      result = product
    }
    return result
  }

  @inline(__always)
  static func real(
    _ operation: Operation, _ a: Double, _ b: Double
  ) throws(EvaluationProblem) -> Double {
    let result: Double
    switch operation {
    case .add: result = a + b
    case .subtract: result = a - b
    case .multiply: result = a * b
    case .divide:
      guard b != 0 else { throw .divisionByZero }
      result = a / b
    case .modulus:
      guard b != 0 else { throw .divisionByZero }
      result = a.truncatingRemainder(dividingBy: b)
    case .power:
      guard a != 0 || b >= 0 else { throw .divisionByZero }
      result = RealFunctions.power(a, b)
    }
    guard result.isFinite else { throw .overflow }
    return result
  }

  static func decimal(
    _ operation: Operation, _ a: DecimalNumber, _ b: DecimalNumber
  ) throws(EvaluationProblem) -> DecimalNumber {
    let result: DecimalNumber?
    switch operation {
    case .add: result = a.adding(b)
    case .subtract: result = a.subtracting(b)
    case .multiply: result = a.multiplied(by: b)
    case .divide:
      guard b != .zero else { throw .divisionByZero }
      result = a.divided(by: b)
    case .modulus:
      guard b != .zero else { throw .divisionByZero }
      result = a.remainder(dividingBy: b)
    case .power:
      guard let exponent = b.integral, exponent >= 0, exponent <= 10_000 else {
        throw .wrongKind(found: "another number", needed: "a whole exponent from 0 to 10000")
      }
      // From the highest bit down, each product rounded.
      var power: DecimalNumber? = DecimalNumber(1)
      for bit in stride(from: 13, through: 0, by: -1) {
        power = power.flatMap { $0.multiplied(by: $0) }
        if exponent >> bit & 1 == 1 { power = power.flatMap { $0.multiplied(by: a) } }
      }
      result = power
    }
    guard let result else { throw .overflow }
    return result
  }

  // MARK: - Conversion

  static func double(_ value: ExpressionValue) -> Double {
    switch value {
    case .boolean(let value): value ? 1 : 0
    case .integer(let value): Double(value)
    case .real(let value): value
    case .decimal(let value): value.double
    default: .nan
    }
  }

  static func decimal(_ value: ExpressionValue) -> DecimalNumber? {
    switch value {
    case .boolean(let value): DecimalNumber(value ? 1 : 0)
    case .integer(let value): DecimalNumber(value)
    case .real(let value): DecimalNumber(real: value)
    case .decimal(let value): value
    default: nil
    }
  }

  static func isNumber(_ value: ExpressionValue) -> Bool {
    switch value {
    case .boolean, .integer, .real, .decimal: true
    default: false
    }
  }

  /// Shortest text that reads back, a whole number without a point: `-[NSNumber stringValue]`.
  static func text(_ value: ExpressionValue) -> String? {
    switch value {
    case .boolean(let value): return value ? "1" : "0"
    case .integer(let value): return String(value)
    case .decimal(let value): return value.description
    case .real(let value):
      // Swift turns to exponents at 2^53 already; sixteen digits are still the number itself.
      if abs(value) >= 0x1p53, abs(value) < 1e16 { return String(Int64(value)) }
      let text = value.description
      return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    default: return nil
    }
  }

  // MARK: - Order

  /// −1, 0 or 1 for two numbers; nil where one is none.
  static func order(_ a: ExpressionValue, _ b: ExpressionValue) -> Int? {
    switch (a, b) {
    case (.integer(let x), .integer(let y)): x == y ? 0 : x < y ? -1 : 1
    case (.real(let x), .real(let y)): x == y ? 0 : x < y ? -1 : 1
    case (.integer(let x), .real(let y)): order(x, y)
    case (.real(let x), .integer(let y)): -order(y, x)
    case (.boolean(let x), _): isNumber(b) ? order(.integer(x ? 1 : 0), b) : nil
    case (_, .boolean(let y)): isNumber(a) ? order(a, .integer(y ? 1 : 0)) : nil
    case (.decimal, _), (_, .decimal): decimalOrder(a, b)
    default: nil
    }
  }

  private static func decimalOrder(_ a: ExpressionValue, _ b: ExpressionValue) -> Int? {
    guard isNumber(a), isNumber(b) else { return nil }
    if let x = decimal(a), let y = decimal(b) { return x.order(to: y) }
    let (x, y) = (double(a), double(b))
    return x == y ? 0 : x < y ? -1 : 1
  }

  /// Exact, although most integers beyond 2^53 are not doubles.
  static func order(_ a: Int64, _ b: Double) -> Int {
    // What is not a number comes after every number.
    if b.isNaN { return -1 }
    if b >= 0x1p63 { return -1 }
    if b < -0x1p63 { return 1 }
    let whole = b.rounded(.towardZero)
    let integer = Int64(whole)
    if a != integer { return a < integer ? -1 : 1 }
    return b == whole ? 0 : b > whole ? -1 : 1
  }
}
