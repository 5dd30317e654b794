import ArgumentParser
import Foundation
import GodwitDurableFiles
import GodwitExpressions
import GodwitFleet
import GodwitPersistentStore
import GodwitWorker
import Synchronization
import SystemPackage

/// The words and numbers of the shell: what `godwit` does with its arguments.
package enum CommandLineTool {
  /// What the executable brings along; the same for as long as the process lasts.
  @TaskLocal static var code = Customizations()

  /// Whether the process works for a coordinator, and not for a scheduler.
  private static func isServing(_ arguments: [String]) -> Bool {
    arguments.first == "store-host"
      || arguments.first == "worker"
        && !arguments.contains { $0.hasPrefix("--manifest") || $0.hasPrefix("--probe") }
  }

  /// Runs the command that the process's arguments name, and ends the process.
  ///
  /// - Parameter code: What mapping models and stores may call for.
  ///
  /// Begins on the caller's thread, before the concurrency runtime needs another: with too few
  /// threads it would wait for ever.
  nonisolated(nonsending)
    package static func main(_ code: Customizations = Customizations()) async -> Never
  {
    Output.prepare()
    requireProc()
    let arguments = Array(CommandLine.arguments.dropFirst())
    if isServing(arguments) { CoordinatorWatch.leaveSignals() }
    let isChild = ["worker", "store-host"].contains(arguments.first)
    if code.stages != nil {
      hashAlike()
      if !isChild { Output.keepForResults() }
    }
    atexit { CommandLineTool.ended() }
    do {
      try requireText()
      try requireTimes()
      try ProcessLimits.prepare(workers: isChild ? nil : 1)
      // Until a command has handlers of its own, nothing is under way that could be harmed.
      if !isChild {
        let end: @Sendable () -> Never = { _exit(ExitStatus.resumable.rawValue) }
        StopSignals.install(
          stop: {
            Output.say("Stopped before there was a result.")
            StopSignals.finish(end)
          }, end: end)
      }
    } catch {
      end(report(error, asJSON: arguments.contains("--json")))
    }
    if let error = Root.unknownCommand(in: arguments) {
      end(report(error, asJSON: arguments.contains("--json")))
    }
    end(checked(await $code.withValue(code) { await run(arguments) }))
  }

  /// Swift reads the arguments there: without it each command would be one without arguments.
  private static func requireProc() {
    guard access("/proc/self/cmdline", R_OK) != 0 else { return }
    Output.say(
      "godwit: /proc is not there, where a process finds its arguments. Mount it (mount -t proc proc /proc), "
        + "and run again.")
    _exit(ExitStatus.configuration.rawValue)
  }

  /// What is not UTF-8 would be read as another text, and a path as that of another file, relative ones
  /// included.
  private static func requireText() throws {
    for place in 1..<max(1, Int(CommandLine.argc)) {
      guard let argument = CommandLine.unsafeArgv[place] else { return }
      guard String(validatingCString: argument) == nil else { continue }
      throw CommandError(
        .usage, "usage",
        "Argument \(place), \(String(cString: argument)), is not UTF-8, and could be taken for another one. "
          + "Give the file another name.")
    }
    guard let folder = FilePath(".").resolved, String(validating: folder) == nil else { return }
    throw CommandError(
      .usage, "usage",
      "The working directory, \(folder.unambiguousText), is not UTF-8, and could be taken for another one. "
        + "Work from another one, and give whole paths.")
  }

  /// A time that means nothing would leave the default in force without a word.
  private static func requireTimes() throws {
    for variable in TimeVariable.allCases where !variable.isValid {
      throw CommandError(
        .usage, "usage",
        "The environment variable \(variable.rawValue) is not a number of seconds above 0, up to 86400. "
          + "Correct it, or remove it.")
    }
  }

  /// Whether the command itself ends the process.
  private static let hasEnded = Atomic(false)

  private static func end(_ status: ExitStatus) -> Never {
    hasEnded.store(true, ordering: .relaxed)
    exit(status.rawValue)
  }

  /// Code of the team's own may call exit(3): without a result that is no success, whatever it says.
  private static func ended() {
    guard !hasEnded.load(ordering: .relaxed) else { return }
    Output.say(
      "godwit: Code that the executable brings along, such as a handler or a policy, ended the process "
        + "before there was a result. Finished work is kept; let that code throw an error instead.")
    _exit(ExitStatus.fatal.rawValue)
  }

  /// Starts the program again where hashes differ from process to process: handlers that go over a
  /// dictionary or a set would come to another store each time. Processes that it starts have that
  /// already.
  private static func hashAlike() {
    let name = "SWIFT_DETERMINISTIC_HASHING"
    guard getenv(name) == nil, setenv(name, "1", 1) == 0 else { return }
    var arguments = CommandLine.arguments.map { strdup($0) } + [nil]
    // Where the program cannot be started again it goes on as it is.
    execv("/proc/self/exe", &arguments)
    for argument in arguments { free(argument) }
  }

  /// How a command ends whose result could not be written: what nobody could read is not a success.
  private static func checked(_ status: ExitStatus) -> ExitStatus {
    guard let failure = Output.failure else { return status }
    Output.say("godwit: The result could not be written to standard output: \(failure).")
    return status == .success ? .inputOutput : status
  }

  /// Runs a command and says what went wrong with it, in text or as the last line of `--json`.
  static func run(_ arguments: [String]) async -> ExitStatus {
    var type: any ParsableCommand.Type = Root.self
    do {
      var command = try Root.parseAsRoot(arguments)
      type = Swift.type(of: command)
      installKillSwitch(for: command)
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
      return .success
    } catch let code as ExitCode {
      return ExitStatus(rawValue: code.rawValue) ?? .fatal
    } catch {
      return report(error, of: type, asJSON: arguments.contains("--json"))
    }
  }

  /// The exit code that an error leads to.
  static func status(of error: any Error) -> ExitStatus {
    switch Root.exitCode(for: error) {
    case .success: .success
    case .validationFailure: .usage
    default: ExitStatus(GodwitCommands.ending(of: error).ending)
    }
  }

  /// What is wrong, without the usage of a command.
  static func message(of error: any Error) -> String {
    Root.exitCode(for: error) == .validationFailure
      ? Root.message(for: error) : GodwitCommands.ending(of: error).message
  }

  /// - Parameter command: The one that ran; `Root` where none did.
  private static func report(
    _ error: any Error, of command: any ParsableCommand.Type = Root.self, asJSON: Bool
  ) -> ExitStatus {
    let parserStatus = Root.exitCode(for: error)
    let status = status(of: error)
    if parserStatus == .success {
      Output.result(text: Root.fullMessage(for: error))  // --help, --version
      return .success
    }
    let reason: String
    let message: String
    if parserStatus == .validationFailure {
      (reason, message) = ("usage", usageMessage(of: error, in: command))
    } else {
      (_, reason, message) = GodwitCommands.ending(of: error)
    }
    Output.say(text: reason == "usage" ? message : "godwit: \(message)")
    if asJSON {
      Output.result(json: FailureLine(reason: reason, message: Self.message(of: error)))
    }
    return status
  }

  /// The parser knows the command of an error that it found itself. One that the command found while it ran
  /// would get the usage of `godwit`.
  private static func usageMessage(
    of error: any Error, in command: any ParsableCommand.Type
  ) -> String {
    guard command != Root.self, let names = Root.words(of: command) else {
      return Root.fullMessage(for: error)
    }
    return """
      Error: \(Root.message(for: error))
      Usage: \(Root.usageString(for: command))
        See '\(names.joined(separator: " ")) --help' for more information.
      """
  }

  /// Lets a crash trial stop the coordinator after a durable step of its choice, its own or one of
  /// the process that it has coordinate a store. Workers do not count: their steps come in no fixed
  /// order.
  private static func installKillSwitch(for command: any ParsableCommand) {
    // A coordinator's workers are killed from outside.
    guard (command as? WorkerCommand)?.manifest != nil || !(command is WorkerCommand),
      let text = ProcessInfo.processInfo.environment["GODWIT_KILL_AFTER_STEP"],
      let count = Int(text), count > 0
    else { return }
    DurableSteps.killProcess(afterStep: count, andParent: command is StoreHostCommand)
  }
}

