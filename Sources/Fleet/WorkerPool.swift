import Foundation
import GodwitWorker
import SystemPackage

/// Worker processes and the tasks that wait for them.
///
/// Tasks are handed out in the order in which they came, at most two to a worker: the second
/// hides the pipe's wake-up. A worker that dies, or that has been silent for `WorkerTimeout`, is
/// replaced and its task tried again; a task that has cost ``RetryPolicy/attempts`` workers is
/// given up. What counts as done is the checkpoint that a worker has written before it answers.
package actor WorkerPool: StageWorkers {
  /// What a worker is started with.
  package struct Settings: Sendable {
    /// The program; its argument `worker` makes it a worker.
    package var executable: FilePath
    package var arguments: [String]
    package var workerCount: Int
    /// How long a worker that has a task may be silent, in seconds.
    var silenceLimit = WorkerTimeout.seconds

    package init(executable: FilePath, arguments: [String] = ["worker"], workerCount: Int) {
      self.executable = executable
      self.arguments = arguments
      self.workerCount = max(1, workerCount)
    }
  }

  private struct Job {
    var task: WorkerTask
    var batch: Int
    /// In the batch, from 0.
    var place: Int
    var failures = 0
  }

  private struct Batch {
    /// Tasks without an answer.
    var open: Int
    let stream: AsyncThrowingStream<FinishedTask, any Error>.Continuation
    /// Of the tasks that failed for good, the first in the batch.
    var failure: (place: Int, error: any Error)?
  }

  private struct Slot {
    var inFlight: [Job] = []
    /// Which opening the process has been given; 0 for none.
    var opening = 0
    /// Nil while there is none to give tasks to.
    var process: WorkerProcess?
  }

  private let settings: Settings
  private let run: String
  private var assembled: String?
  private var opening = 1
  private var queue: [Job] = []
  private var slots: [Slot]
  private var batches: [Int: Batch] = [:]
  private var batchCount = 0
  private var isClosed = false
  /// Why no worker can be had; every later batch fails with it.
  private var failure: FleetError?
  private var startSleepers: [Int: CheckedContinuation<Bool, Never>] = [:]

  /// Answers so far: tells a worker that does something from one that only dies.
  private var finishedCount = 0

  /// The most memory that any worker has reported, in bytes.
  package private(set) var peakRSS: Int64 = 0
  /// Workers that died before their time.
  package private(set) var lostWorkers = 0

  init(_ settings: Settings, run: FilePath) {
    self.settings = settings
    self.run = run.string
    slots = Array(repeating: Slot(), count: settings.workerCount)
  }

  /// Makes a pool for the length of `body`. Processes start with the first tasks and have ended
  /// when this returns; when `body` throws, shards in hand are dropped.
  package static func serving<Result: Sendable>(
    _ settings: Settings, run: FilePath,
    _ body: (WorkerPool) async throws -> Result
  ) async throws -> Result {
    // A line to a worker that has just died is an error of write(2), and must not be our own death;
    // pipes know no other way to say so than for the whole process.
    signal(SIGPIPE, SIG_IGN)
    let pool = WorkerPool(settings, run: run)
    return try await withThrowingTaskGroup(of: Void.self) { group in
      for slot in 0..<settings.workerCount { group.addTask { await pool.serve(slot) } }
      do {
        let result = try await body(pool)
        await pool.close()
        return result
      } catch {
        await pool.close()
        throw error
      }
    }
  }
}

extension WorkerPool {
  /// Puts tasks behind those that wait. The stream ends after the last answer, or throws where a task fails for
  /// good; those behind it are then no longer started. Of several such tasks the error is that of the first in
  /// the batch, whichever worker was faster.
  package func perform(_ tasks: [WorkerTask]) -> AsyncThrowingStream<FinishedTask, any Error> {
    let (stream, continuation) = AsyncThrowingStream.makeStream(of: FinishedTask.self)
    if let failure {
      continuation.finish(throwing: failure)
    } else if tasks.isEmpty || isClosed {
      continuation.finish()
    } else {
      batchCount += 1
      let number = batchCount
      batches[number] = Batch(open: tasks.count, stream: continuation)
      queue.append(
        contentsOf: tasks.enumerated().map { Job(task: $1, batch: number, place: $0) })
      handOut()
    }
    return stream
  }

  /// Tells every worker, before its next task, where the assembled store lies.
  package func open(assembled path: FilePath) {
    assembled = path.string
    opening += 1
  }

  /// Drops what waits and closes the inputs of all workers.
  private func close() {
    isClosed = true
    queue = []
    for (_, batch) in batches { batch.stream.finish(throwing: CancellationError()) }
    batches = [:]
    for slot in slots.indices { slots[slot].process?.end() }
    for (_, sleeper) in startSleepers { sleeper.resume(returning: false) }
    startSleepers = [:]
  }
}

// Handing out tasks.
extension WorkerPool {
  /// Gives what waits to the workers: idle ones first, a second task only while there is more than
  /// enough for everybody, so that no shard waits behind another at a stage's end.
  private func handOut() {
    for wanted in [0, 1] {
      for slot in slots.indices {
        guard let process = slots[slot].process, !queue.isEmpty,
          slots[slot].inFlight.count == wanted, wanted == 0 || queue.count >= slots.count
        else { continue }
        if slots[slot].opening < opening {
          slots[slot].opening = opening
          send(.open(run: run, assembled: assembled), to: process)
        }
        let job = queue.removeFirst()
        slots[slot].inFlight.append(job)
        send(.task(job.task), to: process)
        process.expectWords(within: settings.silenceLimit)
      }
    }
    var wanted = queue.count
    for (slot, sleeper) in startSleepers.sorted(by: { $0.key < $1.key }) where wanted > 0 {
      startSleepers[slot] = nil
      sleeper.resume(returning: true)
      wanted -= 1
    }
  }

