import Foundation
import GodwitWorker
import SystemPackage
import Testing

@testable import GodwitFleet

/// Workers made of a few lines of shell: what the pool does must not depend on what they do.
private struct FakeWorker {
  /// Answers a task by its unit; `$unit` and `$stage` are set, `answer` says finished.
  var onTask: String

  var settings: (Int) -> WorkerPool.Settings {
    { count in
      let script = """
        finished() {
          echo "{\\"finished\\":{\\"stage\\":\\"$stage\\",\\"unit\\":$unit,\\"rows\\":2,\\"bytes\\":3,\\"seconds\\":0,\\"peakRSS\\":$((unit + 100))}}"
        }
        failed() {
          echo "{\\"failed\\":{\\"stage\\":\\"$stage\\",\\"unit\\":$unit,\\"error\\":{\\"kind\\":\\"$1\\",\\"message\\":\\"no\\"}}}"
        }
        while read -r line; do
          case "$line" in
          *'"task"'*)
            unit=${line##*'"unit":'}; unit=${unit%%[!0-9]*}
            stage=${line##*'"stage":"'}; stage=${stage%%'"'*}
            \(onTask)
            ;;
          esac
        done
        """
      return WorkerPool.Settings(
        executable: "/bin/sh", arguments: ["-c", script], workerCount: count)
    }
  }

  func run(
    workers: Int, units: Range<Int>
  ) async throws -> (units: [Int], peak: Int64, lost: Int) {
    try await WorkerPool.serving(settings(workers), run: "/nowhere") { pool in
      var found: [Int] = []
      for try await finished in await pool.perform(
        units.map { WorkerTask(stage: .copy, unit: $0) })
      {
        found.append(finished.unit)
      }
      return (found.sorted(), await pool.peakRSS, await pool.lostWorkers)
    }
  }
}

