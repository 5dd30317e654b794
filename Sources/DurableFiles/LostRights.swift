/// What a copy could not have of a file's owner, group and attributes.
package struct LostRights: Codable, Sendable, Equatable {
  /// The number of the owner that the file had.
  package var owner: UInt32?
  /// The number of the group that the file had.
  package var group: UInt32?
  /// The names of extended attributes that the file had, sorted; nil for none.
  package var attributes: [String]?

  package init(owner: UInt32? = nil, group: UInt32? = nil, attributes: [String] = []) {
    self.owner = owner
    self.group = group
    self.attributes = attributes.isEmpty ? nil : attributes.sorted()
  }

  /// Nil where nothing is lost.
  package var ifAny: LostRights? { self == LostRights() ? nil : self }
}
