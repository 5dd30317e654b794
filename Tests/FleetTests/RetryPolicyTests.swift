import Glibc
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitFleet
@testable import GodwitWorker

@Suite struct `The retry policy` {
  private static let task = WorkerTask(stage: .copy, unit: 7)

  private static func failed(_ kind: WorkerFailure.Kind) -> FleetError {
    .task(FailedTask(task: task, error: WorkerFailure(kind: kind, message: "it failed")))
  }

  @Test(arguments: [
    // A signal, a full disk, somebody else's lock on the store: the same command goes on later.
    (CancellationError() as any Error, MigrationResult.Ending.resumable),
    (DurabilityError.failed(call: "fsync", path: "/a", .noSpace), .resumable),
    (failed(.outOfSpace), .resumable),
    (FleetError.notEnoughSpace(folder: "/a", neededBytes: 2, freeBytes: 1), .resumable),
    (CommitError.storeInUse(store: "/a"), .resumable),
    (CommitError.sourceChanged(store: "/a"), .resumable),  // planning again is all it takes
    (StoreError.inUse("/a"), .resumable),
    (StoreError.changed("/a"), .resumable),
    (CheckpointError.unreadable("/a", .noSpace), .resumable),
    // Another run of ours is not a failure of this one.
    (DurabilityError.locked("/a/lock"), .locked),
    // What no rerun mends.
    (failed(.damaged), .badInput),
    (StoreDamage(findings: []), .badInput),
    (StoreError.notFound("/a"), .badInput),
    (ModelError.duplicateEntity("Recipe"), .badInput),
    (CommitError.uniqueness(entity: "Recipe", index: "i", rows: RowTally([1, 2])), .badInput),
    (FleetError.noStore(path: "/a"), .badInput),
    (FleetError.outputExists(path: "/a"), .cannotCreateOutput),
    (FleetError.outputDiffers(path: "/a"), .cannotCreateOutput),
    (CommitError.destinationExists(path: "/a"), .cannotCreateOutput),
    (DurabilityError.failed(call: "open", path: "/a", .permissionDenied), .cannotCreateOutput),
    (
      DurabilityError.failed(call: DurabilityError.reading, path: "/a", .permissionDenied),
      .inputOutput
    ),
    (failed(.io), .inputOutput),
    (DurabilityError.failed(call: "fsync", path: "/a", .ioError), .inputOutput),
    (FleetError.workersDie(executable: "/a", how: "ended"), .engineUnavailable),
    (failed(.internal), .fatal),
    (FleetError.workersLost(task, how: "was killed by signal 9"), .fatal),
  ])
  func `says how a run ends with an error`(error: any Error, ending: MigrationResult.Ending) {
    let judgement = RetryPolicy.judgement(of: error)
    #expect(judgement.ending == ending)
    if !(error is StoreDamage) {
      #expect(judgement.reasons.allSatisfy { !$0.message.isEmpty })
      #expect(!judgement.reasons.isEmpty)
    }
  }

  @Test(arguments: [
    (Errno.ioError, MigrationResult.Ending.inputOutput), (.noSpace, .resumable),
  ])
  func `says of a commit that failed in the middle what became of the store`(
    errno: Errno, ending: MigrationResult.Ending
  ) {
    let error = DurabilityError.failed(call: "fsync", path: "/a", errno)
    let judgement = RetryPolicy.judgement(
      of: UnfinishedCommit(store: "/a/store.sqlite", backup: "/a/backup.sqlite", error: error))
    #expect(judgement.ending == ending)
    let message = judgement.reasons.first?.message ?? ""
    #expect(message.hasPrefix("\(error)"))
    #expect(message.contains("/a/store.sqlite") && message.contains("/a/backup.sqlite"))
  }

  @Test(arguments: [
    DurabilityError.failed(call: "write", path: "/a", .noSpace) as any Error,
    DurabilityError.failed(call: "open", path: "/a", .permissionDenied),
    DurabilityError.failed(call: "fchmod", path: "/a", .notPermitted),
    DurabilityError.failed(call: "open", path: "/a", .readOnlyFileSystem),
    DurabilityError.failed(call: DurabilityError.reading, path: "/a", .permissionDenied),
    DurabilityError.failed(call: "fsync", path: "/a", .ioError),
    SQLiteError.cannotOpen(path: "/a", code: 8, message: "read-only file system"),
    SQLiteError.failed(code: 13, message: "full", statement: ""),
    SQLiteError.failed(code: 10, message: "disk I/O error", statement: ""),
    StoreError.cannotRead("/a", errno: EACCES),
    StoreError.cannotCopy("/a", to: "/b", errno: EROFS),
    StoreError.cannotCopy("/a", to: "/b", errno: ENOSPC),
  ])
  func `says the same of a machine's failure, whichever process met it`(error: any Error) {
    let worker = FleetError.task(FailedTask(task: Self.task, error: WorkerFailure(error)))
    let (here, there) = (RetryPolicy.judgement(of: error), RetryPolicy.judgement(of: worker))
    #expect(here.ending == there.ending)
    #expect(here.reasons.map(\.reason) == there.reasons.map(\.reason))
  }

