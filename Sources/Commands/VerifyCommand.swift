import ArgumentParser
import Foundation
import GodwitFleet
import GodwitLedger
import GodwitObjectModel
import SystemPackage

struct VerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Checks a store against its model, or every store that a pipeline migrated.",
    discussion: """
      Of a store: exits with 65 when it is not sound, or when its model is not found.

      Of a pipeline: every store that the ledger says was migrated must be there, be sound, and hold \
      the bytes that the migration wrote, unless an application wrote to it since. One outside of the \
      pipeline's roots is named, and not opened. Exits with 3 where one is not as it must be, or with 75 \
      where it was stopped before the last one.
      """)

  @Argument(
    help: "The store's main SQLite file; or a pipeline's file, or its folder.", completion: .file())
  var store: String

  @Option(
    help: ArgumentHelp(
      "Versions among which the store's own is found; may repeat.", valueName: "model"),
    completion: .file())
  var models: [String] = []

  @Option(
    help: ArgumentHelp(
      "Of a pipeline: the folder that was given to `run --state`.", valueName: "dir"),
    completion: .directory)
  var state: String?

  @Flag(help: "JSON Lines; the last one is the result.")
  var json = false

  func validate() throws {
    if store.isEmpty || state?.isEmpty == true {
      throw ValidationError("STORE and --state are paths.")
    }
  }

  func run() async throws {
    if let file = try Pipeline.file(at: store) {
      guard models.isEmpty else {
        throw ValidationError("--models is for a store: a pipeline says its own.")
      }
      return try await verify(file.string)
    }
    guard state == nil else {
      throw try PipelineArguments.noPipeline(at: store, "--state is for a pipeline.")
    }
    let inspection: StoreInspection
    do {
      inspection = try StoreInspector.inspect(store, ModelCatalog(models).models)
    } catch {
      throw StoreInspector.report(error, store: store, asJSON: json).exit
    }
    if json {
      Output.result(json: inspection)
    } else {
      for finding in inspection.findings { Output.result("\(store): \(finding.description)") }
      Output.result("\(store): \(StoreInspector.verdict(inspection))")
    }
    if !inspection.isSound { throw ExitStatus.badInput.exit }
  }

  private func verify(_ path: String) async throws {
    let job = try PipelineJob(path: path)
    try ProcessLimits.prepare(workers: job.workerCount)
    let places = PipelinePlaces(job.pipeline, state: state.map { FilePath($0) })
    try places.checkState()
    guard let ledger = try PipelineHistory.reading(places, warn: { Output.say($0) }) else {
      throw PipelineArguments.noLedger(places)
    }
    let verification = PipelineVerification(
      job.pipeline, models: job.request.given, places: places,
      workers: job.workerCount)
    let isUnderWay: @Sendable () -> Bool = { (try? places.isInUse) ?? false }
    let work = Task { [json] in
      try await verification.run(ledger, isUnderWay: isUnderWay) { item in
        if json {
          Output.result(json: item)
        } else {
          Output.result("\(item.store): \(item.verdict.rawValue)")
          for reason in item.reasons { Output.result("  \(reason.reason): \(reason.message)") }
        }
      }
    }
    StopSignals.install(
      stop: {
        work.cancel()
        Output.say(
          "Stopping. A second signal stops at once. Nothing is kept of what was looked at.")
      },
      end: { _exit(ExitStatus.resumable.rawValue) })
    let summary = try await work.value
    if json {
      Output.result(json: summary)
    } else {
      let parts = [
        (summary.sound, "sound"), (summary.changed, "changed and sound"),
        (summary.damaged, "damaged"), (summary.missing, "missing"), (summary.inUse, "in use"),
        (summary.outside, "outside of the roots"), (summary.pending ?? 0, "pending"),
      ].filter { $0.0 > 0 }.map { "\(grouped(Int64($0.0))) \($0.1)" }
      let stores = summary.found == 1 ? "1 store" : "\(grouped(Int64(summary.found))) stores"
      Output.result("\(job.pipeline.name): " + ([stores] + parts).joined(separator: ", "))
    }
    if summary.pending != nil { throw ExitStatus.resumable.exit }
    if !summary.isGood { throw ExitStatus.someFailed.exit }
  }
}
