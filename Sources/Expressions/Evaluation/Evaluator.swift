import GodwitObjectModel

/// Evaluates any value expression and predicate: the general tier.
///
/// One thread at a time. The same scope, run date and seed always give the same value, so a shard
/// may be evaluated twice. What ``CompiledExpression`` can do it does without allocating; both
/// agree on every row.
///
/// Source: `core-data-migration.md` §4.
package final class Evaluator {
  let access: any ObjectAccess
  /// What `now()` is, in seconds since 2001-01-01 UTC: one moment for the whole run.
  let runDate: Double
  /// `random` draws from this, the object's key and the property.
  let seed: UInt64
  let texts = TextMatching()
  let dates = DateTexts()

  /// An evaluator for the objects of one migration.
  ///
  /// - Parameters:
  ///   - access: The objects of both stores, the entity mappings and the policy.
  ///   - runDate: What `now()` yields, in seconds since 2001-01-01 UTC.
  ///   - seed: What `random` starts from.
  package init(access: any ObjectAccess, runDate: Double, seed: UInt64 = 0) {
    self.access = access
    self.runDate = runDate
    self.seed = seed
  }
}

extension Evaluator {
  /// The value of an expression.
  ///
  /// - Throws: ``EvaluationError``, or what ``ObjectAccess`` threw.
  package func value(
    of expression: ValueExpression, in scope: EvaluationScope
  ) throws -> ExpressionValue {
    do {
      var evaluation = Evaluation(self, scope)
      return try evaluation.value(expression)
    } catch let problem as EvaluationProblem {
      throw scope.error(problem, in: expression.description)
    }
  }

  /// Whether a predicate holds.
  ///
  /// - Throws: ``EvaluationError``, or what ``ObjectAccess`` threw.
  package func holds(_ predicate: PredicateExpression, in scope: EvaluationScope) throws -> Bool {
    do {
      var evaluation = Evaluation(self, scope)
      return try evaluation.holds(predicate)
    } catch let problem as EvaluationProblem {
      throw scope.error(problem, in: predicate.description)
    }
  }

  /// The value as the attribute's type takes it, see ``ExpressionValue/assigned(to:)``.
  package func attributeValue(
    of expression: ValueExpression, for attribute: AttributeDescription, in scope: EvaluationScope
  ) throws -> ExpressionValue {
    let found = try value(of: expression, in: scope)
    do {
      return try found.assigned(to: attribute)
    } catch {
      throw scope.error(error, in: expression.description)
    }
  }

  /// The objects that an expression yields, for a relationship: one object, a collection of
  /// objects in its order, or none for nil. Nothing twice.
  package func objects(
    of expression: ValueExpression, in scope: EvaluationScope
  ) throws -> [ObjectReference] {
    let found = try value(of: expression, in: scope)
    do {
      return try found.objects()
    } catch {
      throw scope.error(error, in: expression.description)
    }
  }
}

extension EvaluationScope {
  /// An error of this place. The source object is named, or the destination where there is none.
  package func error(_ problem: EvaluationProblem, in expression: String) -> EvaluationError {
    let object = source ?? destination
    return EvaluationError(
      problem, entity: object?.entity, primaryKey: object?.primaryKey, property: property,
      expression: expression)
  }
}

/// One evaluation: its variables and how much it has done.
struct Evaluation {
  let evaluator: Evaluator
  var scope: EvaluationScope
  var steps = 0
  private var members = 0
  private var depth = 0
  private var draws: UInt64 = 0

  var access: any ObjectAccess { evaluator.access }

  init(_ evaluator: Evaluator, _ scope: EvaluationScope) {
    self.evaluator = evaluator
    self.scope = scope
  }

  mutating func step() throws(EvaluationProblem) {
    steps += 1
    guard steps <= EvaluationLimits.steps else {
      throw .tooLarge(what: "steps", limit: EvaluationLimits.steps)
    }
  }

