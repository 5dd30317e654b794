import Foundation
import GodwitDurableFiles
import GodwitWorker
import Synchronization
import SystemPackage
import Testing

@testable import GodwitFleet

/// Processes made of a few lines of shell, in place of those that coordinate a store.
@Suite(.timeLimit(.minutes(5))) struct `The processes of a pipeline's stores` {
  private func task(_ store: String, workers: Int = 1) -> StoreTask {
    StoreTask(store: store, root: "/", bytes: 0, workers: workers, settings: "", pipeline: "")
  }

  private func hosts(_ onStart: String, stallLimit: Double = 60) -> StoreHosts {
    let result = MigrationResult(store: "/a", verdict: .sameModel, ending: .done)
    // Each with its line feed: another one would be a line that is no message.
    let answer = String(decoding: StoreMessage.result(StoreEnd(result)).line, as: UTF8.self)
    let planned = String(decoding: StoreMessage.planned.line, as: UTF8.self)
    var migrated = result
    migrated.verdict = .migrated
    let record = String(decoding: StoreMessage.record(StoreEnd(migrated)).line, as: UTF8.self)
    let script = """
      record() { printf '%s' '\(record)'; read -r said; }
      answer() { printf '%s' '\(answer)'; }
      planned() { printf '%s' '\(planned)'; }
      while read -r line; do
        case "$line" in *'"start"'*) \(onStart);; *'"stop"'*) answer;; esac
      done
      """
    return StoreHosts(executable: "/bin/sh", arguments: ["-c", script], stallLimit: stallLimit)
  }

  @Test func `replace one that a signal has stopped, and try its store again`() async throws {
    let mark = FileManager.default.temporaryDirectory.path + "/godwit-host-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: mark) }
    // After the plan a large store's process may be silent for as long as it likes.
    let hosts = hosts(
      "planned; mkdir \(mark) 2>/dev/null && kill -STOP $$; answer", stallLimit: 0.2)
    let result = await hosts.perform(task("/a"))
    #expect(result.verdict == .sameModel, "\(result.reasons)")
    await hosts.close()
  }

  @Test func `fail a store whose process is stopped every time, and no other`() async {
    let hosts = hosts(#"case "$line" in */bad*) kill -STOP $$;; *) answer;; esac"#, stallLimit: 0.1)
    let result = await hosts.perform(task("/bad"))
    #expect(result.verdict == .failed && result.ending == .inputOutput)
    #expect(result.reasons.first?.message.contains("was stopped by a signal") == true)
    #expect(await hosts.perform(task("/good")).verdict == .sameModel)
    await hosts.close()
  }

  @Test func `have one store after the other done`() async {
    let hosts = hosts("answer")
    for store in ["/a", "/b"] {
      #expect(await hosts.perform(task(store)).verdict == .sameModel)
    }
    await hosts.close()
  }

  @Test func `fail one store with a crash, and do the next`() async {
    let hosts = hosts(#"case "$line" in */bad*) kill -ILL $$;; *) answer;; esac"#)
    let crashed = await hosts.perform(task("/bad"))
    #expect(crashed.verdict == .failed)
    #expect(crashed.ending == .fatal)
    #expect(crashed.reasons.first?.message.contains("signal 4") == true)
    #expect(await hosts.perform(task("/good")).verdict == .sameModel)
    await hosts.close()
  }

  @Test func `try a store again when one was killed from outside`() async throws {
    let mark = FileManager.default.temporaryDirectory.path + "/godwit-host-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: mark) }
    let hosts = hosts("mkdir \(mark) 2>/dev/null && kill -KILL $$; answer")
    #expect(await hosts.perform(task("/a")).verdict == .sameModel)
    await hosts.close()
  }

  private func performRecording(
    _ onStart: String, _ record: @escaping @Sendable () throws -> Void = {}
  ) async -> (result: MigrationResult, records: Int) {
    let hosts = hosts(onStart)
    let count = Atomic(0)
    let result = await hosts.perform(
      task("/a"),
      record: { _ in
        count.add(1, ordering: .relaxed)
        try record()
      })
    await hosts.close()
    return (result, count.load(ordering: .relaxed))
  }

  @Test func `keep the result that is written down when one is killed after it`() async {
    let (result, records) = await performRecording("record; kill -KILL $$")
    #expect(result.verdict == .migrated && records == 1)
    let crashed = await performRecording("planned; record; kill -ILL $$")
    #expect(crashed.result.verdict == .migrated && crashed.records == 1)
  }

  @Test func `try a store again whose result could not be written down before one was killed`()
    async
  {
    struct Refusal: Error {}
    let (result, records) = await performRecording("record; kill -KILL $$") { throw Refusal() }
    #expect(result.verdict == .failed && records == RetryPolicy.attempts)
  }

  @Test(arguments: [28, 122, 5])  // ENOSPC, EDQUOT, EIO
  func `are told that a result waits for room on the volume`(errno: Int32) async {
    let isFull = errno != 5
    let (result, _) = await performRecording(
      #"record; case "$said" in *'"isOutOfSpace":\#(isFull)'*) answer;; *) exit 1;; esac"#
    ) {
      throw DurabilityError.failed(call: "write", path: "/l", Errno(rawValue: errno))
    }
    #expect(result.verdict == .sameModel, "\(result.reasons)")
    let failed = MigrationResult(
      failing: "/a", with: FleetError.ledger(message: "", isOutOfSpace: isFull))
    #expect(failed.verdict == (isFull ? .pending : .failed))
    #expect(failed.reasons.first?.reason == (isFull ? "disk-full" : "ledger"))
  }

  /// Policies of the stores before may have left files open.
  @Test func `try a store again in a new one when one may open no more files`() async throws {
    let mark = FileManager.default.temporaryDirectory.path + "/godwit-host-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: mark) }
    let once = hosts("mkdir \(mark) 2>/dev/null && exit \(FileLimit.exitCode); answer")
    #expect(await once.perform(task("/a")).verdict == .sameModel)
    await once.close()
    let always = hosts("exit \(FileLimit.exitCode)")
    let result = await always.perform(task("/a"))
    #expect(result.verdict == .failed)
    let message = try #require(result.reasons.first?.message)
    #expect(message.contains("leave files open") && message.contains("ulimit -n"), "\(message)")
    await always.close()
  }

  // A small store's stages are performed there, so that a crash may be theirs.
  @Test(arguments: [(workers: 0, attempts: 3), (workers: 1, attempts: 1)])
  func `try a small store's stages as often as a worker's`(workers: Int, attempts: Int) async throws
  {
    let counts = FileManager.default.temporaryDirectory.path + "/godwit-host-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: counts) }
    let hosts = hosts("planned; echo x >> \(counts); kill -ILL $$")
    let crashed = await hosts.perform(task("/a", workers: workers))
    #expect(crashed.verdict == .failed && crashed.ending == .fatal)
    let found = try #require(FileManager.default.contents(atPath: counts))
    #expect(found.count { $0 == UInt8(ascii: "x") } == attempts)
    await hosts.close()
  }

  @Test func `stop a store, and give its result, when the run is cancelled`() async {
    let hosts = hosts("echo")  // an empty line is no message: a host that says so is ended
    let stopping = self.hosts(":")
    let work = Task { await stopping.perform(task("/a")) }
    work.cancel()
    #expect(await work.value.verdict == .sameModel)
    #expect(await hosts.perform(task("/a")).verdict == .failed)
    await stopping.close()
    await hosts.close()
  }

  @Test func `are missing without the program`() async {
    let hosts = StoreHosts(executable: "/nowhere/godwit", arguments: [])
    #expect(await hosts.perform(task("/a")).ending == .engineUnavailable)
  }
}
