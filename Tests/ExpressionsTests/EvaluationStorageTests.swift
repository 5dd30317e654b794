import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitExpressions

@Suite struct `A value and its column` {
  @Test(arguments: [
    (ExpressionValue.integer(40_000), AttributeType.integer32, SQLiteValue.integer(40_000)),
    (.real(2.9), .integer16, .integer(2)), (.real(-2.9), .integer16, .integer(-2)),
    (.boolean(true), .integer64, .integer(1)), (.integer(7), .boolean, .integer(1)),
    (.real(0), .boolean, .integer(0)), (.integer(3), .double, .real(3)),
    (.real(0.1), .float, .real(Double(Float(0.1)))),
    (.real(0.5), .decimal, .real(0.5)), (.real(4), .decimal, .integer(4)),
    (.date(5), .date, .integer(5)), (.date(5.5), .date, .real(5.5)),
    // A whole number of 64 bits, as its column holds it; −2^63 SQLite leaves a real.
    (.real(727_338_006_384_962_432), .decimal, .integer(727_338_006_384_962_432)),
    (.real((-0x1p63).nextUp), .decimal, .integer(.min + 1024)),
    (.real(-0x1p63), .decimal, .real(-0x1p63)), (.real(0x1p63), .decimal, .real(0x1p63)),
    (.date(-0x1p63), .date, .real(-0x1p63)), (.date(0x1p63), .date, .real(0x1p63)),
    (.null, .string, .null), (.string("é"), .string, .text("é")), (.url("a:b"), .uri, .text("a:b")),
    (.data([1]), .binary, .blob([1])), (.data([1]), .transformable, .blob([1])),
  ])
  func `agree after assignment`(
    value: ExpressionValue, type: AttributeType, stored: SQLiteValue
  ) throws {
    let assigned = try value.assigned(to: type)
    #expect(assigned.stored() == stored)
    let back = try ExpressionValue(stored: stored, as: type)
    #expect(back == assigned && back.stored() == stored)
  }

  @Test(arguments: [
    (
      ExpressionValue.integer(32_768), AttributeType.integer16,
      EvaluationProblem.outOfRange(.integer16, isTooLarge: true)
    ),
    (.integer(-32_769), .integer16, .outOfRange(.integer16, isTooLarge: false)),
    (.real(1e19), .integer64, .outOfRange(.integer64, isTooLarge: true)),
    (.real(1e39), .float, .outOfRange(.float, isTooLarge: true)),
    (.real(-1e300), .decimal, .outOfRange(.decimal, isTooLarge: false)),
    (.real(.infinity), .double, .outOfRange(.double, isTooLarge: true)),
    (.real(.nan), .double, .notANumber(.double)),
    (.real(.nan), .boolean, .notANumber(.boolean)),
    (.date(-.infinity), .date, .outOfRange(.date, isTooLarge: false)),
    (.string("1"), .integer16, .unacceptable(found: "a text", type: .integer16)),
    (.integer(1), .string, .unacceptable(found: "a number", type: .string)),
    (.integer(1), .date, .unacceptable(found: "a number", type: .date)),
    (.string("a"), .uri, .unacceptable(found: "a text", type: .uri)),
    (.array([]), .transformable, .unacceptable(found: "an array", type: .transformable)),
  ])
  func `refuse what the type does not take`(
    value: ExpressionValue, type: AttributeType, problem: EvaluationProblem
  ) {
    #expect(throws: problem) { try value.assigned(to: type) }
  }

  @Test(arguments: [
    (SQLiteValue.text("1"), AttributeType.integer16), (.blob([1]), .uuid), (.integer(1), .string),
    (.real(1), .integer64), (.blob([]), .string), (.text("x"), .binary),
    (.real(.infinity), .double),
  ])
  func `name a column that holds something else`(stored: SQLiteValue, type: AttributeType) {
    #expect(throws: EvaluationProblem.unexpectedStorage(type)) {
      try ExpressionValue(stored: stored, as: type)
    }
  }

  @Test func `take a composite apart`() throws {
    let attribute = AttributeDescription(
      traits: PropertyTraits(name: "place"), type: .composite,
      compositeElements: [
        AttributeDescription(traits: PropertyTraits(name: "x"), type: .integer16),
        AttributeDescription(traits: PropertyTraits(name: "y"), type: .double),
      ])
    let value = ExpressionValue.dictionary(["x": .real(2.5)])
    #expect(try value.assigned(to: attribute) == .dictionary(["x": .integer(2), "y": .null]))
    #expect(throws: EvaluationProblem.unknownKey(owner: "the composite attribute place", key: "z"))
    {
      try ExpressionValue.dictionary(["z": .null]).assigned(to: attribute)
    }
  }
}

