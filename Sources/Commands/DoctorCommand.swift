import ArgumentParser
import Foundation
import GodwitDurableFiles
import GodwitFleet
import GodwitReport
import SystemPackage

struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Checks limits, file systems, free space, clock and libraries.",
    discussion: """
      Of a pipeline its folders, volumes, state, ledger and programs are checked, too: what its next \
      run will need. Exits with 78 where something is wrong.
      """)

  @Argument(help: "The folder that holds the stores, or a pipeline.", completion: .file())
  var place = "."

  @Option(
    help: ArgumentHelp("The folder that `run --state` will be given.", valueName: "dir"),
    completion: .directory)
  var state: String?

  @Option(
    help: """
      slurm looks at the cluster, too, and at the shared file system from every machine of it. Default: \
      what the pipeline says.
      """)
  var engine: Engine?

  @Flag(help: "JSON Lines: one object a check.")
  var json = false

  func run() async throws {
    let findings = try findings() + (try await clusterFindings())
    for finding in findings {
      if json {
        Output.result(json: finding)
        continue
      }
      let mark = finding.isGood ? "ok     " : "WARNING"
      Output.result(
        "\(mark)  \(finding.name): \(finding.value)"
          + (finding.advice.map { (finding.value.hasSuffix(".") ? " " : ". ") + $0 } ?? ""))
    }
    if findings.contains(where: { !$0.isGood }) { throw ExitStatus.configuration.exit }
  }

  private func clusterFindings() async throws -> [Doctor.Finding] {
    guard let file = try Pipeline.file(at: place) else {
      guard engine == .slurm else { return [] }
      throw try PipelineArguments.noPipeline(
        at: place, "--engine slurm needs a pipeline, whose stores it is about.")
    }
    let pipeline = try Pipeline(file: file)
    guard (engine ?? pipeline.engine) == .slurm else { return [] }
    let places = PipelinePlaces(pipeline, state: state.map { FilePath($0) })
    let doctor = ClusterDoctor(pipeline, places, executable: Executable.path)
    let task = Task { await doctor.findings() }
    // Its jobs and its folder go first.
    StopSignals.install(
      stop: { task.cancel() }, end: { Foundation.exit(ExitStatus.resumable.rawValue) })
    let findings = await task.value
    if task.isCancelled { throw ExitStatus.resumable.exit }
    return findings
  }

  private func findings() throws -> [Doctor.Finding] {
    guard let file = try Pipeline.file(at: place) else {
      let kind = try FileKind(following: FilePath(place))
      guard kind == .folder else {
        throw CommandError(
          .usage, "usage",
          "\(place) \(kind == .none ? "does not exist" : "is not a folder"). Give the folder that holds the "
            + "stores, or a pipeline.")
      }
      return Doctor(folder: FilePath(place), state: state.map { FilePath($0) }).findings()
    }
    // Models and mapping models are read, too: one that cannot be is an error here as it would be there.
    let job = try PipelineJob(path: place)
    let places = PipelinePlaces(job.pipeline, state: state.map { FilePath($0) })
    // What is written lies in the state folder, which the run may have to make.
    let folder = state.map { FilePath($0).nearest } ?? file.folder
    let doctor = PipelineDoctor(
      job.pipeline, places, destinations: try job.request.destinations(),
      workerCount: job.workerCount)
    let outputs = RunOutputs.files(job.pipeline, places).map {
      doctor.finding(ofOutput: $0.key, at: $0.path, problem: $0.problem)
    }
    return Doctor(folder: folder).findings() + doctor.findings() + outputs
      + Self.programs(job.pipeline.report)
  }

  /// Programs that are only needed for what the pipeline asks for.
  private static func programs(_ report: ReportSettings) -> [Doctor.Finding] {
    var findings: [Doctor.Finding] = []
    if report.html != nil {
      findings.append(
        Doctor.Finding(
          name: "Graphviz", value: Graphviz.program ?? "not installed", isGood: true,
          advice: Graphviz.program == nil
            ? "The report describes the change of the model in words alone." : nil))
    }
    if let ping = report.ping {
      let isAddress = DeadManSwitch.isAddress(ping)
      let program = DeadManSwitch.program
      findings.append(
        Doctor.Finding(
          name: "ping",
          value: isAddress ? program ?? "curl is not installed" : "no address of the web",
          isGood: isAddress && program != nil,
          advice: isAddress
            ? (program == nil ? "Install Debian's package curl." : nil)
            : "Write report.ping as in https://hc-ping.com/UUID."))
    }
    return findings
  }
}
