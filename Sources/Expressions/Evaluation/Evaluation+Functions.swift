import GodwitObjectModel

// `FUNCTION(receiver, "selector:", …)`. Source: `core-data-migration.md` §4.3.
extension Evaluation {
  mutating func perform(
    _ selector: String, on receiver: ExpressionValue, _ arguments: [ExpressionValue]
  ) throws -> ExpressionValue {
    guard selector.utf8.count(where: { $0 == UInt8(ascii: ":") }) == arguments.count else {
      throw EvaluationProblem.argumentCount(selector)
    }
    if case .helper(.entityPolicy) = receiver,
      ![ManagerSelector.valueForKey, "valueForKeyPath:"].contains(selector)
    {
      guard
        let found = try access.performPolicy(selector: selector, arguments: arguments, in: scope)
      else { throw EvaluationProblem.missingPolicy(selector: selector) }
      return found
    }
    // A message to nil gives nil.
    if receiver.isNull { return .null }
    switch selector {
    case ManagerSelector.valueForKey: return try key(try text(arguments[0]), of: receiver)
    case "valueForKeyPath:":
      return try follow(try text(arguments[0]).keyPathElements[...], from: receiver)
    case "self": return receiver
    case "isEqual:": return .boolean(receiver == arguments[0])
    default: break
    }
    switch receiver {
    case .helper(.manager): return try manager(selector, arguments)
    case .object(let object):
      if selector == "objectID" || selector == "description" {
        return .url(try access.uri(of: object))
      }
    case .array(let members), .set(let members), .orderedSet(let members):
      if let found = try collection(selector, members, arguments) { return found }
    case .dictionary(let pairs):
      if selector == "count" { return .integer(Int64(pairs.count)) }
      if selector == "objectForKey:" { return pairs[try text(arguments[0])] ?? .null }
    case .helper:
      // A key's getter is a message, too.
      if arguments.isEmpty { return try key(selector, of: receiver) }
    default:
      if let found = try ValueMessages.perform(selector, on: receiver, arguments) { return found }
    }
    throw EvaluationProblem.unknownSelector(owner: receiver.kind, selector: selector)
  }

  private func text(_ value: ExpressionValue) throws(EvaluationProblem) -> String {
    guard case .string(let text) = value else {
      throw .wrongKind(found: value.kind, needed: "a text")
    }
    return text
  }

  private func manager(
    _ selector: String, _ arguments: [ExpressionValue]
  ) throws -> ExpressionValue {
    let found: [ObjectReference]?
    switch selector {
    case "sourceContext": return .helper(.sourceContext)
    case "destinationContext": return .helper(.destinationContext)
    case "userInfo": return .dictionary(try access.managerUserInfo)
    case ManagerSelector.instancesForMapping:
      let name = try text(arguments[0])
      found = try access.destinationInstances(
        forEntityMappingNamed: name, sourceInstances: try instances(arguments[1]))
      guard found != nil else { throw EvaluationProblem.unknownMapping(name) }
    case ManagerSelector.instancesForRelationship:
      let name = try text(arguments[0])
      found = try access.destinationInstances(
        forSourceRelationshipNamed: name, sourceInstances: try instances(arguments[1]))
      guard found != nil else {
        throw EvaluationProblem.unknownKey(
          owner: scope.source.map { "the source entity \($0.entity)" } ?? "the source entity",
          key: name)
      }
    case ManagerSelector.sourceInstancesForMapping:
      let name = try text(arguments[0])
      found = try access.sourceInstances(
        forEntityMappingNamed: name, destinationInstances: try instances(arguments[1]))
      guard found != nil else { throw EvaluationProblem.unknownMapping(name) }
    case ManagerSelector.fetchRequest:
      let predicate: PredicateExpression
      do {
        predicate = try PredicateExpression(parsing: try text(arguments[1]))
      } catch let error as ExpressionError {
        throw EvaluationProblem.badPredicate(error)
      }
      return .helper(.fetchRequest(entity: EntityName(try text(arguments[0])), predicate))
    default: throw EvaluationProblem.unknownSelector(owner: "$manager", selector: selector)
    }
    return .array((found ?? []).map { .object($0) })
  }

  /// The objects of a manager's argument. Nil — an empty to-one — means none of them, not all:
  /// generated expressions pass `$source.owner` unguarded.
  /// Source: `core-data-migration.md` §4.3.
  private func instances(_ value: ExpressionValue) throws(EvaluationProblem) -> [ObjectReference] {
    try value.objects()
  }

  private func collection(
    _ selector: String, _ members: [ExpressionValue], _ arguments: [ExpressionValue]
  ) throws(EvaluationProblem) -> ExpressionValue? {
    switch selector {
    case "count": return .integer(Int64(members.count))
    case "firstObject", "anyObject": return members.first ?? .null
    case "lastObject": return members.last ?? .null
    case "allObjects": return .array(members)
    case "containsObject:": return .boolean(members.contains(arguments[0]))
    case "componentsJoinedByString:":
      let separator = try text(arguments[0])
      var result = ""
      for (place, member) in members.enumerated() {
        if place > 0 { result += separator }
        guard let text = ValueMessages.description(of: member) else {
          throw .wrongKind(found: member.kind, needed: "a text or number")
        }
        result += text
        try ValueMessages.checkSize(result)
      }
      return .string(result)
    default: return nil
    }
  }
}