/// One row with a column of each type, read by both tiers.
private struct Row {
  static let types: [(name: String, type: AttributeType)] = [
    ("i16", .integer16), ("i64", .integer64), ("flag", .boolean), ("d", .double), ("f", .float),
    ("day", .date), ("text", .string), ("money", .decimal), ("blob", .binary), ("id", .uuid),
  ]

  var values: [SQLiteValue]

  init(_ random: inout Seeded) {
    func real(_ random: inout Seeded) -> SQLiteValue { .real(random.pick(EvaluationObjects.reals)) }
    values = Self.types.map { _, type in
      // Some columns hold nothing, and a few what they should not.
      if random.chance(20) { return .null }
      if random.below(60) == 0 { return random.pick([.text("x"), .blob([1]), .real(1.5)]) }
      switch type {
      case .integer16: return .integer(Int64(Int16.random(in: .min ... .max, using: &random)))
      case .integer64: return .integer(random.pick(EvaluationObjects.integers))
      case .boolean: return .integer(Int64(random.below(2)))
      case .double: return real(&random)
      case .float: return .real(Double(Float(random.pick([0.1, 3, -7.25, 1e30]))))
      case .date, .decimal:
        return random.chance(50)
          ? .integer(Int64(random.below(1_000_000)))
          : .real(random.pick([0.5, -0.0, 3, 19.99, 1e-95, 1e125, 1e300]))
      case .string: return .text(random.pick(EvaluationObjects.words))
      case .uuid: return .blob((0..<16).map { UInt8($0) })
      default: return .blob([1, 2])
      }
    }
  }
}

private final class RowAccess: ObjectAccess {
  let row: Row
  init(_ row: Row) { self.row = row }

  func value(forKey key: String, of object: ObjectReference) throws -> ExpressionValue? {
    guard let place = Row.types.firstIndex(where: { $0.name == key }) else { return nil }
    return try ExpressionValue(stored: row.values[place], as: Row.types[place].type)
  }

  func uri(of object: ObjectReference) -> String { "" }
  func destinationInstances(
    forEntityMappingNamed mapping: String, sourceInstances: [ObjectReference]?
  ) -> [ObjectReference]? { nil }
  func destinationInstances(
    forSourceRelationshipNamed relationship: String, sourceInstances: [ObjectReference]?
  ) -> [ObjectReference]? { nil }
  func sourceInstances(
    forEntityMappingNamed mapping: String, destinationInstances: [ObjectReference]?
  ) -> [ObjectReference]? { nil }
  func sourceObjects(
    of entity: EntityName, where predicate: PredicateExpression,
    holds: (ObjectReference) throws -> Bool
  ) -> [ObjectReference]? { nil }
}

/// Draws from what the fast tier knows, with now and then a kind that does not fit.
private struct NumericDraw {
  var random: Seeded

  mutating func value(_ depth: Int, isDate: Bool = false) -> ValueExpression {
    if isDate {
      return depth > 0 && random.chance(30)
        ? .cast(value(depth - 1), type: "NSDate") : .sourceKeyPath("day")
    }
    guard depth > 0, !random.chance(15) else {
      switch random.below(8) {
      case 0: return .constant(.integer(random.pick(EvaluationObjects.integers)))
      case 1: return .constant(.real(random.pick(EvaluationObjects.reals)))
      case 2: return .constant(random.pick([.null, .boolean(true)]))
      case 3: return .sourceValue(forKey: "i16")
      default: return .sourceKeyPath(random.pick(["i16", "i64", "flag", "d", "f"]))
      }
    }
    switch random.below(8) {
    case 0:
      return .ternary(predicate(depth - 1), then: value(depth - 1), otherwise: value(depth - 1))
    case 1: return .cast(value(depth - 1, isDate: random.chance(50)), type: "NSNumber")
    default:
      return .call(
        random.pick([
          BuiltInFunction.Infix.add, BuiltInFunction.Infix.subtract,
          BuiltInFunction.Infix.multiply, BuiltInFunction.Infix.divide,
          BuiltInFunction.Infix.power, "modulus:by:",
        ]), [value(depth - 1), value(depth - 1)])
    }
  }

