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
    let isName = name.unicodeScalars.allSatisfy {
      $0.properties.isAlphabetic || $0 == "_"
        || ("0"..."9").contains($0)
    }
    return isName && !name.isEmpty ? String(name) : nil
  }
}
