import Foundation
import GodwitLedger
import SystemPackage

/// Which of the stores that the ledger names a pipeline's commands may open: those in its present roots.
///
/// The ledger remembers stores of roots that the pipeline no longer has.
struct StoreReach: Sendable {
  private let roots: [FilePath]

  /// A root that is away counts under its name.
  init(_ pipeline: Pipeline) {
    roots = pipeline.stores.roots.map { root in
      if let resolved = root.resolved { return resolved }
      let here = FilePath(FileManager.default.currentDirectoryPath)
      let whole = root.isAbsolute ? root : here.pushing(root)
      return whole.lexicallyNormalized().resolvingFolders
    }
  }

  /// Why a store must not be opened; nil for one that may be.
  func refusal(of store: FilePath) -> RunReport.Reason? {
    guard let root = roots.first(where: { store.starts(with: $0) }) else {
      return RunReport.Reason(
        reason: "outside-roots",
        message:
          "\(store) lies outside of the pipeline's roots. Nothing was opened. Add its root to "
          + "stores.roots to act on it.")
    }
    let found = FoundStore(path: store, root: root, bytes: 0)
    return PipelineRun.refusal(of: found)?.reasons.first.map(RunReport.Reason.init)
  }
}
