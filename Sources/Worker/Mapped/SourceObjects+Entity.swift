import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

extension SourceObjects {
  /// One entity, its statements made when they are first needed.
  final class Entity {
    let access: SourceEntityAccess
    let attributes: NameTable
    /// What is asked of an attribute for each object, by its number: no text, so that nothing is retained.
    let columns: [(type: AttributeType, isExternal: Bool)]
    let composites: CompositeIndex
    let relationships: NameTable
    let unstored: Set<String>
    @exclusivity(unchecked) var row: Statement?
    @exclusivity(unchecked) var lists: [Int: Statement] = [:]

    init(_ access: SourceEntityAccess) {
      self.access = access
      attributes = NameTable(access.attributes.map(\.name))
      columns = access.attributes.map { ($0.type, $0.isExternal) }
      composites = CompositeIndex(access.attributes.map(\.name))
      relationships = NameTable(access.relationships.map(\.name))
      unstored = Set(access.unstored)
    }
  }
}
