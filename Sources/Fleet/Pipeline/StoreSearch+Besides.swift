import GodwitCheckpoints
import GodwitDurableFiles
import GodwitLedger
import GodwitObjectModel
import SystemPackage

// Files in the places of outputs beside stores.
extension StoreSearch {
  /// Finds all stores of the pipeline, for whoever counts or migrates them: those in the places of outputs, too, that
  /// are stores like any other.
  ///
  /// - Parameters:
  ///   - destinations: Of several models each has its own.
  ///   - warn: Called with why no file in such a place is taken for a store.
  /// - Throws: As ``run()``.
  func run(
    _ places: PipelinePlaces, destinations: [ModelVersion], warn: (String) -> Void
  ) throws -> Findings {
    var findings = try run()
    findings.stores += Self.strangers(among: findings.besides, places, destinations, warn)
    findings.stores.sortByPath()
    findings.all = findings.stores
    return findings
  }

  /// Those that no run is known to have written, nor is writing, and that are not of the destination's version. What a
  /// start that was killed in its commit wrote is that commit's, of whichever version. What one wrote whose books are
  /// lost is of the destination's version unless that has changed since, and there is nothing to do about it.
  private static func strangers(
    among files: [Beside], _ places: PipelinePlaces, _ destinations: [ModelVersion],
    _ warn: (String) -> Void
  ) -> [FoundStore] {
    guard !files.isEmpty else { return [] }
    do {
      let ledger = try Ledger(readingAt: places.ledger)
      var progress: [FilePath: PipelineLedger.Entry]?
      return try files.filter { beside in
        let (path, source) = (beside.file.path, beside.source)
        if try ledger?.hasWritten(path.string, from: source.string) == true { return false }
        let run = PipelineRun.directory(of: source, in: places.state)
        if try DurableFile.exists(run.journal) { return false }
        if isOf(destinations, beside.file) { return false }
        let known = try progress ?? PipelineLedger.entries(in: places.state, of: places.owner)
        progress = known
        return known[source]?.output != path.string
      }.map(\.file)
    } catch {
      warn(
        "Which files beside stores earlier runs wrote is not known, and no such file is taken for a store. "
          + "\(error)")
      return []
    }
  }

  private static func isOf(_ destinations: [ModelVersion], _ store: FoundStore) -> Bool {
    store.escapingSymlink == nil && StoreLook(store.path).isOf(destinations)
  }
}
