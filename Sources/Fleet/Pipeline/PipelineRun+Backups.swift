import Foundation
import GodwitLedger
import GodwitObjectModel

extension PipelineRun {
  /// Removes what the pipeline's file says may go. A run does not fail because of it.
  ///
  /// - Parameter start: Of this command, in seconds since 1970-01-01 UTC, and by a clock that nobody sets.
  func keepRetention(
    _ history: RunHistory, since start: (time: Double, instant: ContinuousClock.Instant),
    _ summary: inout PipelineSummary
  ) throws {
    guard backupRetention.isLimited else { return }
    do {
      let lasted = (ContinuousClock.now - start.instant).inSeconds
      let step = Date().timeIntervalSince1970 - start.time - lasted
      let pruned = try history.using { ledger in
        if step > Self.clockTolerance {
          // A machine that begins to work before it has the time: what it made is not so old.
          let shown = start.time...(start.time + min(step, lasted + Self.clockTolerance))
          try ledger.writing {
            try ledger.putForward(backupsOf: summary.run ?? "", madeWithin: shown, by: step)
          }
          observe(
            .note(
              "The clock was put forward by \(Int(step)) s during the run. Backups of the run count from the "
                + "time that it shows now."))
        }
        return try BackupPruning(
          backupRetention, pipeline, models: template.given, places: places,
          now: Date().timeIntervalSince1970, begun: start.time
        ).run(ledger) { item in
          guard let message = item.message else { return }
          observe(
            .note(item.reason == "backup-missing" ? message : "A backup was kept. \(message)"))
        }
      }
      if let note = try clockNote(history, since: start.time, waiting: pruned?.waiting ?? 0) {
        observe(.warning(note))
      }
      summary.prunedBackups = pruned?.pruned
      if let pruned, pruned.pruned > 0 {
        let backups = pruned.pruned == 1 ? "1 backup was" : "\(pruned.pruned) backups were"
        observe(
          .note("\(backups) removed (\(ByteSize.text(pruned.prunedBytes))), \(pruned.left) left."))
      }
    } catch {
      observe(.warning("Backups could not be pruned: \(error)"))
    }
  }

  /// Said once, at the start after a jump.
  private func clockNote(
    _ history: RunHistory, since start: Double, waiting: Int
  ) throws -> String? {
    guard waiting > 0, let keep = backupRetention.keepSeconds else { return nil }
    let ages = try history.using {
      try $0.backupAges(at: Date().timeIntervalSince1970, begun: start, keep: keep)
    }
    return ages?.jumped.map { BackupPruning.waitingNote(waiting, jumped: $0) }
  }

  /// 60 s. Time services move a clock by less than that without setting it.
  private static let clockTolerance = 60.0
}