@Suite(.timeLimit(.minutes(5))) struct `A worker pool` {
  @Test(arguments: [1, 2, 4])
  func `has every task done exactly once`(workers: Int) async throws {
    let result = try await FakeWorker(onTask: "finished").run(workers: workers, units: 0..<50)
    #expect(result.units == Array(0..<50))
    #expect(result.peak == 149)
    #expect(result.lost == 0)
  }

  @Test func `serves several batches, also at the same time`() async throws {
    let pool = FakeWorker(onTask: "finished").settings(2)
    let counts = try await WorkerPool.serving(pool, run: "/nowhere") { pool in
      async let first = count(await pool.perform((0..<20).map { .init(stage: .audit, unit: $0) }))
      async let second = count(await pool.perform((0..<9).map { .init(stage: .copy, unit: $0) }))
      let third = try await count(await pool.perform([]))
      return try await [first, second, third]
    }
    #expect(counts == [20, 9, 0])
  }

  private func count(_ answers: AsyncThrowingStream<FinishedTask, any Error>) async throws -> Int {
    try await answers.reduce(0) { count, _ in count + 1 }
  }

  @Test func `replaces a worker that dies, and has its task done`() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/godwit-pool-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    // Units 3 and 8 kill the first worker that they meet.
    let result = try await FakeWorker(
      onTask: """
        if [ $unit = 3 -o $unit = 8 ] && mkdir \(folder)/$unit 2>/dev/null; then kill -9 $$; fi
        finished
        """
    ).run(workers: 2, units: 0..<20)
    #expect(result.units == Array(0..<20))
    #expect(result.lost == 2)
  }

  @Test func `replaces a worker that is stopped, and has its task done`() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/godwit-pool-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let worker = FakeWorker(
      onTask: "[ $unit = 3 ] && mkdir \(folder)/3 2>/dev/null && kill -STOP $$; finished")
    var settings = worker.settings(2)
    settings.silenceLimit = 5
    let units = try await WorkerPool.serving(settings, run: "/nowhere") { pool in
      var found: [Int] = []
      for try await finished in await pool.perform((0..<9).map { .init(stage: .copy, unit: $0) }) {
        found.append(finished.unit)
      }
      #expect(await pool.lostWorkers >= 1)
      return found
    }
    #expect(units.sorted() == Array(0..<9))
  }

  @Test func `lets a worker take its time that says that it gets on`() async throws {
    let worker = FakeWorker(
      onTask: "for i in 1 2 3 4 5 6 7 8; do sleep 0.75; echo '{\"beat\":true}'; done; finished")
    var settings = worker.settings(1)
    settings.silenceLimit = 5
    let lost = try await WorkerPool.serving(settings, run: "/nowhere") { pool in
      for try await _ in await pool.perform([.init(stage: .copy, unit: 0)]) {}
      return await pool.lostWorkers
    }
    #expect(lost == 0)
  }

  @Test func `gives up a task that three workers are silent at`() async throws {
    var settings = FakeWorker(onTask: "exec sleep 600").settings(1)
    settings.silenceLimit = 0.2
    let error = await #expect(throws: FleetError.self) {
      try await WorkerPool.serving(settings, run: "/nowhere") { pool in
        for try await _ in await pool.perform([.init(stage: .copy, unit: 0)]) {}
      }
    }
    #expect(error?.description.contains("made no progress") == true)
    #expect(error.map { RetryPolicy.judgement(of: $0).ending } == .engineUnavailable)
  }

  @Test func `gives up a task that kills three workers, and says which`() async throws {
    let error = await #expect(throws: FleetError.self) {
      try await FakeWorker(onTask: "[ $unit = 5 ] && kill -9 $$; finished")
        .run(workers: 2, units: 0..<20)
    }
    #expect(
      error
        == .workersLost(
          WorkerTask(stage: .copy, unit: 5), how: "was killed by signal 9"))
  }

  @Test func `gives up workers that never work`() async throws {
    let error = await #expect(throws: FleetError.self) {
      try await FakeWorker(onTask: "exit 3").run(workers: 1, units: 0..<1)
    }
    #expect(error?.description.isEmpty == false)
  }

  @Test func `says when there is no such program`() async throws {
    let settings = WorkerPool.Settings(executable: "/nowhere/godwit", workerCount: 2)
    await #expect(throws: FleetError.self) {
      try await WorkerPool.serving(settings, run: "/nowhere") { pool in
        for try await _ in await pool.perform([.init(stage: .copy, unit: 0)]) {}
      }
    }
  }

  @Test func `ends a batch with a task that fails for good`() async throws {
    let error = await #expect(throws: FleetError.self) {
      try await FakeWorker(onTask: "if [ $unit = 4 ]; then failed damaged; else finished; fi")
        .run(workers: 2, units: 0..<2_000)
    }
    guard case .task(let failed) = error else {
      Issue.record("\(String(describing: error)) is no failed task")
      return
    }
    #expect(failed.task == WorkerTask(stage: .copy, unit: 4))
  }

  @Test func `names the first of the tasks that failed, whichever worker was faster`() async throws
  {
    // Unit 5 fails once unit 9 has; after two seconds also without it, which the same worker may have next.
    let mark = FileManager.default.temporaryDirectory.path + "/godwit-pool-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: mark) }
    let error = await #expect(throws: FleetError.self) {
      try await FakeWorker(
        onTask: """
          case $unit in
          5) n=0; while [ ! -e \(mark) ] && [ $n -lt 200 ]; do sleep 0.01; n=$((n+1)); done; failed refused;;
          9) failed refused; : > \(mark);;
          *) finished;;
          esac
          """
      ).run(workers: 2, units: 0..<40)
    }
    guard case .task(let failed) = error else {
      Issue.record("\(String(describing: error)) is no failed task")
      return
    }
    #expect(failed.task.unit == 5)
  }

  @Test func `ends when its task is cancelled, whatever the workers do`() async throws {
    let started = AsyncStream.makeStream(of: Void.self)
    let run = Task {
      try await WorkerPool.serving(
        FakeWorker(onTask: "exec sleep 600").settings(2), run: "/nowhere"
      ) {
        pool in
        let answers = await pool.perform((0..<4).map { .init(stage: .copy, unit: $0) })
        started.continuation.finish()
        for try await _ in answers {}
        try Task.checkCancellation()
      }
    }
    for await _ in started.stream {}
    run.cancel()
    await #expect(throws: CancellationError.self) { try await run.value }
  }
}
