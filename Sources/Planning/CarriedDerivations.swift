import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore

extension PlanContext {
  /// Derived attributes that are carried as they are, because they are derived as before, though what
  /// they derive from is not what it was.
  ///
  /// Core Data does not derive again while it migrates by inference, and no derivation of an object's
  /// old values would be one of its new values. A count is computed again.
  var carriedDerivationNotes: [String] {
    let hierarchy = destination.hierarchy
    var notes: [String] = []
    for name in hierarchy.order {
      for case .attribute(let attribute) in hierarchy[name]?.properties ?? []
      where !attribute.traits.isTransient && attribute.countedRelationship == nil {
        guard let derivation = attribute.derivationExpression else { continue }
        let isStale = hierarchy.subtree(of: name).contains { entity in
          guard predecessor(of: entity) != nil, hierarchy[entity]?.isAbstract == false,
            let hit = inference.correspondence(of: attribute.name, in: entity),
            hit.property.attribute?.derivationExpression == derivation
          else { return false }
          return !keepsInputs(of: attribute.hashedDerivation ?? derivation, in: entity)
        }
        guard isStale else { continue }
        notes.append(
          "The values of the derived attribute \(name).\(attribute.name) are the source's, though what "
            + "they derive from changes: they are not derived again until Core Data saves the objects."
        )
      }
    }
    return notes
  }

  /// Whether every attribute that a derivation names has the values that it had under this name; true
  /// for a derivation that is not understood.
  private func keepsInputs(of derivation: String, in entity: EntityName) -> Bool {
    guard let expression = try? ValueExpression(parsing: derivation) else { return true }
    return expression.keyPaths.allSatisfy { keysOfPath in
      guard let first = keysOfPath.first,
        let declared = destination.hierarchy.property(first, of: entity)
      else { return true }
      guard let relationship = declared.property.relationship else {
        return keepsValues(of: first, in: entity)
      }
      guard keepsPairs(of: first, in: entity, was: first) else { return false }
      guard keysOfPath.count > 1 else { return true }
      return destination.hierarchy.concrete(of: relationship.destinationEntity).allSatisfy {
        destination.hierarchy.property(keysOfPath[1], of: $0)?.property.attribute == nil
          || predecessor(of: $0) == nil || keepsValues(of: keysOfPath[1], in: $0)
      }
    }
  }

  private func keepsValues(of attribute: String, in entity: EntityName) -> Bool {
    guard let hit = inference.correspondence(of: attribute, in: entity)?.property,
      hit.name.isSameName(as: attribute), let was = hit.attribute,
      let new = destination.hierarchy.property(attribute, of: entity)?.property.attribute
    else { return false }
    guard was.type == new.type, new.filling(of: was) == nil else { return false }
    if let counted = new.countedRelationship, let before = was.countedRelationship {
      return keepsPairs(of: counted, in: entity, was: before)
    }
    return was.derivationExpression == new.derivationExpression
  }

  /// Whether the pairs of a relationship are those that it had under the name `was`: none of them
  /// falls away.
  func keepsPairs(of name: String, in entity: EntityName, was: String) -> Bool {
    guard let match = inference.correspondence(of: name, in: entity),
      match.property.name.isSameName(as: was), let old = match.property.relationship,
      let declared = destination.hierarchy.property(name, of: entity),
      let relationship = declared.property.relationship
    else { return false }
    let pairs = pairSet(of: relationship, declaredBy: declared.entity)
    guard !pairs.isCrowded, pairs.parts.count == 1, pairs.laterParts.isEmpty,
      let part = pairs.parts.first, keepsEveryPair(part)
    else { return false }
    let given = part.source.relationship
    if !part.isSwapped { return given == old && part.source.entity == match.entity }
    guard let inverse = source.hierarchy.inverse(of: given) else { return false }
    return inverse.relationship == old && inverse.entity == match.entity
  }
}

extension ValueExpression {
  /// The keys of each key path of a derivation, operators such as `@sum` left out.
  package var keyPaths: [[String]] {
    switch self {
    case .keyPath(_, let keys):
      [keys.compactMap { if case .key(let key) = $0 { key } else { nil } }]
    case .call(_, let arguments): arguments.flatMap(\.keyPaths)
    default: []
    }
  }
}
