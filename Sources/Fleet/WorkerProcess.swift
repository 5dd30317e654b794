import GodwitWorker
import Subprocess
import SystemPackage

/// One worker process, from its start to its end.
enum WorkerProcess {
  /// Starts a worker and passes lines both ways until it ends.
  ///
  /// Cancelling the surrounding task ends the process in steps: SIGTERM, two seconds, SIGKILL. The
  /// worker needs no farewell; it may be killed at any moment and its shard done by another.
  ///
  /// - Parameters:
  ///   - executable: A program that serves ``WorkerMessage``s when its argument is `worker`.
  ///   - next: The next line for the worker; it waits for one. Nil closes the worker's input.
  ///   - take: What the worker says. False ends the process.
  ///   - ended: Called once when the worker says nothing more; `next` must then return nil.
  /// - Returns: How the process ended, in words for a message.
  static func run(
    executable: FilePath, arguments: [String],
    next: @escaping @Sendable () async -> WorkerMessage?,
    take: @escaping @Sendable (WorkerMessage) async -> Bool,
    ended: @escaping @Sendable () async -> Void
  ) async throws -> String {
    var options = PlatformOptions()
    options.teardownSequence = [.gracefulShutDown(allowedDurationToNextStep: .seconds(2))]
    // The code of policies goes over dictionaries and sets: in every run in the same order.
    let environment = Environment.inherit.updating(["SWIFT_DETERMINISTIC_HASHING": "1"])
    let result = try await Subprocess.run(
      .path(executable), arguments: Arguments(arguments), environment: environment,
      platformOptions: options,
      input: .inputWriter, output: .sequence, error: .currentStandardError
    ) { execution in
      let writer = execution.standardInputWriter
      let output = execution.standardOutput
      await withTaskGroup(of: Void.self) { group in
        group.addTask {
          while let message = await next() {
            // A worker that is gone shows itself at the other pipe.
            guard let line = try? message.line(), (try? await writer.write(line)) != nil else {
              break
            }
          }
          try? await writer.finish()
        }
        do {
          for try await line in output.strings(bufferingPolicy: .maxLineLength(longestLine)) {
            guard let message = WorkerMessage(line: line.utf8), await take(message) else { break }
          }
        } catch {
          // A broken pipe or a line without end: the process is of no more use.
        }
        await ended()
        await group.waitForAll()
      }
    }
    return switch result.terminationStatus {
    case .exited(let code): "ended with exit code \(code)"
    case .signaled(let signal): "was killed by signal \(signal)"
    }
  }

  /// 4 MiB. A summary of findings is far shorter; a worker that writes more has gone wrong.
  private static let longestLine = 4 << 20
}
