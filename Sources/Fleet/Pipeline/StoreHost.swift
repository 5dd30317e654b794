import Foundation
import Glibc
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import Synchronization
import SystemPackage

/// The process that coordinates one store of a pipeline after the other: planning, assembly and
/// commit, and of a small store the stages, too. A crash in it, a planning without end or one that
/// takes all memory is the failure of the store in hand, and of no other.
package final class StoreHost: Sendable {
  private let run: PipelineRun
  private let output: WorkerOutput
  private let settings: String
  private let code: String?
  private let policies: PolicyRegistry
  /// Whether the coordinator wants to know what happens to a store.
  private let tellsEvents: Bool
  private let state = Mutex(State())

  private struct State: ~Copyable {
    /// The store in hand.
    var task: Task<Void, Never>?
    var isStopped = false
    /// From a small store's plan to its result.
    var isBeating = false
    /// The result that the coordinator has in the ledger.
    var recorded: MigrationResult?
  }

  /// What the coordinator said of the result that it was given.
  private let recorded = Mutex<StoreMessage.Unrecorded?>(nil)
  private let answer = DispatchSemaphore(value: 0)

  /// 2 GiB, for what one process allocates: eight times what a coordinator may take.
  private static let mostMemory = 2 << 30

  /// - Parameters:
  ///   - policies: The entity migration policies of the running executable.
  ///   - output: The pipe to the coordinator.
  package init(
    _ run: PipelineRun, policies: PolicyRegistry, tellsEvents: Bool, output: FileDescriptor
  ) throws {
    self.run = run
    self.policies = policies
    self.tellsEvents = tellsEvents
    self.output = WorkerOutput(output)
    settings = try run.settingsDigest()
    code = run.template.ownCodeDigest
  }

  /// Serves the coordinator until it is gone. The process must end then.
  package func serve(input: FileDescriptor) async throws {
    // Memory that cannot be had ends this process, and neither the machine nor other stores.
    ProcessLimits.limitMemory(to: Self.mostMemory)
    ProcessLimits.keepFreedMemory()
    let (tasks, continuation) = AsyncStream.makeStream(of: StoreTask.self)
    try OwnThread.start { self.read(input, continuation) }
    // A small store's stages all happen there.
    try StoreThread.ofProcess().watch {
      if self.state.withLock({ $0.isBeating }) {
        try self.output.send(line: StoreMessage.beat.line)
      }
    }
    for await task in tasks {
      let work = Task {
        let result = await self.result(of: task)
        let recorded = self.state.withLock { state in
          state.isBeating = false
          return state.recorded.take()
        }
        self.endWithoutFiles(instead: result)
        let cost = recorded.flatMap { StoreCost(result, recorded: $0) }
        let message = cost.map(StoreMessage.done) ?? .result(StoreEnd(result))
        self.say(message)
      }
      let isStopped = state.withLock { state in
        state.task = work
        return state.isStopped
      }
      if isStopped { work.cancel() }
      await work.value
      state.withLock { $0.task = nil }
    }
  }

  private func read(_ input: FileDescriptor, _ tasks: AsyncStream<StoreTask>.Continuation) {
    var lines = LineReader(input)
    while let line = try? lines.next(), let message = StoreMessage(line: line) {
      switch message {
      case .start(let task):
        // A stop was meant for the store before: it comes before the next start.
        state.withLock { $0.isStopped = false }
        tasks.yield(task)
      case .recorded(let failure):
        recorded.withLock { $0 = failure }
        answer.signal()
      case .stop:
        state.withLock { state in
          state.isStopped = true
          state.task?.cancel()
        }
      // Not the coordinator's words.
      case .event, .planned, .beat, .record, .result, .done: _exit(1)
      }
    }
    // Nobody waits for an answer any more, and what lies on the disk is safe at any moment.
    StopSignals.finish { _exit(0) }
  }

  private func result(of task: StoreTask) async -> MigrationResult {
    guard task.code == code else {
      return MigrationResult(ofOtherBuild: run.pool.executable, task.store)
    }
    guard SettingsDigest.areSame(task.settings, settings), task.pipeline == run.pipeline.digest
    else {
      return MigrationResult(changingUnder: task.store)
    }
    let store = FoundStore(
      path: FilePath(task.store), root: FilePath(task.root), bytes: task.bytes)
    let record: @Sendable (MigrationResult) throws -> Void = { result in
      self.endWithoutFiles(instead: result)
      try self.output.send(line: StoreMessage.record(StoreEnd(result)).line)
      self.answer.wait()
      if let failure = self.recorded.withLock({ $0 }) {
        throw FleetError.ledger(
          message: failure.message, isOutOfSpace: failure.isOutOfSpace)
      }
      if !result.isOfEarlierCommit { self.state.withLock { $0.recorded = result } }
    }
    let observe: @Sendable (RunEvent) -> Void = { self.tell($0, of: task) }
    switch task.work {
    case .plan:
      var request = run.request(for: store)
      if let output = task.output { request.output = FilePath(output) }
      return await DryRun(
        request, migratesSnapshots: run.pipeline.stores.inUse == .snapshot
      ).run()
    case .look: return StoreLook(store.path).result
    case .version: return run.version(of: store, folder: FilePath(task.output ?? ""))
    case .migrate:
      return await run.migrate(
        store, task, policies: policies, record: record, observe: observe)
    case .snapshot:
      return await run.migrateSnapshot(
        store, task, output: FilePath(task.output ?? ""), policies: policies,
        record: record, observe: observe)
    case .sample:
      return await run.migrateSample(
        store, task, folder: FilePath(task.output ?? ""), policies: policies,
        observe: observe)
    }
  }

  private func tell(_ event: RunEvent, of task: StoreTask) {
    if event.event == .plan {
      if task.workers == 0 { state.withLock { $0.isBeating = true } }
      say(.planned)
    }
    // A line a unit or step would bury the rest; the run directory's events have them.
    guard tellsEvents, !event.event.isOfUnit else { return }
    // A small store's stages are over in milliseconds, and stand in its result.
    guard task.workers > 0 || event.event != .stage && event.event != .stageFinished else { return }
    say(.event(event))
  }

  /// Where it may open no more files, what it says of a store is not so: the coordinator has it done in another
  /// process.
  private func endWithoutFiles(instead result: MigrationResult) {
    guard result.verdict != .migrated, result.verdict != .sameModel, FileLimit.isReached else {
      return
    }
    StopSignals.finish { _exit(FileLimit.exitCode) }
  }

  /// A coordinator that does not hear would wait for ever. One whose process is gone starts another,
  /// and what lies on the disk is safe at any moment.
  private func say(_ message: StoreMessage) {
    if (try? output.send(line: message.line)) == nil { StopSignals.finish { _exit(1) } }
  }
}
