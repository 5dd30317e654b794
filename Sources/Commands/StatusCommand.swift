import ArgumentParser
import GodwitFleet
import GodwitLedger
import SystemPackage

struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Shows where a pipeline stands: its last run, and what is not migrated.",
    discussion: """
      Every store of the pipeline counts, as the last run that came to it left it: a run over some of the \
      stores changes nothing of the others. Times are UTC. Exits with 3 where stores are not migrated, \
      where no run is known, where a rollback was cut off, where the last run was interrupted or ended with another exit code than 0, \
      or where what the last runs did cannot be read or is not as it was written, or the ledger was gone, or \
      older than the last one or the last rollback, and with 0 otherwise.
      """)

  @OptionGroup var arguments: PipelineArguments

  func run() throws {
    let (pipeline, places) = try arguments.read()
    let status = try PipelineStatus(pipeline, places)
    if let warning = status.warning { Output.say(warning) }
    if arguments.json {
      Output.result(json: status)
    } else {
      for line in Self.lines(status) { Output.result(line) }
    }
    if status.needsAttention { throw ExitStatus.someFailed.exit }
  }

  static func lines(_ status: PipelineStatus) -> [String] {
    guard let run = status.run else {
      return ["\(status.pipeline): never run"] + (status.message.map { ["  \($0)"] } ?? [])
    }
    var line = "\(status.pipeline): "
    switch status.state {
    case .never: line += "never run"
    case .running: line += "running since \(Clock.text(run.started))"
    case .detached: line += "on the cluster since \(Clock.text(run.started))"
    case .interrupted: line += "interrupted; it began at \(Clock.text(run.started))"
    case .ended:
      line += "last run ended at \(Clock.text(run.ended ?? run.started))"
      line += " with exit code \(run.exitCode ?? 0)"
    }
    line += " (run \(run.name))"
    switch status.held {
    case "load": line += ", held by the load"
    case let held?: line += ", \(held)"
    case nil: break
    }
    if let own = status.runCounts, own.found < status.counts.found {
      line += ", over \(grouped(Int64(own.found))) of the stores"
    }
    var lines = [line]
    let counts = status.counts
    let parts = [
      (counts.migrated, "migrated"), (counts.sameModel, "same model"),
      (counts.refused, "refused"), (counts.needsMapping, "need a mapping model"),
      (counts.quarantined, "quarantined"), (counts.failed, "failed"),
      (counts.pending, "pending"), (counts.restored, "rolled back since"),
    ].filter { $0.0 > 0 }
    let stores = counts.found == 1 ? "1 store" : "\(grouped(Int64(counts.found))) stores"
    lines.append(
      "  " + ([stores] + parts.map { "\(grouped(Int64($0.0))) \($0.1)" }).joined(separator: ", "))
    if let stores = status.underWay, !stores.isEmpty {
      let rollbacks =
        stores.count == 1 ? "rollback of 1 store was" : "rollbacks of \(stores.count) stores were"
      lines.append("  the \(rollbacks) cut off: run `godwit rollback` again")
    }
    if let cluster = status.cluster { lines.append(Self.line(cluster)) }
    if let silent = status.schedulerSilent {
      lines.append("  the scheduler does not answer: \(silent)")
    }
    if counts.snapshots > 0 {
      lines.append("  " + PipelineReport.snapshotLine(counts.snapshots))
    }
    for failure in status.failures { lines += failureLines(failure) }
    if status.quarantined > counts.quarantined {
      let more = status.quarantined - counts.quarantined
      lines.append(
        "  \(grouped(Int64(more))) of those that failed \(more == 1 ? "is" : "are") quarantined: not "
          + "tried again until \(more == 1 ? "it changes or is" : "they change or are") released")
    }
    if status.backups > 0 {
      lines.append(
        "  \(grouped(Int64(status.backups))) \(status.backups == 1 ? "backup" : "backups"), "
          + ByteSize.text(status.backupBytes))
    }
    return lines
  }

  static func line(_ cluster: ClusterStatus) -> String {
    let (done, all) = (grouped(Int64(cluster.finished)), grouped(Int64(cluster.bundles)))
    return "  \(done) of \(all) bundles finished, \(grouped(Int64(cluster.begun))) begun; "
      + (cluster.results == 1
        ? "1 store has a result there"
        : "\(grouped(Int64(cluster.results))) stores have results there")
  }

  /// Stores that failed for one reason: how many, which, and what to do.
  static func failureLines(_ failure: RunReport.Failure) -> [String] {
    let stores = failure.count == 1 ? "1 store" : "\(grouped(Int64(failure.count))) stores"
    let code = failure.code.map { " (Core Data \($0))" } ?? ""
    var lines = ["  \(failure.verdict), \(failure.reason)\(code): \(stores)"]
    lines += failure.examples.map { "    \($0)" }
    if failure.count > failure.examples.count { lines.append("    …") }
    return lines + ["    → \(failure.advice)"]
  }
}

