public import FoundationEssentials
import GodwitExpressions

/// A Swift type that an attribute of a ``StageObject`` can have.
public protocol StageValue {
  /// Converts what a store holds.
  ///
  /// - Returns: nil for a value of another kind, or a number that does not fit.
  init?(stageValue value: ExpressionValue)
  /// The value as an attribute is set to it.
  var stageValue: ExpressionValue { get }
}

extension StageObject {
  /// An attribute's value as a Swift type: `try bird.value(String.self, forKey: "name")`.
  ///
  /// - Returns: nil for nil.
  /// - Throws: ``StagedMigrationError``, also for a value of another type (1550).
  public func value<Value: StageValue>(_ type: Value.Type, forKey key: String) throws -> Value? {
    let found = try value(forKey: key)
    if found.isNull { return nil }
    guard let value = Value(stageValue: found) else {
      throw StagedMigrationError.invalidValue(
        entity: entity.rawValue, property: key, code: 1550,
        message:
          "the value is not of type \(Value.self) (Z_PK \(primaryKey)). Ask for its own type.")
    }
    return value
  }

  /// Sets an attribute to a Swift value. See ``setValue(_:forKey:)``.
  public func setValue<Value: StageValue>(_ value: Value?, forKey key: String) throws {
    try setValue(value?.stageValue ?? .null, forKey: key)
  }
}

extension StageValue where Self: FixedWidthInteger {
  /// An integer that fits, or a Boolean as 1 or 0.
  public init?(stageValue value: ExpressionValue) {
    switch value {
    case .integer(let number): self.init(exactly: number)
    case .boolean(let value): self = value ? 1 : 0
    default: return nil
    }
  }
  /// An integer beyond 64 signed bits becomes a decimal, which no integer attribute takes.
  public var stageValue: ExpressionValue {
    if let number = Int64(exactly: self) { return .integer(number) }
    return DecimalNumber(text: "\(self)").map { .decimal($0) } ?? .null
  }
}

extension Int: StageValue {}
extension Int16: StageValue {}
extension Int32: StageValue {}
extension Int64: StageValue {}

extension Bool: StageValue {
  /// A Boolean. An integer is not one.
  public init?(stageValue value: ExpressionValue) {
    guard case .boolean(let value) = value else { return nil }
    self = value
  }
  /// A Boolean.
  public var stageValue: ExpressionValue { .boolean(self) }
}

extension Double: StageValue {
  /// A number: the nearest one where the type cannot hold it exactly.
  public init?(stageValue value: ExpressionValue) {
    switch value {
    case .real(let number): self = number
    case .integer(let number): self = Double(number)
    case .decimal(let number): self = number.double
    default: return nil
    }
  }
  /// A floating-point number of 64 bits.
  public var stageValue: ExpressionValue { .real(self) }
}

extension Decimal: StageValue {
  /// A number: a floating-point one by its shortest decimal text.
  public init?(stageValue value: ExpressionValue) {
    switch value {
    case .decimal(let number): self.init(string: number.description)
    case .integer(let number): self.init(number)
    case .real(let number): self.init(string: number.description)
    default: return nil
    }
  }
  /// A decimal number, rounded to 38 digits. Where it is too large, or not a number: a value that no
  /// attribute takes, so that nothing is emptied in silence.
  public var stageValue: ExpressionValue {
    DecimalNumber(text: description).map { .decimal($0) } ?? .real(isNaN ? .nan : .infinity)
  }
}

extension String: StageValue {
  /// A string, or the text of a URI.
  public init?(stageValue value: ExpressionValue) {
    switch value {
    case .string(let text), .url(let text): self = text
    default: return nil
    }
  }
  /// A string.
  public var stageValue: ExpressionValue { .string(self) }
}

extension Date: StageValue {
  /// A date.
  public init?(stageValue value: ExpressionValue) {
    guard case .date(let seconds) = value else { return nil }
    self.init(timeIntervalSinceReferenceDate: seconds)
  }
  /// A date, in seconds since 2001-01-01 00:00:00 UTC.
  public var stageValue: ExpressionValue { .date(timeIntervalSinceReferenceDate) }
}

extension Data: StageValue {
  /// Bytes.
  public init?(stageValue value: ExpressionValue) {
    guard case .data(let bytes) = value else { return nil }
    self.init(bytes)
  }
  /// Bytes.
  public var stageValue: ExpressionValue { .data([UInt8](self)) }
}

extension UUID: StageValue {
  /// A UUID.
  public init?(stageValue value: ExpressionValue) {
    guard case .uuid(let bytes) = value else { return nil }
    self.init(uuidString: bytes.text)
  }
  /// A UUID.
  public var stageValue: ExpressionValue {
    withUnsafeBytes(of: uuid) { UUIDBytes($0) }.map { .uuid($0) } ?? .null
  }
}

extension URL: StageValue {
  /// A URI that Foundation can read, and as it stands: what would have to be encoded would be another one.
  public init?(stageValue value: ExpressionValue) {
    guard case .url(let text) = value,
      let url = URL(string: text, encodingInvalidCharacters: false), url.absoluteString == text
    else { return nil }
    self = url
  }
  /// The absolute text of the URL.
  public var stageValue: ExpressionValue { .url(absoluteString) }
}
