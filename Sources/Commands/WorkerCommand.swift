import ArgumentParser
@preconcurrency import Foundation
import GodwitFleet
import GodwitWorker
import SystemPackage

/// What the coordinator starts: serves tasks from standard input until it ends.
struct WorkerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "worker",
    abstract: "Serves a coordinator through standard input and output.",
    shouldDisplay: false)

  @Option(help: "A file that says how much the processes of a run may read and write.")
  var pace: String?

  func run() throws {
    if let pace { Pace.use(FilePath(pace)) }
    try CoordinatorWatch.install()
    // The limit that a `StoreHost` sets itself is not that of the policies that run here.
    ProcessLimits.limitMemory(to: nil)
    let answers = try Self.takeStandardOutput()
    try WorkerLoop(policies: CommandLineTool.code.policies, output: answers).run()
  }

  /// Keeps the pipe to the coordinator for its messages. What a policy prints goes to standard
  /// error from here on, each line when it ends: a worker may be killed at any moment.
  static func takeStandardOutput() throws -> FileDescriptor {
    let pipe = try FileDescriptor.standardOutput.duplicate()
    _ = try FileDescriptor.standardError.duplicate(as: .standardOutput)
    setvbuf(stdout, nil, _IOLBF, 0)
    return pipe
  }
}
