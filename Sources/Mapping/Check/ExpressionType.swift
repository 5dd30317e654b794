import GodwitExpressions
import GodwitObjectModel

/// What an expression yields, as far as the models tell.
indirect enum ExpressionType: Sendable, Equatable {
  /// One value of an attribute's type, or nothing.
  case value(ValueKind)
  /// Objects of the entity, or of its sub-entities.
  case object(Side, EntityName)
  /// Objects that an entity mapping without a policy makes: of its destination entity, and of none below.
  case made(EntityName)
  /// Some objects of the destination; which, only a run can tell.
  case someDestinationObjects
  case collection(of: ExpressionType)
  /// One of several, which only a row decides: the branches of a `TERNARY`, the members of a list.
  case either([ExpressionType])
  /// `$manager`, `$entityMapping`, `$propertyMapping`, `$entityPolicy`, and a context of the manager's.
  case helper(String)
  case null
  /// Cannot be known: transformables, user info, code of policies.
  case unknown

  enum Side: String, Sendable { case source, destination }

  /// What a property of an object holds; a fetched one nothing that is known.
  init(_ property: PropertyDescription, _ side: Side) {
    switch property {
    case .attribute(let attribute): self = .value(ValueKind(attribute))
    case .relationship(let relationship):
      let object = ExpressionType.object(side, relationship.destinationEntity)
      self = relationship.isToMany ? .collection(of: object) : object
    case .fetchedProperty: self = .unknown
    }
  }

  /// Any of these: one type where they agree or are nil besides, unknown where one of them is, or where
  /// there are none.
  init(anyOf types: [ExpressionType]) {
    var distinct: [ExpressionType] = []
    for type in types {
      for type in type.cases where type != .null && !distinct.contains(type) {
        distinct.append(type)
      }
    }
    let members: [ExpressionType] = distinct.compactMap {
      if case .collection(let member) = $0 { member } else { nil }
    }
    if distinct.contains(.unknown) {
      self = .unknown
    } else if distinct.count > 1, members.count == distinct.count {
      self = .collection(of: ExpressionType(anyOf: members))
    } else if distinct.count > 1 {
      self = .either(distinct)
    } else {
      self = distinct.first ?? (types.isEmpty ? .unknown : .null)
    }
  }

  /// What it can be: itself, or each of several.
  var cases: [ExpressionType] { if case .either(let cases) = self { cases } else { [self] } }

  /// The single values and objects that it can be, those in collections of collections, too.
  var leaves: [ExpressionType] {
    cases.flatMap { if case .collection(let member) = $0 { member.leaves } else { [$0] } }
  }

  /// The entity of one object of a store, where it is known.
  func entity(of side: Side) -> EntityName? {
    switch self {
    case .object(side, let entity): entity
    case .made(let entity) where side == .destination: entity
    default: nil
    }
  }

  /// True for the dictionary of a composite attribute's elements.
  var isComposite: Bool {
    cases.allSatisfy { if case .value(.composite) = $0 { true } else { false } }
  }
}

/// The messages that values understand, as key paths and as `FUNCTION`.
/// Source: `core-data-migration.md` §4.3.
enum ValueSelectors {
  static func result(of selector: String, on kind: ValueKind) -> ExpressionType? {
    // A dictionary answers to its own keys and to nothing else.
    if case .composite(let elements) = kind {
      return elements[selector].map { .value($0) }
        ?? (selector == "isEqual:" ? .value(.number) : nil)
    }
    if selector == "self" { return .value(kind) }
    if selector == "description" { return .value(.string) }
    if selector == "isEqual:" { return .value(.number) }
    let table: [String: ExpressionType]
    switch kind {
    case .string: table = string
    case .number: table = number
    case .date: table = date
    case .data: table = ["length": .value(.number)]
    case .uuid: table = ["UUIDString": .value(.string)]
    case .url: table = url
    case .composite, .transformed, .unknown: return .unknown
    }
    return table[selector]
  }

  static func names(on kind: ValueKind) -> [String] {
    switch kind {
    case .string: Array(string.keys)
    case .number: Array(number.keys)
    case .date: Array(date.keys)
    case .data: ["length"]
    case .uuid: ["UUIDString"]
    case .url: Array(url.keys)
    case .composite(let elements): Array(elements.keys)
    case .transformed, .unknown: []
    }
  }

  private static let numbers: [String: ExpressionType] = [
    "intValue": .value(.number), "integerValue": .value(.number), "longLongValue": .value(.number),
    "doubleValue": .value(.number), "floatValue": .value(.number), "boolValue": .value(.number),
  ]

  static let string: [String: ExpressionType] = numbers.merging([
    "length": .value(.number), "uppercaseString": .value(.string),
    "lowercaseString": .value(.string), "capitalizedString": .value(.string),
    "stringByAppendingString:": .value(.string),
    "stringByReplacingOccurrencesOfString:withString:": .value(.string),
    "substringFromIndex:": .value(.string), "substringToIndex:": .value(.string),
    "componentsSeparatedByString:": .collection(of: .value(.string)),
    "hasPrefix:": .value(.number), "hasSuffix:": .value(.number),
    "lastPathComponent": .value(.string), "pathExtension": .value(.string),
    "stringByDeletingLastPathComponent": .value(.string),
    "stringByDeletingPathExtension": .value(.string),
    "stringByAppendingPathComponent:": .value(.string),
    "stringByAppendingPathExtension:": .value(.string),
    "stringByTrimmingWhitespace": .value(.string),
  ]) { a, _ in a }

  static let number: [String: ExpressionType] = numbers.merging([
    "stringValue": .value(.string)
  ]) { a, _ in a }

  static let date: [String: ExpressionType] = [
    "timeIntervalSinceReferenceDate": .value(.number), "timeIntervalSince1970": .value(.number),
    "dateByAddingTimeInterval:": .value(.date),
  ]

  static let url: [String: ExpressionType] = [
    "absoluteString": .value(.string), "URIRepresentation": .value(.url),
    "path": .value(.string), "host": .value(.string),
    "scheme": .value(.string), "query": .value(.string), "fragment": .value(.string),
    "lastPathComponent": .value(.string), "pathExtension": .value(.string),
  ]

  /// On a collection as a whole; a *key* on a collection is asked of each member instead.
  static let collection = [
    "count", "firstObject", "lastObject", "anyObject", "allObjects", "componentsJoinedByString:",
    "containsObject:",
  ]

  /// The keys of helpers, which take no other messages.
  static let helperKeys = [
    "entityMapping": ["name", "sourceEntityName", "destinationEntityName", "userInfo"],
    "propertyMapping": ["name", "userInfo"], "sourceContext": [], "destinationContext": [],
  ]

  static let manager = [
    ManagerSelector.instancesForMapping, ManagerSelector.instancesForRelationship,
    ManagerSelector.sourceInstancesForMapping, ManagerSelector.fetchRequest,
    "sourceContext", "destinationContext", "userInfo", "valueForKey:", "valueForKeyPath:",
  ]
}
