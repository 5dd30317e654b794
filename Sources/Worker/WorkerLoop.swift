import Glibc
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// What a worker process does, from its first line to the end of its input.
///
/// It opens the source store read-only and writes nothing but its own checkpoints, so it may be
/// killed at any moment and its shard handed to another.
public struct WorkerLoop {
  private let input: FileDescriptor
  private let output: WorkerOutput
  private let policies: PolicyRegistry

  /// - Parameter policies: The entity migration policies of the running executable.
  public init(
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
  public func run() throws {
    try Heartbeat.start(watching: pthread_self(), output)
    var lines = LineReader(input)
    var context: ShardContext?
    var openFailure: WorkerFailure?
    while let line = try lines.next() {
      switch WorkerMessage(line: line) {
      case .open(let run, let assembled):
        do {
          if context?.run.path != FilePath(run) {
            TemporaryFiles.useFolder(run)
            context = try ShardContext(run: FilePath(run), policies: policies)
          }
          if let assembled { try context?.openAssembled(assembled) }
          openFailure = nil
        } catch {
          context = nil
          openFailure = WorkerFailure(error)
        }
      case .task(let task):
        let reply: WorkerMessage
        do {
          if let openFailure { throw openFailure }
          guard let context else { throw StageError.outOfOrder("a task before a run was opened") }
          do {
            reply = .finished(try perform(task, context))
          } catch  where task.stage.readsAssembled {
            throw WorkerFailure(assembled: error)
          } catch let error as SQLiteError {
            throw DamageProbe.explained(error, path: error.database ?? context.plan.readPath)
          }
        } catch {
          reply = .failed(
            FailedTask(task: task, error: WorkerFailure(error, source: context?.plan.readPath)))
        }
        try output.send(reply)
      case .finished, .failed, .beat, nil:
        throw StageError.outOfOrder("something that is not a request")
      }
    }
  }

  private func perform(_ task: WorkerTask, _ context: ShardContext) throws -> FinishedTask {
    let clock = ContinuousClock()
    let (start, processorStart) = (clock.now, ProcessTime.processorSeconds)
    let summary: ShardSummary
    var shares: StageClock?
    if task.stage == .rows {
      (summary, shares) = try RowPass(context: context).run(task.unit)
    } else {
      summary = try stage(of: task, context)
    }
    let elapsed = (clock.now - start).components
    return FinishedTask(
      task: task, summary,
      seconds: Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18, shares: shares,
      processorSeconds: ProcessTime.processorSeconds - processorStart,
      peakRSS: ProcessMemory.peakResidentBytes)
  }

  private func stage(of task: WorkerTask, _ context: ShardContext) throws -> ShardSummary {
    switch task.stage {
    case .rows: throw StageError.outOfOrder("a pass over rows")
    case .copy: try MappedCopyStage(context: context).run(task.unit)
    case .link: try MappedLinkStage(context: context).run(task.unit)
    case .validate: try MappedValidateStage(context: context).run(task.unit)
    case .audit: try AuditStage(context: context).run(task.unit)
    case .verify: try VerifyStage(context: context).run(task.unit)
    case .soundness: try SoundnessStage(context: context).run(task.unit)
    }
  }
}

/// Lines from a pipe, each bounded, so that a broken peer cannot make this process grow.
package struct LineReader {
  static let mostBytes = 1 << 20

  private let descriptor: FileDescriptor
  private var buffer: [UInt8] = []
  private var start = 0

  package init(_ descriptor: FileDescriptor) { self.descriptor = descriptor }

  /// The next line without its line feed; nil at the end of the input.
  package mutating func next() throws -> [UInt8]? {
    var searched = start
    while true {
      if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        let line = Array(buffer[start..<end])
        start = end + 1
        if start == buffer.count {
          buffer.removeAll(keepingCapacity: true)
          start = 0
        }
        return line
      }
      searched = buffer.count
      guard buffer.count - start < Self.mostBytes else {
        throw StageError.outOfOrder("a line of more than \(Self.mostBytes) bytes")
      }
      let piece = try [UInt8](unsafeUninitializedCapacity: 4096) { bytes, count in
        count = try descriptor.read(into: UnsafeMutableRawBufferPointer(bytes))
      }
      guard !piece.isEmpty else { return nil }
      buffer += piece
    }
  }
}
