import GodwitExpressions
import GodwitObjectModel

// What an expression gives, and what the property takes.
extension ExpressionCheck {
  mutating func checkAssignment(of value: ValueExpression, to property: PropertyDescription) {
    text = value.description
    isAutomatic = value == .sourceKeyPath(property.name)
    isEvaluated = property.isStored
    isLinked = property.relationship != nil
    let found = type(of: value)
    switch property {
    case .attribute(let attribute):
      ofEach(found.cases) { $0.checkAttribute(attribute, $1) }
      checkNil(value, attribute)
      // Only elements are evaluated: a dictionary's other keys would go without a word.
      if attribute.type == .composite, !attribute.traits.isTransient,
        value.givesBucket
      {
        find(
          .typeMismatch, .error,
          "what a bucket gives may have keys that are not elements of the composite. Set its elements in "
            + "a policy")
      }
    case .relationship(let relationship):
      ofEach(found.leaves) { $0.checkRelationship(relationship, $1) }
    case .fetchedProperty:
      find(.typeMismatch, .error, "a fetched property cannot be set")
    }
  }

  /// No text becomes a number by itself, no number a date.
  /// Source: `core-data-migration.md` §4.5 ("Assignment coercion").
  private mutating func checkAttribute(
    _ attribute: AttributeDescription, _ found: ExpressionType
  ) {
    switch found {
    case .value(let kind):
      // What is not stored is not evaluated.
      guard kind != .unknown, !attribute.traits.isTransient, attribute.type != .objectID,
        !kind.isAssignable(to: attribute.type)
      else {
        if !attribute.traits.isTransient { checkElements(kind, ValueKind(attribute), []) }
        return
      }
      let wanted = ValueKind(attribute)
      // Without a value in any row it does no harm, and what is automatic nobody has written.
      find(
        .typeMismatch, isAutomatic ? .warning : .error,
        "\(kind.description) is not converted to \(wanted.description) automatically. "
          + advice(from: kind, to: wanted))
    case .object, .made, .someDestinationObjects:
      find(.typeMismatch, .error, "an object cannot be the value of an attribute")
    case .collection:
      find(.typeMismatch, .error, "a collection cannot be the value of an attribute")
    case .helper(let name):
      find(.typeMismatch, .error, "$\(name) cannot be the value of an attribute")
    case .null:
      if !attribute.mayBeNull {
        find(.typeMismatch, .error, "NULL cannot be the value of a required attribute")
      }
    case .either, .unknown: break
    }
  }

  /// A mapping model hands nil on, where inference gives the default value.
  /// Source: `core-data-migration.md` §2.2 and §4.5.
  private mutating func checkNil(_ value: ValueExpression, _ attribute: AttributeDescription) {
    guard mapping.policy == nil, !attribute.mayBeNull, !attribute.traits.isTransient,
      attribute.type != .composite,
      let entity = mapping.sourceEntity, let key = value.plainSourceKey,
      let was = source.property(key, of: entity)?.property.attribute, was.mayBeNull
    else { return }
    find(
      .requiredWithoutValue, .warning,
      "the attribute is required, and \(entity).\(key) is "
        + "\(was.traits.isOptional ? "optional" : "derived"): an object without a value fails in "
        + "validation (1570). Give it one, as in TERNARY($source.\(key) == nil, value, $source.\(key))"
    )
  }

  /// Elements of one name: what is not assignable stays without a value where a composite is copied, which
  /// is counted as a loss, and ends the migration where the composite is the value of an expression.
  private mutating func checkElements(_ old: ValueKind, _ new: ValueKind, _ path: [String]) {
    guard case .composite(let old) = old, case .composite(let new) = new else {
      guard !path.isEmpty, old != new, old != .unknown, new != .unknown,
        Set([old, new]) != [.data, .transformed]
      else { return }
      find(
        .typeMismatch, isAutomatic ? .warning : .error,
        "the element \(path.joined(separator: ".")) is \(old.description) and is not converted to "
          + "\(new.description). Set the elements in a policy")
      return
    }
    for name in old.keys.sorted(by: { $0.precedesInBytes($1) }) {
      if let from = old[name], let to = new[name] { checkElements(from, to, path + [name]) }
    }
  }

  private func advice(from old: ValueKind, to new: ValueKind) -> String {
    let converter: String
    switch (old, new) {
    case (.composite, _): return "Take one of its elements, as in $source.place.street"
    case (_, .composite):
      return "Give it another composite as a whole, or set its elements in a policy"
    case (.string, .transformed):
      return
        "Give it the bytes that its transformer reads, with godwit.data(…, encoding) or from a policy"
    case (_, .transformed):
      return "Give it the bytes that its transformer reads, from a policy"
    case (.transformed, _): return "Read it in a policy, with the code of its transformer"
    case (.date, .string): converter = "godwit.dateString(…, format)"
    case (.data, .string): converter = "godwit.text(…, encoding)"
    case (_, .string): converter = "godwit.string(…) or godwit.dateString(…, format)"
    case (.string, .number): converter = "godwit.integer(…) or godwit.double(…)"
    case (.date, .number): converter = "godwit.seconds(…)"
    case (.string, .date), (.number, .date): converter = "godwit.date(…)"
    case (.string, .uuid): converter = "godwit.uuid(…)"
    case (.string, .url): converter = "godwit.url(…)"
    case (.string, .data): converter = "godwit.data(…, encoding)"
    default: return "No function converts it: do it in a policy"
    }
    return "Convert it, for instance with \(converter)"
  }

  private mutating func checkRelationship(
    _ relationship: RelationshipDescription, _ found: ExpressionType
  ) {
    let wanted = relationship.destinationEntity
    switch found {
    case .object(.source, _):
      find(
        .typeMismatch, .error,
        "source objects cannot be put into the destination. Use FUNCTION($manager, "
          + "\"\(ManagerSelector.instancesForMapping)\", mapping, objects)")
    case .object(.destination, let entity):
      guard !destination.isKind(entity, of: wanted), !destination.isKind(wanted, of: entity) else {
        return
      }
      find(.typeMismatch, .error, "\(entity) is not the relationship's destination, \(wanted)")
    case .made(let entity):
      guard !destination.isKind(entity, of: wanted) else { return }
      find(.typeMismatch, .error, "\(entity) is not the relationship's destination, \(wanted)")
    case .value, .helper:
      find(.typeMismatch, .error, "a relationship takes objects, and this is a value")
    case .someDestinationObjects, .null, .unknown, .collection, .either: break
    }
  }
}
