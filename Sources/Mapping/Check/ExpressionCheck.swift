import GodwitExpressions
import GodwitObjectModel

/// Follows an expression through the two models and names what cannot work.
///
/// Recursion is bounded: no tree is deeper than ``ExpressionLimits/depth``.
struct ExpressionCheck {
  /// All of the model, by name.
  let mappings: [String: EntityMapping]
  let source: EntityHierarchy
  let destination: EntityHierarchy
  let mapping: EntityMapping
  /// Those of the mapping model itself, without the models that are run before it.
  let siblings: [EntityMapping]
  /// The destination property; nil in a filter.
  let property: String?
  private(set) var findings: [MappingFinding] = []
  /// The text of the whole expression, to say where in it something stands.
  var text = ""
  /// Whether the expression is what an automatic row comes to: the property of the same name.
  var isAutomatic = false
  /// Whether a row may be evaluated at all: a destination property that is not stored never is.
  var isEvaluated = true
  /// Whether it is evaluated in the link stage, when the objects are there that others are made of.
  var isLinked = false
  /// `SELF`, where there is one.
  private var evaluated: ExpressionType?
  private var variables: [String: ExpressionType] = [:]
  private let probe = ExpressionProbe()

  init(
    mappings: [String: EntityMapping], source: EntityHierarchy, destination: EntityHierarchy,
    mapping: EntityMapping, of siblings: [EntityMapping], property: String?
  ) {
    self.mappings = mappings
    self.source = source
    self.destination = destination
    self.mapping = mapping
    self.siblings = siblings
    self.property = property
    for name in ["manager", "entityMapping", "propertyMapping", "entityPolicy"] {
      variables[name] = .helper(name)
    }
    if let entity = mapping.sourceEntity { variables["source"] = .object(.source, entity) }
    if let entity = mapping.destinationEntity {
      variables["destination"] = .object(.destination, entity)
    }
  }

  /// How many branches of a `TERNARY` are around what is checked.
  private var isInBranch = 0

  mutating func find(
    _ kind: MappingFinding.Kind, _ severity: MappingFinding.Severity = .error, _ message: String,
    subject: String? = nil
  ) {
    findings.append(
      MappingFinding(
        kind, severity, mapping: mapping.name, property: property, subject: subject,
        message: message))
  }

  /// What comes of each of several cases. Whether a row comes to one of them the models do not tell: what is
  /// wrong with it is a warning then.
  @discardableResult mutating func ofEach<Result>(
    _ cases: [ExpressionType], _ body: (inout Self, ExpressionType) -> Result
  ) -> [Result] {
    let first = findings.count
    let found = cases.map { body(&self, $0) }
    if cases.count > 1 {
      for place in first..<findings.count { findings[place].severity = .warning }
    }
    return found
  }

  private func didYouMean(_ name: String, _ known: [String], mark: String = "") -> String {
    Spelling.closest(to: name, among: known.sorted { $0.precedesInBytes($1) })
      .map { ". Did you mean \(mark)\($0)?" } ?? ""
  }

  /// A filter is asked of each source object.
  mutating func checkFilter(_ predicate: PredicateExpression) {
    evaluated = mapping.sourceEntity.map { .object(.source, $0) }
    variables["destination"] = nil
    text = predicate.description
    check(predicate)
  }

  /// A source expression yields the objects that there will be one `$source` after the other of.
  mutating func checkSelection(_ expression: ValueExpression) {
    for name in ["source", "destination", "propertyMapping"] { variables[name] = nil }
    text = expression.description
    ofEach(type(of: expression).leaves) { $0.checkSelection(of: $1) }
  }

  private mutating func checkSelection(of found: ExpressionType) {
    switch found {
    case .object(.source, let entity):
      guard let wanted = mapping.sourceEntity, !source.isKind(entity, of: wanted),
        !source.isKind(wanted, of: entity)
      else { return }
      find(
        .typeMismatch, .error,
        "the source expression yields objects of \(entity), and the mapping takes those of "
          + "\(wanted)")
    case .object(.destination, _), .made, .someDestinationObjects:
      find(
        .typeMismatch, .error,
        "the source expression yields destination objects, and there are none yet")
    case .value, .helper, .null:
      find(.typeMismatch, .error, "the source expression yields no objects")
    case .collection, .either, .unknown: break
    }
  }
}

extension ExpressionCheck {
  /// The text of a fetch's predicate, which is asked of each object of the entity.
  mutating func checkPredicate(_ argument: ValueExpression, of entity: EntityName) {
    guard case .constant(.string(let text)) = argument else { return }
    do {
      let predicate = try PredicateExpression(parsing: text)
      let outer = (evaluated, variables)
      evaluated = .object(.source, entity)
      variables = [:]
      check(predicate)
      (evaluated, variables) = outer
    } catch {
      find(.badPredicate, .error, "the fetch's predicate cannot be read: \(error)")
    }
  }
}

