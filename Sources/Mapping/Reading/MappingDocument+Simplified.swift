import GodwitObjectModel

extension MappingDocument {
  /// The same with only what differs from the default written down.
  ///
  /// Xcode lists every property of every entity. Where the automatic rows are just those that
  /// would be added anyway, they are left out; the completed mapping model stays the same.
  package func simplified(
    source: EntityHierarchy, destination: EntityHierarchy
  ) -> MappingDocument {
    let whole = MappingModel(self, source: source, destination: destination)
    var result = self
    for place in entityMappings.indices where entityMappings[place].others == .none {
      let written = result.entityMappings[place]
      result.entityMappings[place].simplify(destination)
      let model = MappingModel(result, source: source, destination: destination)
      // Whatever the rules above may have missed: the meaning decides.
      if model.entityMappings[place] != whole.entityMappings[place] {
        result.entityMappings[place] = written
      }
    }
    return result
  }
}

extension MappingDocument.Entry {
  fileprivate mutating func simplify(_ model: EntityHierarchy) {
    others = .automatic
    guard let destination else { return }
    func isNeeded(_ row: MappingDocument.Row) -> Bool {
      guard row.value == .automatic, row.userInfo.isEmpty else { return true }
      // A row for a transient property would not be added by itself.
      return model.property(row.name, of: destination)?.property.isStored != true
    }
    attributes = attributes.filter(isNeeded)
    relationships = relationships.filter(isNeeded)
  }
}
