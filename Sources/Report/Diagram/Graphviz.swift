import Foundation
import Synchronization

/// Graphviz, which draws diagrams: the program `dot`, found on the `PATH` when it is needed.
public enum Graphviz {
  /// Why a diagram was not drawn.
  public enum Failure: Error, Sendable, Equatable {
    /// There is no `dot` on the `PATH`.
    case notInstalled
    /// It was ended after that many seconds.
    case tookTooLong(seconds: Int)
    case noTemporaryFile(errno: Int32)
    /// Its exit status, and the first line of what it wrote about it.
    case failed(status: Int32, message: String)
  }

  /// The path of `dot`; nil where it is not installed.
  public static var program: String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    return path.split(separator: ":").map { "\($0)/dot" }.first {
      FileManager.default.isExecutableFile(atPath: $0)
    }
  }

  /// Draws a diagram.
  ///
  /// - Parameters:
  ///   - program: The path of `dot`; nil where there is none.
  ///   - timeoutSeconds: After it `dot` is ended: hundreds of entities that are all related may
  ///     take it hours.
  /// - Returns: An SVG document.
  /// - Throws: ``Failure``, and what Foundation gives where `dot` cannot be started.
  public static func svg(
    of diagram: EntityDiagram, program: String? = Graphviz.program, timeoutSeconds: Int = 30
  ) throws -> String {
    guard let program else { throw Failure.notInstalled }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = ["-Tsvg"]
    // A file: a program that ends before it has read all would end a writer to a pipe, too.
    guard let file = tmpfile() else { throw Failure.noTemporaryFile(errno: errno) }
    defer { fclose(file) }
    let input = FileHandle(fileDescriptor: fileno(file), closeOnDealloc: false)
    try input.write(contentsOf: Data(diagram.dot.utf8))
    try input.seek(toOffset: 0)
    let (output, errors) = (Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    // Warnings may come while the drawing is read: each has a reader of its own.
    let warnings = Reader(errors.fileHandleForReading)
    let watch = Watch(process, seconds: timeoutSeconds)
    warnings.start()
    watch.start()
    let drawn = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    watch.end()
    if watch.hasEnded { throw Failure.tookTooLong(seconds: timeoutSeconds) }
    guard process.terminationReason == .exit, process.terminationStatus == 0,
      let svg = String(data: drawn, encoding: .utf8), svg.contains("</svg>")
    else {
      throw Failure.failed(status: process.terminationStatus, message: warnings.firstLine())
    }
    return svg
  }

  /// Reads a pipe to its end on a thread of its own.
  private final class Reader: @unchecked Sendable {
    private let handle: FileHandle
    private let done = DispatchSemaphore(value: 0)
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
      let line = String(decoding: data.prefix(400), as: UTF8.self).split(separator: "\n").first
      return line.map(String.init) ?? "no message"
    }
  }

  /// Ends a process that takes too long.
  private final class Watch: @unchecked Sendable {
    private let process: Process
    private let seconds: Int
    private let isOver = DispatchSemaphore(value: 0)
    private let ended = Atomic(false)

    var hasEnded: Bool { ended.load(ordering: .acquiring) }

    init(_ process: Process, seconds: Int) { (self.process, self.seconds) = (process, seconds) }

    func start() {
      Thread { [self] in
        guard isOver.wait(timeout: .now() + .seconds(seconds)) == .timedOut else { return }
        ended.store(true, ordering: .releasing)
        // It has nothing to put away, and inherits signals that this process may have blocked.
        kill(process.processIdentifier, SIGKILL)
      }.start()
    }

    func end() { isOver.signal() }
  }
}

extension Graphviz.Failure: CustomStringConvertible {
  public var description: String {
    switch self {
    case .notInstalled:
      "The diagram needs Graphviz, and there is no program dot on the PATH. Install Debian's package "
        + "graphviz, or use --format dot and draw it elsewhere."
    case .tookTooLong(let seconds):
      "Graphviz did not draw the diagram within \(seconds) s. Use --format dot, and draw it with "
        + "another of Graphviz's programs, such as sfdp."
    case .noTemporaryFile(let errno):
      "A temporary file could not be made for Graphviz: \(String(cString: strerror(errno)))."
    case .failed(let status, let message):
      "Graphviz could not draw the diagram: dot ended with status \(status): \(message). Use "
        + "--format dot to see what it was given."
    }
  }
}
