import GodwitObjectModel

// Key-value coding. Source: `core-data-migration.md` §4.2 (`collop`), §4.5.
extension Evaluation {
  mutating func follow(
    _ keys: ArraySlice<KeyPathElement>, from start: ExpressionValue
  ) throws -> ExpressionValue {
    try enter()
    defer { leave() }
    var current = start
    var rest = keys
    while let key = rest.popFirst() {
      if current.isNull { return .null }
      switch key {
      case .key(let name):
        current = try element(name, &rest, of: current) ?? self.key(name, of: current)
      case .collectionOperator(let name): return try collect(name, rest, over: current)
      }
    }
    return current
  }

  /// What a path leads to through a composite attribute of an object, or of each of several, without a look
  /// at its other elements; nil for any other key.
  private mutating func element(
    _ name: String, _ rest: inout ArraySlice<KeyPathElement>, of value: ExpressionValue
  ) throws -> ExpressionValue? {
    guard case .key? = rest.first else { return nil }
    guard case .object(let object) = value else {
      guard let members = value.members, case .object(let first)? = members.first,
        members.allSatisfy({ isComposite(name, of: $0) })
      else { return nil }
      return try keys(path(name, &rest, of: first), of: value)
    }
    guard access.isComposite(name, of: object) else { return nil }
    // Of a misspelt element a dictionary would say nothing, and nil is a value.
    return try property(path(name, &rest, of: object), of: object)
  }

  private func isComposite(_ name: String, of value: ExpressionValue) -> Bool {
    if case .object(let object) = value { access.isComposite(name, of: object) } else { false }
  }

  /// As many keys as lead down through composite attributes.
  private mutating func path(
    _ name: String, _ rest: inout ArraySlice<KeyPathElement>, of object: ObjectReference
  ) throws -> String {
    var path = name
    while access.isComposite(path, of: object), case .key(let key)? = rest.first {
      try step()
      path += "." + key
      rest.removeFirst()
    }
    return path
  }

  mutating func key(_ name: String, of value: ExpressionValue) throws -> ExpressionValue {
    try step()
    switch value {
    case .null: return .null
    // What has keys of its own may have one of any name.
    case .object(let object): return try property(name, of: object)
    case .dictionary(let pairs): return pairs[name] ?? .null
    case _ where name == "self": return value
    case .array, .set, .orderedSet: return try keys(name, of: value)
    // A key of a policy is a method without arguments, as for key-value coding.
    case .helper(.entityPolicy): return try perform(name, on: value, [])
    case .helper(let helper): return try key(name, of: helper)
    default:
      guard !name.unicodeScalars.contains(":"),
        let found = try ValueMessages.perform(name, on: value, [])
      else { throw EvaluationProblem.unknownKey(owner: value.kind, key: name) }
      return found
    }
  }

  /// Asks each member. Sets leave nil out, arrays keep it.
  private mutating func keys(
    _ name: String, of collection: ExpressionValue
  ) throws -> ExpressionValue {
    let members = collection.members ?? []
    try make(members.count)
    var found: [ExpressionValue] = []
    found.reserveCapacity(members.count)
    try enter()
    defer { leave() }
    for member in members { found.append(try key(name, of: member)) }
    switch collection {
    case .set: return .set(of: found.lazy.filter { !$0.isNull })
    case .orderedSet: return .orderedSet(of: found.lazy.filter { !$0.isNull })
    default: return .array(found)
    }
  }

  private func property(_ name: String, of object: ObjectReference) throws -> ExpressionValue {
    if let found = try access.value(forKey: name, of: object) { return found }
    switch name {
    case "self": return .object(object)
    case "objectID": return .url(try access.uri(of: object))
    case "entity": return .dictionary(["name": .string(object.entity.rawValue)])
    default:
      throw EvaluationProblem.unknownKey(
        owner: "the \(object.store.rawValue) entity \(object.entity)", key: name)
    }
  }

  private func key(_ name: String, of helper: EvaluationHelper) throws -> ExpressionValue {
    switch (helper, name) {
    case (.manager, "userInfo"): return .dictionary(try access.managerUserInfo)
    case (.manager, "sourceContext"): return .helper(.sourceContext)
    case (.manager, "destinationContext"): return .helper(.destinationContext)
    case (.entityMapping, "name"): return scope.entityMapping.map { .string($0) } ?? .null
    case (.entityMapping, "userInfo"):
      return .dictionary(scope.entityMappingUserInfo.mapValues { .string($0) })
    case (.propertyMapping, "name"): return scope.property.map { .string($0) } ?? .null
    default: throw EvaluationProblem.unknownKey(owner: helper.name, key: name)
    }
  }

  // MARK: - Collection operators

  private mutating func collect(
    _ name: String, _ rest: ArraySlice<KeyPathElement>, over collection: ExpressionValue
  ) throws -> ExpressionValue {
    guard let members = collection.members else {
      throw EvaluationProblem.wrongKind(found: collection.kind, needed: "a collection")
    }
    if name == "count" { return .integer(Int64(members.count)) }
    try make(members.count)
    var values: [ExpressionValue] = []
    values.reserveCapacity(members.count)
    for member in members { values.append(try follow(rest, from: member)) }
    switch name {
    // Nil counts as 0, as `@sum` and `@avg` document it.
    case "sum": return try Statistics.sum(try flat(values).map { $0.isNull ? .integer(0) : $0 })
    case "avg":
      let numbers = try flat(values).map { $0.isNull ? .integer(0) : $0 }
      return numbers.isEmpty ? .real(0) : try Statistics.average(numbers)
    case "min": return try Statistics.extreme(try flat(values), wanted: -1)
    case "max": return try Statistics.extreme(try flat(values), wanted: 1)
    case "unionOfObjects": return .array(values.filter { !$0.isNull })
    case "distinctUnionOfObjects":
      return .array(ExpressionValue.distinct(values.lazy.filter { !$0.isNull }))
    case "unionOfArrays", "unionOfSets":
      return .array(try flat(values).filter { !$0.isNull })
    case "distinctUnionOfArrays":
      return .array(ExpressionValue.distinct(try flat(values).lazy.filter { !$0.isNull }))
    case "distinctUnionOfSets": return .set(of: try flat(values).lazy.filter { !$0.isNull })
    default: throw EvaluationProblem.unknownCollectionOperator(name)
    }
  }

  /// Members that are collections give their members.
  mutating func flat(_ values: [ExpressionValue]) throws -> [ExpressionValue] {
    var result: [ExpressionValue] = []
    for value in values {
      if let members = value.members {
        try make(members.count)
        result.append(contentsOf: members)
      } else {
        result.append(value)
      }
      try step()
    }
    return result
  }
}

extension EvaluationHelper {
  var name: String {
    switch self {
    case .manager: "$manager"
    case .entityMapping: "$entityMapping"
    case .propertyMapping: "$propertyMapping"
    case .entityPolicy: "$entityPolicy"
    case .sourceContext: "$manager.sourceContext"
    case .destinationContext: "$manager.destinationContext"
    case .fetchRequest: "a fetch request"
    }
  }
}
