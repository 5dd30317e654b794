import GodwitObjectModel
import GodwitSQLite

/// An expression over the columns of one row, made ready once: the fast tier.
///
/// Evaluating allocates nothing. What is computed agrees with ``Evaluator`` on every row, errors
/// included. A text that is not UTF-8 and is only copied keeps its bytes here, and is an error there.
/// One thread at a time: the registers belong to the instance.
///
/// It takes constants, `$source.attribute`, `$source.toOne.attribute`, elements of composite attributes
/// in their place, arithmetic, `CAST` between
/// numbers and dates, `TERNARY` with comparisons of those, and the case and length of texts;
/// attributes of other types are copied or compared with nil. Decimals are reckoned with, and neither
/// compared nor cast.
package final class CompiledExpression {
  /// Where the row holds an attribute, and of which type it is.
  package struct Column: Sendable, Equatable {
    /// The column's index in the row, from 0.
    package var place: Int
    /// The attribute's type.
    package var type: AttributeType

    /// Names a column of a row.
    package init(place: Int, type: AttributeType) {
      self.place = place
      self.type = type
    }
  }

  private let code: UnsafeMutableBufferPointer<CompiledInstruction>
  private let registers: UnsafeMutablePointer<RawValue>
  private let result: Int
  /// Texts of constants; registers point into them.
  private let texts: [UnsafeMutableRawBufferPointer]
  /// One for each instruction that changes a text.
  private let changes: [CompiledText]

  /// Compiles an expression for an attribute.
  ///
  /// - Parameters:
  ///   - type: The type of the attribute that the value is assigned to.
  ///   - column: Finds an attribute of the source object, own or inherited.
  ///   - related: Finds an attribute of the object that a to-one relationship leads to: a column that
  ///     is NULL where there is no such object.
  /// - Returns: nil when the expression needs the general tier.
  package convenience init?(
    _ expression: ValueExpression, for type: AttributeType, column: @escaping (String) -> Column?,
    related: @escaping (_ relationship: String, _ attribute: String) -> Column? = { _, _ in nil }
  ) {
    var builder = CompiledExpressionBuilder(
      column: column, related: related, evaluatesObject: false)
    guard let value = builder.value(expression), let end = builder.assign(value, to: type) else {
      return nil
    }
    self.init(builder, result: end)
  }

  /// A filter of source objects: bare key paths are theirs. The value is 1 or 0.
  package convenience init?(
    filter: PredicateExpression, column: @escaping (String) -> Column?
  ) {
    var builder = CompiledExpressionBuilder(
      column: column, related: { _, _ in nil }, evaluatesObject: true)
    guard let value = builder.predicate(filter) else { return nil }
    self.init(builder, result: value)
  }

  private init?(_ builder: CompiledExpressionBuilder, result: CompiledRegister) {
    guard !builder.isTooLarge else { return nil }
    let constants = builder.constants.count
    code = .allocate(capacity: builder.code.count)
    for (place, instruction) in builder.code.enumerated() {
      code.initializeElement(at: place, to: instruction.placed(behind: constants))
    }
    registers = .allocate(capacity: constants + builder.highest + 1)
    registers.initialize(repeating: .null, count: constants + builder.highest + 1)
    var texts: [UnsafeMutableRawBufferPointer] = []
    for (place, constant) in builder.constants.enumerated() {
      switch constant {
      case .value(let value): registers[place] = value
      case .text(let text):
        let bytes = UnsafeMutableRawBufferPointer.allocate(
          byteCount: max(1, text.utf8.count), alignment: 1)
        bytes.copyBytes(from: text.utf8)
        registers[place] = .text(UnsafeRawPointer(bytes.baseAddress), count: text.utf8.count)
        texts.append(bytes)
      }
    }
    self.texts = texts
    changes = builder.textOperations.map(CompiledText.init)
    self.result = result.place(behind: constants)
  }

  deinit {
    code.deallocate()
    registers.deallocate()
    for text in texts { text.deallocate() }
  }

  /// The value as the attribute's column holds it. Texts and data point into the row, or into
  /// this instance, until the next row.
  package func evaluate(
    _ row: UnsafePointer<RawValue>
  ) throws(EvaluationProblem) -> RawValue {
    var place = 0
    let end = code.count
    while place < end {
      let instruction = code[place]
      place += 1
      let a = registers[Int(instruction.a)]
      switch instruction.code {
      case .load: registers[Int(instruction.target)] = try load(instruction, row)
      case .move: registers[Int(instruction.target)] = a
      case .jump: place = Int(instruction.place)
      case .jumpUnless: if a.bits == 0 { place = Int(instruction.place) }
      case .not: registers[Int(instruction.target)] = .integer(a.bits == 0 ? 1 : 0)
      case .date: registers[Int(instruction.target)] = CompiledArithmetic.real(a)
      case .arithmetic:
        registers[Int(instruction.target)] = try CompiledArithmetic.apply(
          instruction.operation, a, registers[Int(instruction.b)])
      case .decimal:
        registers[Int(instruction.target)] = try CompiledDecimal.apply(
          instruction.operation, a, registers[Int(instruction.b)])
      case .compare:
        registers[Int(instruction.target)] = .integer(
          CompiledArithmetic.compare(instruction.comparison, a, registers[Int(instruction.b)])
            ? 1 : 0)
      case .text:
        registers[Int(instruction.target)] = try changes[Int(instruction.place)].apply(a)
      case .assign:
        registers[Int(instruction.target)] = try CompiledArithmetic.assign(
          a, to: instruction.type)
      }
    }
    return registers[result]
  }

  /// Whether a filter takes the row.
  package func holds(_ row: UnsafePointer<RawValue>) throws(EvaluationProblem) -> Bool {
    try evaluate(row).bits != 0
  }

  @inline(__always)
  private func load(
    _ instruction: CompiledInstruction, _ row: UnsafePointer<RawValue>
  ) throws(EvaluationProblem) -> RawValue {
    let value = row[Int(instruction.place)]
    if value.kind == .null { return value }
    switch instruction.type {
    case .integer16, .integer32, .integer64: if value.kind == .integer { return value }
    case .boolean: if value.kind == .integer { return .integer(value.bits == 0 ? 0 : 1) }
    case .double, .float, .date:
      if value.kind == .integer { return .real(Double(value.bits)) }
      if value.kind == .real, value.real.isFinite { return value }
    case .string, .uri: if value.kind == .text { return value }
    case .binary, .transformable: if value.kind == .blob { return value }
    case .uuid: if value.kind == .blob, value.count == 16 { return value }
    case .decimal:
      if value.kind == .integer { return value }
      if value.kind == .real, let decimal = Self.decimal(value) { return decimal }
    }
    throw .unexpectedStorage(instruction.type.attributeType)
  }

  /// A decimal column's real as it is written again: whole ones are integers.
  private static func decimal(_ value: RawValue) -> RawValue? {
    let magnitude = abs(value.real)
    if magnitude == 0 || (magnitude > 1e-90 && magnitude < 1e120) {
      return CompiledArithmetic.numeric(value.real)
    }
    // The edges of the range, once in a lifetime.
    guard let decimal = DecimalNumber(real: value.real) else { return nil }
    switch ExpressionValue.decimal(decimal).stored() {
    case .integer(let integer): return .integer(integer)
    case .real(let real): return .real(real)
    default: return nil
    }
  }
}

