import GodwitObjectModel
import GodwitSQLite

/// Turns a tree into the program of a ``CompiledExpression``. Nil anywhere: the general tier.
///
/// Recursion is bounded: no tree is deeper than ``ExpressionLimits/depth``.
struct CompiledExpressionBuilder {
  typealias Value = (register: CompiledRegister, kind: Kind)

  let column: (String) -> CompiledExpression.Column?
  /// An attribute of the object that a to-one relationship leads to.
  let related: (_ relationship: String, _ attribute: String) -> CompiledExpression.Column?
  /// True in a filter: `SELF` is the source object.
  let evaluatesObject: Bool
  private(set) var code: [Draft] = []
  private(set) var constants: [Constant] = []
  /// What the instructions that change texts do, by number.
  private(set) var textOperations: [CompiledTextOperation] = []
  /// The highest temporary in use at any time.
  private(set) var highest = 0
  private var free = 0
  private var depth = 0

  init(
    column: @escaping (String) -> CompiledExpression.Column?,
    related: @escaping (String, String) -> CompiledExpression.Column?, evaluatesObject: Bool
  ) {
    self.column = column
    self.related = related
    self.evaluatesObject = evaluatesObject
  }

  /// Registers are counted in 16 bits.
  var isTooLarge: Bool { constants.count + highest >= 60_000 || code.count >= 1_000_000 }

  // MARK: - Values

  mutating func value(_ expression: ValueExpression) -> Value? {
    depth += 1
    defer { depth -= 1 }
    guard depth <= ExpressionLimits.depth * 2 else { return nil }
    switch expression {
    case .constant(let constant): return self.constant(constant)
    case .keyPath(let base, let keys):
      guard isSource(base), case .key(let name) = keys.first else { return nil }
      if keys.count == 1 { return name == "self" ? nil : load(column(name)) }
      var rest: [String] = []
      for case .key(let key) in keys.dropFirst() { rest.append(key) }
      guard rest.count == keys.count - 1 else { return nil }
      // An element of a composite attribute goes by its key path.
      let attribute = rest.joined(separator: ".")
      return load(column(name + "." + attribute) ?? related(name, attribute))
    case .function(let receiver, ManagerSelector.valueForKey, let arguments):
      guard isSource(receiver), arguments.count == 1,
        case .constant(.string(let name)) = arguments[0]
      else { return nil }
      return name == "self" ? nil : load(column(name))
    case .call(let name, let arguments):
      if arguments.count == 1, let operation = CompiledTextOperation(function: name) {
        return text(operation, of: arguments[0])
      }
      guard arguments.count == 2, let operation = Number.Operation(function: name) else {
        return nil
      }
      return arithmetic(operation, arguments[0], arguments[1])
    case .cast(let operand, let type): return cast(operand, to: type)
    case .ternary(let test, let then, let otherwise): return ternary(test, then, otherwise)
    default: return nil
    }
  }

  private func isSource(_ base: ValueExpression) -> Bool {
    base == .variable("source") || (evaluatesObject && base == .evaluatedObject)
  }

  private mutating func constant(_ constant: GodwitExpressions.Constant) -> Value {
    let kind: Kind
    switch constant {
    case .null:
      constants.append(.value(.null))
      kind = .null
    case .boolean(let value):
      constants.append(.value(.integer(value ? 1 : 0)))
      kind = .number
    case .integer(let value):
      constants.append(.value(.integer(value)))
      kind = .number
    case .real(let value):
      constants.append(.value(.real(value)))
      kind = .number
    case .string(let text):
      constants.append(.text(text))
      kind = .other(.string)
    }
    return (.constant(constants.count - 1), kind)
  }

