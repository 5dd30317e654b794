import Foundation
import GodwitDurableFiles
import GodwitLedger
import SystemPackage

/// Which of the stores that the ledger names a pipeline's commands may open: those in its present roots.
///
/// The ledger remembers stores of roots that the pipeline no longer has.
package struct StoreReach: Sendable {
  private let roots: [FilePath]
  private let include: [PathPattern]
  private let exclude: [PathPattern]

  /// A root that is away counts under its name.
  package init(_ pipeline: Pipeline) {
    (include, exclude) = (pipeline.stores.include, pipeline.stores.exclude)
    roots = pipeline.stores.roots.map { root in
      if let resolved = root.resolved { return resolved }
      let here = FilePath(FileManager.default.currentDirectoryPath)
      let whole = root.isAbsolute ? root : here.pushing(root)
      return whole.lexicallyNormalized().resolvingFolders
    }
  }

  /// Whether a search of the pipeline could have found a store, as far as names tell.
  func means(_ store: FoundStore) -> Bool {
    let names = store.path.components.dropFirst(store.root.components.count).map(\.string)
    guard roots.contains(store.root), store.path.starts(with: store.root),
      store.path.lexicallyNormalized() == store.path,
      include.contains(where: { $0.matches(names.joined(separator: "/")) })
    else { return false }
    // One of a folder excludes what is in it.
    return !names.indices.contains { last in
      let path = names[...last].joined(separator: "/")
      return exclude.contains { $0.matches(path, meetsHidden: true) }
    }
  }

  /// Why a store must not be opened; nil for one that may be.
  package func refusal(of store: FilePath) -> RunReport.Reason? {
    guard let root = roots.first(where: { store.starts(with: $0) }) else {
      let advice =
        switch FilePresence(of: store) {
        case .there, .unreachable: "Add its root to stores.roots to act on it."
        // Its backups lie beside it, and the ledger knows them by their old paths.
        case .absent, .noFolder:
          "It is not there now. Where it was moved, move it back with its backup, or put the backup in its "
            + "place by hand."
        }
      return RunReport.Reason(
        reason: "outside-roots",
        message:
          "\(store) lies outside of the pipeline's roots. Nothing was opened. \(advice)")
    }
    let found = FoundStore(path: store, root: root, bytes: 0)
    return PipelineRun.refusal(of: found)?.reasons.first.map(RunReport.Reason.init)
  }
}