// MARK: - Values

extension ExpressionCheck {
  /// Evaluates a part of the expression for operands of these types, and says why it has no value if it
  /// never has one. `first` is how many findings there were before its operands were looked at: what is wrong
  /// with them is said already.
  mutating func tryOut(
    _ operands: [ValueExpression], _ types: [ExpressionType], unlessFoundSince first: Int,
    shown: String? = nil, _ whole: ([ValueExpression]) -> ValueExpression
  ) {
    guard findings.count == first else { return }
    let known = zip(operands, types).compactMap { probe.operand($0, of: $1) }
    guard known.count == operands.count, let problem = probe.problem(known, whole) else { return }
    // What is written may be meant to fail in the rows that come to a branch.
    let isMeant = known.allSatisfy(\.isWritten) && isInBranch > 0
    find(
      .typeMismatch, isMeant ? .warning : .error,
      "\(problem), in: \((shown ?? whole(operands).description).cut(to: 200))")
  }
}

// MARK: - Types

extension ExpressionCheck {
  mutating func type(of value: ValueExpression) -> ExpressionType {
    switch value {
    case .constant(let constant):
      return switch constant {
      case .null: .null
      case .boolean, .integer, .real: .value(.number)
      case .string: .value(.string)
      }
    case .variable(let name): return variable(name)
    case .evaluatedObject:
      guard let evaluated else {
        find(
          .unknownKey, .error,
          "a key path begins with a variable here, as in $source.name; a text stands in quotation "
            + "marks")
        return .unknown
      }
      return evaluated
    case .keyPath(let base, let keys):
      if case .evaluatedObject = base, evaluated == nil, case .key(let key)? = keys.first {
        find(
          .unknownKey, .error,
          "\(key) needs a $source. prefix: write $source.\(key), or \"\(key)\" for a string")
        return .unknown
      }
      return follow(keys[...], from: type(of: base))
    case .function(let receiver, let selector, let arguments):
      return function(receiver, selector, arguments)
    case .call(let name, let arguments): return call(name, arguments)
    case .aggregate(let members):
      return .collection(of: ExpressionType(anyOf: members.map { type(of: $0) }))
    case .cast(let operand, let name):
      let first = findings.count
      let found = type(of: operand)
      let result = cast(to: name)
      tryOut([operand], [found], unlessFoundSince: first) { .cast($0[0], type: name) }
      return result
    case .ternary(let test, let then, let otherwise):
      check(test)
      isInBranch += 1
      defer { isInBranch -= 1 }
      return ExpressionType(anyOf: [type(of: then), type(of: otherwise)])
    case .subquery(let collection, let variable, let predicate):
      let found = type(of: collection)
      let hasMembers = mayHaveMembers(found, "SUBQUERY")
      let hidden = variables[variable]
      if case .collection(let member) = found {
        variables[variable] = member
      } else {
        variables[variable] = .unknown
      }
      check(predicate)
      variables[variable] = hidden
      return hasMembers ? found : .unknown
    case .fetch(let request, let context, let countOnly):
      if type(of: context) == .helper("destinationContext") {
        find(
          .typeMismatch, .error,
          "nothing can be fetched from the destination while it is being made. Use "
            + "$manager.sourceContext")
      }
      let found = type(of: request)
      if case .value(let kind) = found, kind != .unknown {
        find(.typeMismatch, .error, "FETCH takes a fetch request of $manager, and this is a value")
      }
      return countOnly ? .value(.number) : found == .unknown ? .collection(of: .unknown) : found
    case .element(let collection, let place):
      let first = findings.count
      let found = type(of: collection)
      var index: [(ValueExpression, ExpressionType)] = []
      if case .index(let written) = place { index = [(written, type(of: written))] }
      guard found.isComposite || mayHaveMembers(found, "[…]") else { return .unknown }
      tryOut([collection] + index.map(\.0), [found] + index.map(\.1), unlessFoundSince: first) {
        .element(of: $0[0], at: $0.count > 1 ? .index($0[1]) : place)
      }
      if case .size = place { return .value(.number) }
      if case .collection(let member) = found { return member }
      return .unknown
    case .assignment(let name, let value):
      let found = type(of: value)
      variables[name] = found
      return found
    }
  }

  private mutating func variable(_ name: String) -> ExpressionType {
    if let found = variables[name] { return found }
    if ["source", "destination", "propertyMapping"].contains(name), property == nil {
      find(
        .unknownVariable, .error,
        "there is no $\(name) here: what the mapping takes is decided before it")
    } else if name == "source" || name == "destination" {
      find(
        .unknownVariable, .error, "there is no $\(name): the entity mapping has no \(name) entity")
    } else {
      find(
        .unknownVariable, .error,
        "there is no variable $\(name)" + didYouMean(name, Array(variables.keys), mark: "$"))
    }
    return .unknown
  }