  /// Enters one more level; the caller leaves it again.
  mutating func enter() throws(EvaluationProblem) {
    depth += 1
    // Twice: values and the predicates and key paths between them count one level each.
    guard depth <= ExpressionLimits.depth * 2 else { throw .tooDeep }
    try step()
  }

  mutating func leave() { depth -= 1 }

  /// Counts members that the evaluation itself makes: key paths over collections of collections
  /// multiply them.
  mutating func make(_ count: Int) throws(EvaluationProblem) {
    members += count
    guard members <= EvaluationLimits.members else {
      throw .tooLarge(what: "members", limit: EvaluationLimits.members)
    }
  }

  /// A variable can be put into itself again and again: neither its depth nor, counted as a tree,
  /// its size may grow without end.
  private func check(_ value: ExpressionValue) throws(EvaluationProblem) {
    var rest = [(value: value, depth: 0)]
    var count = 0
    while let next = rest.popLast() {
      guard let members = next.value.members, !members.isEmpty else { continue }
      guard next.depth < 64 else { throw .tooDeep }
      count += members.count
      guard count <= EvaluationLimits.members else {
        throw .tooLarge(what: "members", limit: EvaluationLimits.members)
      }
      for member in members where member.members != nil { rest.append((member, next.depth + 1)) }
    }
  }

  /// The next 64 random bits of this row and property.
  mutating func random() -> UInt64 {
    // FNV-1a over what names the place, then SplitMix64: equal on every machine.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325 ^ evaluator.seed
    func mix(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    let object = scope.source ?? scope.destination
    for byte in (object?.entity.rawValue ?? "").utf8 { mix(byte) }
    let key = UInt64(bitPattern: object?.primaryKey ?? 0)
    for place in 0..<8 { mix(UInt8(truncatingIfNeeded: key >> UInt64(place * 8))) }
    for byte in (scope.property ?? "").utf8 { mix(byte) }
    draws += 1
    hash = hash &+ draws &* 0x9E37_79B9_7F4A_7C15
    hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
    hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
    return hash ^ (hash >> 31)
  }
}

extension Evaluation {
  mutating func value(_ expression: ValueExpression) throws -> ExpressionValue {
    try enter()
    defer { leave() }
    switch expression {
    case .constant(let constant): return ExpressionValue(constant)
    case .variable(let name): return try variable(name)
    case .evaluatedObject:
      guard let object = scope.evaluatedObject else {
        throw EvaluationProblem.unknownVariable("SELF")
      }
      return object
    case .keyPath(let base, let keys): return try follow(keys[...], from: try value(base))
    case .function(let receiver, let selector, let arguments):
      let target = try value(receiver)
      return try perform(selector, on: target, try arguments.map { try value($0) })
    case .call(let name, let arguments):
      return try call(name, try arguments.map { try value($0) })
    case .aggregate(let members): return .array(try members.map { try value($0) })
    case .cast(let operand, let type): return try Casting.cast(try value(operand), to: type)
    case .ternary(let test, let then, let otherwise):
      return try holds(test) ? try value(then) : try value(otherwise)
    case .subquery(let collection, let variable, let predicate):
      return try subquery(collection, variable, predicate)
    case .fetch(let request, let context, let countOnly):
      if case .helper(.destinationContext) = try value(context) {
        throw EvaluationProblem.wrongKind(
          found: "$manager.destinationContext", needed: "$manager.sourceContext")
      }
      return try fetch(request, countOnly: countOnly)
    case .element(let collection, let place): return try element(of: collection, at: place)
    case .assignment(let name, let assigned):
      let result = try value(assigned)
      try check(result)
      scope.variables[name] = result
      return result
    }
  }

  private func variable(_ name: String) throws -> ExpressionValue {
    if let found = scope.variables[name] { return found }
    switch name {
    case "source": if let source = scope.source { return .object(source) }
    case "destination": if let destination = scope.destination { return .object(destination) }
    case "manager": return .helper(.manager)
    case "entityMapping": return .helper(.entityMapping)
    case "propertyMapping": return .helper(.propertyMapping)
    case "entityPolicy": return .helper(.entityPolicy)
    default: break
    }
    throw EvaluationProblem.unknownVariable(name)
  }

