import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitKeyedArchive
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import GodwitWorker
import SystemPackage

/// Makes the smallest store that still fails as a given one does, without its values.
///
/// Everything happens to a private copy. Values give way to filler of the same length, column by
/// column, where the store then still fails with the same verdict, code and reasons. Then rows go, half
/// of a table, a quarter and so on, likewise: each trial is a whole migration into a private folder.
/// External data is left out. The copy has the rows alone, and so has what is written: no page, and no free part of
/// one, holds anything that was removed. A store that does not fail by its rows is not exported.
package struct FailureReduction: Sendable {
  /// What was made: the line of `--json`.
  package struct Outcome: Codable, Sendable {
    package private(set) var event = "export"
    package var store: String
    package var output: String
    package var verdict: String
    package var code: Int?
    /// Why it fails, a sentence each.
    package var reasons: [String]
    package var rowsBefore: Int64
    package var rows: Int64
    /// Columns some of whose values are still those of the store: `TABLE.COLUMN`. Without them it does
    /// not fail.
    package var keptColumns: [String]
    package var trials: Int
    package var seconds: Double
  }

  let request: MigrationRequest
  let pool: WorkerPool.Settings
  let policies: PolicyRegistry
  let limit: Duration

  /// - Parameters:
  ///   - request: What the pipeline makes of the store.
  ///   - policies: Of the running executable.
  ///   - limit: Trials stop then, and what has been reached is written.
  package init(
    _ request: MigrationRequest, pool: WorkerPool.Settings, policies: PolicyRegistry,
    limit: Duration
  ) {
    self.request = request.whole
    self.pool = pool
    self.policies = policies
    self.limit = limit
  }

  /// - Parameters:
  ///   - output: Where the store goes; must not exist.
  ///   - keepsValues: Whether columns may keep values, where without them nothing fails.
  /// - Throws: ``FailureReductionError``; `DurabilityError`, `StoreError`.
  package func run(to output: FilePath, keepsValues: Bool) async throws -> Outcome {
    do {
      return try await reduce(to: output.whole, keepsValues: keepsValues)
    } catch let error as SQLiteError where error.isCorruption {
      throw FailureReductionError.isDamaged(store: request.store)
    }
  }

  private func reduce(to output: FilePath, keepsValues: Bool) async throws -> Outcome {
    guard try FileKind(at: output) == .none else { throw DurabilityError.alreadyExists(output) }
    try NewFilePlace(output, beside: [request.store]).checkForStore()
    let folder = try TemporaryPlace.make()
    defer { TemporaryPlace.remove(folder) }
    var trials = Trials(self, folder)
    let original = folder.appending("original.sqlite")
    let source = try SourceStore(
      path: request.store, snapshotFolder: folder.appending("snapshot"), alwaysClones: true)
    try DurableFile.rename(source.readPath, to: original)
    let metadata = source.metadata
    let failure = await trials.failure(of: original)
    guard let failure else { throw FailureReductionError.doesNotFail(store: request.store) }
    trials.wanted = failure
    let external = try externalColumns(of: source)
    var work = try await rows(of: ReducedStore(original), "rows.sqlite", &trials)
    let before = try work.rowCount()
    var left: [String] = []
    if try await !trials.keep(&work, always: true, { try $0.removeMetadata(metadata) }) {
      left.append("Z_METADATA.Z_PLIST")
    }
    if try await !trials.keep(&work, always: true, { try $0.deleteForeignRows() }) {
      left.append("tables that are none of the model's")
    }
    let kept = try await scrub(&work, external, &trials)
    try await dropRows(&work, &trials)
    for column in kept where try await !scrub(column, &work, &trials) {
      if try work.hasValues(column) { left.append("\(column.table).\(column.name)") }
    }
    guard left.isEmpty || keepsValues else {
      // With rows that are not needed their values stay, too.
      if trials.isOver { throw FailureReductionError.outOfTime(store: request.store) }
      throw FailureReductionError.needsValues(store: request.store, columns: left)
    }
    // Of what was removed, pages hold a part until they are written anew.
    work = try await rows(of: work, "reduced.sqlite", &trials)
    try DurableFile.copy(work.path, to: output)
    return Outcome(
      store: request.store.string, output: output.string, verdict: failure.verdict.rawValue,
      code: failure.code, reasons: failure.words, rowsBefore: before,
      rows: try work.rowCount(), keptColumns: left, trials: trials.count,
      seconds: (ContinuousClock.now - trials.start).inSeconds)
  }

  /// A store of the same rows, which takes the place of the given one: what was removed from that one long ago is in
  /// its free pages.
  ///
  /// - Throws: ``FailureReductionError/isOfPages(store:)`` where it does not fail in the same way.
  private func rows(
    of work: ReducedStore, _ name: String, _ trials: inout Trials
  ) async throws -> ReducedStore {
    let copy = ReducedStore(trials.folder.appending(name))
    do {
      try work.vacuum(into: copy.path)
    } catch let error as SQLiteError where error.isRefused {
      // Rows that an index of the file does not know break its constraint.
      throw FailureReductionError.isOfPages(store: request.store)
    }
    guard await trials.failure(of: copy.path) == trials.wanted else {
      throw FailureReductionError.isOfPages(store: request.store)
    }
    try work.remove()
    return copy
  }

  /// The columns of attributes with external storage, by the model that the store was written under; none where
  /// nobody knows that one.
  private func externalColumns(of source: SourceStore) throws -> Set<ReducedStore.Column> {
    let own = try source.readableModel().flatMap { try? EntityHierarchy($0) }
    let given = request.models.compactMap { try? $0.hierarchy() }
    let known = ((own.map { [$0] } ?? []) + given).lazy
      .map { StoreBinding.fitting($0, to: source) }
      .first { $0.versionHashes == source.metadata.versionHashes }
    guard let known else { return [] }
    let layout = StoreBinding(source, known).layout
    return Set(
      known.order.flatMap { entity in
        layout.externalColumns(of: entity).compactMap { column in
          layout.table(of: entity).map { .init(table: $0.name, name: column.column) }
        }
      })
  }

  /// Replaces the values of each column; returns those that could not be.
  ///
  /// - Parameter external: Columns whose values begin with a byte that says where the data is.
  private func scrub(
    _ work: inout ReducedStore, _ external: Set<ReducedStore.Column>, _ trials: inout Trials
  ) async throws -> [ReducedStore.Column] {
    var kept: [ReducedStore.Column] = []
    for var column in try work.columns() where try work.hasValues(column) {
      column.isExternal = external.contains(column)
      if try await !scrub(column, &work, &trials) { kept.append(column) }
    }
    return kept
  }

  private func scrub(
    _ column: ReducedStore.Column, _ work: inout ReducedStore, _ trials: inout Trials
  ) async throws -> Bool {
    for filler in ReducedStore.Filler.allCases {
      // Values are never left for want of time: only the rows' trials are.
      if try await trials.keep(&work, always: true, { try $0.scrub(column, with: filler) }) {
        return true
      }
    }
    return false
  }

  /// Deletes what is not needed: all rows of a table, halves of them, quarters, …
  private func dropRows(_ work: inout ReducedStore, _ trials: inout Trials) async throws {
    for table in try work.tables() {
      var rows = try work.keys(of: table)
      var size = rows.count
      while size >= 1, !trials.isOver {
        var start = 0
        while start < rows.count, !trials.isOver {
          let part = Array(rows[start..<min(rows.count, start + size)])
          if try await trials.keep(&work, { try $0.delete(part, from: table) }) {
            rows.removeSubrange(start..<start + part.count)
          } else {
            start += size
          }
        }
        size = size == 1 ? 0 : (min(size, max(1, rows.count)) + 1) / 2
      }
    }
  }
}

