import ArgumentParser
import Foundation
import GodwitFleet
import GodwitLedger
import SystemPackage

struct RollbackCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rollback",
    abstract: "Puts the stores of a run back as they were, out of its backups.",
    discussion: """
      Main file, WAL and external data are restored byte for byte. A store that was changed since, or \
      that somebody has open, is refused and named. What a store was before the rollback is kept \
      beside it as STORE.godwit-rolled-back-….sqlite. Run the same command again to finish a rollback \
      that was interrupted.

      A commit that a run was killed in is brought to its end first, and put back with the others.

      The next `run` migrates the stores again, unless the pipeline says otherwise.

      Exits with 0, with 3 where a store was refused, or with 75 where it was stopped before the last store.
      """)

  @OptionGroup var arguments: PipelineArguments

  @Option(
    name: .customLong("run"),
    help: """
      The run, as `history` names it. Default: the last one of which a store is still to be put back.
      """)
  var runName: String?

  @Option(
    help: """
      Only this store; may repeat. Without --run, out of the newest backup that was not put back yet.
      """, completion: .file())
  var store: [String] = []

  @Option(
    help: """
      Only stores that were of this version before. Without --run, of the last run that has some to put \
      back.
      """)
  var cohort: String?

  @Flag(help: "Says what would become of each store, and changes nothing.")
  var dryRun = false

  @Flag(help: "Silent about stores that are restored.")
  var quiet = false

  func run() async throws {
    let (pipeline, places) = try arguments.read()
    guard try PipelineHistory.reading(places, warn: { Output.say($0) }) != nil else {
      throw PipelineArguments.noLedger(places)
    }
    let lock = try PipelineHistory.lock(places)
    let rollback = Rollback(
      pipeline, places: places,
      Rollback.Selection(
        run: runName, stores: store.map { FilePath(FilePath($0).resolvedStore) }, version: cohort),
      isDry: dryRun, lock: lock, options: Array(CommandLine.arguments.dropFirst()))
    let report = report
    let work = Task { try await rollback.run(observe: report) }
    StopSignals.install(
      stop: {
        work.cancel()
        Output.say("Stopping. Run the same command to finish.")
      },
      end: { _exit(ExitStatus.resumable.rawValue) })
    let summary = try await work.value
    _ = consume lock
    if arguments.json {
      Output.result(json: summary)
    } else if !quiet || summary.refused > 0 || summary.pending != nil {
      Output.result(line(summary))
    }
    if summary.pending != nil { throw ExitStatus.resumable.exit }
    if summary.refused > 0 { throw ExitStatus.someFailed.exit }
  }

  private var report: @Sendable (Rollback.Item) -> Void {
    let (asJSON, isQuiet, isDry) = (arguments.json, quiet, dryRun)
    return { item in
      // Those that it was stopped before may be many; the last line counts them.
      if item.verdict != .pending {
        for reason in item.reasons { Output.say("\(item.store): \(reason.message)") }
      }
      if asJSON { return Output.result(json: item) }
      switch item.verdict {
      case .restored:
        guard !isQuiet else { return }
        Output.result("\(item.store): \(isDry ? "would be restored" : "restored")")
        if let kept = item.kept { Output.result("  what it was is kept as \(kept)") }
      case .refused: Output.result("\(item.store): refused")
      case .pending: break
      }
    }
  }

  private func line(_ summary: Rollback.Summary) -> String {
    guard summary.found > 0 else {
      return summary.run.map { "Nothing is left to roll back of run \($0)." }
        ?? "Nothing to roll back: the ledger knows of no such store that a run replaced."
    }
    let stores = summary.found == 1 ? "1 store" : "\(grouped(Int64(summary.found))) stores"
    var line = summary.run.map { "run \($0): " } ?? ""
    line += "\(stores): \(grouped(Int64(summary.restored))) "
    line += dryRun ? "would be restored" : "restored"
    if summary.refused > 0 { line += ", \(grouped(Int64(summary.refused))) refused" }
    if let pending = summary.pending { line += ", \(grouped(Int64(pending))) pending" }
    return line
  }
}
