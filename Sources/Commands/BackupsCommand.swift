import ArgumentParser
import Foundation
import GodwitDurableFiles
import GodwitFleet
import GodwitLedger
import SystemPackage

struct BackupsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backups",
    abstract: "Lists the backups of a pipeline's runs, or removes old ones.",
    subcommands: [BackupsListCommand.self, BackupsPruneCommand.self])
}

struct BackupsListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Lists the backups that the runs made, the oldest first, and says which are missing.",
    discussion: """
      After them come backups beside the pipeline's stores that its ledger does not list: of a ledger that \
      was lost, or of commits that failed. Nothing restores or removes those but you.
      """)

  @OptionGroup var arguments: PipelineArguments

  func run() throws {
    let (pipeline, places) = try arguments.read()
    let ledger = try arguments.ledger(places)
    var table = TextTable()
    table.add(["made", "size", "run", "backup"])
    var missing = 0
    try ledger.forEachBackup(ofRun: nil) { backup in
      // Somebody removed it, or its volume is not mounted: nobody can tell.
      let isMissing = FilePresence(of: FilePath(backup.path)) == .absent
      if isMissing { missing += 1 }
      let state = isMissing ? "missing" : backup.state.rawValue
      if arguments.json { return Output.result(json: BackupRecord(backup, state: state)) }
      table.add([
        Clock.text(backup.made), ByteSize.text(backup.bytes), backup.run,
        backup.path + (state == LedgerBackup.State.kept.rawValue ? "" : " (\(state))"),
      ])
    }
    let unlisted = try UnlistedBackups.find(pipeline, places, ledger)
    for backup in unlisted {
      let record = BackupRecord(unlisted: backup)
      if arguments.json {
        Output.result(json: record)
      } else {
        table.add([
          Clock.text(record.made), ByteSize.text(record.bytes), "-",
          record.path + " (\(record.state))",
        ])
      }
    }
    let totals = try ledger.backupTotals()
    if arguments.json {
      return Output.result(
        json: BackupTotals(
          backups: totals.count, bytes: totals.bytes, missing: missing, unlisted: unlisted.count))
    }
    if totals.count + unlisted.count > 0 {
      for line in table.lines(numbers: [1]) { Output.result(line) }
    }
    Output.result(
      "\(grouped(Int64(totals.count))) \(totals.count == 1 ? "backup" : "backups"), "
        + ByteSize.text(totals.bytes)
        + (missing == 0 ? "" : "; \(grouped(Int64(missing))) of them missing")
        + (unlisted.isEmpty ? "" : "; \(grouped(Int64(unlisted.count))) more in no ledger"))
  }
}

struct BackupsPruneCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prune",
    abstract: "Removes backups as the pipeline's key `backups` says.",
    discussion: """
      A backup stays where it may be the only good copy: where its store is missing, damaged, being \
      written to or another store, where the backup is not the file that the run made or cannot be \
      looked at, and where a rollback is under way. So do those of stores outside of the pipeline's \
      roots. Exits with 0.
      """)

  @OptionGroup var arguments: PipelineArguments

  @Option(
    help: "Removes backups that are older, such as 14d or 36h. Default: what the pipeline says.")
  var keep: String?

  @Option(
    help:
      "Removes the oldest while all together are larger, such as 200GiB. Default: what the pipeline says."
  )
  var max: String?

  @Flag(help: "Says what would go, and removes nothing.")
  var dryRun = false

  func validate() throws {
    if let keep, TimeSpan(keep) == nil {
      throw ValidationError("--keep is an age such as 14d or 36h.")
    }
    if let max, ByteSize(max) == nil { throw ValidationError("--max is a size such as 200GiB.") }
  }

  func run() throws {
    let (pipeline, places) = try arguments.read()
    var retention = pipeline.backups
    if let keep { retention.keepSeconds = TimeSpan(keep)?.seconds }
    if let max { retention.maxBytes = ByteSize(max)?.bytes }
    guard retention.isLimited else {
      throw ValidationError(
        "The pipeline has no key backups. Add it, or give --keep or --max.")
    }
    _ = try arguments.ledger(places)
    let lock = try PipelineHistory.lock(places)
    guard let ledger = try PipelineHistory.writing(places) else {
      throw PipelineArguments.noLedger(places)
    }
    let now = Date().timeIntervalSince1970
    // On a full volume there is no place for it, and what is removed makes some.
    if !dryRun { try? ledger.writing { try ledger.noteStart(at: now) } }
    let pruning = BackupPruning(
      retention, pipeline, models: try ModelCatalog(pipeline.models).models, places: places,
      now: now, isDry: dryRun)
    let summary = try pruning.run(ledger) { item in
      if let message = item.message { Output.say(message) }
      if arguments.json {
        Output.result(json: item)
      } else {
        let word =
          item.pruned
          ? (dryRun ? "would be removed" : "removed")
          : item.reason == "backup-missing" ? "not found" : "kept"
        Output.result("\(item.path): \(word)")
      }
    }
    _ = consume lock
    if summary.waiting > 0 { Output.say(BackupPruning.waitingNote(summary.waiting)) }
    if arguments.json { return Output.result(json: summary) }
    Output.result(
      "\(grouped(Int64(summary.pruned))) \(dryRun ? "would be removed" : "removed") "
        + "(\(ByteSize.text(summary.prunedBytes))), "
        + (summary.missing > 0 ? "\(grouped(Int64(summary.missing))) not found, " : "")
        + "\(grouped(Int64(summary.left))) left "
        + "(\(ByteSize.text(summary.leftBytes)))")
  }
}

/// A line of `backups list --json`.
struct BackupRecord: Encodable {
  var event = "backup"
  var path: String
  var folder: String?
  var store: String
  /// The run that made it; none where the ledger does not have it.
  var run: String?
  var kind: String
  var bytes: Int64
  var made: Double
  /// `kept`, `restored`, `pruning` where a removal was cut off, `unreadable` where what the ledger says of it
  /// cannot be read; in the list `missing` where somebody removed it, and `unlisted` where the ledger does not
  /// have it; in a history `pruned`, and `missing` where it was gone when it was to be removed.
  var state: String
  /// When its state changed, in seconds since 1970-01-01 UTC.
  var changed: Double

  /// - Parameter state: Nil for that of the ledger.
  init(_ backup: LedgerBackup, state: String? = nil) {
    path = backup.path
    folder = backup.folder
    store = backup.store
    run = backup.run
    kind = backup.kind.rawValue
    bytes = backup.bytes
    made = backup.made
    self.state = state ?? backup.state.rawValue
    changed = backup.changed
  }

  init(unlisted backup: FoundBackup) {
    path = backup.path.string
    store = backup.store.string
    kind = backup.kind.rawValue
    bytes = backup.bytes
    // No more is known than when the file was written to.
    made = Double((try? FileMark(backup.path))?.modificationSeconds ?? 0)
    state = "unlisted"
    changed = made
  }
}

private struct BackupTotals: Encodable {
  var event = "summary"
  var backups: Int
  var bytes: Int64
  /// How many of them somebody removed. One whose folder is not there is not counted: its volume may not be
  /// mounted.
  var missing: Int
  /// How many more lie beside the stores, in state `unlisted`: the ledger does not have them. Not looked for
  /// while a run is under way.
  var unlisted: Int
}
