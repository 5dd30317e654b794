import Foundation

/// Roots, logarithms and rounding.
enum RealFunctions {
  static func power(_ base: Double, _ exponent: Double) -> Double { pow(base, exponent) }

  /// - Returns: nil for the name of another function.
  static func apply(
    _ name: String, _ value: ExpressionValue
  ) throws(EvaluationProblem) -> ExpressionValue? {
    let names = ["sqrt:", "log:", "ln:", "exp:", "floor:", "ceiling:", "abs:", "trunc:"]
    guard names.contains(name) else { return nil }
    if value.isNull { return .null }
    guard Number.isNumber(value) else {
      throw .wrongKind(found: value.kind, needed: "a number")
    }
    switch name {
    case "sqrt:": return try real(Number.double(value).squareRoot())
    case "log:": return try real(log10(Number.double(value)))
    case "ln:": return try real(log(Number.double(value)))
    case "exp:": return try real(exp(Number.double(value)))
    default: return try rounded(name, value)
    }
  }

  private static func real(_ value: Double) throws(EvaluationProblem) -> ExpressionValue {
    guard value.isFinite else { throw .overflow }
    return .real(value)
  }

  /// Each kind of number stays what it is.
  private static func rounded(
    _ name: String, _ value: ExpressionValue
  ) throws(EvaluationProblem) -> ExpressionValue {
    switch value {
    case .boolean(let value): return .integer(value ? 1 : 0)
    case .integer(let value):
      guard name == "abs:" else { return .integer(value) }
      guard value != .min else { throw .overflow }
      return .integer(abs(value))
    case .decimal(let value):
      switch name {
      case "abs:": return .decimal(value.isNegative ? -value : value)
      case "floor:": return .decimal(value.rounded(.down))
      case "ceiling:": return .decimal(value.rounded(.up))
      default: return .decimal(value.rounded(.towardZero))
      }
    case .real(let value):
      switch name {
      case "abs:": return .real(abs(value))
      case "floor:": return .real(value.rounded(.down))
      case "ceiling:": return .real(value.rounded(.up))
      default: return .real(value.rounded(.towardZero))
      }
    default: throw .wrongKind(found: value.kind, needed: "a number")
    }
  }
}
