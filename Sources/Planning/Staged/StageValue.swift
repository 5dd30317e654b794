public import FoundationEssentials
import GodwitMapping

/// A Swift type that an attribute of a ``StageObject`` can have.
public protocol StageValue {
  /// - Returns: nil for a value of another kind, or a number that does not fit.
  init?(stageValue value: ExpressionValue)
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
        message: "the value is no \(Value.self). Ask for its own type.")
    }
    return value
  }

  /// Sets an attribute to a Swift value. See ``setValue(_:forKey:)``.
  public func setValue<Value: StageValue>(_ value: Value?, forKey key: String) throws {
    try setValue(value?.stageValue ?? .null, forKey: key)
  }
}

extension StageValue where Self: FixedWidthInteger {
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
  public init?(stageValue value: ExpressionValue) {
    guard case .boolean(let value) = value else { return nil }
    self = value
  }
  public var stageValue: ExpressionValue { .boolean(self) }
}

extension Double: StageValue {
  public init?(stageValue value: ExpressionValue) {
    switch value {
    case .real(let number): self = number
    case .integer(let number): self = Double(number)
    case .decimal(let number): self = number.double
    default: return nil
    }
  }
  public var stageValue: ExpressionValue { .real(self) }
}

extension Decimal: StageValue {
  public init?(stageValue value: ExpressionValue) {
    switch value {
    case .decimal(let number): self.init(string: number.description)
    case .integer(let number): self.init(number)
    case .real(let number): self.init(string: number.description)
    default: return nil
    }
  }
  public var stageValue: ExpressionValue {
    DecimalNumber(text: description).map { .decimal($0) } ?? .null
  }
}

extension String: StageValue {
  public init?(stageValue value: ExpressionValue) {
    switch value {
    case .string(let text), .url(let text): self = text
    default: return nil
    }
  }
  public var stageValue: ExpressionValue { .string(self) }
}

extension Date: StageValue {
  public init?(stageValue value: ExpressionValue) {
    guard case .date(let seconds) = value else { return nil }
    self.init(timeIntervalSinceReferenceDate: seconds)
  }
  public var stageValue: ExpressionValue { .date(timeIntervalSinceReferenceDate) }
}

extension Data: StageValue {
  public init?(stageValue value: ExpressionValue) {
    guard case .data(let bytes) = value else { return nil }
    self.init(bytes)
  }
  public var stageValue: ExpressionValue { .data([UInt8](self)) }
}

extension UUID: StageValue {
  public init?(stageValue value: ExpressionValue) {
    guard case .uuid(let bytes) = value else { return nil }
    self.init(uuidString: bytes.text)
  }
  public var stageValue: ExpressionValue {
    withUnsafeBytes(of: uuid) { UUIDBytes($0) }.map { .uuid($0) } ?? .null
  }
}

extension URL: StageValue {
  public init?(stageValue value: ExpressionValue) {
    guard case .url(let text) = value else { return nil }
    self.init(string: text)
  }
  public var stageValue: ExpressionValue { .url(absoluteString) }
}