  /// An object or a single value has no members. What cannot be known may have some.
  private mutating func mayHaveMembers(_ found: ExpressionType, _ what: String) -> Bool {
    switch found {
    case .value(.unknown), .value(.transformed): return true
    case .value, .object, .made, .helper:
      find(.typeMismatch, .error, "\(what) needs a collection, and there is one value or object")
      return false
    case .someDestinationObjects, .collection, .either, .null, .unknown: return true
    }
  }

  private mutating func cast(to name: String) -> ExpressionType {
    let kinds: [String: ValueKind] = [
      "NSDate": .date, "NSNumber": .number, "NSDecimalNumber": .number, "NSString": .string,
      "NSURL": .url, "NSUUID": .uuid,
    ]
    if let kind = kinds[name] { return .value(kind) }
    find(
      .typeMismatch, .error, "there is no cast to \(name)" + didYouMean(name, Array(kinds.keys)))
    return .unknown
  }

  mutating func check(_ predicate: PredicateExpression) {
    switch predicate {
    case .constant: break
    case .comparison(let comparison):
      if case .constant(.string(let pattern)) = comparison.right, comparison.operator == .matches,
        !TextMatching().isPattern(pattern, comparison.options)
      {
        find(.badPredicate, .error, "\"\(pattern)\" is no regular expression")
      }
      let first = findings.count
      let sides = [type(of: comparison.left), type(of: comparison.right)]
      guard sides.contains(where: \.isComposite) else {
        checkEquality(comparison.operator, sides, unlessFoundSince: first)
        tryOut(
          [comparison.left, comparison.right], sides, unlessFoundSince: first,
          shown: predicate.description
        ) { sides in
          var tried = comparison
          (tried.left, tried.right) = (sides[0], sides[1])
          return .ternary(.comparison(tried), then: sides[0], otherwise: sides[0])
        }
        return
      }
      for case .value(let kind) in sides
      where kind != .unknown && !ExpressionType.value(kind).isComposite {
        find(
          .typeMismatch, .error,
          "a composite is never equal to \(kind.description). Compare one of its elements")
      }
    case .and(let parts), .or(let parts): for part in parts { check(part) }
    case .not(let inner): check(inner)
    }
  }
}

extension ExpressionCheck {
  /// Values of two kinds are never equal. What a filter asks of objects decides which there are.
  private mutating func checkEquality(
    _ comparison: Comparison.Operator, _ sides: [ExpressionType], unlessFoundSince first: Int
  ) {
    var sides = sides
    switch comparison {
    case .equal, .notEqual: break
    case .in:
      guard case .collection(let member) = sides[1] else { return }
      sides[1] = member
    default: return
    }
    guard findings.count == first, case .value(let left) = sides[0],
      case .value(let right) = sides[1],
      left != right,
      [left, right].allSatisfy({ $0 != .unknown && $0 != .transformed })
    else { return }
    find(
      .typeMismatch, evaluated == nil ? .warning : .error,
      "\(left.description) is never equal to \(right.description). Convert one of them")
  }
}

// MARK: - Key paths

extension ExpressionCheck {
  mutating func follow(
    _ keys: ArraySlice<KeyPathElement>, from start: ExpressionType
  ) -> ExpressionType {
    var current = start
    var rest = keys
    while let key = rest.popFirst() {
      switch key {
      case .key(let name): current = self.key(name, of: current)
      case .collectionOperator(let name): return collect(name, rest, over: current)
      }
    }
    return current
  }

  private mutating func key(_ name: String, of type: ExpressionType) -> ExpressionType {
    switch type {
    case .object(let side, let entity): return property(name, of: entity, side)
    case .made(let entity): return property(name, of: entity, .destination)
    case .either(let cases): return ExpressionType(anyOf: ofEach(cases) { $0.key(name, of: $1) })
    case .value(.transformed), .value(.unknown): return .unknown
    case .value(let kind):
      if let found = ValueSelectors.result(of: name, on: kind), !name.unicodeScalars.contains(":") {
        return found
      }
      find(
        .unknownKey, .error,
        "\(kind.description) has no key \(name)" + didYouMean(name, ValueSelectors.names(on: kind)))
      return .unknown
    case .collection(let member):
      if name == "self" { return type }
      // Asked of each member; collections of collections run together.
      let found = key(name, of: member)
      if case .collection = found { return found }
      return .collection(of: found)
    case .helper("manager"):
      if name == "userInfo" { return .unknown }
      if ["sourceContext", "destinationContext"].contains(name) { return .helper(name) }
      find(
        .unknownKey, .error,
        "$manager has no key \(name)" + didYouMean(name, ValueSelectors.manager))
      return .unknown
    case .helper("entityPolicy"):
      missingSelector(name)
      return .unknown
    case .helper(let helper):
      guard let known = ValueSelectors.helperKeys[helper], name != "self" else { return type }
      if known.contains(name) { return name == "userInfo" ? .unknown : .value(.string) }
      find(.unknownKey, .error, "$\(helper) has no key \(name)" + didYouMean(name, known))
      return .unknown
    case .someDestinationObjects, .null, .unknown: return .unknown
    }
  }

