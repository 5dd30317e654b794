import GodwitObjectModel

/// A model, or the change from one version to another, as boxes and lines: an entity is a box, a
/// relationship with its inverse is one line, and a dashed arrow leads to the superentity.
///
/// What it is made of has no place and no size yet: ``dot`` is its text for Graphviz, which gives
/// it both.
package struct EntityDiagram: Sendable, Equatable {
  /// How an item differs from its counterpart. Everything in the diagram of one model is `same`.
  enum Kind: String, Sendable, CaseIterable { case same, added, removed, changed }

  /// One attribute, or one relationship's change.
  struct Row: Sendable, Equatable {
    var name: String
    var detail: String
    var kind = Kind.same
  }

  struct Box: Sendable, Equatable {
    var title: String
    var notes: [String] = []
    var rows: [Row] = []
    var kind = Kind.same
    var isAbstract = false
  }

  /// What is drawn at an end of a line: how many objects of that end's entity are related.
  struct End: Sendable, Equatable {
    var isToMany: Bool
    var isOptional: Bool
  }

  struct Line: Sendable, Equatable {
    /// Places in ``boxes``.
    var from: Int
    var to: Int
    var label: [String] = []
    /// At the box that `from` and `to` name; nil where no relationship leads there.
    var fromEnd: End?
    var toEnd: End?
    var kind = Kind.same
    var isInheritance = false
  }

  var boxes: [Box] = []
  var lines: [Line] = []
  /// Entities that are not drawn, since nothing about them changed.
  package internal(set) var omittedCount = 0

  init() {}

  /// The entities of a model, with all their attributes.
  package init(_ hierarchy: EntityHierarchy) {
    var places: [EntityName: Int] = [:]
    for name in hierarchy.order {
      guard let entity = hierarchy[name] else { continue }
      places[name] = boxes.count
      boxes.append(
        Box(
          title: name.rawValue, notes: Self.notes(of: entity),
          rows: entity.properties.compactMap(Self.row), isAbstract: entity.isAbstract))
    }
    for name in hierarchy.order {
      addInheritance(of: name, in: hierarchy, places, kind: .same)
      addRelationships(of: name, in: hierarchy, places) { _, _ in .same }
    }
  }

  static func notes(of entity: EntityDescription) -> [String] {
    entity.isAbstract ? ["abstract"] : []
  }

  static func row(_ property: PropertyDescription) -> Row? {
    guard let attribute = property.attribute else { return nil }
    var detail = attribute.type.xmlName
    if attribute.traits.isOptional { detail += ", optional" }
    if attribute.traits.isTransient { detail += ", transient" }
    return Row(name: attribute.name, detail: detail)
  }
}

// Lines.
extension EntityDiagram {
  mutating func addInheritance(
    of name: EntityName, in hierarchy: EntityHierarchy, _ places: [EntityName: Int], kind: Kind
  ) {
    guard let parent = hierarchy[name]?.superentity, let from = places[name],
      let to = places[parent]
    else { return }
    lines.append(Line(from: from, to: to, kind: kind, isInheritance: true))
  }

  /// Adds the relationships that an entity declares, each with its inverse as one line: it is drawn
  /// where the first of the two is met.
  ///
  /// - Parameter kind: Of the relationship of an entity; nil leaves the line out.
  mutating func addRelationships(
    of name: EntityName, in hierarchy: EntityHierarchy, _ places: [EntityName: Int],
    kind: (EntityName, RelationshipDescription) -> Kind?
  ) {
    guard let from = places[name] else { return }
    for relationship in hierarchy[name]?.properties.compactMap(\.relationship) ?? [] {
      guard let to = places[relationship.destinationEntity], var own = kind(name, relationship)
      else { continue }
      var line = Line(from: from, to: to, label: [Self.label(relationship)])
      line.toEnd = Self.end(relationship)
      if let inverse = hierarchy.inverse(of: relationship) {
        guard
          Self.isFirst(
            name, relationship.name, inverse.entity, inverse.relationship.name, hierarchy)
        else { continue }
        if inverse.entity != name || !inverse.relationship.name.isSameName(as: relationship.name) {
          line.label.append(Self.label(inverse.relationship))
          line.fromEnd = Self.end(inverse.relationship)
          if let other = kind(inverse.entity, inverse.relationship), other != own { own = .changed }
        }
      }
      line.kind = own
      lines.append(line)
    }
  }

  private static func isFirst(
    _ entity: EntityName, _ name: String, _ otherEntity: EntityName, _ otherName: String,
    _ hierarchy: EntityHierarchy
  ) -> Bool {
    let (own, other) = (hierarchy.numbers[entity] ?? 0, hierarchy.numbers[otherEntity] ?? 0)
    return own == other ? !otherName.precedesInBytes(name) : own < other
  }

  private static func end(_ relationship: RelationshipDescription) -> End {
    End(
      isToMany: relationship.isToMany,
      isOptional: relationship.traits.isOptional && relationship.minCount == 0)
  }

  /// The name, and how many, in words.
  static func label(_ relationship: RelationshipDescription) -> String {
    let count =
      relationship.isToMany ? (relationship.isOrdered ? "many, ordered" : "many") : "one"
    return "\(relationship.name) (\(count))"
  }
}
