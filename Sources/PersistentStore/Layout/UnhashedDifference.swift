import GodwitObjectModel

/// What differs between two models that have the same version hashes, and matters to a migration.
///
/// No hash has the declared order of a composite's elements, which names their columns; of external
/// storage and of values that are kept on deletion it has one bit for both; of a derived attribute it has
/// the expression alone, of a composite one its elements; uniqueness constraints are joined in it, so that those of `a`
/// and `b` are that of `ab`. A store that was written under one of two such models is read wrongly under the
/// other. Source: `core-data-models.md` §6.1 and §6.2, `core-data-sqlite-format.md` §4.5.
package struct UnhashedDifference: Sendable, Equatable {
  /// A value that one model looks for elsewhere, or in another form, than the other; or a uniqueness constraint that
  /// one of the two does not have.
  package struct Place: Sendable, Equatable, CustomStringConvertible {
    package var entity: EntityName
    /// The property, with the elements of a composite behind it; in parentheses several under one constraint.
    package var path: String
    /// Whether the value is read where it was written, by the name that its renaming identifier gives.
    package var isCarried: Bool
    /// For a person, without the place.
    var text: String

    package var description: String { "\(entity).\(path) \(text)" }
  }

  /// Where one model looks for values, for their form, or for what keeps them unique, otherwise than the other.
  package private(set) var storage: [Place] = []
  /// Renaming identifiers.
  package private(set) var identifiers: [String] = []
  /// Default values.
  package private(set) var defaults: [String] = []

  /// - Parameters:
  ///   - given: A model with the version hashes of the other.
  ///   - own: The model that the store was written under.
  package static func between(given: EntityHierarchy, own: EntityHierarchy) -> UnhashedDifference {
    recent.output(for: Input(given: given.hashes, own: own.hashes)) {
      UnhashedDifference(given, own)
    }
  }

  /// The place of the model that is most like the store's own, the first one of several; nil where
  /// each of them would read other values than the store's own model wrote.
  package static func closest(to own: EntityHierarchy, among given: [EntityHierarchy]) -> Int? {
    let differences = given.map { between(given: $0, own: own) }
    return given.indices.filter { differences[$0].storage.isEmpty }.min { a, b in
      let (x, y) = (differences[a], differences[b])
      return (x.identifiers.count, x.defaults.count) < (y.identifiers.count, y.defaults.count)
    }
  }

  /// Models are told by what their copies share.
  private struct Input: Equatable, Sendable {
    let given: Memo<[EntityName: VersionHash]>
    let own: Memo<[EntityName: VersionHash]>

    static func == (a: Input, b: Input) -> Bool { a.given === b.given && a.own === b.own }
  }

  /// The stores of a fleet have the same few.
  private static let recent = RecentResults<Input, UnhashedDifference>(limit: 8)

  private init(_ given: EntityHierarchy, _ own: EntityHierarchy) {
    let layouts = (given: StoreLayout(given), own: StoreLayout(own))
    for name in given.order {
      guard let a = given[name], let b = own[name] else { continue }
      compare(
        identifiers: a.mappingKey, b.mappingKey, "\(name): the given model's renaming identifier is"
      )
      for property in a.properties {
        guard let other = b.properties.first(where: { $0.name.isSameName(as: property.name) })
        else { continue }
        let place = "\(name).\(property.name): the given model"
        compare(
          identifiers: property.traits.mappingKey, other.traits.mappingKey,
          "\(place)'s renaming identifier is")
        if let x = property.attribute, let y = other.attribute, x.defaultValue != y.defaultValue {
          defaults.append(
            "\(place) and the store's own model have different default values; the given one is used"
          )
        }
      }
      // Of derived and composite attributes not even the name is in a hash.
      let places = (layouts.given.places(of: a), layouts.own.places(of: b))
      storage += Self.differing(places.0, places.1).map { path, text, isCarried in
        Place(entity: name, path: path, isCarried: isCarried, text: text)
      }
      storage += Self.constraints(of: a, notOf: b).map {
        Place(
          entity: name, path: $0, isCarried: false,
          text: "is under a uniqueness constraint that the store's own model does not have")
      }
      storage += Self.constraints(of: b, notOf: a).map {
        Place(
          entity: name, path: $0, isCarried: false,
          text: "is not under the uniqueness constraint that the store's own model has")
      }
    }
  }

  /// Constraints of one description, by what is under them.
  private static func constraints(
    of entity: EntityDescription, notOf other: EntityDescription
  ) -> [String] {
    entity.uniquenessConstraints.filter { !other.uniquenessConstraints.contains($0) }.map {
      $0.count == 1 ? $0[0] : "(\($0.joined(separator: ", ")))"
    }
  }

  private mutating func compare(identifiers given: String, _ own: String, _ what: String) {
    guard !given.isSameName(as: own) else { return }
    identifiers.append("\(what) \(given), the store's own model says \(own); the given one is used")
  }

  /// Paths of which the two sides do not say the same, with what they say.
  private static func differing(
    _ given: [StoredValue], _ own: [StoredValue]
  ) -> [(path: String, text: String, isCarried: Bool)] {
    let known = own.map { (NameKey($0.path), $0.text) }
    let old = Dictionary(known, uniquingKeysWith: { first, _ in first })
    let new = Set(given.map { NameKey($0.path) })
    let carried = Set(
      given.filter { old[NameKey($0.before)] == $0.text }.map { NameKey($0.before) }
    ).subtracting(new)
    let read = given.filter { old[NameKey($0.path)] != $0.text }.map { value in
      let origin = own.first { $0.text == value.text && !$0.path.isSameName(as: value.path) }
      return (
        value.path,
        "is read as \(value.text)" + (origin.map { ", where \($0.path) was written," } ?? "")
          + (old[NameKey(value.path)].map { " and was written as \($0)" }
            ?? " and is not in the store's own model"),
        carried.contains(NameKey(value.before))
      )
    }
    let lost = own.filter { !new.contains(NameKey($0.path)) }.map { value in
      (
        value.path, "was written as \(value.text) and is not in the given model",
        carried.contains(NameKey(value.path))
      )
    }
    return read + lost
  }
}

/// A value of an entity's own, as one model stores it.
private struct StoredValue {
  var path: String
  /// Where it lies, and in what form.
  var text: String
  /// The path by the property's renaming identifier.
  var before: String
}

extension StoreLayout {
  /// Where an entity's own properties lie, and in what form.
  fileprivate func places(of entity: EntityDescription) -> [StoredValue] {
    entity.properties.flatMap { property in
      places(of: property, in: entity.name).map { path, text in
        StoredValue(
          path: path, text: text,
          before: property.traits.mappingKey + path.dropFirst(property.name.count))
      }
    }
  }

  private func places(
    of property: PropertyDescription, in entity: EntityName
  ) -> [(path: String, text: String)] {
    guard property.isStored else { return [] }
    switch property {
    case .attribute(let attribute):
      return valueColumns(of: attribute, in: entity).map { value in
        let form = value.attribute.isExternal ? " with external storage" : ""
        return (
          value.keyPath(below: attribute.name), "\(value.type.xmlName)\(form) in \(value.column)"
        )
      }
    case .relationship(let relationship):
      guard let storage = pairStorage(of: relationship, declaredBy: entity) else { return [] }
      let columns = [
        storage.ownerColumn, storage.targetColumn, storage.orderColumn, storage.inverseOrderColumn,
        entityColumn(of: relationship.name, in: entity),
      ].compactMap(\.self)
      return [(relationship.name, "pairs in \(storage.table), \(columns.joined(separator: ", "))")]
    case .fetchedProperty:
      return []
    }
  }
}
