import GodwitDurableFiles
import GodwitPlanning
import SystemPackage

// Stores that are deleted or moved away while a run or a plan is under way.
extension PipelineRun {
  /// What becomes of a store that is not there any more: nothing is wrong with it, and the next search
  /// says whether the pipeline has it. Nil for one that is there, or that cannot be looked at.
  static func gone(_ store: FoundStore) -> MigrationResult? {
    guard let kind = try? FileKind(at: store.path), kind == FileKind.none else { return nil }
    return MigrationResult(
      store: store.path.string, verdict: .pending, ending: .resumable,
      reasons: [
        Reason(
          reason: "gone",
          message:
            "\(store.path) was deleted or moved away since the search for stores. Run again.")
      ])
  }

  /// Likewise of a store that seems to have failed.
  static func gone(_ store: FoundStore, insteadOf result: MigrationResult) -> MigrationResult? {
    result.isFailure ? gone(store) : nil
  }
}
