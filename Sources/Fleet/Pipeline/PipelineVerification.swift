import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// Looks whether the stores that a pipeline migrated, or put back, are still there, as they were left, and
/// sound.
package struct PipelineVerification: Sendable {
  /// A store: a line of `--json`.
  package struct Item: Codable, Sendable {
    package enum Verdict: String, Codable, Sendable {
      /// As it was left, and sound.
      case sound
      /// An application wrote to it since, and it is sound.
      case changed
      /// It is not sound, its bytes are others although nobody wrote, it is another store or an older
      /// one, or it cannot be read or looked at.
      case damaged
      case missing
      /// Somebody writes to it just now.
      case inUse = "in-use"
      /// It lies in none of the pipeline's present roots, and was not opened.
      case outside
    }

    package private(set) var event = "result"
    package var store: String
    package var verdict: Verdict
    package var run: String
    package var reasons: [RunReport.Reason] = []
    package var findings: [StoreFinding] = []
  }

  /// The last line of `--json`: found is the sum of the others.
  package struct Summary: Codable, Sendable, Equatable {
    package private(set) var event = "summary"
    package var found = 0
    package var sound = 0
    package var changed = 0
    package var damaged = 0
    package var missing = 0
    package var inUse = 0
    /// How many lie in none of the pipeline's present roots: not looked at, and no fault.
    package var outside = 0
    /// How many it was stopped before; nil for none.
    package var pending: Int?

    package init() {}

    private enum CodingKeys: String, CodingKey {
      case event, found, sound, changed, damaged, missing, inUse = "in-use", outside, pending
    }

    mutating func count(_ verdict: Item.Verdict) {
      found += 1
      switch verdict {
      case .sound: sound += 1
      case .changed: changed += 1
      case .damaged: damaged += 1
      case .missing: missing += 1
      case .inUse: inUse += 1
      case .outside: outside += 1
      }
    }

    package var isGood: Bool { damaged + missing + inUse == 0 }
  }

  let reach: StoreReach
  let models: GivenModels
  let workers: Int
  private let state: FilePath

  /// - Parameters:
  ///   - pipeline: Whose stores may be opened.
  ///   - models: Those among which that of a store is found.
  package init(_ pipeline: Pipeline, models: GivenModels, places: PipelinePlaces, workers: Int) {
    reach = StoreReach(pipeline)
    state = places.state
    self.models = models
    self.workers = workers
  }

  /// - Parameters:
  ///   - isUnderWay: Whether a run or a rollback works on the stores just now.
  ///   - observe: Called with every store, in the order of their paths. None is begun after a cancellation.
  package func run(
    _ ledger: Ledger, isUnderWay: () -> Bool, observe: (Item) -> Void
  ) async throws -> Summary {
    var summary = Summary()
    let lefts = try Self.lefts(ledger)
    var results: [Item?] = Array(repeating: nil, count: lefts.count)
    var told = 0
    await withTaskGroup(of: (Int, Item).self) { group in
      var begun = 0
      func begin() {
        guard begun < lefts.count, !Task.isCancelled else { return }
        let (place, left) = (begun, lefts[begun])
        begun += 1
        group.addTask {
          do {
            return (place, try await onOwnThread { self.judge(left) })
          } catch {
            return (place, Self.failure(left.attempt, error))
          }
        }
      }
      for _ in 0..<max(1, workers) { begin() }
      for await (place, found) in group {
        results[place] = await current(found, lefts[place], ledger, isUnderWay: isUnderWay)
        while told < results.count, let next = results[told] {
          summary.count(next.verdict)
          observe(next)
          results[told] = nil
          told += 1
        }
        begin()
      }
    }
    if told < lefts.count {
      (summary.found, summary.pending) = (lefts.count, lefts.count - told)
    }
    return summary
  }

  private static func lefts(_ ledger: Ledger, of store: String? = nil) throws -> [Left] {
    var attempts: [LedgerAttempt] = []
    try ledger.forEachLeft(of: store) { attempt in
      var attempt = attempt
      (attempt.reasons, attempt.losses, attempt.stages) = ([], [], [])
      attempts.append(attempt)
    }
    return try attempts.map { attempt in
      let external = try ledger.externalData(of: attempt.store)
      return Left(
        attempt: attempt, hadExternalData: external.wasThere,
        backup: attempt.leavesStore ? external.backup : nil,
        mark: try attempt.leavesStore
          ? StoreMark(ledger.states(of: attempt.store)) : StoreMark(ofOutput: attempt))
    }
  }

  /// Looks again at what is not as it was left: a run or a rollback may have left it otherwise since.
  private func current(
    _ item: Item, _ left: Left, _ ledger: Ledger, isUnderWay: () -> Bool
  ) async -> Item {
    var (item, left) = (item, left)
    for _ in 0..<Self.looks where item.verdict != .sound && item.verdict != .outside {
      let attempt = left.attempt
      let now = try? Self.lefts(ledger, of: attempt.store).first { $0.isSameFile(as: left) }
      if let now, now.attempt.run != attempt.run || now.attempt.ended != attempt.ended {
        left = now
      } else if isUnderWay() {
        // Results are written down in groups, a moment after the store is in its place.
        try? await Task.sleep(for: .seconds(1))
      } else {
        break
      }
      let next = left
      if let again = try? await onOwnThread({ self.judge(next) }) { item = again }
    }
    // What stands there then is what the rollback has put there so far.
    if item.verdict != .sound,
      (try? Rollback.isUnderWay(of: FilePath(item.store), in: state)) == true
    {
      item.reasons = [Rollback.underWay(item.store)]
    }
    return item
  }

  private static let looks = 3

  /// A file, and what the ledger has of it.
  private struct Left: Sendable {
    var attempt: LedgerAttempt
    var hadExternalData: Bool
    /// What its external data is compared with; nil for nothing.
    var backup: LedgerBackup?
    var mark: StoreMark

    /// Not so for a store and an output of it.
    func isSameFile(as other: Left) -> Bool {
      (attempt.output ?? attempt.store) == (other.attempt.output ?? other.attempt.store)
    }
  }

  private static func failure(_ attempt: LedgerAttempt, _ error: any Error) -> Item {
    let (ending, reason, message) = RetryPolicy.ending(of: error)
    return Item(
      store: attempt.output ?? attempt.store,
      verdict: ending == .resumable ? .inUse : .damaged, run: attempt.run,
      reasons: [RunReport.Reason(reason: reason, message: message)])
  }

  private func judge(_ left: Left) -> Item {
    let attempt = left.attempt
    let path = FilePath(attempt.output ?? attempt.store)
    var item = Item(store: path.string, verdict: .sound, run: attempt.run)
    if let refusal = reach.refusal(of: path) {
      // A link where the store was is no sound store.
      item.verdict = refusal.reason == "link" ? .damaged : .outside
      item.reasons = [refusal]
      return item
    }
    do {
      let presence = FilePresence(of: path)
      if case .unreachable(let error) = presence {
        throw StoreError.cannotRead(path, errno: error.rawValue)
      }
      guard try FileMark(path) != nil else {
        item.verdict = .missing
        item.reasons = [
          RunReport.Reason(
            reason: "missing",
            message: presence.obstacle.map {
              "\(path) cannot be looked at: \($0). Bring its volume or folder back, and verify again."
            } ?? "There is no file at \(path). "
              + (attempt.output.map { $0 != attempt.store } == true
                ? "Look for it; the next run of the pipeline makes it again."
                : "Look for it, or restore it from its backup."))
        ]
        return item
      }
      let files = StoreFiles(path)
      let identity = try files.identity()
      let isAsLeft = attempt.identity.map { identity.name == $0 }
      let hasDigest = try attempt.digest.map { try files.fileDigest() == $0 }
      // Whoever writes while the bytes are read changes them.
      if isAsLeft == true, hasDigest == false, try files.identity() == identity {
        item.verdict = .damaged
        item.reasons = [
          RunReport.Reason(
            reason: "digest",
            message:
              "\(path) holds other bytes than the "
              + (attempt.verdict == "restored" ? "rollback" : "migration")
              + " wrote, although nobody wrote to it since. Check the volume, and restore the store from its backup."
          )
        ]
        return item
      }
      if isAsLeft == false || hasDigest == false { item.verdict = .changed }
      let inspection = try TemporaryPlace.with { folder in
        try StoreInspection(
          path, models: models, snapshotFolder: folder, readsRows: true,
          externalData: try left.hadExternalData || hasSourceFolder(attempt) ? .required : .inFolder
        )
      }
      item.findings = inspection.findings.filter(\.kind.isFailure)
      if !inspection.isSound {
        item.verdict = .damaged
        item.reasons =
          item.findings.isEmpty
          ? [
            RunReport.Reason(
              reason: "model", message: "No model fits \(path), so it cannot be called sound.")
          ]
          : item.findings.map {
            RunReport.Reason(reason: $0.kind.rawValue, message: $0.description)
          }
      } else if item.verdict == .changed, let reason = left.mark.exchange(for: inspection) {
        item.verdict = .damaged
        item.reasons = [reason]
      } else if let backup = left.backup, let message = try files.externalDamage(since: backup),
        try files.identity() == identity
      {
        item.verdict = .damaged
        item.reasons = [RunReport.Reason(reason: "external", message: message)]
      }
      return item
    } catch {
      return Self.failure(attempt, error)
    }
  }

  /// Of an output beside its source: whether the source has a folder of external data.
  private func hasSourceFolder(_ attempt: LedgerAttempt) throws -> Bool {
    guard attempt.output != nil, attempt.output != attempt.store else { return false }
    let folder = StoreFiles(FilePath(attempt.store)).externalDataFolder
    return try FileKind(at: folder) == .folder
  }
}