/// Why no smaller store can be made. Nothing was written.
package enum FailureReductionError: Error, Sendable, Equatable {
  case doesNotFail(store: FilePath)
  case isDamaged(store: FilePath)
  /// It fails by how its file is written, and not by its rows.
  case isOfPages(store: FilePath)
  case needsValues(store: FilePath, columns: [String])
  case outOfTime(store: FilePath)
}

extension FailureReductionError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .doesNotFail(let store):
      "A private copy of \(store) does not fail, or fails for a reason of its surroundings. Give --losses "
        + "as the run had it, or run again, after `godwit quarantine release` where it is quarantined."
    case .isDamaged(let store):
      "Pages of \(store) are damaged, so that its rows can be neither changed nor left out. Nothing "
        + "was written. `godwit repair --json` accounts for the damage without values."
    case .isOfPages(let store):
      "\(store) fails because of how its file is written: a store of the same rows does not fail. Nothing was "
        + "written, since values may lie anywhere in such a file. `godwit repair --json` accounts for the damage "
        + "without values."
    case .needsValues(let store, let columns):
      "\(store) fails because of values in \(columns.joined(separator: ", ")), which filler does "
        + "not show. Nothing was written. Give --keep-values to write them as they are."
    case .outOfTime(let store):
      "The time ended before it was known which rows and values of \(store) make it fail. Nothing was "
        + "written. Give a longer --limit."
    }
  }
}

