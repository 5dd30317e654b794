import GodwitExpressions
import GodwitObjectModel

/// Says what fails whatever a row holds, by evaluating it: the evaluator's own rules, for values of the
/// types that the models give.
struct ExpressionProbe {
  private let evaluator = Evaluator(access: NoObjects(), runDate: 0)

  /// What an operand can be.
  struct Operand {
    var values: [ExpressionValue]
    /// Whether it is this value, and not one of its type.
    var isWritten: Bool
  }

  /// What an expression is as the operand of another one; nil where nobody can tell.
  func operand(_ expression: ValueExpression, of type: ExpressionType) -> Operand? {
    if expression.isWritten {
      // What fails has been said of the expression itself.
      guard let value = try? evaluator.value(of: expression, in: EvaluationScope()) else {
        return nil
      }
      return Operand(values: [value], isWritten: true)
    }
    return Self.values(of: type).map { Operand(values: $0, isWritten: false) }
  }

  /// Why there is no value, if there is none for any values of the operands.
  ///
  /// - Parameter whole: The expression with other operands in their places.
  func problem(
    _ operands: [Operand], _ whole: ([ValueExpression]) -> ValueExpression
  ) -> EvaluationProblem? {
    let names = operands.indices.map { "operand\($0)" }
    let expression = whole(names.map { .variable($0) })
    let areWritten = operands.allSatisfy(\.isWritten)
    var problem: EvaluationProblem?
    var places = operands.map { _ in 0 }
    repeat {
      var scope = EvaluationScope()
      for (operand, name) in names.enumerated() {
        scope.variables[name] = operands[operand].values[places[operand]]
      }
      do {
        _ = try evaluator.value(of: expression, in: scope)
        return nil
      } catch let error as EvaluationError where areWritten || error.problem.isOfKinds {
        problem = problem ?? error.problem
      } catch { return nil }
    } while Self.advance(&places, operands)
    return problem
  }

  /// The next choice of values, the last operand's first.
  private static func advance(_ places: inout [Int], _ operands: [Operand]) -> Bool {
    for operand in operands.indices.reversed() {
      places[operand] += 1
      if places[operand] < operands[operand].values.count { return true }
      places[operand] = 0
    }
    return false
  }

  /// Values that are as good as any other for what asks after kinds alone. Nil and empty collections are
  /// none: they pass through almost everything, and say nothing of what the expression is written for.
  private static func values(of type: ExpressionType) -> [ExpressionValue]? {
    switch type {
    case .value(let kind):
      switch kind {
      case .number: [.integer(1), .real(0.5), .decimal(DecimalNumber(1)), .boolean(true)]
      case .string: [.string("1"), .string("utf8"), .string("yyyy")]
      case .date: [.date(0)]
      case .data: [.data([0x31])]
      case .uuid: UUIDBytes(0..<16).map { [.uuid($0)] }
      case .url: [.url("https://example.org/")]
      case .transformed, .composite, .unknown: nil
      }
    case .object(let side, let entity):
      [.object(ObjectReference(entity, 1, in: side == .source ? .source : .destination))]
    case .made(let entity): [.object(ObjectReference(entity, 1, in: .destination))]
    case .collection(let member): values(of: member).map { $0.map { .set([$0, $0]) } }
    case .either(let cases):
      cases.reduce([]) { known, type in
        known.flatMap { known in values(of: type).map { known + $0 } }
      }
    case .null: [.null]
    case .someDestinationObjects, .helper, .unknown: nil
    }
  }
}

extension ValueExpression {
  /// Whether the expression has the same value for every row and run, and spells it itself.
  fileprivate var isWritten: Bool {
    switch self {
    case .constant: true
    case .aggregate(let members): members.allSatisfy(\.isWritten)
    case .call(let name, let arguments):
      !["now", "random", "random:"].contains(name) && arguments.allSatisfy(\.isWritten)
    case .cast(let operand, _): operand.isWritten
    case .function(let receiver, _, let arguments):
      receiver.isWritten && arguments.allSatisfy(\.isWritten)
    case .keyPath(let base, _): base.isWritten
    case .element(let collection, .index(let index)): collection.isWritten && index.isWritten
    case .element(let collection, _): collection.isWritten
    case .variable, .evaluatedObject, .ternary, .subquery, .fetch, .assignment: false
    }
  }
}

extension EvaluationProblem {
  /// Whether it is what the values are, and not which of their kind.
  fileprivate var isOfKinds: Bool {
    switch self {
    case .wrongKind, .notComparable, .unknownSelector, .unknownFunction, .unknownCast,
      .argumentCount, .badPattern, .divisionByZero:
      true
    default: false
    }
  }
}

/// There are models and no stores.
private struct NoObjects: UnmappedObjectAccess {
  func value(forKey key: String, of object: ObjectReference) throws -> ExpressionValue? { nil }

  func uri(of object: ObjectReference) throws -> String { "" }

  func sourceObjects(
    of entity: EntityName, where predicate: PredicateExpression,
    holds: (ObjectReference) throws -> Bool
  ) throws -> [ObjectReference]? { nil }
}
