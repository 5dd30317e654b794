import ArgumentParser
import Foundation
import GodwitDurableFiles
import GodwitFleet
import GodwitLedger
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

struct RehearseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rehearse",
    abstract: "Migrates every store below a folder privately, to see whether all of them would.",
    discussion: """
      For continuous integration: archive a store of every version that was shipped, and rehearse \
      them before a new version of the model ships. Each store is migrated to a private file below \
      TMPDIR that is removed at once; the stores themselves are only read.

      Exits with 0 when every store would migrate or is of the destination's version, with 75 when it was \
      stopped, and with 3 otherwise. Losses are named and do not change the exit code.
      """)

  @Argument(
    help: ArgumentHelp(
      "Versions among which each store's own and the destination are found.", valueName: "models"),
    completion: .file())
  var models: [String]

  @Option(
    help: ArgumentHelp("The folder with the stores, at any depth.", valueName: "dir"),
    completion: .directory)
  var stores: String

  @Option(
    help: ArgumentHelp(
      "Which files below it are stores; may repeat. A name that begins with a dot is "
        + "one only where the pattern says the dot. "
        + "Default: **/*.sqlite, **/*.sqlite3, **/*.store and **/*.storedata.",
      valueName: "pattern"))
  var include: [String] = []

  @Option(
    help: ArgumentHelp(
      "The destination: a version's name, or any MODEL. Default: the current version.",
      valueName: "version"))
  var to: String?

  @Option(
    help: ArgumentHelp("A mapping model; may repeat.", valueName: "file"), completion: .file())
  var mapping: [String] = []

  @Option(
    help: ArgumentHelp("direct, progressive or staged, as of `migrate`.", valueName: "chain"))
  var chain: Chain?

  @Option(help: "Worker processes. Default: one a processor, at most 8.")
  var workers: Int?

  @Option(
    help: ArgumentHelp("Writes the results as JUnit XML, a test case a store.", valueName: "file"),
    completion: .file())
  var junit: String?

  @Flag(help: "JSON Lines: a result for each store, and a summary.")
  var json = false

  @Flag(help: "Silent when every store would migrate and loses nothing.")
  var quiet = false

  private static let patterns = ["**/*.sqlite", "**/*.sqlite3", "**/*.store", "**/*.storedata"]

  func validate() throws {
    if let workers, !(1...256).contains(workers) {
      throw ValidationError("--workers is a number from 1 to 256.")
    }
    if stores.isEmpty || junit?.isEmpty == true {
      throw ValidationError("--stores and --junit are paths.")
    }
    if let text = include.first(where: { PathPattern($0) == nil }) {
      throw ValidationError(
        "--include: \(text.isEmpty ? "an empty text" : text) is not a path below --stores, such as "
          + "*/Recipes.sqlite.")
    }
    // What is wrong with an option is said of it, not of the pipeline that the options become.
    _ = try CommandLineTool.code.chain(ofOptions: chain, mappings: mapping.count)
  }

  func run() async throws {
    guard let root = FilePath(stores).resolved, try FileKind(following: root) == .folder else {
      throw CommandError(
        .badInput, "stores",
        "\(stores) is not a folder. Give --stores the folder that the archived stores lie in.")
    }
    guard String(validating: root) != nil else {
      throw CommandError(
        .badInput, "stores",
        "\(stores) leads to \(root.unambiguousText), which is not UTF-8. Give that folder another name."
      )
    }
    // What must not be replaced is found before the work is done.
    if let junit { _ = try OutputFile(junit, .junit) }
    let folder = try TemporaryPlace.make()
    TemporaryFiles.useFolder(folder.string)
    // What the processes of the stores put into a temporary folder goes with this one.
    setenv("TMPDIR", folder.string, 1)
    let progress = RehearsalProgress(name: PipelineWords.name)
    let outcome: Result<(Rehearsal, isCancelled: Bool), any Error>
    do {
      outcome = .success(try await rehearse(root, in: folder, progress))
    } catch {
      outcome = .failure(error)
    }
    TemporaryFiles.useFolder(nil)
    Self.remove(folder)
    let (rehearsal, isCancelled) = try outcome.get()
    let status = try progress.end { _ in try end(rehearsal, isCancelled) }.get()
    if status != .success { throw status.exit }
  }

  private func rehearse(
    _ root: FilePath, in folder: FilePath, _ progress: RehearsalProgress
  ) async throws -> (Rehearsal, isCancelled: Bool) {
    let job = try PipelineJob(path: try pipeline(root, in: folder))
    try ProcessLimits.prepare(workers: job.workerCount)
    let run = PipelineRun(
      job.pipeline, job.request,
      pool: WorkerPool.Settings(executable: Executable.path, workerCount: job.workerCount),
      state: folder.appending("state")
    ) { event in
      switch event {
      case .result(let store, let result):
        progress.add(result, isStore: store != nil) {
          if json { Output.result(jsonLine: result.jsonLine()) }
        }
      case .note(let text): Output.say(text)
      case .warning(let text): Output.say("warning: \(text)")
      case .found(let found):
        progress.begin(found)
        for line in PipelineReport.warnings(found, key: "--include") {
          Output.say("warning: \(line)")
        }
        let notes = PipelineReport.notes(found, key: include.isEmpty ? nil : "--include")
        if !quiet { for line in notes { Output.say(line) } }
      default: break
      }
    }
    let task = Task { try await run.rehearse(in: folder) }
    StopSignals.install(
      stop: {
        task.cancel()
        Output.say("Stopping. A second signal stops at once.")
      },
      end: { [json] in
        let end = progress.end { summary in
          // Too late for the rehearsal's own summary.
          if json {
            Output.result(json: summary)
          } else {
            Output.result(PipelineReport.line(summary))
          }
          return .resumable
        }
        Self.remove(folder)
        _exit(((try? end.get()) ?? .resumable).rawValue)
      })
    let ticks = Task {
      while !quiet, (try? await Task.sleep(for: .seconds(10))) != nil {
        Output.say("\(stores): \(grouped(Int64(progress.ended))) stores rehearsed")
      }
    }
    let outcome = await task.result
    ticks.cancel()
    let rehearsal = try outcome.get()
    guard rehearsal.summary.found > 0 || task.isCancelled else {
      throw CommandError(
        .badInput, "stores",
        "There is no store below \(root). Stores are \(patterns.joined(separator: ", ")); "
          + "--include names others.")
    }
    return (rehearsal, task.isCancelled)
  }

  /// Two seconds: a process that is being stopped removes its part meanwhile.
  private static let removals = 100

  private static func remove(_ folder: FilePath) {
    for _ in 0..<removals {
      try? DurableFile.removeTree(folder, surviving: .processCrash)
      if (try? DurableFile.exists(folder)) == false { return TemporaryFolders.forget(folder) }
      usleep(20_000)
    }
    Output.say("\(folder) could not be removed. Remove it by hand: it holds copies of stores.")
  }

  private var patterns: [String] { include.isEmpty ? Self.patterns : include }

  /// The words of this command as a pipeline, for the processes that coordinate its stores.
  private func pipeline(_ root: FilePath, in folder: FilePath) throws -> String {
    var file = PipelineWords(
      stores: .init(roots: [root.string], include: patterns), models: models.map(Self.absolute))
    file.mappings = mapping.isEmpty ? nil : mapping.map(Self.absolute)
    file.chain = chain?.rawValue
    file.workers = workers
    let catalog = try ModelCatalog(models)
    if to == nil, catalog.currents.isEmpty {
      throw CommandError(
        .badInput, "model",
        "\(try ModelVersion.lacks(ofCurrent: catalog.versions).joined(separator: "; ")). Say with --to "
          + "which version is the destination.")
    }
    if let to {
      _ = try catalog.destinations(named: to, advice: "Check --to and the models.")
      let isName = catalog.versions.contains { $0.name.isSameName(as: to) }
      file.destination = isName ? to : Self.absolute(to)
    }
    let path = folder.appending("pipeline.yaml")
    try DurableFile.write(
      Array(YAMLValue.text(ofJSON: JSONLine.text(of: file)).utf8), to: path)
    return path.string
  }

  private static func absolute(_ path: String) -> String {
    path.begins(with: "/") ? path : FileManager.default.currentDirectoryPath + "/" + path
  }

  private func end(_ rehearsal: Rehearsal, _ isCancelled: Bool) throws -> ExitStatus {
    let planned = ExitStatus(planned: rehearsal.summary)
    // A signal after the last store changes nothing where all is well; else nobody knows what it has broken off.
    let isStopped =
      isCancelled && planned != .success || rehearsal.stores.contains { $0.result.isStopped }
    let status = isStopped ? .resumable : planned
    if json {
      Output.result(json: rehearsal.summary)
    } else if !quiet || status != .success
      || rehearsal.stores.contains(where: { !$0.result.losses.isEmpty })
    {
      for line in RehearsalText.lines(rehearsal) { Output.result(line) }
    }
    if let junit {
      let report = rehearsal.report(of: stores, exitCode: Int(status.rawValue))
      try OutputFile(junit, .junit).write(JUnitReport(report).text())
    }
    if isStopped {
      Output.say("Stopped. The stores are unchanged. Run the same command to begin again.")
    }
    return status
  }
}

