import GodwitExpressions
import GodwitObjectModel

/// What expressions read of the source's objects, by the entities that these may be of.
///
/// Key paths are followed through the source model. Keys of destination objects and of helpers such as
/// `$entityMapping` read nothing of the source. Recursion is bounded: no tree is deeper than
/// ``ExpressionLimits/depth``.
package struct SourceReads {
  /// A property that is read, and behind a composite attribute's name the keys of an element.
  package struct Place: Hashable {
    package var entity: EntityName
    package var path: [String]
  }

  /// What a part of an expression gives.
  private enum Found {
    /// Values, destination objects, nil: no key of theirs is one of the source's.
    case nothing
    /// Source objects of any of the entities, or collections of them.
    case objects(Set<EntityName>)
    /// Composite attributes or elements of them, of which a further key may read a part.
    case composites(Set<Place>)
    case helper(String)
    /// Whatever code of a policy gives.
    case unknown
  }

  package private(set) var places: Set<Place> = []
  /// Names that are read of objects whose entity the models do not tell.
  package private(set) var names: Set<String> = []
  private let source: EntityHierarchy
  /// The source entities of entity mappings, by the mappings' names.
  private let sources: [String: Set<EntityName>]
  private var variables: [String: Found] = [:]

  package init(source: EntityHierarchy, mappings: [EntityMapping]) {
    self.source = source
    var sources: [String: Set<EntityName>] = [:]
    for mapping in mappings {
      guard let entity = mapping.sourceEntity else { continue }
      sources[mapping.name, default: []].insert(entity)
    }
    self.sources = sources
  }

  /// Adds what an expression of a row reads.
  ///
  /// - Parameter elements: Of a row for a composite attribute the key paths of this one's elements: of a
  ///   composite that the expression gives no others are read. Nil for any other row.
  package mutating func add(
    _ expression: ValueExpression, of mapping: EntityMapping, elements: [[String]]? = nil
  ) {
    variables = [
      "source": mapping.sourceEntity.map { .objects([$0]) } ?? .unknown, "destination": .nothing,
    ]
    for name in ["manager", "entityMapping", "propertyMapping", "entityPolicy"] {
      variables[name] = .helper(name)
    }
    let found = walk(expression)
    guard let elements, case .composites(let whole) = found else { return use(found) }
    for place in whole {
      places.formUnion(elements.map { Place(entity: place.entity, path: place.path + $0) })
    }
  }
}

extension SourceReads {
  /// Reads all of what the expression gives.
  private mutating func read(_ expression: ValueExpression) { use(walk(expression)) }

  private mutating func use(_ found: Found) {
    if case .composites(let found) = found { places.formUnion(found) }
  }

  private mutating func merge(_ one: Found, _ other: Found) -> Found {
    switch (one, other) {
    case (.nothing, let found), (let found, .nothing): return found
    case (.objects(let a), .objects(let b)): return .objects(a.union(b))
    case (.composites(let a), .composites(let b)): return .composites(a.union(b))
    default:
      use(one)
      use(other)
      return .unknown
    }
  }

  private mutating func walk(_ expression: ValueExpression) -> Found {
    switch expression {
    case .constant: return .nothing
    case .variable(let name): return variables[name] ?? .unknown
    case .evaluatedObject: return .unknown
    case .keyPath(let base, let keys): return follow(keys, from: walk(base))
    case .function(let receiver, let selector, let arguments):
      return send(selector, arguments, to: walk(receiver))
    case .call("noindex:", let arguments) where arguments.count == 1: return walk(arguments[0])
    case .call(_, let arguments):
      for argument in arguments { read(argument) }
      return .nothing
    case .aggregate(let members):
      return members.reduce(.nothing) { merge($0, walk($1)) }
    case .cast(let operand, _):
      read(operand)
      return .nothing
    case .ternary(let test, let then, let otherwise):
      read(test)
      return merge(walk(then), walk(otherwise))
    case .subquery(let collection, let variable, let predicate):
      let found = walk(collection)
      let hidden = variables[variable]
      variables[variable] = found
      read(predicate)
      variables[variable] = hidden
      return found
    case .fetch(let request, let context, let countOnly):
      read(context)
      let found = walk(request)
      return countOnly ? .nothing : found
    case .element(let collection, .index(.constant(.string(let key)))):
      return step(key, from: walk(collection))
    // A number, which is the place of a member.
    case .element(let collection, .index(.constant)): return walk(collection)
    case .element(let collection, .index(let index)):
      read(index)
      return member(of: walk(collection))
    case .element(let collection, .size):
      read(collection)
      return .nothing
    case .element(let collection, _): return walk(collection)
    case .assignment(let name, let value):
      let found = walk(value)
      variables[name] = found
      return found
    }
  }

