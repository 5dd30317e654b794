import ArgumentParser
import GodwitFleet
import GodwitWorker

/// What the coordinator starts: serves tasks from standard input until it ends.
struct WorkerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "worker",
    abstract: "Serves a coordinator through standard input and output.",
    shouldDisplay: false)

  func run() throws {
    CoordinatorWatch.install()
    try WorkerLoop(policies: CommandLineTool.code.policies).run()
  }
}
