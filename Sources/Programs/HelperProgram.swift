import Foundation
import GodwitDurableFiles
import Synchronization

/// A program of the system that does something for us, such as drawing: found on the `PATH` when it is
/// needed, given text, and ended when it takes too long.
package struct HelperProgram: Sendable {
  package let path: String

  /// - Returns: Nil where no such program is installed.
  package init?(named name: String) {
    let folders = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    let paths = folders.utf8.split(separator: UInt8(ascii: ":")).map { "\(Substring($0))/\(name)" }
    guard let path = paths.first(where: FileManager.default.isExecutableFile) else { return nil }
    self.path = path
  }

  package init(path: String) { self.path = path }

  package struct Ending: Sendable {
    /// Nil for one that was ended by a signal.
    package var status: Int32?
    /// Whether it was ended because it took too long.
    package var tookTooLong: Bool
    package var output: Data
    /// The first line of what it wrote about a failure.
    package var message: String
  }

  /// Runs it to its end.
  ///
  /// - Parameters:
  ///   - input: What it reads from its standard input.
  ///   - environment: Nil for that of this process.
  ///   - stop: Ends it before its time.
  /// - Throws: What Foundation gives where it cannot be started.
  package func run(
    _ arguments: [String], input: String, environment: [String: String]? = nil,
    timeoutSeconds: Int, stop: Stop? = nil
  ) throws -> Ending {
    let process = Process()
    if let environment { process.environment = environment }
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    // A file: a program that ends before it has read all would end a writer to a pipe, too.
    guard let file = tmpfile() else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    defer { fclose(file) }
    let handle = FileHandle(fileDescriptor: fileno(file), closeOnDealloc: false)
    try handle.write(contentsOf: Data(input.utf8))
    try handle.seek(toOffset: 0)
    let (output, errors) = (Pipe(), Pipe())
    process.standardInput = handle
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    // Warnings may come while the output is read: each has a reader.
    let warnings = Reader(errors.fileHandleForReading)
    let watch = Watch(process, seconds: timeoutSeconds)
    warnings.start()
    watch.start()
    stop?.set(process)
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    stop?.set(nil)
    watch.end()
    return Ending(
      status: process.terminationReason == .exit ? process.terminationStatus : nil,
      tookTooLong: watch.hasEnded, output: data, message: warnings.firstLine())
  }

  /// By which another thread ends a program that nobody waits for any more.
  package final class Stop: Sendable {
    private struct State {
      var process: Int32?
      var isSet = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Ends the program, at once or as soon as it is started.
    package func end() {
      state.withLock { state in
        state.isSet = true
        if let process = state.process { kill(process, SIGKILL) }
      }
    }

    fileprivate func set(_ process: Process?) {
      state.withLock { state in
        state.process = process?.processIdentifier
        if state.isSet, let process { kill(process.processIdentifier, SIGKILL) }
      }
    }
  }

  /// Reads a pipe to its end on a thread.
  private final class Reader: @unchecked Sendable {
    private let handle: FileHandle
    private let done = DispatchSemaphore(value: 0)
    /// Written before `done` is signalled, and read after.
    private var data = Data()

    init(_ handle: FileHandle) { self.handle = handle }

    func start() {
      Thread { [self] in
        data = handle.readDataToEndOfFile()
        done.signal()
      }.start()
    }

    func firstLine() -> String {
      done.wait()
      let line = String(decoding: data.prefix(400), as: UTF8.self).split(
        whereSeparator: \.isNewline
      ).first
      return line.map(String.init) ?? "no message"
    }
  }

  /// Ends a process that takes too long.
  private final class Watch: @unchecked Sendable {
    private let process: Process
    private let seconds: Int
    private let isOver = SteadySemaphore()
    private let ended = Atomic(false)

    var hasEnded: Bool { ended.load(ordering: .acquiring) }

    init(_ process: Process, seconds: Int) { (self.process, self.seconds) = (process, seconds) }

    func start() {
      Thread { [self] in
        guard isOver.wait(timeout: .now() + .seconds(seconds)) == .timedOut else { return }
        ended.store(true, ordering: .releasing)
        // It has nothing to put away, and may have inherited that signals are blocked.
        kill(process.processIdentifier, SIGKILL)
      }.start()
    }

    func end() { isOver.signal() }
  }
}