  mutating func predicate(_ depth: Int) -> PredicateExpression {
    let operators: [Comparison.Operator] = [
      .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual,
    ]
    switch random.below(depth > 0 ? 8 : 4) {
    case 0:
      return .comparison(
        Comparison(
          .sourceKeyPath(random.pick(Row.types).name), random.pick([.equal, .notEqual]),
          .constant(.null)))
    case 1:
      return .comparison(
        Comparison(value(depth, isDate: true), random.pick(operators), value(0, isDate: true)))
    case 2:
      return .comparison(
        Comparison(value(depth), .between, .aggregate([value(0), value(0)])))
    case 4: return .and([predicate(depth - 1), predicate(depth - 1), predicate(0)])
    case 5: return .or([predicate(depth - 1), predicate(depth - 1)])
    case 6: return .not(predicate(depth - 1))
    default: return .comparison(Comparison(value(depth), random.pick(operators), value(depth)))
    }
  }
}

@Suite struct `A compiled expression` {
  private static func column(_ name: String) -> CompiledExpression.Column? {
    Row.types.firstIndex { $0.name == name }.map {
      CompiledExpression.Column(place: $0, type: Row.types[$0].type)
    }
  }

  /// The row's values without ownership, for as long as `body` runs.
  private static func withRaw<T>(_ row: Row, _ body: (UnsafePointer<RawValue>) -> T) -> T {
    var bytes: [[UInt8]] = row.values.map { value in
      switch value {
      case .text(let text): Array(text.utf8)
      case .blob(let blob): blob
      default: []
      }
    }
    let buffers = bytes.indices.map { place in
      bytes[place].withUnsafeMutableBytes { source in
        let copy = UnsafeMutableRawBufferPointer.allocate(
          byteCount: max(1, source.count), alignment: 1)
        copy.copyMemory(from: UnsafeRawBufferPointer(source))
        return copy
      }
    }
    defer { for buffer in buffers { buffer.deallocate() } }
    let raw = row.values.enumerated().map { place, value in
      switch value {
      case .null: RawValue.null
      case .integer(let integer): RawValue.integer(integer)
      case .real(let real): RawValue.real(real)
      case .text(let text):
        RawValue.text(UnsafeRawPointer(buffers[place].baseAddress), count: text.utf8.count)
      case .blob(let blob):
        RawValue.blob(UnsafeRawPointer(buffers[place].baseAddress), count: blob.count)
      }
    }
    return raw.withUnsafeBufferPointer { values in
      guard let base = values.baseAddress else { preconditionFailure("a row has columns") }
      return body(base)
    }
  }

  /// What the compiled form of an expression gives for a row, and what the evaluator does.
  private static func results(
    of expression: ValueExpression, _ compiled: CompiledExpression, as type: AttributeType,
    over row: Row
  ) throws -> (
    fast: Result<SQLiteValue?, EvaluationProblem>, general: Result<SQLiteValue?, EvaluationProblem>
  ) {
    let evaluator = Evaluator(access: RowAccess(row), runDate: 0)
    let object = ObjectReference("Row", 1, in: .source)
    let general: Result<SQLiteValue?, EvaluationProblem>
    do {
      let found = try evaluator.value(of: expression, in: EvaluationScope(source: object))
      general = .success(try found.assigned(to: type).stored())
    } catch let error as EvaluationError {
      general = .failure(error.problem)
    } catch let problem as EvaluationProblem {
      general = .failure(problem)
    }
    let fast = withRaw(row) { raw in
      Result { () throws(EvaluationProblem) in Optional(SQLiteValue(try compiled.evaluate(raw))) }
    }
    return (fast, general)
  }

