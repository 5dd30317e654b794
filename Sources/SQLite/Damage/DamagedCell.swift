/// A range of keys of a table in which rows may be lost.
package struct KeyGap: Sendable, Equatable {
  /// Why: the page, for a message. 0 for a table without any page.
  package var page: UInt32
  /// Exclusive; nil from the lowest key on.
  package var after: Int64?
  /// Inclusive; nil up to the highest key.
  package var upTo: Int64?

  package init(page: UInt32, after: Int64? = nil, upTo: Int64? = nil) {
    (self.page, self.after, self.upTo) = (page, after, upTo)
  }

  package func contains(_ key: Int64) -> Bool {
    after.map { key > $0 } ?? true && upTo.map { key <= $0 } ?? true
  }
}

/// A row or an index entry as it lies on a page, however damaged.
package struct DamagedCell {
  /// 0 for an index entry.
  package var key: Int64
  package var record: DamagedRecord
  package var keyState: KeyState
  /// That it lies on.
  package var page: UInt32
}

/// How far the key of a row on a damaged page can be believed.
package enum KeyState: Sendable {
  case sound
  /// It ascends with its page, which stands where other keys belong.
  case misplaced
  /// Not as found: the only key that there is room for between its neighbours.
  case onlyPossible
  /// It does not fit between its neighbours, so that it may be another row's.
  case doubtful
}
