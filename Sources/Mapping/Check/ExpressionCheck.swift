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
  private(set) var evaluated: ExpressionType?
  private var variables: [String: ExpressionType] = [:]
  /// Those around a fetch, whose predicate gets none.
  private var variablesOutside: Set<String> = []
  /// How many branches of a `TERNARY` are around what is checked.
  private(set) var isInBranch = 0
  let probe = ExpressionProbe()

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

  func didYouMean(_ name: String, _ known: [String], mark: String = "") -> String {
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
      let outer = (evaluated, variables, variablesOutside)
      evaluated = .object(.source, entity)
      variablesOutside.formUnion(variables.keys)
      variables = [:]
      check(predicate)
      (evaluated, variables, variablesOutside) = outer
    } catch {
      find(.badPredicate, .error, "the fetch's predicate cannot be read: \(error)")
    }
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
    if variablesOutside.contains(name) {
      find(
        .unknownVariable, .error,
        "there is no $\(name) in the predicate of a fetch. The one of SUBQUERY(FETCH(…), $x, …) may name "
          + "it")
    } else if ["source", "destination", "propertyMapping"].contains(name), property == nil {
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
        find(.badPredicate, .error, "\"\(pattern)\" is not a regular expression")
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
