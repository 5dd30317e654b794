/// What makes a model one that Core Data would compile and open, so that nothing is dropped or
/// mixed up where two items have one name, or where a name leads nowhere.
///
/// Every reader checks what it has read, whatever the form. Source: `core-data-models.md` §2, §4
/// for the names that items refer to each other by; the rules are those of Xcode's model compiler
/// and of `NSManagedObjectModel`, which keep properties by name.
struct ModelRules {
  /// 4 096. UTF-8 bytes of a name. The longest of a real model has less than 100.
  static let nameByteLimit = 4_096
  /// How many problems an error lists.
  static let mostProblems = 10

  private let model: ManagedObjectModel
  /// False for the entities of one configuration, whose relationships may lead out of it.
  private let isWhole: Bool
  private var problems: [ModelProblem] = []

  /// - Throws: ``ModelError/invalid(path:problems:)``, ``ModelError/tooLarge(what:limit:)``.
  static func require(_ model: ManagedObjectModel, path: String, isWhole: Bool = true) throws {
    var rules = ModelRules(model: model, isWhole: isWhole)
    rules.checkEntities()
    try rules.end(path)
    // Inheritance can be followed from here on.
    let hierarchy = try EntityHierarchy(model)
    for name in hierarchy.order {
      guard let entity = hierarchy[name] else { continue }
      rules.checkNames(of: entity, in: hierarchy)
      for relationship in entity.properties.compactMap(\.relationship) {
        rules.check(relationship, of: entity, in: hierarchy)
      }
      rules.checkReferences(of: entity, in: hierarchy)
    }
    for root in hierarchy.roots { rules.checkSpellings(below: root, in: hierarchy) }
    rules.checkListedNames()
    try rules.end(path)
  }

  private init(model: ManagedObjectModel, isWhole: Bool) {
    self.model = model
    self.isWhole = isWhole
  }

  private mutating func find(_ entity: EntityName?, _ property: String?, _ message: String) {
    let problem = ModelProblem(entity: entity, property: property, message: message)
    if !problems.contains(problem) { problems.append(problem) }
  }

  private func end(_ path: String) throws {
    guard !problems.isEmpty else { return }
    throw ModelError.invalid(path: path, problems: problems)
  }
}

/// Something in a model that Core Data would not open.
package struct ModelProblem: Sendable, Equatable {
  /// Nil where the model as a whole is meant.
  package let entity: EntityName?
  /// The property of ``entity``; nil where the entity or the model as a whole is meant.
  package let property: String?
  /// What is wrong and how to mend it, as whole sentences that name entity and property.
  package let message: String

  package init(entity: EntityName?, property: String?, message: String) {
    (self.entity, self.property, self.message) = (entity, property, message)
  }
}

// MARK: - Entities

extension ModelRules {
  private mutating func checkEntities() {
    var exact: Set<EntityName> = []
    var byCase: [String: EntityName] = [:]
    for entity in model.entities {
      let name = entity.name
      checkText(name.rawValue, "The name of entity \(shown(name.rawValue))", name, nil)
      guard exact.insert(name).inserted else {
        find(name, nil, "The model has two entities named \(name). Rename one of them.")
        continue
      }
      if let other = byCase.updateValue(name, forKey: name.rawValue.uppercased()) {
        find(
          name, nil,
          "The entities \(other) and \(name) differ only in case or in Unicode normalisation, and "
            + "Core Data would give them one table. Rename one of them.")
      }
    }
    for entity in model.entities {
      guard let parent = entity.superentity, !exact.contains(parent) else { continue }
      find(
        entity.name, nil,
        "The superentity \(parent) of entity \(entity.name) is not in the model. Add it, or give "
          + "\(entity.name) another one.")
    }
    if problems.isEmpty { checkCircles() }
  }

  private mutating func checkCircles() {
    var parents: [EntityName: EntityName] = [:]
    for entity in model.entities { parents[entity.name] = entity.superentity }
    // Entities from which a root can be reached.
    var rooted: Set<EntityName> = []
    for entity in model.entities {
      var trail: [EntityName] = []
      var seen: Set<EntityName> = []
      var current: EntityName? = entity.name
      while let name = current, !rooted.contains(name), seen.insert(name).inserted {
        trail.append(name)
        current = parents[name]
      }
      guard let circle = current, !rooted.contains(circle) else {
        rooted.formUnion(trail)
        continue
      }
      let names = trail.drop { $0 != circle }.map(\.rawValue).joined(separator: ", ")
      find(
        circle, nil,
        "The inheritance of \(names) goes in a circle. Give one of them another superentity.")
      return
    }
  }

