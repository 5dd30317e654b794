import GodwitDurableFiles

extension AttributeDescription {
  /// The relationship whose members a derived attribute counts, `pages` of `count:(pages)` or
  /// `pages.@count`; nil for every other attribute, and for one whose type is not that of a number.
  ///
  /// What Core Data makes of a count in a text, a boolean or bytes is not known: like every
  /// derivation that is not understood, it is carried, or left to Core Data.
  package var countedRelationship: String? {
    guard type.holdsCounts, let derivation = derivationExpression else { return nil }
    guard
      let name = derivation.after("count:(")?.before(")") ?? derivation.before(".@count")
    else { return nil }
    // A path or a function of more than a relationship is not counted. Which signs a name has
    // otherwise is not asked: Devanagari's virama, say, is no letter.
    let isName = name.unicodeScalars.allSatisfy { !".@(), ".unicodeScalars.contains($0) }
    return isName && !name.isEmpty ? name : nil
  }
}

extension AttributeType {
  /// Whether every small number is a value of the type.
  fileprivate var holdsCounts: Bool {
    switch self {
    case .integer16, .integer32, .integer64, .decimal, .double, .float, .date: true
    case .undefined, .string, .boolean, .binary, .uuid, .uri, .transformable, .objectID,
      .composite:
      false
    }
  }

  /// The highest number of members that the type can hold; nil where no store has as many.
  package var highestCount: Int64? {
    switch self {
    case .integer16: Int64(Int16.max)
    case .integer32: Int64(Int32.max)
    default: nil
    }
  }

  /// Whether a whole number is stored as a floating-point number, too. It is what SQLite does in a
  /// column of the declared type, and not in that of a date.
  /// Source: `core-data-sqlite-format.md` §5.
  package var storesReals: Bool { self == .double || self == .float }
}
