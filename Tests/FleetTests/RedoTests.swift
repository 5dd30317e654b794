import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import GodwitWorker
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `What is redone` {
  private static let link7 = CheckpointName(stage: .link, unit: 7)
  private static let path = RunDirectory("/run").path(of: link7)

  private static func worker(
    _ kind: WorkerFailure.Kind, checkpoint: CheckpointName? = nil
  ) -> FleetError {
    .task(
      FailedTask(
        task: .init(stage: .validate, unit: 7),
        error: WorkerFailure(kind: kind, message: "it failed", checkpoint: checkpoint)))
  }

  private static func sqlite(_ code: Int32, _ database: String) -> SQLiteError {
    .failed(code: code, message: "", statement: "", database: database)
  }

  @Test(arguments: [
    // What a file of the run directory says of itself.
    (CheckpointError.damaged(path, .digest) as any Error, Redo.checkpoint(link7) as Redo?),
    (CheckpointError.otherVersion(path, found: 9), .checkpoint(link7)),
    (CheckpointError.otherUnit(path, found: link7), .checkpoint(link7)),
    (worker(.unusable, checkpoint: link7), .checkpoint(link7)),
    (worker(.unusable), .derived),
    (CommitError.unequalStages(table: "ZTHING", unit: 3, row: 1), .unit(3)),
    (CommitError.damagedRow(table: "ZTHING", unit: 3, row: 1), .unit(3)),
    (CommitError.digestMismatch(table: "ZTHING", entity: nil), .derived),
    (CommitError.damagedDestination(path: "/a", finding: "a page"), .derived),
    (CommitError.damagedExternalData(path: "/run/external/a"), .everything),
    (StageError.association(path: "/run/associations/1.pairs", reason: "cut"), .derived),
    // Damage is believed when it is found twice.
    (StoreError.truncated("/a", expectedBytes: 2, foundBytes: 1), .source),
    (StoreDamage(findings: [StoreFinding(kind: .file, message: "a page")]), .source),
    (sqlite(11, "/a"), .source),
    (worker(.damaged), .source),
    // Nothing of this is cured by doing it again.
    (StoreDamage(findings: [StoreFinding(kind: .required, message: "missing")]), nil),
    (CheckpointError.unreadable(path, .ioError), nil),
    (DurabilityError.failed(call: "fsync", path: "/a", .ioError), nil),
    (sqlite(10, "/a"), nil),
    (worker(.io), nil),
    (worker(.outOfSpace), nil),
    (CommitError.uniqueness(entity: nil, index: "i", rows: RowTally()), nil),
    (CancellationError(), nil),
  ])
  func `follows from the error`(error: any Error, redo: Redo?) {
    #expect(RetryPolicy.redo(after: error, earlier: []) == redo)
  }

  @Test func `is everything at the second time, and nothing at the third`() {
    let error = CheckpointError.damaged(Self.path, .digest)
    let first = Redo.checkpoint(Self.link7)
    #expect(RetryPolicy.redo(after: error, earlier: [first]) == .everything)
    #expect(RetryPolicy.redo(after: error, earlier: [first, .everything]) == nil)
    #expect(RetryPolicy.redo(after: error, earlier: [.source]) == first)
    #expect(RetryPolicy.redo(after: Self.sqlite(11, "/a"), earlier: [first, .source]) == nil)
  }

  @Test(arguments: [
    ("/stores/a.sqlite", true), ("/run/snapshot/store-1.sqlite", true),
    ("/run/assembled.sqlite", false), ("/run/edges.sqlite", false),
  ])
  func `damage is the source's only where its own file is damaged`(path: String, isSource: Bool) {
    let error = RetryPolicy.attributed(
      Self.sqlite(11, path), store: "/stores/a.sqlite", directory: RunDirectory("/run"))
    #expect(RetryPolicy.isDamageOfSource(error) == isSource)
    #expect((RetryPolicy.judgement(of: error).ending == .badInput) == isSource)
  }
}
