/// What becomes of the objects of one model version in another. Core Data's `NSMappingModel`.
///
/// A mapping model belongs to a pair of models by the version hashes of the entities that it
/// names; see ``EntityMapping/sourceHash``.
public struct MappingModel: Sendable, Equatable {
  /// In the order in which they are processed.
  public var entityMappings: [EntityMapping]

  /// Makes a mapping model. Nothing is checked; see ``MappingCheck``.
  package init(entityMappings: [EntityMapping]) {
    self.entityMappings = entityMappings
  }
}

extension MappingModel {
  /// The first entity mapping of the name; nil where there is none.
  public func entityMapping(named name: String) -> EntityMapping? {
    entityMappings.first { $0.name == name }
  }
}
