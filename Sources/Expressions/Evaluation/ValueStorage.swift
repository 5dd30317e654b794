import GodwitObjectModel
import GodwitSQLite

// Between values and columns. Source: `core-data-sqlite-format.md` §5.
extension ExpressionValue {
  /// What a column of an attribute holds.
  ///
  /// A transformable's bytes stay bytes, and so do those of a binary attribute; the marker of
  /// external storage is the caller's.
  package init(
    stored value: SQLiteValue, as type: AttributeType
  ) throws(EvaluationProblem) {
    switch (type, value) {
    case (_, .null): self = .null
    case (.boolean, .integer(let integer)): self = .boolean(integer != 0)
    case (.integer16, .integer(let integer)), (.integer32, .integer(let integer)),
      (.integer64, .integer(let integer)):
      self = .integer(integer)
    case (.decimal, .integer(let integer)): self = .decimal(DecimalNumber(integer))
    case (.decimal, .real(let real)):
      guard let decimal = DecimalNumber(real: real) else { throw .unexpectedStorage(type) }
      self = .decimal(decimal)
    case (.double, .real(let real)), (.float, .real(let real)):
      guard real.isFinite else { throw .unexpectedStorage(type) }
      self = .real(real)
    case (.double, .integer(let integer)), (.float, .integer(let integer)):
      self = .real(Double(integer))
    case (.date, .real(let seconds)):
      guard seconds.isFinite else { throw .unexpectedStorage(type) }
      self = .date(seconds)
    case (.date, .integer(let seconds)): self = .date(Double(seconds))
    case (.string, .text(let text)): self = .string(text)
    case (.uri, .text(let text)): self = .url(text)
    case (.binary, .blob(let bytes)), (.transformable, .blob(let bytes)): self = .data(bytes)
    case (.uuid, .blob(let bytes)):
      guard let uuid = UUIDBytes(bytes) else { throw .unexpectedStorage(type) }
      self = .uuid(uuid)
    default: throw .unexpectedStorage(type)
    }
  }

  /// The same for a value of a row at hand, which is copied. A text that is not UTF-8 has no value:
  /// what could be made of it would lose some of it.
  ///
  /// - Throws: ``EvaluationProblem/unexpectedStorage(_:)``.
  package init(
    stored value: borrowing RawValue, as type: AttributeType
  ) throws(EvaluationProblem) {
    guard let value = SQLiteValue(exactly: copy value) else { throw .unexpectedStorage(type) }
    try self.init(stored: value, as: type)
  }

  /// The value as an attribute of the type takes it.
  ///
  /// Numbers become numbers of another type: cut toward zero for an integer, a Boolean by being
  /// other than 0. What does not fit is an error, and nothing else is converted automatically.
  /// Source: `core-data-migration.md` §4.5 ("Assignment coercion").
  package func assigned(
    to attribute: AttributeDescription
  ) throws(EvaluationProblem) -> ExpressionValue {
    guard attribute.type == .composite, case .dictionary(let pairs) = self else {
      return try assigned(to: attribute.type)
    }
    let elements = attribute.compositeElements ?? []
    var result: [String: ExpressionValue] = [:]
    for element in elements {
      result[element.name] = try (pairs[element.name] ?? .null).assigned(to: element)
    }
    for key in pairs.keys where result[key] == nil {
      throw .unknownKey(owner: "the composite attribute \(attribute.name)", key: key)
    }
    return .dictionary(result)
  }

  /// The same for an attribute of which only the type is known. A composite takes nothing but nil.
  ///
  /// - Throws: ``EvaluationProblem/unacceptable(found:type:)`` or
  ///   ``EvaluationProblem/outOfRange(_:isTooLarge:)``.
  package func assigned(to type: AttributeType) throws(EvaluationProblem) -> ExpressionValue {
    // What most values come to, at once.
    switch (self, type) {
    case (.string, .string), (.integer, .integer64), (.boolean, .boolean), (.data, .binary):
      return self
    case (.integer(let number), .integer16) where Int16(exactly: number) != nil: return self
    case (.integer(let number), .integer32) where Int32(exactly: number) != nil: return self
    case (.date(let seconds), .date) where seconds.isFinite: return self
    default: break
    }
    guard let valueKind = ValueKind(self) else { return .null }
    guard type != .composite, valueKind.isAssignable(to: type) else {
      throw .unacceptable(found: kind, type: type)
    }
    // No store holds them: SQLite makes NULL of what is not a number.
    switch self {
    case .real(let value), .date(let value):
      guard value.isFinite else { throw .beyond(type, value) }
    default: break
    }
    switch type {
    case .integer16: return try integer(type, Int64(Int16.min)...Int64(Int16.max))
    case .integer32: return try integer(type, Int64(Int32.min)...Int64(Int32.max))
    case .integer64: return try integer(type, .min ... .max)
    case .boolean: return .boolean(Number.order(self, .integer(0)) != 0)
    case .double: return .real(Number.double(self))
    case .float:
      let real = Number.double(self)
      let narrow = Double(Float(real))
      guard narrow.isFinite else { throw .beyond(type, real) }
      return .real(narrow)
    case .decimal:
      guard let decimal = Number.decimal(self) else { throw .beyond(type, Number.double(self)) }
      return .decimal(decimal)
    case .string, .date, .binary, .uuid, .uri, .transformable, .undefined, .objectID, .composite:
      return self
    }
  }

  private func integer(
    _ type: AttributeType, _ range: ClosedRange<Int64>
  ) throws(EvaluationProblem) -> ExpressionValue {
    guard let integer = Casting.truncated(self), range.contains(integer) else {
      throw .beyond(type, Number.double(self))
    }
    return .integer(integer)
  }

  /// What the column of an attribute holds for a value that was assigned to its type.
  ///
  /// Decimal and date columns have numeric affinity: what is whole is an integer there, but for −2^63, which
  /// SQLite leaves a real.
  ///
  /// - Returns: nil for a value that no column holds.
  package func stored() -> SQLiteValue? {
    switch self {
    case .null: return .null
    case .boolean(let value): return .integer(value ? 1 : 0)
    case .integer(let value): return .integer(value)
    case .real(let value): return .real(value)
    case .decimal(let value):
      if let integer = value.integral, integer > .min { return .integer(integer) }
      return Self.numeric(value.double)
    case .date(let seconds): return Self.numeric(seconds)
    case .string(let text), .url(let text): return .text(text)
    case .data(let bytes): return .blob(bytes)
    case .uuid(let uuid): return .blob(uuid.bytes)
    case .object, .array, .set, .orderedSet, .dictionary, .helper: return nil
    }
  }

  private static func numeric(_ value: Double) -> SQLiteValue {
    // −0.0 becomes 0, as in SQLite.
    if let integer = Int64(exactly: value), integer > .min { return .integer(integer) }
    return .real(value)
  }
}