  @Test(arguments: [
    (CancellationError() as any Error, "stopped"),
    (CommitError.storeInUse(store: "/a"), "in-use"),
    (SQLiteError.failed(code: 5, message: "locked", statement: ""), "in-use"),
    (CommitError.sourceChanged(store: "/a"), "changed"),
    (StoreError.changed("/a"), "changed"), (StoreError.inUse("/a"), "in-use"),
    (CommitError.outOfSpace(path: "/a"), "disk-full"),
    (DurabilityError.failed(call: "write", path: "/a", .noSpace), "disk-full"),
    (failed(.outOfSpace), "disk-full"),
  ])
  func `calls a store pending for what passes`(error: any Error, reason: String) {
    let result = MigrationResult(failing: "/a", with: error)
    #expect(result.verdict == .pending && result.ending == .resumable)
    #expect(result.reasons.map(\.reason) == [reason])
    var summary = PipelineSummary(pipeline: "p")
    summary.count(result)
    #expect(summary.pending == 1 && summary.failed == 0)
  }

  private static let handedOut = StageHandedOut(
    handedOut: HandedOut(work: .init(store: "/a", stage: .rows, runDirectory: "/b"), units: [1]))

  /// Reasons that no store's rows, models or files bring about.
  @Test(arguments: [
    (PlanDrift.otherSettings(pipeline: "p") as any Error, "drift", MigrationResult.Ending.badInput),
    (SelectionError.notText, "selection", .badInput),
    (LedgerError.noRun(path: "/a", name: "R"), "usage", .usage),
    (LedgerError.noVersion(path: "/a", name: "V", known: []), "usage", .usage),
    (handedOut, "handed-out", .resumable),
    (ClusterError.underWay(state: "/a", arrays: ["7"]), "on-cluster", .locked),
    (ClusterError.scheduler(message: "no answer"), "scheduler", .engineUnavailable),
    (ClusterError.unsafeVolume(folder: "/a", reason: "no locks"), "volume", .configuration),
    (DurabilityError.notPrivate("/a", reason: "others may write"), "run-directory", .configuration),
    (PlanError.unsupported(store: "/a", what: "a virtual table"), "unsupported", .badInput),
    (ModelError.symbolicLink(path: "/a"), "link", .badInput),
    (ModelError.versionExists(path: "/a", version: "V"), "output", .cannotCreateOutput),
    (ModelError.bundleExists(path: "/a"), "output", .cannotCreateOutput),
    (ModelError.badVersionName("a/b", reason: "it has a slash"), "usage", .usage),
    (ModelError.notABundle(path: "/a"), "model", .badInput),
    (
      FleetError.coordinationLost(store: "/a", how: "was killed by signal 9"), "coordination-lost",
      .fatal
    ),
  ])
  func `names what an operator can do something about`(
    error: any Error, reason: String, ending: MigrationResult.Ending
  ) {
    let judgement = RetryPolicy.judgement(of: error)
    #expect(judgement.reasons.map(\.reason) == [reason])
    #expect(judgement.ending == ending)
  }

  @Test(arguments: [
    ("/s/a.sqlite", true), ("/s/a.sqlite-wal", true), ("/s/a.sqlite-journal", true),
    ("/s/.a_SUPPORT/_EXTERNAL_DATA/F", true), ("/s/a.sqlite.godwit/journal.json", false),
    ("/s/state/run.json", false), ("/s/b.sqlite", false),
  ])
  func `tells what is in the way of a store from what is in the way of a run`(
    path: FilePath, isStores: Bool
  ) {
    for error in [
      DurabilityError.notRegular(path, .folder), .symbolicLink(path),
      .tooLarge(path, limitBytes: 1),
    ] {
      let judgement = RetryPolicy.judgement(of: error, about: "s/a.sqlite")
      #expect(judgement.reasons[0].reason == (isStores ? "unusual-file" : "run-directory"))
      #expect(judgement.ending == (isStores ? .badInput : .configuration))
      #expect(judgement.verdict == (isStores ? .refused : .failed))
      #expect(RetryPolicy.judgement(of: error).ending == .configuration)
    }
  }