  private mutating func property(
    _ name: String, of entity: EntityName, _ side: ExpressionType.Side
  ) -> ExpressionType {
    let hierarchy = side == .source ? source : destination
    // An object may be of a sub-entity that has more properties.
    let found: [EntityHierarchy.Declared] =
      hierarchy.property(name, of: entity).map { [$0] }
      ?? hierarchy.subtree(of: entity).compactMap { hierarchy.property(name, of: $0) }
    let types = found.map { ExpressionType($0.property, side) }
    // Sub-entities may each have one of the name, and only a row tells which it is.
    guard types.allSatisfy({ $0 == types.first }) else { return .unknown }
    switch found.first?.property {
    case .attribute(let attribute)?:
      if attribute.traits.isTransient, side == .source, isEvaluated {
        find(
          .notStored, .warning,
          "\(entity).\(name) is transient: no store holds it, and its value is nil")
      }
    case .relationship?: if side == .destination { readsUnset(name) }
    case .fetchedProperty?:
      if isEvaluated {
        find(
          .notStored, .error,
          "\(entity).\(name) is a fetched property: no store holds it. Use FETCH(…) with its predicate"
        )
      }
    case nil:
      if name == "self" { return .object(side, entity) }
      if name == "objectID" { return .value(.url) }
      if name == "entity" { return .value(.composite(["name": .string])) }
      let known = hierarchy.properties(of: entity).map(\.property.name)
      find(
        .unknownKey, .error,
        "the \(side.rawValue) entity \(entity) has no property \(name)" + didYouMean(name, known))
    }
    return types.first ?? .unknown
  }

  /// A policy's own objects can be read in the link stage.
  private mutating func readsUnset(_ relationship: String) {
    guard mapping.policy == nil, isEvaluated, let property, let made = mapping.destinationEntity
    else { return }
    if destination.property(property, of: made)?.property.relationship != nil {
      find(
        .yieldsNothing, .error,
        "relationships of destination objects cannot be read while they are being set. Use the "
          + "source's")
    } else {
      find(
        .yieldsNothing, .warning,
        "\(relationship) of destination objects is set after their attributes: it is empty")
    }
  }

  /// Source: `core-data-migration.md` §4.2 (`collop`).
  private mutating func collect(
    _ name: String, _ rest: ArraySlice<KeyPathElement>, over type: ExpressionType
  ) -> ExpressionType {
    let known = [
      "count", "sum", "avg", "min", "max", "unionOfObjects", "distinctUnionOfObjects",
      "unionOfArrays", "distinctUnionOfArrays", "unionOfSets", "distinctUnionOfSets",
    ]
    guard known.contains(name) else {
      find(
        .unknownKey, .error,
        "there is no collection operator @\(name)" + didYouMean(name, known, mark: "@"))
      return .unknown
    }
    var member: ExpressionType
    switch type {
    case .collection(let inner): member = inner
    case .either(let cases):
      return ExpressionType(anyOf: ofEach(cases) { $0.collect(name, rest, over: $1) })
    case .unknown, .someDestinationObjects: member = .unknown
    default:
      find(.typeMismatch, .error, "@\(name) needs a collection before it")
      member = .unknown
    }
    if name == "count" { return .value(.number) }
    guard !rest.isEmpty else {
      find(.unknownKey, .error, "@\(name) needs a key after it")
      return .unknown
    }
    let first = findings.count
    member = follow(rest, from: member)
    while case .collection(let inner) = member { member = inner }
    if ["sum", "avg", "min", "max"].contains(name) {
      let path = ValueExpression.keyPath(
        base: .evaluatedObject, keys: [.collectionOperator(name)] + rest)
      tryOut([path], [.collection(of: member)], unlessFoundSince: first, shown: path.description) {
        .keyPath(base: $0[0], keys: [.collectionOperator(name), .key("self")])
      }
    }
    switch name {
    case "sum", "avg": return .value(.number)
    case "min", "max": return member
    default: return .collection(of: member)
    }
  }
}