  /// A name that SQLite and the messages of a run can hold.
  private mutating func checkText(
    _ text: String, _ what: String, _ entity: EntityName?, _ property: String?
  ) {
    if text.isEmpty {
      find(entity, property, "\(what) is empty. Give it a name.")
    } else if text.utf8.count > Self.nameByteLimit {
      find(
        entity, property,
        "\(what) has more than \(Self.nameByteLimit) bytes. Give it a shorter name.")
    } else if text.utf8.contains(0) {
      find(entity, property, "\(what) has a NUL character in it. Give it another name.")
    }
  }

  /// Names of what is no property. A `contents` file cannot hold one that is empty, an archive can.
  private mutating func checkListedNames() {
    for entity in model.entities {
      for index in entity.fetchIndexes {
        checkText(index.name, "The name of a fetch index of \(entity.name)", entity.name, nil)
      }
    }
    let entities = Set(model.entities.map(\.name))
    for (name, members) in model.configurations.sorted(by: { $0.key.precedesInBytes($1.key) }) {
      checkText(name, "The name of a configuration", nil, nil)
      for member in members where isWhole && !entities.contains(member) {
        find(
          member, nil,
          "The configuration \(name) lists the entity \(member), which is not in the model. Take it out of the "
            + "configuration, or add the entity.")
      }
    }
    for request in model.fetchRequestTemplates {
      checkText(request.name, "The name of a fetch request", nil, nil)
    }
  }

  private func shown(_ name: String) -> String {
    name.utf8.count > 60 ? name.prefix(40) + "…" : name
  }
}

// MARK: - Properties

extension ModelRules {
  private mutating func checkNames(of entity: EntityDescription, in hierarchy: EntityHierarchy) {
    let name = entity.name
    var own: [NameKey: PropertyDescription] = [:]
    for property in entity.properties {
      let place = "\(name).\(shown(property.name))"
      checkText(property.name, "The name of \(property.kindName) \(place)", name, property.name)
      if let other = own.updateValue(property, forKey: NameKey(property.name)) {
        let (a, b) = (other.kindName, property.kindName)
        find(
          name, property.name,
          "Entity \(name) has "
            + (a == b ? "two \(a)s" : "\(a.withArticle) and \(b.withArticle)")
            + " named \(property.name). Rename one of them.")
      } else if let parent = entity.superentity,
        let inherited = hierarchy.property(property.name, of: parent)
      {
        find(
          name, property.name,
          "Entity \(name) declares \(property.name), which it inherits from \(inherited.entity). "
            + "Remove or rename one of the two.")
      }
      if let elements = property.attribute?.compositeElements {
        checkElements(elements, name, property.name)
      }
    }
  }

  private mutating func checkElements(
    _ elements: [AttributeDescription], _ entity: EntityName, _ property: String
  ) {
    // By canonical equality: elements are keys of a dictionary, and columns of a table.
    var names: Set<String> = []
    for element in elements {
      checkText(element.name, "The name of an element of \(entity).\(property)", entity, property)
      if !names.insert(element.name).inserted {
        find(
          entity, property,
          "The composite attribute \(entity).\(property) has two elements named \(element.name). "
            + "Rename one of them.")
      }
      if let inner = element.compositeElements { checkElements(inner, entity, property) }
    }
  }