/// `godwit` itself: everything it does is in its subcommands.
struct Root: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "godwit",
    abstract: "Migrates Core Data stores, as Core Data would have.",
    discussion: """
      Results go to standard output, everything else to standard error. With --json every \
      line of standard output is a JSON object. Commands that list print one for each thing; of the \
      others the last one is the result.

      A MODEL is an .xcdatamodel folder, a contents file, an .xcdatamodeld or .momd (its \
      current version, or PATH:VERSION), a .mom, or a store (its cached model).
      """,
    version: VersionText.text,
    subcommands: [
      InspectCommand.self, ModelCommand.self, MappingCommand.self, PlanCommand.self,
      MigrateCommand.self, RunCommand.self, ControlCommand.self, StatusCommand.self,
      HistoryCommand.self, ReportCommand.self, VerifyCommand.self, RollbackCommand.self,
      BackupsCommand.self, QuarantineCommand.self, RehearseCommand.self, FixtureCommand.self,
      RepairCommand.self, DoctorCommand.self,
      WorkerCommand.self, StoreHostCommand.self,
    ])

  /// What is typed for a command, from `godwit` on; nil for one that is not below the given one.
  static func words(
    of command: any ParsableCommand.Type, below parent: any ParsableCommand.Type = Root.self
  ) -> [String]? {
    if command == parent { return [parent._commandName] }
    return parent.configuration.subcommands.lazy.compactMap { words(of: command, below: $0) }.first
      .map { [parent._commandName] + $0 }
  }

  /// What is wrong with a command that is not there: the parser would blame an option of the command that
  /// was meant, or show the help of all.
  static func unknownCommand(in arguments: [String]) -> ValidationError? {
    let name = arguments.first == "help" ? arguments.dropFirst().first : arguments.first
    let known = configuration.subcommands.map { $0._commandName }
    guard let name, !name.hasPrefix("-"), name != "help", !known.contains(name) else { return nil }
    return ValidationError(
      "There is no command '\(name)'."
        + (Spelling.closest(to: name, among: known).map { " Did you mean '\($0)'?" } ?? ""))
  }
}
