import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

extension InferredMapping {
  /// What the two models alone tell to be lost, in the order of the source's entities.
  ///
  /// It is what a migration by this mapping counts as losses in a store with rows of every entity, values
  /// in every attribute and every object in every relationship. Numbers that change in a narrower type
  /// are not listed, since only the values tell. A relationship and its inverse are listed once.
  package var losses: [InferredLoss] {
    let questions = LossQuestions(
      layout: StoreLayout(source), successors: Succession([self]),
      mayHaveRows: { source[$0]?.isAbstract == false })
    let losses =
      questions.objectsAndValues + questions.lostReferences + questions.lostPlaces
    let places = Dictionary(
      source.order.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
    return losses.enumerated().sorted { a, b in
      (places[a.element.entity] ?? 0, a.offset) < (places[b.element.entity] ?? 0, b.offset)
    }.map(\.element)
  }

  /// What stores of one configuration would lose beside that: objects of entities whose successors are not in the
  /// destination's configuration of that name, which such a store goes on holding.
  package var configurationLosses: [InferredLoss] {
    source.model.configurations.sorted { $0.key.precedesInBytes($1.key) }.flatMap {
      name, members -> [InferredLoss] in
      // A store with the entities of one that lists all is a store of the whole model.
      guard let kept = destination.model.entities(inConfiguration: name),
        Set(members).count < source.order.count
      else { return [] }
      return source.order.filter { entity in
        members.contains(entity) && source[entity]?.isAbstract == false
          && successors[entity].map { !kept.contains($0) } ?? false
      }.map { entity in
        InferredLoss(
          entity: entity, property: nil,
          message:
            "entity \(entity) leaves the configuration \(name): its objects would be dropped from a "
            + "store of that configuration")
      }
    }
  }
}

extension LossQuestions {
  fileprivate var objectsAndValues: [InferredLoss] {
    successors.source.order.filter(mayHaveRows).flatMap { entity -> [InferredLoss] in
      guard successors.keeps(entity) else {
        return [
          InferredLoss(
            entity: entity, property: nil,
            message: "entity \(entity) \(successors.entityWords): its objects would be dropped")
        ]
      }
      return values(of: entity).compactMap { doubt in
        doubt.expected.map {
          InferredLoss(
            entity: entity, property: doubt.property, message: "\(entity).\(doubt.property) \($0)")
        }
      }
    }
  }

  fileprivate var lostReferences: [InferredLoss] {
    relationships.flatMap { entity, relationship, inverse in
      Set(references(of: relationship, declaredBy: entity, inverse).values)
        .sorted { ($0.place, $0.why) < ($1.place, $1.why) }
        .map { loss in
          InferredLoss(
            entity: loss.entity, property: loss.property,
            message: "\(loss.entity).\(loss.property) \(loss.why): its references would be dropped")
        }
    }
  }

  fileprivate var lostPlaces: [InferredLoss] {
    successors.source.order.flatMap { entity in
      (successors.source[entity]?.properties ?? []).compactMap { property in
        guard property.isStored, let relationship = property.relationship, relationship.isOrdered,
          layout.pairStorage(of: relationship, declaredBy: entity)?.orderColumn != nil,
          !unordered(relationship, declaredBy: entity).isEmpty
        else { return nil }
        return InferredLoss(
          entity: entity, property: relationship.name,
          message: "The order of \(entity).\(relationship.name) is not kept: the places of its "
            + "members would be dropped")
      }
    }
  }
}
