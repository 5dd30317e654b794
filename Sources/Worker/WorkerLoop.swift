import Glibc
import GodwitCheckpoints
import GodwitDurableFiles
import SystemPackage

/// What a worker process does, from its first line to the end of its input.
///
/// It opens the source store read-only and writes nothing but its own checkpoints, so it may be
/// killed at any moment and its shard handed to another.
package struct WorkerLoop {
  private let input: FileDescriptor
  private let output: WorkerOutput
  private let policies: PolicyRegistry

  /// - Parameter policies: The entity migration policies of the running executable.
  package init(
    policies: PolicyRegistry = PolicyRegistry(), input: FileDescriptor = .standardInput,
    output: FileDescriptor = .standardOutput
  ) {
    self.policies = policies
    self.input = input
    self.output = WorkerOutput(output)
  }

  /// Serves tasks until the coordinator closes the pipe.
  ///
  /// A task that fails is reported, and the loop goes on. Only a broken pipe ends it early: then
  /// nobody is left to report to.
  package func run() throws {
    try Heartbeat.start(watching: pthread_self()) { [output] in try output.send(.beat) }
    var lines = LineReader(input)
    let runner = TaskRunner(policies: policies)
    while let line = try lines.next() {
      switch WorkerMessage(line: line) {
      case .open(let run, let assembled):
        TemporaryFolders.borrow(FilePath(run))
        runner.open(RunDirectory(FilePath(run)), assembled: assembled)
      case .task(let task):
        Pace.keep()
        switch runner.perform(task) {
        case .success(var finished):
          finished.peakRSS = ProcessMemory.peakResidentBytes
          try output.send(.finished(finished))
        case .failure(let failed):
          if FileLimit.isReached { _exit(FileLimit.exitCode) }
          try output.send(.failed(failed))
        }
      case .finished, .failed, .beat, nil:
        throw StageError.outOfOrder("something that is not a request")
      }
    }
  }
}

/// Lines from a pipe or a file, each bounded, so that a broken peer cannot make this process grow.
package struct LineReader {
  private static let pieceBytes = 1 << 14

  private let descriptor: FileDescriptor
  private var buffer: [UInt8] = []
  private var start = 0

  private let mostBytes: Int
  private let passesOver: Bool

  /// Where the next line begins, in bytes from where the first one did.
  package private(set) var offset: Int64 = 0

  /// - Parameters:
  ///   - mostBytes: Of a line; 1 MiB unless told otherwise.
  ///   - passesOver: Whether a longer line is given as an empty one; else it is an error.
  package init(_ descriptor: FileDescriptor, mostBytes: Int = 1 << 20, passesOver: Bool = false) {
    self.descriptor = descriptor
    self.mostBytes = mostBytes
    self.passesOver = passesOver
  }

  /// The next line without its line feed; nil at the end of the input.
  package mutating func next() throws -> [UInt8]? {
    var searched = start
    var passed: Int64 = 0
    while true {
      if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        let line = passed > 0 ? [] : Array(buffer[start..<end])
        offset += passed + Int64(end - start) + 1
        start = end + 1
        if start == buffer.count {
          buffer.removeAll(keepingCapacity: true)
          start = 0
        }
        return line
      }
      searched = buffer.count
      if buffer.count - start >= mostBytes {
        guard passesOver else {
          throw StageError.outOfOrder("a line of more than \(mostBytes) bytes")
        }
        passed += Int64(buffer.count - start)
        buffer.removeAll(keepingCapacity: true)
        (searched, start) = (0, 0)
      }
      let piece = try [UInt8](unsafeUninitializedCapacity: Self.pieceBytes) { bytes, count in
        count = try descriptor.read(into: UnsafeMutableRawBufferPointer(bytes))
      }
      guard !piece.isEmpty else { return nil }
      // Lines that have been given go, however they lie in pieces.
      buffer.removeSubrange(..<start)
      (searched, start) = (searched - start, 0)
      buffer += piece
    }
  }
}
