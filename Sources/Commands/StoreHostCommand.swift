import ArgumentParser
import Foundation
import GodwitFleet
import GodwitPlanning
import GodwitWorker
import SystemPackage

/// What `run` and `plan` start for the stores of a pipeline: coordinates one after the other, as
/// standard input says.
struct StoreHostCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "store-host",
    abstract: "Serves a pipeline's coordinator through standard input and output.",
    shouldDisplay: false)

  @Argument var pipeline: String
  @Option var state: String
  @Option var losses: LossPolicy?
  @Flag var storeIsOffline = false
  @Flag var events = false
  @Option var pace: String?

  func run() async throws {
    let (tasks, answers) = try WorkerCommand.takeStreams()
    let job = try PipelineJob(path: pipeline, losses: losses)
    var request = job.request
    if storeIsOffline { request.isStoreOffline = true }
    if let pace { Pace.use(FilePath(pace)) }
    let run = PipelineRun(
      job.pipeline, request,
      pool: WorkerPool.Settings(
        executable: Executable.path, arguments: ["worker"] + (pace.map { ["--pace", $0] } ?? []),
        workerCount: job.workerCount),
      state: FilePath(state), tellsEvents: events, observe: { _ in })
    try await StoreHost(
      run, policies: CommandLineTool.code.policies, tellsEvents: events, output: answers
    ).serve(input: tasks)
  }
}
