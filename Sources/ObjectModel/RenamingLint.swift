/// Finds renaming identifiers that name an intermediate name.
///
/// An identifier is the item's *first* name: version 1 `color`, version 2 `paintColor` with the
/// identifier `color`, version 3 `primaryColor` with the identifier `color` again. With the
/// identifier `paintColor`, nothing of version 2 corresponds, and inference removes the old values
/// and adds an empty property. Source: `core-data-migration.md` §2.1, "Chains".
package enum RenamingLint {
  /// A renaming identifier that names an intermediate name.
  package struct Finding: Sendable, Equatable, Codable {
    /// The version whose identifier is wrong, and the one before it.
    package let version: String
    /// The version before ``version``, in the order given.
    package let previousVersion: String
    /// The entity in ``version`` that has the identifier, or the property with it.
    package let entity: EntityName
    /// Nil when the identifier is that of the entity itself.
    package let property: String?
    /// The identifier as it is in ``version``.
    package let identifier: String
    /// What it should be: the identifier in the previous version.
    package let expected: String
  }

  /// What is suspicious in the renaming identifiers of several versions.
  ///
  /// - Parameter versions: In the order in which they were made.
  package static func findings(in versions: [(name: String, model: ManagedObjectModel)])
    -> [Finding]
  {
    var findings: [Finding] = []
    for (earlier, later) in zip(versions, versions.dropFirst()) {
      let before = index(earlier.model.entities, name: \.name.rawValue)
      let beforeByKey = index(earlier.model.entities, name: \.mappingKey)
      for entity in later.model.entities {
        let expected = intermediate(
          entity.renamingIdentifier,
          keyOfName: entity.renamingIdentifier.flatMap { before[NameKey($0)]?.mappingKey },
          isKey: { beforeByKey[NameKey($0)] != nil })
        if let expected {
          findings.append(
            Finding(
              version: later.name, previousVersion: earlier.name, entity: entity.name,
              property: nil, identifier: entity.renamingIdentifier ?? "", expected: expected))
        }
        guard let source = beforeByKey[NameKey(expected ?? entity.mappingKey)] else { continue }
        findings += properties(of: entity, source, later.name, earlier.name)
      }
    }
    return findings
  }

  private static func index<Item>(_ items: [Item], name: (Item) -> String) -> [NameKey: Item] {
    Dictionary(items.map { (NameKey(name($0)), $0) }) { first, _ in first }
  }

  private static func properties(
    of entity: EntityDescription, _ source: EntityDescription, _ version: String,
    _ previous: String
  ) -> [Finding] {
    let named = index(source.properties.map(\.traits), name: \.name)
    let keyed = index(source.properties.map(\.traits), name: \.mappingKey)
    return entity.properties.map(\.traits).compactMap { traits in
      let expected = intermediate(
        traits.renamingIdentifier,
        keyOfName: traits.renamingIdentifier.flatMap { named[NameKey($0)]?.mappingKey },
        isKey: { keyed[NameKey($0)] != nil })
      return expected.map {
        Finding(
          version: version, previousVersion: previous, entity: entity.name,
          property: traits.name, identifier: traits.renamingIdentifier ?? "", expected: $0)
      }
    }
  }

  /// What the identifier should be, when it is the name of an item that goes by another one.
  private static func intermediate(
    _ identifier: String?, keyOfName: String?, isKey: (String) -> Bool
  ) -> String? {
    guard let identifier, let keyOfName, !keyOfName.isSameName(as: identifier), !isKey(identifier)
    else {
      return nil
    }
    return keyOfName
  }
}

extension RenamingLint.Finding: CustomStringConvertible {
  /// What is suspicious, and what to do about it.
  package var description: String {
    let item = property.map { "\(entity).\($0)" } ?? "\(entity)"
    return "Version \(version): \(item) has the renaming identifier \(identifier), which is only "
      + "its name in \(previousVersion). Set it to \(expected); as it is, a migration from "
      + "\(previousVersion) drops the old values."
  }
}