/// The keys of a pipeline's file that a rehearsal needs.
private struct PipelineWords: Encodable {
  struct Stores: Encodable {
    var roots: [String]
    var include: [String]
  }

  static let name = "rehearsal"

  var name = Self.name
  var stores: Stores
  var models: [String]
  var destination: String?
  var mappings: [String]?
  /// Of unknown versions, too: losses are told, and do not change the exit code.
  var losses = LossPolicy.warn.rawValue
  var chain: String?
  var workers: Int?
}

/// A rehearsal for people.
enum RehearsalText {
  static func lines(_ rehearsal: Rehearsal) -> [String] {
    var table = TextTable()
    table.add(["store", "version found", "verdict", "rows", "losses", "reason"])
    for store in rehearsal.stores {
      let result = store.result
      let lost = result.losses.reduce(0) { $0 + $1.count }
      table.add([
        store.name, result.source ?? "-", result.verdict.rawValue,
        result.rows.map(grouped) ?? "-", lost == 0 ? "-" : grouped(lost),
        result.ending == .done ? "" : result.reasons.first?.reason ?? "",
      ])
    }
    var lines = rehearsal.stores.isEmpty ? [] : table.lines(numbers: [3, 4])
    lines += steps(rehearsal)
    for store in rehearsal.stores
    where store.result.ending != .done && !store.result.isStopped {
      let code = store.result.code.map { " (Core Data \($0))" } ?? ""
      lines += store.result.reasons.map { "\(store.name)\(code): \($0.text)" }
    }
    var (losses, notes) = (LossTotals(), NoteTotals())
    for store in rehearsal.stores {
      losses.add(store.result)
      notes.add(store.result)
    }
    lines += FleetPlanText.lines(notes.all)
    lines += FleetPlanText.lines(losses.all)
    return lines + [PipelineReport.line(rehearsal.summary)]
  }

  /// The ways between versions that are not lightweight, or have several steps.
  private static func steps(_ rehearsal: Rehearsal) -> [String] {
    var lines: [String] = []
    for store in rehearsal.stores where store.result.verdict == .migrated {
      let result = store.result
      let models = result.plan?.mappingModels ?? []
      let path = (result.path ?? []).count > 1 ? result.path ?? [] : []
      guard !models.isEmpty || !path.isEmpty else { continue }
      var text =
        "\(result.source ?? "unknown") → \(result.destination ?? "unknown"): not lightweight"
      if models.isEmpty { text = text.replacing(": not lightweight", with: ":") }
      if !models.isEmpty { text += ", by \(models.joined(separator: ", then "))" }
      let all = [text] + path.enumerated().map { "  \($0.offset + 1). \($0.element)" }
      if !lines.contains(text) { lines += all }
    }
    return lines
  }
}
