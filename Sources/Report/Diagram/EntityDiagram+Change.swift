import GodwitObjectModel

extension EntityDiagram {
  /// Above this many entities only those that changed are drawn, and those that they are related to.
  static let fullSize = 40

  /// What changes from one version to another: entities, properties and relationships that were
  /// added, removed, renamed or changed, each with a word for it. Of what stays as it is, entities
  /// show their names alone.
  package init(source: EntityHierarchy, destination: EntityHierarchy) {
    let difference = ModelDifference(source: source, destination: destination)
    var changed: [EntityName: ModelDifference.EntityDifference] = [:]
    var renamed: [EntityName: EntityName] = [:]
    var removed: [EntityName] = []
    for entity in difference.entities {
      if let name = entity.destination {
        changed[name] = entity
        if let before = entity.source { renamed[before] = name }
      } else if let name = entity.source {
        removed.append(name)
      }
    }
    let shown = Self.shown(destination, changed, hasRemoved: !removed.isEmpty)
    omittedCount = destination.order.count - shown.count
    var places: [EntityName: Int] = [:]
    for name in shown {
      places[name] = boxes.count
      boxes.append(Self.box(name, destination, changed[name]))
    }
    // Places of the source's entities: where their successors are, else boxes of their own.
    var before: [EntityName: Int] = [:]
    for name in source.order where !removed.contains(name) {
      before[name] = places[renamed[name] ?? name]
    }
    for name in removed {
      before[name] = boxes.count
      boxes.append(
        Box(
          title: name.rawValue, notes: ["removed"],
          rows: source[name]?.properties.compactMap(Self.row) ?? [], kind: .removed,
          isAbstract: source[name]?.isAbstract ?? false))
    }
    for name in shown {
      let isNew = changed[name]?.kind == .added
      let moves = changed[name]?.changes.contains { $0.aspect == .superentity } ?? false
      addInheritance(of: name, in: destination, places, kind: isNew || moves ? .added : .same)
      addRelationships(of: name, in: destination, places) { entity, relationship in
        Self.kind(of: relationship.name, in: changed[entity])
      }
    }
    for name in source.order {
      let gone = removed.contains(name)
      addInheritanceThatEnds(name, source, before, changed[renamed[name] ?? name], gone: gone)
      addRelationships(of: name, in: source, before) { entity, relationship in
        let successor = removed.contains(entity) ? nil : changed[renamed[entity] ?? entity]
        let isGone =
          removed.contains(entity)
          || successor?.properties.contains {
            $0.kind == .removed && $0.source?.isSameName(as: relationship.name) == true
          } == true
        return isGone ? .removed : nil
      }
    }
  }

  private mutating func addInheritanceThatEnds(
    _ name: EntityName, _ source: EntityHierarchy, _ places: [EntityName: Int],
    _ change: ModelDifference.EntityDifference?, gone: Bool
  ) {
    let moves = change?.changes.contains { $0.aspect == .superentity } ?? false
    if gone || moves { addInheritance(of: name, in: source, places, kind: .removed) }
  }

  /// The entities of the destination that are drawn, in the order of their numbers.
  private static func shown(
    _ hierarchy: EntityHierarchy, _ changed: [EntityName: ModelDifference.EntityDifference],
    hasRemoved: Bool
  ) -> [EntityName] {
    guard hierarchy.order.count > fullSize, !changed.isEmpty || hasRemoved else {
      return hierarchy.order
    }
    var wanted = Set(changed.keys)
    for name in hierarchy.order where changed[name] != nil {
      if let parent = hierarchy[name]?.superentity { wanted.insert(parent) }
      for relationship in hierarchy[name]?.properties.compactMap(\.relationship) ?? [] {
        wanted.insert(relationship.destinationEntity)
      }
    }
    return hierarchy.order.filter(wanted.contains)
  }

  private static func box(
    _ name: EntityName, _ hierarchy: EntityHierarchy, _ change: ModelDifference.EntityDifference?
  ) -> Box {
    let entity = hierarchy[name]
    var box = Box(
      title: name.rawValue, notes: entity.map(notes) ?? [],
      isAbstract: entity?.isAbstract ?? false)
    guard let change else { return box }
    if change.kind == .added {
      box.kind = .added
      box.notes.append("added")
      box.rows = entity?.properties.compactMap(row) ?? []
      return box
    }
    box.kind = .changed
    if change.isRenamed { box.notes.append("was \(change.source?.rawValue ?? "")") }
    box.notes += change.changes.filter { $0.aspect != .name }.map { cut($0.description) }
    box.rows = change.properties.map(row)
    let unchanged =
      (entity?.properties.count { $0.attribute != nil } ?? 0)
      - change.properties.count { difference in
        entity?.properties.contains {
          $0.attribute != nil && difference.destination?.isSameName(as: $0.name) == true
        } == true
      }
    if unchanged > 0 {
      box.rows.append(
        Row(name: "\(unchanged) unchanged", detail: unchanged == 1 ? "attribute" : "attributes"))
    }
    return box
  }

  private static func row(_ difference: ModelDifference.PropertyDifference) -> Row {
    let name = difference.destination ?? difference.source ?? ""
    switch difference.kind {
    case .added: return Row(name: name, detail: "added: \(cut(difference.summary))", kind: .added)
    case .removed:
      return Row(name: name, detail: "removed: \(cut(difference.summary))", kind: .removed)
    case .changed:
      var words = difference.isRenamed ? ["was \(difference.source ?? "")"] : []
      words += difference.changes.filter { $0.aspect != .name }.map { cut($0.description) }
      return Row(name: name, detail: words.joined(separator: "; "), kind: .changed)
    }
  }

  private static func kind(
    of name: String, in change: ModelDifference.EntityDifference?
  ) -> Kind {
    guard let change else { return .same }
    if change.kind == .added { return .added }
    let own = change.properties.first { $0.destination?.isSameName(as: name) == true }
    switch own?.kind {
    case .added: return .added
    case .changed: return .changed
    case .removed, nil: return .same
    }
  }

  /// Texts of a model have any length: a default, a predicate.
  private static func cut(_ text: String?) -> String {
    guard let text, text.count > 60 else { return text ?? "" }
    return text.prefix(59) + "…"
  }
}
