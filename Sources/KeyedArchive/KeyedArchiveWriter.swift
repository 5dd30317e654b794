/// Builds a keyed archive, object by object.
///
/// A place can be taken before its object is known (``reserve()``), so circles are no trouble.
/// Equal strings share one place, classes are listed once, and the same calls always
/// give the same bytes.
///
///     var writer = KeyedArchiveWriter()
///     let name = writer.string("Recipe")
///     let root = writer.object("NSEntityDescription", [("NSEntityName", name.uid)])
///     let bytes = writer.bytes(root: root)
package struct KeyedArchiveWriter {
  /// A place in `$objects`.
  package struct Reference: Sendable, Hashable {
    package let index: UInt32
    /// As a coded value of another object.
    package var uid: PropertyList { .uid(index) }
    /// The place of nil.
    package static let null = Reference(index: 0)
  }

  private var objects: [PropertyList] = [.string("$null")]
  private var strings: [[UInt8]: Reference] = [:]
  private var classes: [String: Reference] = [:]

  package init() {}

  /// A place whose object follows with ``fill(_:_:_:)``.
  package mutating func reserve() -> Reference { append(.string("$null")) }

  /// Puts an object into a place that was reserved.
  package mutating func fill(
    _ place: Reference, _ className: String, _ fields: [(String, PropertyList)]
  ) {
    var content = PropertyListDictionary(fields.map { (key: $0.0, value: $0.1) })
    content["$class"] = self.class(className).uid
    objects[Int(place.index)] = .dictionary(content)
  }

  package mutating func object(
    _ className: String, _ fields: [(String, PropertyList)]
  ) -> Reference {
    let place = reserve()
    fill(place, className, fields)
    return place
  }

  /// Equal strings get one place.
  package mutating func string(_ text: String) -> Reference {
    let bytes = Array(text.utf8)
    if let known = strings[bytes] { return known }
    let place = append(.string(text))
    strings[bytes] = place
    return place
  }

  /// A string, or nil's place.
  package mutating func string(_ text: String?) -> Reference { text.map { string($0) } ?? .null }

  /// A number, boolean or data as an object of its own.
  package mutating func value(_ value: PropertyList) -> Reference {
    if case .string(let text) = value { return string(text) }
    return append(value)
  }

  /// - Parameter className: `NSArray`, `NSMutableArray`, `NSSet`, `NSMutableSet` …
  package mutating func collection(
    _ elements: [Reference], className: String = "NSArray"
  ) -> Reference {
    object(className, [("NS.objects", .array(elements.map(\.uid)))])
  }

  package mutating func dictionary(
    _ pairs: [(key: Reference, value: Reference)], className: String = "NSMutableDictionary"
  ) -> Reference {
    object(
      className,
      [
        ("NS.keys", .array(pairs.map(\.key.uid))),
        ("NS.objects", .array(pairs.map(\.value.uid))),
      ])
  }

  /// The root of another archive, with all that it leads to.
  package mutating func copy(_ archive: KeyedArchive) -> Reference {
    archive.storage.top["root"].map { copy($0, of: archive.storage) } ?? .null
  }

  /// Each object once, in an order that follows from the values alone: what is equal gives equal copies.
  mutating func copy(_ value: PropertyList, of storage: KeyedArchive.Storage) -> Reference {
    var places: [UInt32: Reference] = [0: .null]
    var waiting: [UInt32] = []
    // Inline values nest no deeper than the property list that they were read from.
    func moved(_ value: PropertyList) -> PropertyList {
      switch value {
      case .uid(let old):
        if let known = places[old] { return known.uid }
        let place = reserve()
        places[old] = place
        waiting.append(old)
        return place.uid
      case .array(let values): return .array(values.map { moved($0) })
      case .set(let values): return .set(values.map { moved($0) })
      case .dictionary(let pairs):
        return .dictionary(
          PropertyListDictionary(pairs.map { (key: $0.key, value: moved($0.value)) }))
      default: return value
      }
    }
    guard value != .uid(0) else { return .null }
    let root = reserve()
    var content = value
    if case .uid(let old) = value { (places[old], content) = (root, storage.objects[Int(old)]) }
    objects[Int(root.index)] = moved(content)
    while let old = waiting.popLast(), let place = places[old] {
      objects[Int(place.index)] = moved(storage.objects[Int(old)])
    }
    return root
  }

  private mutating func append(_ value: PropertyList) -> Reference {
    objects.append(value)
    // Four thousand million objects do not fit into memory, so the index always does.
    return Reference(index: UInt32(truncatingIfNeeded: objects.count - 1))
  }

  private mutating func `class`(_ name: String) -> Reference {
    if let known = classes[name] { return known }
    let chain = ArchivedClasses.chain(of: name).map(PropertyList.string)
    let place = append(.dictionary(["$classname": .string(name), "$classes": .array(chain)]))
    classes[name] = place
    return place
  }

  /// The archive as a property list.
  package func archive(top: [(String, Reference)]) -> PropertyList {
    .dictionary([
      "$version": .integer(100_000),
      "$archiver": .string("NSKeyedArchiver"),
      "$top": .dictionary(PropertyListDictionary(top.map { (key: $0.0, value: $0.1.uid) })),
      "$objects": .array(objects),
    ])
  }

  /// The archive as a binary property list.
  package func bytes(root: Reference) -> [UInt8] { archive(top: [("root", root)]).binary() }
}

/// The superclasses that an archive lists with a class, as seen in Apple's own archives.
enum ArchivedClasses {
  private static let parents: [String: String] = [
    "NSMutableDictionary": "NSDictionary", "NSMutableArray": "NSArray", "NSMutableSet": "NSSet",
    "NSMutableString": "NSString", "NSMutableData": "NSData",
    "NSMutableOrderedSet": "NSOrderedSet", "NSNumber": "NSValue",
    "NSDecimalNumber": "NSNumber", "NSDecimalNumberPlaceholder": "NSDecimalNumber",
    "NSKnownKeysDictionary1": "NSKnownKeysDictionary",
    "NSKnownKeysDictionary": "NSMutableDictionary",
    "NSKnownKeysMappingStrategy1": "NSKnownKeysMappingStrategy",
    "NSAttributeDescription": "NSPropertyDescription",
    "NSRelationshipDescription": "NSPropertyDescription",
    "NSFetchedPropertyDescription": "NSPropertyDescription",
    "NSExpressionDescription": "NSPropertyDescription",
    "NSDerivedAttributeDescription": "NSAttributeDescription",
    "NSCompositeAttributeDescription": "NSAttributeDescription",
    "NSFetchRequest": "NSPersistentStoreRequest", "NSComparisonPredicate": "NSPredicate",
    "NSCompoundPredicate": "NSPredicate", "NSSelfExpression": "NSExpression",
    "NSConstantValueExpression": "NSExpression", "NSFunctionExpression": "NSExpression",
    "NSVariableExpression": "NSExpression", "NSAggregateExpression": "NSExpression",
    "NSKeyPathExpression": "NSFunctionExpression",
    "NSKeyPathSpecifierExpression": "NSExpression",
    "NSComparisonPredicateOperator": "NSPredicateOperator",
    "NSEqualityPredicateOperator": "NSPredicateOperator",
    "NSInPredicateOperator": "NSPredicateOperator",
    "NSMatchingPredicateOperator": "NSStringPredicateOperator",
    "NSStringPredicateOperator": "NSPredicateOperator",
  ]

  static func chain(of name: String) -> [String] {
    var names = [name]
    while let last = names.last, let parent = parents[last] { names.append(parent) }
    return names + ["NSObject"]
  }
}