  private mutating func load(_ column: CompiledExpression.Column?) -> Value? {
    guard let found = column, let place = Int32(exactly: found.place),
      let type = CompiledType(found.type)
    else {
      return nil
    }
    let kind: Kind
    switch found.type {
    case .integer16, .integer32, .integer64, .boolean, .double, .float: kind = .number
    case .date: kind = .date
    case .decimal, .string, .binary, .uuid, .uri, .transformable: kind = .other(found.type)
    case .undefined, .objectID, .composite: return nil
    }
    let target = temporary()
    emit(.load, type: type, target: target, place: place)
    return (target, kind)
  }

  private mutating func arithmetic(
    _ operation: Number.Operation, _ left: ValueExpression, _ right: ValueExpression
  ) -> Value? {
    let start = free
    guard let a = value(left), let b = value(right) else { return nil }
    let decimals: [Kind] = [.decimal, .other(.decimal)]
    let isDecimal = decimals.contains(a.kind) || decimals.contains(b.kind)
    let taken = [.number, .null] + (isDecimal ? decimals : [])
    guard taken.contains(a.kind), taken.contains(b.kind) else { return nil }
    free = start
    let target = temporary()
    emit(
      isDecimal ? .decimal : .arithmetic, operation: operation, target: target, a: a.register,
      b: b.register)
    return (target, isDecimal ? .decimal : .number)
  }

  private mutating func text(
    _ operation: CompiledTextOperation, of argument: ValueExpression
  ) -> Value? {
    let start = free
    guard let found = value(argument), found.kind == .other(.string), textOperations.count < 1000
    else { return nil }
    free = start
    let target = temporary()
    emit(.text, target: target, a: found.register, place: Int32(textOperations.count))
    textOperations.append(operation)
    return (target, operation == .length ? .number : .other(.string))
  }

  private mutating func cast(_ operand: ValueExpression, to type: String) -> Value? {
    let start = free
    guard let found = value(operand) else { return nil }
    switch (type, found.kind) {
    case ("NSNumber", .number), ("NSDate", .date), ("NSNumber", .null), ("NSDate", .null):
      return found
    case ("NSNumber", .date): return (found.register, .number)
    case ("NSDate", .number):
      free = start
      let target = temporary()
      emit(.date, target: target, a: found.register)
      return (target, .date)
    default: return nil
    }
  }

  private mutating func ternary(
    _ test: PredicateExpression, _ then: ValueExpression, _ otherwise: ValueExpression
  ) -> Value? {
    let start = free
    guard let condition = predicate(test) else { return nil }
    free = start
    let target = temporary()
    let behindTest = free
    let toElse = jump(.jumpUnless, a: condition)
    guard let yes = value(then) else { return nil }
    emit(.move, target: target, a: yes.register)
    let toEnd = jump(.jump, a: condition)
    land(toElse)
    free = behindTest
    guard let no = value(otherwise) else { return nil }
    emit(.move, target: target, a: no.register)
    land(toEnd)
    free = behindTest
    if yes.kind == no.kind || no.kind == .null { return (target, yes.kind) }
    return yes.kind == .null ? (target, no.kind) : nil
  }

  // MARK: - Predicates

  mutating func predicate(_ predicate: PredicateExpression) -> CompiledRegister? {
    depth += 1
    defer { depth -= 1 }
    guard depth <= ExpressionLimits.depth * 2 else { return nil }
    let start = free
    switch predicate {
    case .constant(let value):
      constants.append(.value(.integer(value ? 1 : 0)))
      return .constant(constants.count - 1)
    case .not(let inner):
      guard let found = self.predicate(inner) else { return nil }
      free = start
      let target = temporary()
      emit(.not, target: target, a: found)
      return target
    case .and(let parts), .or(let parts):
      let isAnd = if case .and = predicate { true } else { false }
      let target = temporary()
      var jumps: [Int] = []
      for part in parts {
        guard let found = self.predicate(part) else { return nil }
        emit(.move, target: target, a: found)
        free = start + 1
        if isAnd {
          jumps.append(jump(.jumpUnless, a: target))
        } else {
          let next = jump(.jumpUnless, a: target)
          jumps.append(jump(.jump, a: target))
          land(next)
        }
      }
      for jump in jumps { land(jump) }
      return target
    case .comparison(let comparison): return self.comparison(comparison)
    }
  }

