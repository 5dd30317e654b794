import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import Synchronization
import SystemPackage

/// The books of a task: a line of results for each store that came to its end. The coordinator takes
/// them over into its own.
final class BundleBooks: StoreBooks {
  let run: String
  let settings: String
  let code: String?
  private let log: GroupedLog
  private let folder: BundleFolder
  private let state = Mutex(State())

  private struct State {
    var written: Set<FilePath> = []
    /// Those of them of which more is known than that there was nothing to do.
    var news: Set<FilePath> = []
  }

  init(_ header: BundleManifest.Header, results: FilePath) throws {
    (run, settings, code) = (header.run, header.settings, header.code)
    folder = BundleFolder(results.removingLastComponent())
    log = try GroupedLog(at: results)
  }

  // What earlier starts wrote down the coordinator has looked at before it cut the bundle.
  func entry(of store: FilePath) -> PipelineLedger.Entry? { nil }
  func detail(of store: FilePath) -> PipelineLedger.Detail? { nil }
  var ended: Int { 0 }
  var isFresh: Bool { false }
  func isForgotten(_ store: FilePath) -> Bool { false }
  func forget() {}
  func quarantine(of store: FilePath) -> LedgerQuarantine? { nil }

  func enter() { log.enter() }
  func leave() { log.leave() }

  func record(_ result: MigrationResult, _ facts: StoreFacts) async throws {
    // That nothing was to be done is found out again where it is not known.
    try await write(result, facts, isLasting: result.verdict != .sameModel)
  }

  func recall(_ failure: MigrationResult, _ known: PipelineLedger.Entry) {}

  // Another attempt looks again.
  func keep(_ entry: PipelineLedger.Entry) async throws {}

  func recordSnapshot(_ result: MigrationResult, of store: FoundStore) async throws {
    let now = Date().timeIntervalSince1970
    let facts = StoreFacts(
      store: store, started: now - (result.seconds ?? 0), mark: StoreFiles(store.path).markName)
    try await write(result, facts, isLasting: true)
  }

  func add(_ result: MigrationResult, _ facts: StoreFacts) {
    // A store that was stopped, or that another attempt has in hand, has no result: it is done again.
    guard result.handedOut != nil || !result.isForAnotherAttempt else { return }
    let isWritten = state.withLock { $0.written.contains(facts.store.path) }
    if !isWritten {
      waiting.add { try await self.write(result, facts, isLasting: true) }
    }
  }

  /// Adds what happens to a store; that may be lost.
  func add(_ event: RunEvent, of store: FoundStore) {
    let line = BundleLine(event: event, store: store.path.string)
    waiting.add { [log] in try await log.append(line.text, isLasting: false) }
  }

  private let waiting = WaitingWrites()

  private func write(
    _ result: MigrationResult, _ facts: StoreFacts, isLasting: Bool
  ) async throws {
    let result = BundleResult(
      namingOutput(result), facts, ended: Date().timeIntervalSince1970)
    let line = BundleLine(result: result)
    try await log.append(line.text, isLasting: isLasting)
    if line.result?.isOfEarlierCommit == true { return }
    state.withLock { state in
      state.written.insert(facts.store.path)
      if line.result?.isNews == true { state.news.insert(facts.store.path) }
    }
  }

  /// The output of a process that was lost is not above the coordinator's message, but here.
  private func namingOutput(_ result: MigrationResult) -> MigrationResult {
    guard result.reasons.contains(where: { $0.message.contains(FleetError.outputAbove) }) else {
      return result
    }
    let place = (try? folder.keepLog()).map { "See its output in \($0)" }
    var result = result
    for number in result.reasons.indices {
      result.reasons[number].message = result.reasons[number].message.replacingOccurrences(
        of: FleetError.outputAbove, with: place ?? "See the output of its task")
    }
    return result
  }

  /// Waits until everything is written.
  ///
  /// - Returns: The stores that have a result, and those of them with one that is not found out again.
  func close() async -> (written: Set<FilePath>, news: Set<FilePath>) {
    await waiting.finish()
    log.close()
    return state.withLock { ($0.written, $0.news) }
  }
}

/// Writes that nobody waits for until the end.
private final class WaitingWrites: Sendable {
  private let tasks = Mutex<[Task<Void, any Error>]>([])

  func add(_ write: @escaping @Sendable () async throws -> Void) {
    tasks.withLock { $0.append(Task { try await write() }) }
  }

  /// One that fails leaves its store without a result.
  func finish() async {
    for task in tasks.withLock({ $0 }) { try? await task.value }
  }
}

extension MigrationResult {
  /// Whether nothing was found out about the store, and another attempt at its bundle takes it up.
  var isForAnotherAttempt: Bool {
    verdict == .pending && (ending == .locked || isStopped)
  }
}