  private mutating func read(_ predicate: PredicateExpression) {
    switch predicate {
    case .constant: break
    case .comparison(let comparison):
      read(comparison.left)
      read(comparison.right)
    case .and(let parts), .or(let parts): for part in parts { read(part) }
    case .not(let inner): read(inner)
    }
  }

  /// A member of a collection, or whatever element of a composite.
  private mutating func member(of found: Found) -> Found {
    guard case .composites = found else { return found }
    use(found)
    return .nothing
  }
}

// Keys and messages.
extension SourceReads {
  private mutating func follow(_ keys: [KeyPathElement], from start: Found) -> Found {
    var current = start
    for key in keys {
      switch key {
      case .key(let name): current = step(name, from: current)
      case .collectionOperator("count"):
        use(current)
        return .nothing
      case .collectionOperator: break
      }
    }
    return current
  }

  private mutating func step(_ name: String, from found: Found) -> Found {
    switch found {
    case .nothing: return .nothing
    case .composites where name == "self": return found
    case .composites(let places):
      return .composites(
        Set(places.map { Place(entity: $0.entity, path: $0.path + [name]) }))
    case .objects(let entities): return step(name, ofAny: entities) ?? step(name, from: .unknown)
    // A key of what policies have put there is the name of nothing; what it leads to may be anything.
    case .helper("manager"): return name == "userInfo" ? .helper("userInfo") : .nothing
    case .helper("userInfo"), .helper("entityPolicy"): return .unknown
    case .helper: return .nothing
    case .unknown:
      names.insert(name)
      return .unknown
    }
  }

  /// Nil where none of the entities has such a key.
  private mutating func step(_ name: String, ofAny entities: Set<EntityName>) -> Found? {
    var result: Found?
    for entity in entities {
      guard let property = source.property(name, of: entity)?.property else { continue }
      let place = Place(entity: entity, path: [name])
      var next = Found.nothing
      switch property {
      case .attribute(let attribute) where attribute.type == .composite:
        next = .composites([place])
      case .attribute: places.insert(place)
      case .relationship(let relationship):
        places.insert(place)
        next = .objects(Set(source.subtree(of: relationship.destinationEntity)))
      case .fetchedProperty: next = .unknown
      }
      result = result.map { merge($0, next) } ?? next
    }
    if let result { return result }
    switch name {
    case "self": return .objects(entities)
    case "objectID", "entity", "description": return .nothing
    default: return nil
    }
  }

  /// What gives the receiver, or members of it.
  private static let membersSelectors: Set = [
    "self", "firstObject", "lastObject", "anyObject", "allObjects",
  ]

  private mutating func send(
    _ selector: String, _ arguments: [ValueExpression], to receiver: Found
  ) -> Found {
    var text: String?
    if case .constant(.string(let found))? = arguments.first { text = found }
    if let text {
      switch selector {
      case ManagerSelector.valueForKey, "objectForKey:": return step(text, from: receiver)
      case "valueForKeyPath:": return follow(text.keyPathElements, from: receiver)
      default: break
      }
    }
    for argument in arguments { read(argument) }
    switch receiver {
    case .nothing: return .nothing
    case .helper("manager"):
      switch selector {
      case ManagerSelector.instancesForMapping, ManagerSelector.instancesForRelationship:
        return .nothing
      case ManagerSelector.sourceInstancesForMapping:
        return text.flatMap { sources[$0] }.map { .objects($0) } ?? .unknown
      case ManagerSelector.fetchRequest:
        guard let text else { return .unknown }
        return .objects(Set(source.subtree(of: EntityName(text))))
      default: return .unknown
      }
    case .helper("entityPolicy"), .helper("userInfo"), .unknown: return .unknown
    case .helper: return .nothing
    case .composites where Self.membersSelectors.contains(selector): return receiver
    case .composites:
      use(receiver)
      return .nothing
    case .objects:
      switch selector {
      case _ where Self.membersSelectors.contains(selector): return receiver
      case "count", "objectID", "description", "isEqual:", "containsObject:": return .nothing
      default: return .unknown
      }
    }
  }
}