  private mutating func comparison(_ comparison: Comparison) -> CompiledRegister? {
    guard comparison.modifier == .direct, comparison.options.isEmpty else { return nil }
    let start = free
    if comparison.operator == .between {
      guard case .aggregate(let bounds) = comparison.right, bounds.count == 2,
        let value = value(comparison.left), let low = self.value(bounds[0]),
        let high = self.value(bounds[1]), haveOrder(value, low), haveOrder(value, high)
      else { return nil }
      let (a, b) = (temporary(), temporary())
      emit(
        .compare, comparison: .greaterOrEqual, target: a, a: value.register,
        b: low.register)
      emit(
        .compare, comparison: .lessOrEqual, target: b, a: value.register,
        b: high.register)
      free = start
      let target = temporary()
      // Both are 0 or 1.
      emit(.arithmetic, operation: .multiply, target: target, a: a, b: b)
      return target
    }
    guard let operation = Self.comparisons[comparison.operator],
      let left = value(comparison.left), let right = value(comparison.right)
    else { return nil }
    let isEquality =
      operation == .equal || operation == .notEqual
    // Anything may be compared with nil.
    guard haveOrder(left, right) || (isEquality && (left.kind == .null || right.kind == .null))
    else { return nil }
    free = start
    let target = temporary()
    emit(.compare, comparison: operation, target: target, a: left.register, b: right.register)
    return target
  }

  private func haveOrder(_ a: Value, _ b: Value) -> Bool {
    let ordered: [Kind] = [.number, .date, .null]
    guard ordered.contains(a.kind), ordered.contains(b.kind) else { return false }
    return a.kind == b.kind || a.kind == .null || b.kind == .null
  }

  private static let comparisons: [Comparison.Operator: CompiledComparison] = [
    .equal: .equal, .notEqual: .notEqual,
    .less: .less, .lessOrEqual: .lessOrEqual,
    .greater: .greater, .greaterOrEqual: .greaterOrEqual,
  ]

  // MARK: - Assignment

  mutating func assign(_ value: Value, to type: AttributeType) -> CompiledRegister? {
    switch (value.kind, type) {
    case (.null, _): return value.register
    case (.number, .integer16), (.number, .integer32), (.number, .integer64), (.number, .boolean),
      (.number, .double), (.number, .float), (.number, .decimal), (.decimal, .decimal),
      (.date, .date):
      let target = temporary()
      guard let column = CompiledType(type) else { return nil }
      emit(.assign, type: column, target: target, a: value.register)
      return target
    case (.other(let kept), _) where kept == type: return value.register
    case (.other(.binary), .transformable), (.other(.transformable), .binary):
      return value.register
    default: return nil
    }
  }

  // MARK: - Code

  private mutating func temporary() -> CompiledRegister {
    free += 1
    highest = max(highest, free)
    return .temporary(free - 1)
  }

  private mutating func emit(
    _ code: CompiledInstruction.Code, type: CompiledType = .integer64,
    operation: Number.Operation = .add, comparison: CompiledComparison = .equal,
    target: CompiledRegister = .constant(0), a: CompiledRegister = .constant(0),
    b: CompiledRegister = .constant(0), place: Int32 = 0
  ) {
    self.code.append(
      Draft(
        instruction: CompiledInstruction(
          code: code, type: type, operation: operation, comparison: comparison, place: place),
        target: target, a: a, b: b))
  }

  private mutating func jump(
    _ code: CompiledInstruction.Code, a: CompiledRegister
  ) -> Int {
    emit(code, a: a)
    return self.code.count - 1
  }

  private mutating func land(_ jump: Int) {
    code[jump].instruction.place = Int32(code.count)
  }
}
