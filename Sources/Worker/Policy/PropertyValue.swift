public import Foundation
import GodwitExpressions
import GodwitObjectModel

/// A type that a property of a ``ManagedObject`` can have.
public protocol PropertyValue {
  /// Converts what a store holds.
  ///
  /// - Returns: nil for a value of another kind, or a number that does not fit.
  init?(_ value: ExpressionValue, in engine: PolicyEngine)
  /// The value as a property is set to it.
  var expressionValue: ExpressionValue { get }
}

extension Bool: PropertyValue {
  /// A Boolean, or an integer: true unless it is 0.
  @inlinable public init?(_ value: ExpressionValue, in engine: PolicyEngine) {
    switch value {
    case .boolean(let value): self = value
    case .integer(let number): self = number != 0
    default: return nil
    }
  }
  /// A Boolean.
  @inlinable public var expressionValue: ExpressionValue { .boolean(self) }
}

extension PropertyValue where Self: FixedWidthInteger {
  /// An integer that fits, or a Boolean as 1 or 0.
  @inlinable public init?(_ value: ExpressionValue, in engine: PolicyEngine) {
    switch value {
    case .integer(let number): self.init(exactly: number)
    case .boolean(let value): self = value ? 1 : 0
    default: return nil
    }
  }
  /// Integers beyond 64 signed bits stay what they are, and fit no attribute.
  @inlinable public var expressionValue: ExpressionValue {
    if let number = Int64(exactly: self) { return .integer(number) }
    return DecimalNumber(text: "\(self)").map { .decimal($0) } ?? .null
  }
}

extension Int: PropertyValue {}
extension Int16: PropertyValue {}
extension Int32: PropertyValue {}
extension Int64: PropertyValue {}

extension PropertyValue where Self: BinaryFloatingPoint {
  /// A number: the nearest one where the type cannot hold it exactly.
  @inlinable public init?(_ value: ExpressionValue, in engine: PolicyEngine) {
    switch value {
    case .real(let number): self.init(number)
    case .integer(let number): self.init(number)
    case .decimal(let number): self.init(number.double)
    default: return nil
    }
  }
  /// A floating-point number of 64 bits.
  @inlinable public var expressionValue: ExpressionValue { .real(Double(self)) }
}

extension Double: PropertyValue {}
extension Float: PropertyValue {}

extension Decimal: PropertyValue {
  /// A number: a floating-point one by its shortest decimal text.
  public init?(_ value: ExpressionValue, in engine: PolicyEngine) {
    switch value {
    case .decimal(let number): self.init(string: number.description)
    case .integer(let number): self.init(number)
    case .real(let number): self.init(string: number.description)
    default: return nil
    }
  }
  /// A decimal number, rounded to 38 digits. Where it is too large, or not a number: a value that no
  /// attribute takes, so that nothing is emptied in silence.
  public var expressionValue: ExpressionValue {
    DecimalNumber(text: description).map { .decimal($0) } ?? .real(isNaN ? .nan : .infinity)
  }
}

extension String: PropertyValue {
  /// A string. A URI is not one.
  @inlinable public init?(_ value: ExpressionValue, in engine: PolicyEngine) {
    guard case .string(let text) = value else { return nil }
    self = text
  }
  /// A string.
  @inlinable public var expressionValue: ExpressionValue { .string(self) }
}

extension Date: PropertyValue {
  /// A date.
  @inlinable public init?(_ value: ExpressionValue, in engine: PolicyEngine) {
    guard case .date(let seconds) = value else { return nil }
    self.init(timeIntervalSinceReferenceDate: seconds)
  }
  /// A date, in seconds since 2001-01-01 00:00:00 UTC.
  @inlinable public var expressionValue: ExpressionValue { .date(timeIntervalSinceReferenceDate) }
}

extension Data: PropertyValue {
  /// Bytes.
  public init?(_ value: ExpressionValue, in engine: PolicyEngine) {
    guard case .data(let bytes) = value else { return nil }
    self.init(bytes)
  }
  /// Bytes.
  public var expressionValue: ExpressionValue { .data([UInt8](self)) }
}

extension UUID: PropertyValue {
  /// A UUID.
  public init?(_ value: ExpressionValue, in engine: PolicyEngine) {
    guard case .uuid(let bytes) = value else { return nil }
    self.init(uuidString: bytes.text)
  }
  /// A UUID.
  public var expressionValue: ExpressionValue {
    withUnsafeBytes(of: uuid) { UUIDBytes($0) }.map { .uuid($0) } ?? .null
  }
}

extension URL: PropertyValue {
  /// A URI that Foundation can read, and as it stands: what would have to be encoded would be another one.
  public init?(_ value: ExpressionValue, in engine: PolicyEngine) {
    guard case .url(let text) = value,
      let url = URL(string: text, encodingInvalidCharacters: false), url.absoluteString == text
    else { return nil }
    self = url
  }
  /// The absolute text of the URL.
  public var expressionValue: ExpressionValue { .url(absoluteString) }
}