  private mutating func subquery(
    _ collection: ValueExpression, _ variable: String, _ predicate: PredicateExpression
  ) throws -> ExpressionValue {
    let found = try value(collection)
    if found.isNull { return .null }
    guard let members = found.members else {
      throw EvaluationProblem.wrongKind(found: found.kind, needed: "a collection")
    }
    let hidden = scope.variables[variable]
    defer { scope.variables[variable] = hidden }
    var kept: [ExpressionValue] = []
    for member in members {
      scope.variables[variable] = member
      if try holds(predicate) { kept.append(member) }
    }
    return found.withMembers(kept)
  }

  private mutating func fetch(
    _ request: ValueExpression, countOnly: Bool
  ) throws -> ExpressionValue {
    let found = try value(request)
    guard case .helper(.fetchRequest(let entity, let predicate)) = found else {
      throw EvaluationProblem.wrongKind(found: found.kind, needed: "a fetch request")
    }
    let evaluator = self.evaluator
    var counted = steps
    let objects = try access.sourceObjects(of: entity, where: predicate) { object in
      var inner = Evaluation(evaluator, .filter(of: object))
      inner.steps = counted
      defer { counted = inner.steps }
      return try inner.holds(predicate)
    }
    steps = counted
    guard let objects else { throw EvaluationProblem.unknownEntity(entity.rawValue) }
    return countOnly ? .integer(Int64(objects.count)) : .array(objects.map { .object($0) })
  }

  private mutating func element(
    of collection: ValueExpression, at place: ElementPlace
  ) throws -> ExpressionValue {
    let found = try value(collection)
    if found.isNull { return .null }
    if case .index(let index) = place, case .dictionary(let pairs) = found {
      let key = try value(index)
      guard case .string(let key) = key else {
        throw EvaluationProblem.wrongKind(found: key.kind, needed: "a text, the key")
      }
      return pairs[key] ?? .null
    }
    guard let members = found.members else {
      throw EvaluationProblem.wrongKind(found: found.kind, needed: "a collection")
    }
    switch place {
    case .first: return members.first ?? .null
    case .last: return members.last ?? .null
    case .size: return .integer(Int64(members.count))
    case .index(let index):
      let number = try value(index)
      if number.isNull { return .null }
      guard case .integer(let number) = number else {
        throw EvaluationProblem.wrongKind(found: number.kind, needed: "a whole number")
      }
      guard number >= 0, number < Int64(members.count) else { throw EvaluationProblem.badIndex }
      return members[Int(number)]
    }
  }
}

extension ExpressionValue {
  init(_ constant: Constant) {
    switch constant {
    case .null: self = .null
    case .boolean(let value): self = .boolean(value)
    case .integer(let value): self = .integer(value)
    case .real(let value): self = .real(value)
    case .string(let value): self = .string(value)
    }
  }

  /// The same kind of collection with other, distinct members.
  func withMembers(_ members: [ExpressionValue]) -> ExpressionValue {
    switch self {
    case .set: .set(members)
    case .orderedSet: .orderedSet(members)
    default: .array(members)
    }
  }

  /// The objects of a value: itself, its members, the members of its members.
  func objects() throws(EvaluationProblem) -> [ObjectReference] {
    var result: [ObjectReference] = []
    var seen: Set<ObjectReference> = []
    // A stack: a value may be nested as deep as its data.
    var rest = [self]
    while let value = rest.popLast() {
      switch value {
      case .null: continue
      case .object(let object): if seen.insert(object).inserted { result.append(object) }
      default:
        guard let members = value.members else {
          throw .wrongKind(found: value.kind, needed: "an object")
        }
        rest.append(contentsOf: members.reversed())
      }
    }
    return result
  }
}
