extension AttributeDescription {
  /// The relationship whose members a derived attribute counts, `pages` of `count:(pages)` or
  /// `pages.@count`; nil for every other attribute.
  public var countedRelationship: String? {
    guard let derivation = derivationExpression else { return nil }
    let name: Substring
    if derivation.hasPrefix("count:("), derivation.hasSuffix(")") {
      name = derivation.dropFirst("count:(".count).dropLast()
    } else if derivation.hasSuffix(".@count") {
      name = derivation.dropLast(".@count".count)
    } else {
      return nil
    }
    // A path or a function of more than a relationship is not counted. Which signs a name has
    // otherwise is not asked: Devanagari's virama, say, is no letter.
    let isName = name.unicodeScalars.allSatisfy { !".@(), ".unicodeScalars.contains($0) }
    return isName && !name.isEmpty ? String(name) : nil
  }
}