/// The attribute types that a column can have, in one byte: hundreds of their `NSAttributeType`.
enum CompiledType: UInt8, BitwiseCopyable {
  case integer16 = 1, integer32, integer64, decimal, double, float, string, boolean, date, binary
  case uuid, uri
  case transformable = 18

  init?(_ type: AttributeType) {
    self.init(rawValue: UInt8(truncatingIfNeeded: type.rawValue / 100))
  }

  var attributeType: AttributeType { AttributeType(rawValue: Int(rawValue) * 100) ?? .undefined }
}

enum CompiledComparison: UInt8, BitwiseCopyable {
  case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual
}

/// One step of a program.
struct CompiledInstruction: BitwiseCopyable {
  enum Code: UInt8, BitwiseCopyable {
    /// target ← column `place`, checked against the type.
    case load
    /// target ← a
    case move
    /// To the instruction `place`, always or if a is 0.
    case jump, jumpUnless
    /// target ← a is 0
    case not
    /// target ← a as a real: seconds.
    case date
    /// target ← a, the operation or comparison, b; the second in decimal numbers
    case arithmetic, decimal, compare
    /// target ← the text a, changed as the operation number `place` does.
    case text
    /// target ← a as a column of the type holds it.
    case assign
  }

  var code: Code
  var type = CompiledType.integer64
  var operation = Number.Operation.add
  var comparison = CompiledComparison.equal
  var target: UInt16 = 0
  var a: UInt16 = 0
  var b: UInt16 = 0
  var place: Int32 = 0
}