extension ManagedObject: PropertyValue {
  /// An object of either store.
  public init?(_ value: ExpressionValue, in engine: PolicyEngine) {
    guard case .object(let reference) = value else { return nil }
    self.init(engine, reference)
  }
  /// A reference to the object.
  public var expressionValue: ExpressionValue { .object(usedReference) }
}

extension Set: PropertyValue where Element == ManagedObject {
  /// The members of a collection of objects. Nil where one of them is not an object.
  public init?(_ value: ExpressionValue, in engine: PolicyEngine) {
    guard let members = [ManagedObject](value, in: engine) else { return nil }
    self.init(members)
  }
  /// In the order of keys, not of hashes: every run gives the same.
  public var expressionValue: ExpressionValue {
    .set(map(\.usedReference).sorted { $0.precedes($1) }.map { .object($0) })
  }
}

extension Array: PropertyValue where Element == ManagedObject {
  /// The members of a collection of objects, in its order. Nil where one of them is not an object.
  public init?(_ value: ExpressionValue, in engine: PolicyEngine) {
    guard let members = value.members else { return nil }
    self = []
    for member in members {
      guard case .object(let reference) = member else { return nil }
      append(ManagedObject(engine, reference))
    }
  }
  /// An ordered set: an object that occurs again is left out.
  public var expressionValue: ExpressionValue { .orderedSet(of: map { .object($0.usedReference) }) }
}

extension ObjectReference {
  /// A fixed order of objects: by entity, then by key.
  func precedes(_ other: ObjectReference) -> Bool {
    entity == other.entity ? primaryKey < other.primaryKey : entity < other.entity
  }
}

// MARK: - Without types

extension ExpressionValue {
  /// The value as a policy's code has it; nil for null.
  ///
  /// - Parameter attribute: Whose value it is: a number of a Float attribute is a `Float`, with its text.
  func native(in engine: PolicyEngine, of attribute: AttributeDescription? = nil) -> Any? {
    switch self {
    case .null, .helper: nil
    // What Core Data has, too: `as? Int32` finds the number, which it would not in an Int.
    case .boolean(let value): NSNumber(value: value)
    case .integer(let number): NSNumber(value: number)
    case .real(let number):
      attribute?.type == .float ? NSNumber(value: Float(number)) : NSNumber(value: number)
    case .decimal: Decimal(self, in: engine)
    case .string(let text): text
    case .date: Date(self, in: engine)
    case .data(let bytes): Data(bytes)
    case .uuid: UUID(self, in: engine)
    case .url: URL(self, in: engine)
    case .object(let reference): ManagedObject(engine, reference)
    case .set:
      Set<ManagedObject>(self, in: engine) ?? members?.map { $0.native(in: engine) } as Any
    case .array(let members), .orderedSet(let members):
      [ManagedObject](self, in: engine) ?? members.map { $0.native(in: engine) } as Any
    case .dictionary(let pairs):
      pairs.reduce(into: [String: Any]()) { found, pair in
        found[pair.key] = pair.value.native(in: engine, of: attribute?.element(at: [pair.key]))
      }
    }
  }

  /// A value of a policy's code.
  ///
  /// - Throws: ``PolicyError/unknownValue(type:)`` for a type that no property has.
  init(native value: Any) throws {
    switch value {
    case let value as any PropertyValue: self = value.expressionValue
    case is NSNull: self = .null
    case let text as Substring: self = .string(String(text))
    case let number as any BinaryInteger: self = .integer(try Self.integer(number))
    case let number as NSNumber: self = try Self.number(number)
    case let text as NSString: self = .string(text as String)
    case let pairs as [String: Any]: self = .dictionary(try pairs.mapValues(Self.init(native:)))
    case let members as [Any]: self = .array(try members.map(Self.init(native:)))
    case let optional as any OptionalValue:
      self = try optional.wrapped.map(Self.init(native:)) ?? .null
    default: throw PolicyError.unknownValue(type: "\(type(of: value))")
    }
  }

  private static func integer(_ number: any BinaryInteger) throws -> Int64 {
    guard let found = Int64(exactly: number) else {
      throw PolicyError.unknownValue(type: "\(type(of: number)) beyond 64 signed bits")
    }
    return found
  }

  private static func number(_ number: NSNumber) throws -> ExpressionValue {
    if let decimal = number as? NSDecimalNumber { return decimal.decimalValue.expressionValue }
    switch UInt8(bitPattern: number.objCType.pointee) {
    // Foundation's truth values and its numbers of 8 bits say the same of themselves.
    case UInt8(ascii: "c") where (0...1).contains(number.intValue), UInt8(ascii: "B"):
      return .boolean(number.boolValue)
    case UInt8(ascii: "d"), UInt8(ascii: "f"): return .real(number.doubleValue)
    case UInt8(ascii: "Q"): return .integer(try integer(number.uint64Value))
    default: return .integer(number.int64Value)
    }
  }
}

/// An optional that hides in an `Any`.
private protocol OptionalValue {
  var wrapped: Any? { get }
}

extension Optional: OptionalValue {
  var wrapped: Any? { self }
}
