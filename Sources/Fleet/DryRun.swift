import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// What a ``StoreRun`` would come to, without its traces.
///
/// Everything is opened read-only. The private clone of a store with a WAL goes to a temporary
/// folder, gone afterwards.
package struct DryRun: Sendable {
  package let request: MigrationRequest
  private let directory: RunDirectory?
  private let uriTable: FilePath?
  private let migratesSnapshots: Bool

  /// - Parameters:
  ///   - directory: The run directory that the run would have; nil for one that nobody has chosen.
  ///   - uriTable: Where its table of object URIs would go, if one is wanted.
  ///   - migratesSnapshots: Whether of a store that is in use a snapshot is migrated.
  package init(
    _ request: MigrationRequest, directory: FilePath? = nil, uriTable: FilePath? = nil,
    migratesSnapshots: Bool = false
  ) {
    self.migratesSnapshots = migratesSnapshots
    self.request = request.whole
    self.directory = directory.map { RunDirectory($0.whole) }
    self.uriTable = uriTable?.whole
  }

  package func run() async -> MigrationResult {
    let start = ContinuousClock.now
    var result: MigrationResult
    let watch = SourceWatch(request.store)
    do {
      let request = request
      result = try await onOwnThread {
        let result = try watch.reading { try rehearse(request) }
        if result.isAboutStore, let error = watch.interference() { throw error }
        return result
      }
    } catch {
      result = MigrationResult(failing: request.store.string, with: error)
    }
    result.sourceIdentity = watch.identity?.name
    result.seconds = (ContinuousClock.now - start).inSeconds
    return result
  }

  private func rehearse(_ request: MigrationRequest) throws -> MigrationResult {
    try StoreRun.checkPaths(request, directory, uriTable: uriTable)
    if let directory { try RunFolder(directory: directory).check() }
    let earlier = try EarlierOutput(request)
    let folder = try TemporaryPlace.make()
    TemporaryFiles.useFolder(folder.string)
    defer {
      TemporaryFiles.useFolder(nil)
      TemporaryPlace.remove(folder)
    }
    var request = request
    request.snapshotFolder = folder
    var result = MigrationResult(store: request.store.string, verdict: .sameModel, ending: .done)
    var end: ChainRoute?
    switch try ChainRun.decide(request) {
    case .direct: break
    case .ended(let ended): return ended
    case .through(let route):
      try StoreReplacement.check(by: request, uriTable: uriTable, in: directory)
      end = route
      result.path = route.lines
      result.notes = try route.notes(for: request) + route.laterConditions(request.losses)
      result.source = route.source
      result.destination = route.destination
      guard case .migration(let leg) = route.steps.first?.work else {
        // What a handler leaves is not known before it has run.
        result.verdict = .migrated
        result.losses = route.losses ?? []
        return result
      }
      if route.steps.count > 1 {
        result.notes.append("What follows is of the first step; the others are planned in turn.")
      }
      request = route.request(
        of: leg, request, store: request.store, output: request.destinationPath)
    }
    let outcome = try Planner().plan(request)
    if let earlier, !outcome.isSameModel {
      if end == nil { try earlier.check(against: outcome, isDry: true) }
      result.notes.append(
        "\(earlier.path) exists already. If an earlier run of this migration wrote it, there is "
          + "nothing to do; else the migration ends with an error, and it stays as it is.")
    }
    switch outcome {
    case .sameModel(let notes): result.notes += notes
    case .refused(let code, let reasons): result.refuse(.refused, code, reasons)
    case .needsMapping(let code, let reasons): result.refuse(.needsMapping, code, reasons)
    case .migrate(let plan):
      try StoreReplacement.check(by: request, uriTable: uriTable, in: directory)
      let place = request.destinationPath.removingLastComponent()
      result.verdict = .migrated
      let needed = DiskSpace.needed(
        of: StoreFiles(request.store), plan.sourceIdentity, isInPlace: request.output == nil)
      result.take(plan, diskBytes: needed, withTables: true)
      if let end {
        result.destination = end.destination
        let losses = end.losses(of: result, plan)
        result.losses = (end.losses ?? []) + losses
        let refusals = end.losses == nil ? [] : end.refusals(of: losses, self.request)
        if !refusals.isEmpty { result.refuse(.refused, LossPolicy.refusalCode, refusals) }
      }
      if request.output == nil, try StoreLock.isHeld(on: request.store) {
        result.notes.append(
          "Another process has the store in use now: as long as it has, "
            + (migratesSnapshots
              ? "a snapshot of it is migrated to a file beside it, and the store stays as it is."
              : "the store is not replaced (75, in-use).")
        )
      }
      if let free = DiskSpace.free(at: place.isEmpty ? "." : place), free < needed {
        result.notes.append(
          "\(place.isEmpty ? "." : place.string) has \(ByteSize.text(free)) free and the "
            + "migration needs \(ByteSize.text(needed)).")
      }
    }
    return result
  }
}
