import GodwitKeyedArchive

/// What only a compiled model or a model cache says of an attribute; raw values are the archive's keys.
/// Source: `core-data-models.md` §4.
package enum ArchivedPart: String, Sendable, Hashable {
  /// A default value that no column holds as it is: an object of a Transformable attribute, a composite's dictionary.
  case defaultValue = "NSDefaultValue"
  /// Of the objects that a derived attribute is derived from, those that count.
  case filter = "NSFilteringPredicate"
}

extension AttributeDescription {
  /// Whether new objects would have a default value that only Core Data can give them.
  package var hasUnstorableDefault: Bool {
    guard derivationExpression == nil, let bytes = archived[.defaultValue] else { return false }
    // An empty dictionary gives a composite's elements nothing.
    return type != .composite
      || (try? KeyedArchive(bytes: bytes))?[top: "root"]?.entries?.isEmpty != true
  }

  /// ``derivationExpression`` without the predicate of ``ArchivedPart/filter``. It is not known whether that is hashed.
  package var hashedDerivation: String? {
    guard archived[.filter] != nil else { return derivationExpression }
    return derivationExpression?.utf8
      .split(
        separator: DerivationExpression.filterMark.utf8, maxSplits: 1,
        omittingEmptySubsequences: false
      )
      .first
      .map { String(Substring($0)) }
  }
}