/// How a store fails: two that fail in the same way are equal.
struct FailureSignature: Sendable, Equatable {
  var verdict: MigrationResult.Verdict
  var code: Int?
  /// `reason`, or `reason Entity.property`.
  var words: [String]

  /// Nil for a store that does not fail by its own content.
  init?(_ result: MigrationResult) {
    switch result.verdict {
    case .refused, .needsMapping, .failed: break
    case .migrated, .sameModel, .pending, .quarantined: return nil
    }
    verdict = result.verdict
    code = result.code
    words = Set(
      result.reasons.map { reason in
        let place = [reason.entity, reason.property].compactMap(\.self).joined(separator: ".")
        return place.isEmpty ? reason.reason : "\(reason.reason) \(place)"
      }
    ).sorted()
  }
}

/// Private migrations of copies.
private struct Trials {
  let reduction: FailureReduction
  let folder: FilePath
  let start = ContinuousClock.now
  var wanted: FailureSignature?
  var count = 0

  init(_ reduction: FailureReduction, _ folder: FilePath) {
    self.reduction = reduction
    self.folder = folder
  }

  var isOver: Bool { ContinuousClock.now - start > reduction.limit || Task.isCancelled }

  /// How a store fails.
  mutating func failure(of store: FilePath) async -> FailureSignature? {
    count += 1
    let trial = folder.appending("trial")
    defer { try? DurableFile.removeTree(trial, surviving: .processCrash) }
    var request = reduction.request
    request.store = store
    request.output = trial.appending("output.sqlite")
    guard (try? DurableFile.makeFolder(trial, surviving: .processCrash)) != nil else { return nil }
    var settings = StoreRun.Settings(pool: reduction.pool)
    settings.policiesHere = reduction.policies
    let run = StoreRun(
      request, directory: RunDirectory(trial.appending("run")), settings: settings)
    return FailureSignature(await run.run())
  }

  /// Changes a copy, and takes it where it still fails in the same way.
  ///
  /// - Returns: Whether it was taken.
  @discardableResult
  mutating func keep(
    _ work: inout ReducedStore, always: Bool = false, _ change: (ReducedStore) throws -> Void
  ) async throws -> Bool {
    guard always || !isOver else { return false }
    let copy = ReducedStore(folder.appending("candidate-\(count).sqlite"))
    try DurableFile.copy(work.path, to: copy.path)
    do {
      try change(copy)
    } catch is SQLiteError {
      // A constraint of the store forbids it.
      try copy.remove()
      return false
    }
    guard await failure(of: copy.path) == wanted else {
      try copy.remove()
      return false
    }
    try work.remove()
    work = copy
    return true
  }
}
