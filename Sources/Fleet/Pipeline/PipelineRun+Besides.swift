import GodwitLedger
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

// Files in the places of outputs beside stores.
extension PipelineRun {
  /// Those that are stores like any other: no run is known to have written them, and they are not of the
  /// destination's version. What a start that was killed wrote, or one whose books are lost, is of that version, and
  /// there is nothing to do about it.
  func strangers(among files: [StoreSearch.Beside]) -> [FoundStore] {
    guard !files.isEmpty else { return [] }
    do {
      let ledger = try Ledger(readingAt: places.ledger)
      var progress: [FilePath: PipelineLedger.Entry]?
      return try files.filter { beside in
        let (path, source) = (beside.file.path, beside.source)
        if try ledger?.hasWritten(path.string, from: source.string) == true { return false }
        if isOfDestination(beside.file) { return false }
        let known = try progress ?? PipelineLedger.entries(in: state, of: places.owner)
        progress = known
        return known[source]?.output != path.string
      }.map(\.file)
    } catch {
      observe(
        .warning(
          "Which files beside stores earlier runs wrote is not known, and no such file is taken for a store. "
            + "\(error)"))
      return []
    }
  }

  /// By the metadata in its main file alone. Of several models each has its destination.
  private func isOfDestination(_ store: FoundStore) -> Bool {
    guard store.escapingSymlink == nil,
      let connection = try? Connection(path: store.path.string, mode: .immutable),
      let hashes = try? StoreMetadata(connection).versionHashes
    else { return false }
    let destinations =
      (template.destination.map { [$0] } ?? []) + template.named + template.currents
    return destinations.contains { (try? $0.hierarchy())?.versionHashes == hashes }
  }
}