/// The arithmetic of ``Number`` over raw integers and reals.
enum CompiledArithmetic {
  @inline(__always)
  static func real(_ value: RawValue) -> RawValue {
    value.kind == .integer ? .real(Double(value.bits)) : value
  }

  @inline(__always)
  static func apply(
    _ operation: Number.Operation, _ a: RawValue, _ b: RawValue
  ) throws(EvaluationProblem) -> RawValue {
    if a.kind == .null || b.kind == .null { return .null }
    guard a.kind == .integer, b.kind == .integer else {
      return .real(try Number.real(operation, real(a).real, real(b).real))
    }
    if let whole = try Number.whole(operation, a.bits, b.bits) { return .integer(whole) }
    // A power may leave the integers.
    return switch try Number.integer(operation, a.bits, b.bits) {
    case .integer(let integer): .integer(integer)
    case let other: .real(Number.double(other))
    }
  }

  @inline(__always)
  static func compare(
    _ comparison: CompiledComparison, _ a: RawValue, _ b: RawValue
  ) -> Bool {
    if a.kind == .null || b.kind == .null {
      let areEqual = a.kind == b.kind
      return comparison == .equal ? areEqual : comparison == .notEqual ? !areEqual : false
    }
    let order =
      switch (a.kind, b.kind) {
      case (.integer, .integer): a.bits == b.bits ? 0 : a.bits < b.bits ? -1 : 1
      case (.integer, _): Number.order(a.bits, b.real)
      case (_, .integer): -Number.order(b.bits, a.real)
      default: a.real == b.real ? 0 : a.real < b.real ? -1 : 1
      }
    return switch comparison {
    case .equal: order == 0
    case .notEqual: order != 0
    case .less: order < 0
    case .lessOrEqual: order <= 0
    case .greater: order > 0
    case .greaterOrEqual: order >= 0
    }
  }

  /// A number of numeric affinity: whole ones are integers, but for −2^63.
  @inline(__always)
  static func numeric(_ value: Double) -> RawValue {
    if value > -0x1p63, value < 0x1p63 {
      let integer = Int64(value)
      if Double(integer) == value { return .integer(integer) }
    }
    return .real(value)
  }

  @inline(__always)
  static func assign(
    _ value: RawValue, to type: CompiledType
  ) throws(EvaluationProblem) -> RawValue {
    if value.kind == .null { return value }
    switch type {
    case .integer16: return try integer(value, .integer16, -0x8000, 0x7FFF)
    case .integer32: return try integer(value, .integer32, -0x8000_0000, 0x7FFF_FFFF)
    case .integer64: return try integer(value, .integer64, .min, .max)
    case .boolean:
      return .integer(value.kind == .integer ? (value.bits == 0 ? 0 : 1) : value.real == 0 ? 0 : 1)
    case .double: return real(value)
    case .float:
      let wide = real(value).real
      let narrow = Double(Float(wide))
      guard narrow.isFinite else { throw .beyond(.float, wide) }
      return .real(narrow)
    case .date: return value.kind == .real ? numeric(value.real) : value
    case .decimal: return try CompiledDecimal.assign(value)
    default: return value
    }
  }

  @inline(__always)
  private static func integer(
    _ value: RawValue, _ type: AttributeType, _ low: Int64, _ high: Int64
  ) throws(EvaluationProblem) -> RawValue {
    let result: Int64
    if value.kind == .integer {
      result = value.bits
    } else {
      let whole = value.real.rounded(.towardZero)
      guard whole >= -0x1p63, whole < 0x1p63 else { throw .beyond(type, whole) }
      result = Int64(whole)
    }
    guard result >= low, result <= high else { throw .outOfRange(type, isTooLarge: result > 0) }
    return .integer(result)
  }
}
