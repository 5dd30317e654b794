import SystemPackage

/// A step of a commit failed after the destination had been put in its place.
package struct UnfinishedCommit: Error, CustomStringConvertible {
  package var store: FilePath
  /// What the store was; nil where nothing was replaced.
  package var backup: FilePath?
  /// What the step met.
  package var error: any Error

  package init(store: FilePath, backup: FilePath?, error: any Error) {
    (self.store, self.backup, self.error) = (store, backup, error)
  }

  /// What became of the store.
  package var standing: String {
    "\(store) is what was to be put there already"
      + (backup.map { ", and what it was is kept at \($0)" } ?? "")
      + ". The commit is under way, and the next run brings it to its end."
  }

  package var description: String { "\(error) \(standing)" }
}
