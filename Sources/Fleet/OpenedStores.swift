import GodwitCheckpoints
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// The files of a small store's run, each opened once for all that read it.
///
/// Unchecked, since nobody but the store's ``StoreThread`` uses it.
final class OpenedStores: @unchecked Sendable {
  /// As planning opened it.
  var source: SourceStore?
  fileprivate var assembled: (path: FilePath, store: AssembledStore)?

  /// Before somebody writes to the assembled store, and before the commit, which an open file of our
  /// own would hinder.
  func close() { (source, assembled) = (nil, nil) }
}

/// The file that was assembled, for whoever looks whether it may be published.
struct AssembledFile: Sendable {
  let path: FilePath
  private let plan: MigrationPlan
  private let run: RunDirectory
  private let opened: OpenedStores?

  /// - Parameter opened: Nil where several threads read the file, each for itself.
  init(
    _ path: FilePath, _ plan: MigrationPlan, _ run: RunDirectory, _ opened: OpenedStores?
  ) {
    (self.path, self.plan, self.run, self.opened) = (path, plan, run, opened)
  }

  func open() throws -> AssembledStore {
    if let known = opened?.assembled, known.path == path { return known.store }
    let store = try AssembledStore(
      at: path, model: try plan.control.hierarchy(), snapshotFolder: run.snapshot)
    opened?.assembled = (path, store)
    return store
  }

  /// For a look at the rows alone.
  func connection() throws -> Connection {
    try opened == nil
      ? Connection(path: path.string, mode: .immutable) : open().binding.store.connection
  }
}
