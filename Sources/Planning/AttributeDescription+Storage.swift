import GodwitObjectModel
import GodwitPersistentStore

extension AttributeDescription {
  /// What becomes of binary data where only one of two versions keeps it in files beside the store.
  func changedStorage(
    as new: AttributeDescription, at place: Int, filling: StoredDefault? = nil
  ) -> AttributeProgram? {
    guard type == .binary, new.type == .binary, isExternal != new.isExternal else { return nil }
    return new.isExternal ? .markedInline(place, filling) : .unmarked(place, filling)
  }

  /// What NULL becomes where an attribute goes on as this one. Source: `core-data-migration.md` §2.4.
  func filling(of was: AttributeDescription) -> StoredDefault? {
    was.mayBeNull && !mayBeNull ? storedDefault : nil
  }
}

extension AttributeType {
  /// True when every stored value of this type is, as it is, a value of the other: the wider
  /// integer types. Source: `core-data-sqlite-format.md` §5.
  func keepsValues(as other: AttributeType) -> Bool {
    let rank: [AttributeType: Int] = [.boolean: 0, .integer16: 1, .integer32: 2, .integer64: 3]
    guard let old = rank[self], let new = rank[other] else {
      return self == other || (self == .float && other == .double)
    }
    return old <= new && other != .boolean
  }
}