  /// Names in one table that only Unicode normalisation tells apart.
  ///
  /// SQLite would keep both columns. Nearly everything else that people use would show and take
  /// them for one, and so would dictionaries of Swift's `String`.
  private mutating func checkSpellings(below root: EntityName, in hierarchy: EntityHierarchy) {
    var spellings: [String: String] = [:]
    var columns: [String: String] = [:]
    func isRespelled(_ name: String, _ known: inout [String: String]) -> Bool {
      known.updateValue(name, forKey: name).map { !$0.isSameName(as: name) } ?? false
    }
    for name in hierarchy.subtree(of: root) {
      for property in hierarchy[name]?.properties ?? [] {
        let text = property.name
        let hasOther = isRespelled(text, &spellings)
        if isRespelled(text.uppercased(), &columns) || hasOther {
          find(
            name, text,
            "\(name).\(text) and another property in the table of \(root) have names that differ "
              + "only in Unicode normalisation. Rename one of them.")
        }
        // The columns of a composite attribute are named after its elements alone.
        for element in Self.leafNames(property.attribute?.compositeElements ?? [])
        where isRespelled(element.uppercased(), &columns) {
          find(
            name, text,
            "The element \(element) of \(name).\(text) and another property in the table of \(root) "
              + "have names that differ only in Unicode normalisation. Rename one of them.")
        }
      }
    }
  }

  /// The names of the elements that have columns, those of composites inside composites included.
  private static func leafNames(_ elements: [AttributeDescription]) -> [String] {
    elements.flatMap { $0.compositeElements.map(leafNames) ?? [$0.name] }
  }
}

// MARK: - References

extension ModelRules {
  private mutating func check(
    _ relationship: RelationshipDescription, of entity: EntityDescription,
    in hierarchy: EntityHierarchy
  ) {
    let (name, place) = (relationship.name, "\(entity.name).\(relationship.name)")
    let destination = relationship.destinationEntity
    guard hierarchy.contains(destination) else {
      if !isWhole, !destination.rawValue.isEmpty { return }
      find(
        entity.name, name,
        destination.rawValue.isEmpty
          ? "The relationship \(place) has no destination entity. Choose one."
          : "The destination entity \(destination) of the relationship \(place) is not in the "
            + "model. Add it, or choose another.")
      return
    }
    guard let inverseName = relationship.inverseName else { return }
    let inversePlace = "\(destination).\(inverseName)"
    guard let inverse = hierarchy.inverse(of: relationship) else {
      find(
        entity.name, name,
        "The inverse \(inversePlace) of the relationship \(place) is not a relationship of the "
          + "model. Add it, or choose another.")
      return
    }
    let back = inverse.relationship
    let leadsBack =
      hierarchy.isKind(back.destinationEntity, of: entity.name)
      || hierarchy.isKind(entity.name, of: back.destinationEntity)
    guard leadsBack, back.inverseName.isSameName(as: name) else {
      find(
        entity.name, name,
        "The relationship \(place) names the inverse \(inversePlace), which does not name \(place) "
          + "as its own. Make them each other's inverse.")
      return
    }
  }

  private mutating func checkReferences(
    of entity: EntityDescription, in hierarchy: EntityHierarchy
  ) {
    /// A composite attribute may be followed by the names of elements.
    func isKnown(_ path: String) -> Bool {
      if hierarchy.property(path, of: entity.name) != nil { return true }
      let parts = path.keyPathParts
      var elements = parts.first.flatMap {
        hierarchy.property($0, of: entity.name)?.property.attribute?.compositeElements
      }
      for part in parts.dropFirst() {
        guard let next = elements?.first(where: { $0.name.isSameName(as: part) }) else {
          return false
        }
        elements = next.compositeElements
      }
      return parts.count > 1
    }
    for path in entity.uniquenessConstraints.joined() where !isKnown(path) {
      find(
        entity.name, path,
        "A uniqueness constraint of entity \(entity.name) names \(path), which is not a property "
          + "of it. Correct the constraint.")
    }
    for index in entity.fetchIndexes {
      for path in index.elements.compactMap(\.propertyName) where !isKnown(path) {
        find(
          entity.name, path,
          "The fetch index \(index.name) of entity \(entity.name) names \(path), which is not a "
            + "property of it. Correct the index.")
      }
    }
  }
}

extension PropertyDescription {
  /// For messages.
  var kindName: String {
    switch self {
    case .attribute: "attribute"
    case .relationship: "relationship"
    case .fetchedProperty: "fetched property"
    }
  }

  /// An attribute and a relationship of one name do not correspond.
  func isSameKind(as other: PropertyDescription) -> Bool { kindName == other.kindName }
}

extension String {
  fileprivate var withArticle: String { (first == "a" ? "an " : "a ") + self }
}