  /// As the table of verdicts has it: what lies in the rows, the store or the mapping model is refused.
  @Test(
    arguments: [
      (StoreDamage(findings: []), .refused, 134_150),
      (PlanError.damaged(store: "/a", []), .refused, 134_150),
      (PlanError.unsupported(store: "/a", what: "a virtual table"), .refused, 134_110),
      (StoreError.journal("/a", reason: "it has no header"), .refused, 134_150),
      (PlanError.ambiguousConfiguration(["A", "B"], version: "2"), .refused, nil),
      (PlanError.missingConfiguration(["A"], version: "2"), .refused, nil),
      (PlanError.emptyConfiguration("A", version: "2"), .refused, nil),
      (
        PlanError.incompleteConfiguration(
          "A", version: "2", lacking: [(entity: "B", superentity: "C")]), .refused, nil
      ),
      (SQLiteError.failed(code: 11, message: "malformed", statement: ""), .refused, 134_150),
      // No such collation sequence; a CHECK that rows break.
      (SQLiteError.failed(code: 257, message: "no such", statement: ""), .refused, 134_110),
      (SQLiteError.failed(code: 275, message: "CHECK", statement: ""), .refused, 134_110),
      (failed(.damaged), .refused, nil), (failed(.refused), .refused, nil),
      (MappingError.unreadable(file: "/a", reason: "it is empty"), .refused, 134_110),
      (MappingError.noneMatches([]), .failed, 134_140),
      (PlanError.noDestination(models: []), .failed, nil),
      (PlanError.ambiguousDestination("Model 2", of: ["/a", "/b"]), .failed, nil),
      (PlanError.ambiguousModel(["/a", "/b"], entities: ["User"]), .failed, nil),
      (ModelError.duplicateEntity("Recipe"), .failed, nil),
      (DurabilityError.failed(call: "fsync", path: "/a", .ioError), .failed, nil),
    ] as [(any Error, MigrationResult.Verdict, Int?)])
  func `tells what lies in the store from what does not`(
    error: any Error, verdict: MigrationResult.Verdict, code: Int?
  ) {
    let judgement = RetryPolicy.judgement(of: error)
    #expect(judgement.verdict == verdict)
    #expect(judgement.code == code)
  }

  @Test func `names the relationship that a value does not fit`() {
    let error = StageError.wrongTarget(
      entity: "Recipe", primaryKey: 4, relationship: "type", found: "an Ingredient")
    let failure = WorkerFailure(error, source: nil)
    let judgement = RetryPolicy.judgement(
      of: FleetError.task(FailedTask(task: Self.task, error: failure)))
    #expect(judgement.reasons.map(\.reason) == ["target-entity"])
    #expect(judgement.reasons.first?.primaryKeys == [4] && judgement.code == 134_110)
  }

  @Test func `names the entity of which a mapping model means another version`() {
    let mismatch = MappingMismatch(
      file: "a.cdm", mapping: "AToA", side: .source, entity: "A", reason: .otherVersion)
    let judgement = RetryPolicy.judgement(of: MappingError.noneMatches([mismatch]))
    #expect(judgement.reasons.map(\.reason) == ["mapping-mismatch"])
    #expect(judgement.reasons.first?.entity == "A" && judgement.code == 134_140)
  }

  /// A trap in a policy is no lack of memory.
  @Test(arguments: [("was killed by signal 9", true), ("was killed by signal 4", false)])
  func `looks for what killed a worker where it is to be found`(how: String, isKernel: Bool) {
    let task = WorkerTask(stage: .copy, unit: 3)
    let message = "\(FleetError.workersLost(task, how: how))"
    #expect(message.contains("copy unit 3; the last one \(how)"))
    #expect(message.contains("out-of-memory killer") == isKernel)
    #expect(message.contains("See its output above") != isKernel)
  }

  @Test(arguments: [
    (WorkerFailure.Kind.io, 1, true),
    (.io, 2, true),
    (.io, 3, false),  // three times is no accident
    (.damaged, 1, false),  // a damaged store stays damaged
    (.outOfSpace, 1, false),  // and a full disk full
    (.unwritable, 1, false),
    (.internal, 1, false),
  ])
  func `tries a task again only where that may help`(
    kind: WorkerFailure.Kind, failures: Int, allows: Bool
  ) {
    #expect(
      RetryPolicy.allowsRetry(WorkerFailure(kind: kind, message: ""), failures: failures) == allows)
  }

  @Test func `keeps the reasons that a worker gives`() {
    let reason = Reason(reason: "type", entity: "Recipe", property: "name", message: "is a blob")
    let failure = WorkerFailure(
      kind: .damaged, code: 134_150, message: "damaged", reasons: [reason])
    let judgement = RetryPolicy.judgement(
      of: FleetError.task(FailedTask(task: Self.task, error: failure)))
    #expect(judgement.reasons == [reason])
    #expect(judgement.code == 134_150)
  }
}
