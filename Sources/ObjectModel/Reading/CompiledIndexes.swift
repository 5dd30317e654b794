/// Which fetch indexes the compiled model holds for an entity of an XML model.
///
/// More than the XML shows: an attribute with the old `indexed` flag, or with a one-element
/// ascending fetch index, also gets an index of its own name, and an old compound index one named
/// by its attributes. They precede the declared ones.
///
/// Source: `core-data-sqlite-format.md` §8, "Details".
enum CompiledIndexes {
  static func indexes(
    declared: [FetchIndexDescription], properties: [PropertyDescription], compound: [[String]]
  ) -> [FetchIndexDescription] {
    var implied = properties.filter(\.traits.isIndexed).map(\.name)
      .sorted { $0.precedesInBytes($1) }.map { single($0) }
    implied += compound.map { names in
      FetchIndexDescription(
        name: names.joined(separator: "_"),
        elements: names.map { FetchIndexDescription.Element(propertyName: $0) })
    }
    let relationships = Set(properties.filter { $0.relationship != nil }.map { NameKey($0.name) })
    var taken = Set(implied.map { NameKey($0.name) })
    for index in declared {
      guard index.elements.count == 1, let element = index.elements.first, !element.isRTree,
        element.isAscending, let name = element.propertyName,
        !relationships.contains(NameKey(name)), taken.insert(NameKey(name)).inserted
      else { continue }
      implied.append(single(name))
    }
    let names = Set(declared.map { NameKey($0.name) })
    return implied.filter { !names.contains(NameKey($0.name)) } + declared
  }

  /// The fewest declared indexes that compile to `compiled`: what an XML file should list.
  static func declared(
    from compiled: [FetchIndexDescription], properties: [PropertyDescription],
    compound: [[String]]
  ) -> [FetchIndexDescription] {
    var kept = compiled
    for index in compiled where looksImplied(index, compound: compound) {
      let fewer = kept.filter { $0 != index }
      if indexes(declared: fewer, properties: properties, compound: compound) == compiled {
        kept = fewer
      }
    }
    return kept
  }

  private static func looksImplied(_ index: FetchIndexDescription, compound: [[String]]) -> Bool {
    index.elements.first?.propertyName == index.name
      || compound.contains { $0.joined(separator: "_") == index.name }
  }

  private static func single(_ name: String) -> FetchIndexDescription {
    FetchIndexDescription(name: name, elements: [.init(propertyName: name)])
  }
}
