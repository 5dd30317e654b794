/// How a value is computed: the tree of an `NSExpression` as mapping models use them.
///
/// One meaning has one tree: `a + b` and `add:to:(a, b)` are the same, and so are `SELF.name`
/// and `name`. Values that no literal can spell (dates, data, decimals) are written as a `CAST`
/// of a text or number.
///
/// Source: `core-data-migration.md` §4.2 (grammar), §3.4 (archived form).
public indirect enum ValueExpression: Sendable, Hashable {
  /// A literal.
  case constant(Constant)
  /// `$source`, `$manager` …, without the `$`.
  case variable(String)
  /// `SELF`: the object at hand, which is what a bare key path starts from.
  case evaluatedObject
  /// `$source.department.name`: key-value coding from `base`.
  case keyPath(base: ValueExpression, keys: [KeyPathElement])
  /// `FUNCTION(receiver, "selector:", argument)`: a message of the receiver's.
  case function(receiver: ValueExpression, selector: String, arguments: [ValueExpression])
  /// `sum:(…)`, `a * b`, `godwit.bucket(…)`: one of `BuiltInFunction`, or an unknown name.
  case call(String, [ValueExpression])
  /// `{a, b}`
  case aggregate([ValueExpression])
  /// `CAST(operand, "NSDate")`
  case cast(ValueExpression, type: String)
  /// `TERNARY(predicate, then, otherwise)`
  case ternary(PredicateExpression, then: ValueExpression, otherwise: ValueExpression)
  /// `SUBQUERY(collection, $x, predicate)`; the variable without the `$`.
  case subquery(collection: ValueExpression, variable: String, predicate: PredicateExpression)
  /// `FETCH(request, context, countOnly)`
  case fetch(request: ValueExpression, context: ValueExpression, countOnly: Bool)
  /// `collection[index]`
  case element(of: ValueExpression, at: ElementPlace)
  /// `$x := value`
  case assignment(variable: String, value: ValueExpression)
}

/// What a literal can spell.
public enum Constant: Sendable, Hashable {
  /// `NULL` or `NIL`.
  case null
  /// `YES` or `NO`, `TRUE` or `FALSE`.
  case boolean(Bool)
  /// A whole number, written as decimal, hexadecimal, octal or binary.
  case integer(Int64)
  /// Never an infinity or not-a-number: no literal spells those.
  case real(Double)
  /// A text in quotation marks.
  case string(String)
}

/// One step of a key path.
public enum KeyPathElement: Sendable, Hashable {
  /// The name of a property, or of another key that the value has.
  case key(String)
  /// `@count`, `@distinctUnionOfSets` …, without the `@`.
  case collectionOperator(String)
}

extension [KeyPathElement] {
  /// Whether keys alone lead on: then one path behind another is one path.
  package var areKeys: Bool { allSatisfy { if case .key = $0 { true } else { false } } }
}

extension String {
  /// The elements of a key path that is given as a text, as `valueForKeyPath:` takes it.
  package var keyPathElements: [KeyPathElement] {
    keyPathParts.filter { !$0.isEmpty }.map { part in
      part.unicodeScalars.first == "@"
        ? .collectionOperator(String(part.unicodeScalars.dropFirst())) : .key(part)
    }
  }
}

/// What stands between the brackets of `collection[…]`.
public enum ElementPlace: Sendable, Hashable {
  /// `[FIRST]`: the first member; nil for an empty collection.
  case first
  /// `[LAST]`: the last member; nil for an empty collection.
  case last
  /// `[SIZE]`: how many members there are.
  case size
  /// The member at an index from 0, or a dictionary's value for a key.
  case index(ValueExpression)
}

extension ValueExpression {
  /// `name`, for `$source.name` in either of its forms.
  package var plainSourceKey: String? {
    switch self {
    case .keyPath(.variable("source"), let keys):
      guard keys.count == 1, case .key(let key)? = keys.first else { return nil }
      return key
    case .function(.variable("source"), ManagerSelector.valueForKey, let arguments):
      guard arguments.count == 1, case .constant(.string(let key))? = arguments.first else {
        return nil
      }
      return key
    default: return nil
    }
  }

  /// `parts`, for what one entity mapping, several in an aggregate, or all of them, made of the objects
  /// of `$source.parts`.
  package var followedSourceKey: String? {
    if case .aggregate(let members) = self, let key = members.first?.followedSourceKey {
      return members.dropFirst().allSatisfy { $0.followedSourceKey == key } ? key : nil
    }
    guard case .function(.variable("manager"), let selector, let arguments) = self,
      [ManagerSelector.instancesForMapping, ManagerSelector.instancesForRelationship]
        .contains(selector), arguments.count == 2
    else { return nil }
    return arguments[1].plainSourceKey
  }
}

extension ValueExpression {
  /// `$source.name`, as the compiled form of an automatic attribute row has it.
  /// Source: `core-data-migration.md` §3.3, rule 3.
  package static func sourceKeyPath(_ key: String) -> ValueExpression {
    .keyPath(base: .variable("source"), keys: [.key(key)])
  }

  /// The shorter of the two that reads as it was meant: a name such as `a-b` is no key of a path.
  package static func sourceProperty(_ name: String) -> ValueExpression {
    Keywords.isWord(name) ? .sourceKeyPath(name) : .sourceValue(forKey: name)
  }

  /// `FUNCTION($source, "valueForKey:", "name")`, the form of an inferred mapping model.
  /// Source: `core-data-migration.md` §2.3.
  package static func sourceValue(forKey key: String) -> ValueExpression {
    .function(
      receiver: .variable("source"), selector: ManagerSelector.valueForKey,
      arguments: [.constant(.string(key))])
  }
}

/// Selectors that mapping models are written with, each spelled once.
package enum ManagerSelector {
  /// Of any object: the value of a property, by its name.
  package static let valueForKey = "valueForKey:"
  /// Of `$manager`: the destination objects that an entity mapping made of source objects.
  package static let instancesForMapping =
    "destinationInstancesForEntityMappingNamed:sourceInstances:"
  /// Of `$manager`: the destination objects that all mappings of a source relationship's
  /// destination entity made.
  package static let instancesForRelationship =
    "destinationInstancesForSourceRelationshipNamed:sourceInstances:"
  /// Of `$manager`: the source objects that destination objects of an entity mapping were made of.
  package static let sourceInstancesForMapping =
    "sourceInstancesForEntityMappingNamed:destinationInstances:"
  /// Of `$manager`: a request for the source objects of an entity, for `FETCH` to perform.
  package static let fetchRequest = "fetchRequestForSourceEntityNamed:predicateString:"
}