  /// A process that is gone shows itself by its end.
  private func send(_ message: WorkerMessage, to process: WorkerProcess) {
    guard let line = try? message.line() else { return process.stop() }
    process.send(line)
  }

  private func waitForWork(_ slot: Int) async -> Bool {
    if isClosed || failure != nil { return false }
    if !queue.isEmpty { return true }
    return await withCheckedContinuation { startSleepers[slot] = $0 }
  }
}

// The life of the processes.
extension WorkerPool {
  /// Keeps one process alive while there is work, and replaces it when it dies.
  private func serve(_ slot: Int) async {
    var consecutiveFailures = 0
    while await waitForWork(slot) {
      let finishedBefore = finishedCount
      let how: String
      do {
        let process = try WorkerProcess(
          executable: settings.executable, arguments: settings.arguments)
        how = await follow(process, slot)
      } catch {
        how = "could not be started: \(error)"
      }
      if isClosed { return }
      lostWorkers += 1
      consecutiveFailures = finishedCount == finishedBefore ? consecutiveFailures + 1 : 0
      putBack(slot, how)
      if consecutiveFailures >= RetryPolicy.attempts {
        fail(.workersDie(executable: settings.executable.string, how: how))
        return
      }
    }
  }

  /// Gives tasks to a process until it has ended.
  ///
  /// - Returns: How it ended.
  private func follow(_ process: WorkerProcess, _ slot: Int) async -> String {
    slots[slot].process = process
    slots[slot].opening = 0
    handOut()
    var how = "was stopped"
    for await event in process.events {
      switch event {
      case .line(let line):
        guard let message = WorkerMessage(line: line), take(message, from: slot) else {
          process.stop()
          continue
        }
      case .ended(let end): how = end
      }
    }
    slots[slot].process = nil
    // The events of a cancelled task end before the process does.
    process.end()
    await process.waitForEnd()
    return how
  }

  /// The tasks of a worker that died wait again, first in the line. Only the one it was at has
  /// cost an attempt.
  private func putBack(_ slot: Int, _ how: String) {
    var jobs = slots[slot].inFlight
    slots[slot].inFlight = []
    guard !jobs.isEmpty else { return }
    jobs[0].failures += 1
    if jobs[0].failures >= RetryPolicy.attempts {
      let job = jobs.removeFirst()
      giveUp(job, FleetError.workersLost(job.task, how: how))
    }
    queue.insert(contentsOf: jobs.filter(isWanted), at: 0)
    settleFailures()
    handOut()
  }

  private func fail(_ error: FleetError) {
    failure = failure ?? error
    for number in Array(batches.keys) { endBatch(number, throwing: error) }
  }
}

// What workers say.
extension WorkerPool {
  private func take(_ message: WorkerMessage, from slot: Int) -> Bool {
    switch message {
    case .finished(let finished):
      guard let job = removeFirst(finished.task, of: slot) else { return false }
      finishedCount += 1
      peakRSS = max(peakRSS, finished.peakRSS)
      if let batch = batches[job.batch] {
        batch.stream.yield(finished)
        batches[job.batch]?.open -= 1
        if batch.open == 1 { endBatch(job.batch, throwing: nil) }
      }
      settleFailures()
    case .failed(let failed):
      guard var job = removeFirst(failed.task, of: slot) else { return false }
      finishedCount += 1
      job.failures += 1
      if RetryPolicy.allowsRetry(failed.error, failures: job.failures) {
        if isWanted(job) { queue.append(job) }
      } else {
        giveUp(job, FleetError.task(failed))
      }
      settleFailures()
    case .beat: break
    case .open, .task:
      return false  // not a worker's words
    }
    if slots[slot].inFlight.isEmpty { slots[slot].process?.expectWords(within: nil) }
    handOut()
    return true
  }

  /// A worker answers in order; one that does not is not to be trusted.
  private func removeFirst(_ task: WorkerTask, of slot: Int) -> Job? {
    guard slots[slot].inFlight.first?.task == task else { return nil }
    return slots[slot].inFlight.removeFirst()
  }

  /// Notes that a task failed for good. What stands behind it in its batch is of no use any more.
  private func giveUp(_ job: Job, _ error: any Error) {
    guard isWanted(job) else { return }
    batches[job.batch]?.failure = (job.place, error)
    queue.removeAll { !isWanted($0) }
  }

  private func isWanted(_ job: Job) -> Bool {
    guard let batch = batches[job.batch] else { return false }
    return batch.failure.map { job.place < $0.place } ?? true
  }

  /// Ends the batches that have a failure which nothing before it may take the place of.
  private func settleFailures() {
    guard batches.values.contains(where: { $0.failure != nil }) else { return }
    let left = queue + slots.flatMap(\.inFlight)
    for (number, batch) in batches {
      guard let failure = batch.failure,
        !left.contains(where: { $0.batch == number && isWanted($0) })
      else { continue }
      endBatch(number, throwing: failure.error)
    }
  }

  private func endBatch(_ number: Int, throwing error: (any Error)?) {
    guard let batch = batches.removeValue(forKey: number) else { return }
    queue.removeAll { $0.batch == number }
    batch.stream.finish(throwing: error)
  }
}