  @Test func `agrees with the evaluator on drawn expressions and rows`() throws {
    var draw = NumericDraw(random: Seeded(seed: 11))
    var random = Seeded(seed: 12)
    let numeric: [AttributeType] = [
      .integer16, .integer32, .integer64, .boolean, .double, .float,
    ]
    var (values, failures) = (0, 0)
    for _ in 0..<4_000 {
      let isDate = random.chance(10)
      let expression = draw.value(1 + random.below(4), isDate: isDate)
      let type = isDate ? AttributeType.date : random.pick(numeric)
      let compiled = try #require(
        CompiledExpression(expression, for: type, column: Self.column), "\(expression)")
      for _ in 0..<3 {
        let row = Row(&random)
        let (fast, general) = try Self.results(of: expression, compiled, as: type, over: row)
        #expect(fast == general, "\(expression) as \(type) over \(row.values)")
        if case .success = fast { values += 1 } else { failures += 1 }
      }
    }
    #expect(values > 5_000 && failures > 500)
  }

  /// Kinds of amounts, among them those whose sums and quotients have no short form.
  @Test func `reckons with decimals as the evaluator does`() throws {
    var draw = NumericDraw(random: Seeded(seed: 51))
    var random = Seeded(seed: 52)
    let place = try #require(Row.types.firstIndex { $0.name == "money" })
    var (values, failures) = (0, 0)
    for number in 0..<4_000 {
      let money = ValueExpression.sourceKeyPath("money")
      var expression = number % 8 == 0 ? draw.value(1) : money
      for _ in 0..<number % 4 {
        let other = random.chance(70) ? draw.value(0) : money
        let operation = random.pick([
          BuiltInFunction.Infix.add, BuiltInFunction.Infix.subtract,
          BuiltInFunction.Infix.multiply, BuiltInFunction.Infix.divide,
          BuiltInFunction.Infix.power, "modulus:by:",
        ])
        expression = .call(
          operation, random.chance(50) ? [expression, other] : [other, expression])
      }
      let compiled = try #require(
        CompiledExpression(expression, for: .decimal, column: Self.column), "\(expression)")
      for _ in 0..<4 {
        var row = Row(&random)
        let cents = Double(random.below(2_000_000)) - 1_000_000
        row.values[place] = random.pick([
          row.values[place], .real(cents / 100), .real(cents / 1e7), .real(cents * 1e13 + 0.5),
          .integer(Int64(cents)), .real(1 / (cents + 0.5)), .null,
        ])
        let (fast, general) = try Self.results(of: expression, compiled, as: .decimal, over: row)
        #expect(fast == general, "\(expression) over \(row.values)")
        if case .success = fast { values += 1 } else { failures += 1 }
      }
    }
    #expect(values > 8_000 && failures > 100)
  }

  @Test func `agrees with the evaluator on drawn filters`() throws {
    var draw = NumericDraw(random: Seeded(seed: 21))
    var random = Seeded(seed: 22)
    let object = ObjectReference("Row", 1, in: .source)
    for _ in 0..<3_000 {
      let predicate = draw.predicate(random.below(4))
      let compiled = try #require(
        CompiledExpression(filter: predicate, column: Self.column), "\(predicate)")
      let row = Row(&random)
      let evaluator = Evaluator(access: RowAccess(row), runDate: 0)
      let general: Result<Bool, EvaluationProblem>
      do {
        general = .success(try evaluator.holds(predicate, in: .filter(of: object)))
      } catch let error as EvaluationError {
        general = .failure(error.problem)
      }
      let fast = Self.withRaw(row) { raw in
        Result { () throws(EvaluationProblem) in try compiled.holds(raw) }
      }
      #expect(fast == general, "\(predicate) over \(row.values)")
    }
  }

  @Test func `copies attributes of every type as the evaluator does`() throws {
    var random = Seeded(seed: 31)
    for _ in 0..<500 {
      let row = Row(&random)
      for (name, type) in Row.types {
        let compiled = try #require(
          CompiledExpression(.sourceKeyPath(name), for: type, column: Self.column))
        let general = Result { () throws(EvaluationProblem) in
          let place = Row.types.firstIndex { $0.name == name } ?? 0
          return try ExpressionValue(stored: row.values[place], as: type).assigned(to: type)
            .stored()
        }
        let fast = Self.withRaw(row) { raw in
          Result { () throws(EvaluationProblem) in Optional(SQLiteValue(try compiled.evaluate(raw)))
          }
        }
        #expect(fast == general, "\(name) of \(row.values)")
      }
    }
  }

  @Test(arguments: [
    ("uppercase:($source.text)", AttributeType.string), ("lowercase:($source.text)", .string),
    ("length:($source.text)", .integer16), ("lowercase:(uppercase:($source.text))", .string),
    (
      "TERNARY(length:($source.text) > 4, uppercase:($source.text), lowercase:($source.text))",
      .string
    ),
    ("TERNARY($source.text == nil, -1, length:(uppercase:($source.text)) * 2)", .integer64),
  ])
  func `changes texts as the evaluator does`(text: String, type: AttributeType) throws {
    let expression = try ValueExpression(parsing: text)
    let compiled = try #require(CompiledExpression(expression, for: type, column: Self.column))
    let object = ObjectReference("Row", 1, in: .source)
    let place = try #require(Row.types.firstIndex { $0.name == "text" })
    var random = Seeded(seed: 41)
    var row = Row(&random)
    // Every scalar there is, a hundred at a time, among ASCII of every length.
    let scalars = (0...0x10_FFFF).compactMap { Unicode.Scalar($0 as UInt32) }
    var start = 0
    while start < scalars.count {
      var word = String(repeating: "xY", count: start / 100 % 11)
      word.unicodeScalars.append(contentsOf: scalars[start..<min(start + 100, scalars.count)])
      row.values[place] = start % 900 == 0 ? .null : .text(word)
      let evaluator = Evaluator(access: RowAccess(row), runDate: 0)
      let general = try evaluator.value(of: expression, in: EvaluationScope(source: object))
        .assigned(to: type).stored()
      let fast = try Self.withRaw(row) { raw in
        Result { () throws(EvaluationProblem) in SQLiteValue(try compiled.evaluate(raw)) }
      }.get()
      #expect(fast == general, "scalars from \(start)")
      start += start < 0x3000 ? 10 : 100
    }
  }

  @Test(
    arguments: [
      [0xC3], [0x61, 0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x82],
      [0xFF, 0x41], [0xF0, 0x80, 0x80, 0x80, 0x42], [0xE0, 0x9F, 0xBF], [0x80],
    ] as [[UInt8]])
  func `finds no value in a text that is not UTF-8, and copies it as it is`(bytes: [UInt8]) throws {
    func evaluate(_ text: String) throws -> [UInt8]? {
      let compiled = try #require(
        CompiledExpression(
          try ValueExpression(parsing: text), for: text.hasPrefix("length") ? .integer64 : .string,
          column: { $0 == "text" ? .init(place: 0, type: .string) : nil }))
      return try bytes.withUnsafeBytes { buffer in
        try withUnsafePointer(to: RawValue.text(buffer.baseAddress, count: buffer.count)) {
          Array(try compiled.evaluate($0).buffer)
        }
      }
    }
    for text in ["uppercase:($source.text)", "lowercase:($source.text)", "length:($source.text)"] {
      #expect(throws: EvaluationProblem.unexpectedStorage(.string)) { try evaluate(text) }
    }
    #expect(try evaluate("$source.text") == bytes)
    _ = bytes.withUnsafeBytes { buffer in
      #expect(throws: EvaluationProblem.unexpectedStorage(.string)) {
        try ExpressionValue(
          stored: RawValue.text(buffer.baseAddress, count: buffer.count), as: .string)
      }
    }
  }

  @Test(arguments: [
    ("$source.employer.name", AttributeType.string), ("$source.text.length", .integer16),
    ("$source.money * 2", .integer16), ("$source.text", .integer16),
    ("TERNARY($source.money > 1, 1, 2)", .integer16), ("CAST($source.money, 'NSNumber')", .double),
    ("godwit.string($source.i64)", .string),
    ("$source.unknown", .double), ("TERNARY($source.text == 'a', 1, 2)", .integer16),
    ("TERNARY($source.flag == YES, $source.text, 1)", .string), ("random()", .double),
    ("$source.day + 1", .date), ("sum({1, 2})", .integer16),
  ])
  func `leaves everything else to the evaluator`(text: String, type: AttributeType) throws {
    let expression = try ValueExpression(parsing: text)
    #expect(CompiledExpression(expression, for: type, column: Self.column) == nil)
  }
}
