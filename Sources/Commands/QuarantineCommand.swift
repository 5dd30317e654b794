import ArgumentParser
import Foundation
import GodwitDurableFiles
import GodwitFleet
import GodwitLedger
import GodwitPlanning
import SystemPackage

struct QuarantineCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "quarantine",
    abstract: "Lists stores that failed again and again, and lets them be tried again.",
    discussion: """
      A store that fails several times with the same reason, and does not change meanwhile, is not \
      tried every night. It is tried again when it, a model or a mapping model changes, or when it is \
      released.
      """,
    subcommands: [
      QuarantineListCommand.self, QuarantineReleaseCommand.self, QuarantineExportCommand.self,
    ])
}

struct QuarantineListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists the stores that are quarantined.")

  @OptionGroup var arguments: PipelineArguments

  @Flag(help: "Also those that failed, and are still tried.")
  var all = false

  func run() throws {
    let (pipeline, places) = try arguments.read()
    let stores = try arguments.ledger(places).quarantine(all: all).map { store in
      var store = store
      if !store.isQuarantined(after: pipeline.quarantineAfter) { store.since = nil }
      return store
    }.filter { all || $0.since != nil }
    var table = TextTable()
    table.add(["since", "attempts", "reason", "store"])
    for store in stores {
      if arguments.json {
        Output.result(json: QuarantineRecord(store))
      } else {
        table.add([
          store.since.map(Clock.text) ?? "-", "\(store.attempts)", store.reason,
          store.store + (store.isGone ? " (gone)" : ""),
        ])
      }
    }
    let count = stores.count { $0.since != nil }
    guard !arguments.json else { return Output.result(json: QuarantineTotals(quarantined: count)) }
    if !stores.isEmpty { for line in table.lines(numbers: [1]) { Output.result(line) } }
    Output.result("\(grouped(Int64(count))) \(count == 1 ? "store" : "stores") quarantined")
  }
}

struct QuarantineReleaseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "Lets the next run try stores again.")

  @OptionGroup var arguments: PipelineArguments

  @Argument(help: "Stores: their main SQLite files.", completion: .file())
  var stores: [String] = []

  @Flag(help: "Every store that is quarantined.")
  var all = false

  func validate() throws {
    guard all != !stores.isEmpty else {
      throw ValidationError("Name the stores, or give --all.")
    }
  }

  func run() throws {
    let places = try arguments.read().places
    _ = try arguments.ledger(places)
    let lock = try PipelineHistory.lock(places)
    guard let ledger = try PipelineHistory.writing(places) else {
      throw PipelineArguments.noLedger(places)
    }
    let wanted =
      all ? try ledger.quarantine().map(\.store) : stores.map { FilePath($0).resolvedStore }
    let now = Date().timeIntervalSince1970
    var unknown: [String] = []
    var released = 0
    try ledger.writing {
      for store in wanted {
        if try ledger.release(store, at: now) { released += 1 } else { unknown.append(store) }
      }
    }
    _ = consume lock
    for store in unknown { Output.say("\(store) is not quarantined.") }
    if arguments.json {
      Output.result(json: ReleaseRecord(released: released, unknown: unknown))
    } else {
      Output.result("\(grouped(Int64(released))) \(released == 1 ? "store" : "stores") released")
    }
    if !unknown.isEmpty { throw ExitStatus.someFailed.exit }
  }
}

struct QuarantineExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Writes the smallest store that still fails as a store does, without its values.",
    discussion: """
      Values give way to filler of the same length, and rows go, as long as the store fails with the \
      same verdict, code and reasons. Where a store only fails because of its values, nothing is \
      written unless --keep-values is given. The store itself is only read.
      """)

  @OptionGroup var arguments: PipelineArguments

  @Argument(help: "The store's main SQLite file.", completion: .file())
  var store: String

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("Where to write the smaller store. Must not exist.", valueName: "file"),
    completion: .file())
  var output: String

  @Option(help: "How long rows are tried, such as 60s or 5m.")
  var limit = "60s"

  @Option(help: LossPolicy.help)
  var losses: LossPolicy?

  @Flag(help: "Writes values that the store does not fail without, and names their columns.")
  var keepValues = false

  func validate() throws {
    if TimeSpan(limit) == nil { throw ValidationError("--limit is a time such as 60s or 5m.") }
  }

  func run() async throws {
    let job = try PipelineJob(arguments.read().pipeline, losses: losses)
    try ProcessLimits.prepare(workers: 1)
    var request = job.request
    request.store = FilePath(FilePath(store).resolvedStore)
    if let refusal = StoreReach(job.pipeline).refusal(of: request.store) {
      throw CommandError(.badInput, refusal.reason, refusal.message)
    }
    let outcome = try await FailureReduction(
      request, pool: WorkerPool.Settings(executable: Executable.path, workerCount: 1),
      policies: CommandLineTool.code.policies, limit: .seconds(TimeSpan(limit)?.seconds ?? 60)
    ).run(to: FilePath(output), keepsValues: keepValues)
    if arguments.json { return Output.result(json: outcome) }
    Output.result(
      "\(outcome.output): \(outcome.verdict), \(outcome.reasons.joined(separator: ", ")); "
        + "\(grouped(outcome.rows)) of \(grouped(outcome.rowsBefore)) rows")
    for column in outcome.keptColumns {
      Output.say("\(column) still has values of the store.")
    }
  }
}

/// A line of `quarantine list --json`.
private struct QuarantineRecord: Encodable {
  var event = "quarantine"
  var store: String
  var reason: String
  var attempts: Int
  var first: Double
  var last: Double
  var since: Double?
  var released: Double?
  /// True where no file is at its path any more; else absent.
  var isGone: Bool?

  init(_ store: LedgerQuarantine) {
    self.store = store.store
    reason = store.reason
    attempts = store.attempts
    first = store.first
    last = store.last
    since = store.since
    released = store.released
    isGone = store.isGone ? true : nil
  }
}

extension LedgerQuarantine {
  /// Whether somebody removed the store: `status` counts it no longer.
  fileprivate var isGone: Bool { FilePresence(of: FilePath(store)) == .absent }
}

private struct QuarantineTotals: Encodable {
  var event = "summary"
  var quarantined: Int
}

private struct ReleaseRecord: Encodable {
  var event = "released"
  var released: Int
  var unknown: [String]
}
