/// A bound of numbers, or of dates in seconds since 2001-01-01 UTC.
public struct ValidationBound: Sendable, Hashable, Codable {
  /// The number of double precision that is nearest.
  public let real: Double
  /// The bound where ``real`` is not it: an integer beyond 2^53. Nil else, so that equal bounds are equal
  /// whatever they were made of.
  public let integer: Int64?

  /// A bound of double precision.
  public init(_ real: Double) {
    self.real = real
    integer = nil
  }

  /// A bound that is an integer, exactly.
  public init(_ integer: Int64) {
    real = Double(integer)
    self.integer = Int64(exactly: real) == integer ? nil : integer
  }

  /// A bound as models write it; nil for what is no number. No value is beyond an infinite bound.
  init?(text: String) {
    if let integer = Int64(text) {
      self.init(integer)
    } else if let real = Double(text), real.isFinite {
      self.init(real)
    } else {
      return nil
    }
  }

  /// The bound as an integer; nil where it is none.
  package var whole: Int64? { integer ?? Int64(exactly: real) }
}

extension ValidationBound: ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral {
  /// A bound of double precision.
  public init(floatLiteral value: Double) { self.init(value) }
  /// A bound that is an integer, exactly.
  public init(integerLiteral value: Int64) { self.init(value) }
}

extension ValidationBound: CustomStringConvertible {
  /// As an integer where it is one.
  public var description: String { whole.map { "\($0)" } ?? "\(real)" }
}
