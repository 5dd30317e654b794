import GodwitExpressions
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

extension SuccessorNames {
  /// By inference.
  init(_ inference: InferredMapping) {
    var names: [EntityName: [NameKey: String]] = [:]
    for (name, old) in inference.entityPairs {
      for declared in inference.destination.properties(of: name) {
        guard let hit = inference.correspondence(of: declared.property.name, in: name) else {
          continue
        }
        names[old, default: [:]][NameKey(hit.property.name)] = declared.property.name
      }
    }
    self.init(
      entity: { inference.successors[$0] }, property: { names[$0]?[NameKey($1)] })
  }

  /// By mapping models, as far as rows of a plain form tell: what other expressions make of a property
  /// has the property's name where there is one.
  init(_ models: [MappingModel], source: EntityHierarchy) {
    let mappings = models.flatMap(\.entityMappings)
    self.init(
      entity: { entity in
        let targets = mappings.filter { $0.sourceEntity == entity }.map(\.destinationEntity)
        let makers = mappings.filter { $0.destinationEntity == entity }.map(\.sourceEntity)
        return Self.successor(
          of: entity, among: Set(targets.compactMap { $0 }), isMade: !makers.isEmpty)
      },
      property: { entity, name in
        let heirs = Set(source.subtree(of: entity))
        var (targets, isMade): (Set<String>, Bool) = ([], false)
        for mapping in mappings where mapping.sourceEntity.map(heirs.contains) ?? false {
          for row in mapping.properties.attributes + mapping.properties.relationships {
            let key = row.expression.flatMap { $0.plainSourceKey ?? $0.followedSourceKey }
            if key == name { targets.insert(row.name) }
            if row.name == name, key != nil { isMade = true }
          }
        }
        return Self.successor(of: name, among: targets, isMade: isMade)
      })
  }

  /// - Parameter isMade: Whether what has the name in the destination is known to be made of something.
  private static func successor<Name: Hashable>(
    of name: Name, among targets: Set<Name>, isMade: Bool
  ) -> Name? {
    if targets.isEmpty { return isMade ? nil : name }
    return targets.contains(name) ? name : targets.count == 1 ? targets.first : nil
  }
}