struct HistoryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "Lists the runs of a pipeline, or everything that was done to one store.",
    discussion: "Times are UTC. The newest run comes first; of a store, the oldest attempt.")

  @OptionGroup var arguments: PipelineArguments

  @Argument(
    help: "A store: its main SQLite file. Without one, the runs are listed.", completion: .file())
  var store: String?

  func run() throws {
    let places = try arguments.read().places
    let ledger = try arguments.ledger(places)
    if let store { return try show(store, ledger) }
    var table = TextTable()
    table.add([
      "run", "kind", "started", "took", "exit", "stores", "migrated", "restored", "not done",
    ])
    for run in try ledger.runs() {
      let record = HistoryRecord.Run(run, try ledger.counts(of: run))
      if arguments.json {
        Output.result(json: record)
        continue
      }
      let counts = record.counts
      let good = counts.migrated + counts.sameModel + counts.restored
      table.add([
        run.name, run.kind.rawValue, Clock.text(run.started),
        record.workedSeconds.map { TimeSpan.text($0) } ?? "-",
        run.exitCode.map(String.init) ?? "-", grouped(Int64(counts.found)),
        grouped(Int64(counts.migrated)), grouped(Int64(counts.restored)),
        grouped(Int64(counts.found - good)),
      ])
    }
    guard !arguments.json else { return }
    for line in table.lines(numbers: [3, 4, 5, 6, 7, 8]) { Output.result(line) }
  }

  private func show(_ store: String, _ ledger: Ledger) throws {
    let path = FilePath(store).resolvedStore
    var isKnown = false
    try ledger.forEachAttempt(at: path) { attempt in
      isKnown = true
      if arguments.json { return Output.result(json: HistoryRecord.Attempt(attempt)) }
      var line = "\(Clock.text(attempt.started))  \(attempt.verdict)"
      if let source = attempt.source { line += "  \(source)" }
      if let destination = attempt.destination { line += " → \(destination)" }
      if let rows = attempt.rows { line += ", \(grouped(rows)) \(rows == 1 ? "row" : "rows")" }
      Output.result(line + "  (run \(attempt.run))")
      for reason in attempt.reasons { Output.result("    \(reason.reason): \(reason.message)") }
      for loss in attempt.losses { Output.result("    loss: \(loss.message)") }
    }
    for backup in try ledger.backups(of: path) {
      isKnown = true
      if arguments.json {
        Output.result(json: BackupRecord(backup))
      } else {
        Output.result(
          "backup  \(backup.path)  \(ByteSize.text(backup.bytes)), \(backup.state.rawValue) "
            + "(run \(backup.run))")
      }
    }
    guard isKnown else {
      throw CommandError(
        .usage, "store", "The ledger knows nothing of \(path). Check the path.")
    }
  }
}

/// Lines of `history --json`.
enum HistoryRecord {
  struct Run: Encodable {
    var event = "run"
    var name: String
    var kind: String
    var started: Double
    var ended: Double?
    /// How long its starts were at work, without the time between them: those that ended, and those that were
    /// killed up to their last store. Nil while a start is at work, or where one was killed and nothing has begun since.
    var workedSeconds: Double?
    var exitCode: Int?
    var starts: Int
    var host: String
    var workers: Int?
    var options: [String]
    var counts: RunReport.Counts

    init(_ run: LedgerRun, _ counts: RunReport.Counts) {
      name = run.name
      kind = run.kind.rawValue
      started = run.started
      ended = run.ended
      workedSeconds = run.workedSeconds
      exitCode = run.exitCode
      starts = run.starts
      host = run.host
      workers = run.workers
      options = run.options
      self.counts = counts
    }
  }

  struct Attempt: Encodable {
    var event = "attempt"
    var run: String
    var attempt: RunReport.Store
    var digest: String?
    var host: String?

    init(_ attempt: LedgerAttempt) {
      run = attempt.run
      self.attempt = RunReport.Store(attempt)
      digest = attempt.digest
      host = attempt.host
    }
  }
}

extension FilePath {
  /// The path of a store as a run has it: whole, and without links.
  var resolvedStore: String { (resolved ?? resolvingFolders.absolute).string }

  private var absolute: FilePath {
    isAbsolute ? self : (FilePath(".").resolved ?? "/").pushing(self).lexicallyNormalized()
  }
}
