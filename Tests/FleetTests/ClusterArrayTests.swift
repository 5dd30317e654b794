import Foundation
import GodwitDurableFiles
import GodwitPlanning
import GodwitWorker
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite final class `The folder of an array` {
  private let state = FilePath(
    FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
  )
  .resolvingFolders
  private let store = FoundStore(path: "/s/a", root: "/s", bytes: 7)

  init() throws { try DurableFile.makeFolder(BundleFolder.all(in: state)) }
  deinit { try? FileManager.default.removeItem(atPath: state.string) }

  private func array(pipeline: String = "/p/pipeline.yaml") throws -> ClusterArray {
    var header = BundleManifest.Header(
      name: "000001-abc", pipeline: pipeline, state: state.string, pipelineDigest: "d",
      run: "r", settings: "s", losses: .warn, isStoreOffline: false, wave: 0, workers: 1, slots: 6,
      isFresh: false, tellsEvents: true, units: nil, handsOut: false, bundles: [])
    header.made = 1_000_000
    return try ClusterArray([.stores([store])], header, in: state)
  }

  /// An attempt at the bundle that came to a verdict.
  private func attempt(
    _ name: String, at time: Double, _ verdict: MigrationResult.Verdict, in folder: BundleFolder
  ) throws {
    let start = AttemptStart(host: "n1", process: 17, time: time)
    try DurableFile.write(Array(JSONLine.text(of: start).utf8), to: folder.start(0, name))
    let result = MigrationResult(
      store: store.path.string, verdict: verdict,
      ending: verdict == .pending ? .resumable : .done)
    let facts = StoreFacts(store: store, started: time, mark: "m")
    let line = BundleLine(result: BundleResult(result, facts, ended: time + 1))
    try DurableFile.write(
      Array((JSONLine.text(of: line) + "\n").utf8), to: folder.results(0, name))
  }

  /// The folder goes when its results are taken over.
  @Test func `leaves the output of a process that was lost, and the result names it`() async throws
  {
    let array = try array()
    try DurableFile.write(Array("trap".utf8), to: array.folder.log)
    let books = try BundleBooks(array.header, results: array.folder.results(0, "a"))
    let lost = MigrationResult(
      failing: store.path.string,
      with: FleetError.coordinationLost(store: store.path.string, how: "was killed by signal 4"))
    try await books.record(lost, StoreFacts(store: store, started: 1, mark: "m"))
    _ = await books.close()
    let kept = array.folder.keptLog
    try array.folder.remove()
    #expect(try RegularFile.bytes(of: kept, limit: 9) == Array("trap".utf8))
    let followerLog = BundleFolder.followerLog(in: state)
    try DurableFile.write([], to: followerLog)
    try BundleFolder.removeLogs(in: state)
    #expect(try FileKind(at: kept) == .none && FileKind(at: followerLog) == .none)
  }

  /// `jobs.jsonl` has lines of earlier versions, too, and the last one may not be whole.
  @Test func `tells a later start how often a bundle was submitted in vain`() throws {
    func adopted() throws -> ClusterArray {
      var array = try ClusterArray(at: BundleFolder("000001-abc", in: state))
      try array.adopt(isSameTry: true)
      return array
    }
    var first = try array()
    for time in 1...3 {
      first.progress.submitted([0])
      first.note(job: "\(time)", indices: [0], at: Double(time))
    }
    let next = try adopted()
    #expect(next.isAdopted && !next.progress.isSure)
    #expect(next.progress.bundles[0].submissions == 3)
    #expect(next.progress.standings(of: [0]) == first.progress.standings(of: [0]))
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: next.folder.jobs.string))
    try file.seekToEnd()
    try file.write(
      contentsOf: Data(
        "{\"job\":\"9\",\"tasks\":\"0\",\"time\":1}\n{\"job\":\"9\",\"again\":[{".utf8))
    try file.close()
    #expect(try adopted().progress.standings(of: [0]) == first.progress.standings(of: [0]))
  }

  private func verdicts(_ lines: [BundleLine]) -> [MigrationResult.Verdict] {
    lines.compactMap { $0.result?.end.result.verdict }
  }

  /// Names of attempts say nothing of their order.
  @Test(arguments: [("a", "b"), ("b", "a")])
  func `gives the result that is final, whichever attempt has it`(first: String, second: String)
    throws
  {
    var array = try array()
    try attempt(first, at: 1, .pending, in: array.folder)
    try attempt(second, at: 2, .migrated, in: array.folder)
    try DurableFile.write([], to: array.folder.done(0))
    #expect(verdicts(try array.read()) == [.migrated])
    #expect(array.progress.isDone)
  }

  @Test func `gives a result that is pending when no other attempt can have another`() throws {
    var array = try array()
    try attempt("a", at: 1, .pending, in: array.folder)
    #expect(try array.read().isEmpty)
    try DurableFile.write([], to: array.folder.done(0))
    #expect(verdicts(try array.read()) == [.pending])

    var other = try ClusterArray(at: array.folder)
    try DurableFile.removeIfPresent(array.folder.done(0))
    #expect(try other.read().isEmpty)
    try attempt("b", at: 2, .migrated, in: array.folder)
    #expect(verdicts(try other.read()) == [.migrated])
    try DurableFile.write([], to: array.folder.done(0))
    #expect(try other.read().isEmpty)
  }

  /// Its results are in several files, read one after the other.
  @Test func `tells that there was nothing to do once no attempt can have migrated the store`()
    throws
  {
    var array = try array()
    try attempt("a", at: 1, .sameModel, in: array.folder)
    #expect(try array.read().isEmpty)
    var other = array
    try DurableFile.write([], to: array.folder.done(0))
    #expect(verdicts(try array.read()) == [.sameModel])
    try attempt("b", at: 2, .migrated, in: array.folder)
    #expect(verdicts(try other.read()) == [.migrated])
  }

  /// The last battery of a machine's clock may be empty.
  @Test(arguments: [("a", "b"), ("b", "a")])
  func `reads attempts in the order in which they began, whatever their clocks say`(
    first: String, second: String
  ) throws {
    let folder = try array().folder
    try attempt(first, at: 2_000_000, .pending, in: folder)
    try attempt(second, at: 1, .pending, in: folder)
    #expect(folder.inOrder(["a", "b"], of: 0) == [first, second])
  }

  @Test func `takes no result for older than itself`() throws {
    var array = try array()
    let made = try #require(array.header.made)
    try attempt("a", at: 5, .migrated, in: array.folder)
    let result = try #require(try array.read().first?.result)
    #expect(result.ended == made && result.started == made - 1)
    let note = try #require(result.clockNote(at: made + 60))
    #expect(note.contains("d behind the one here"), "\(note)")
    try attempt("b", at: made + 1_000, .failed, in: array.folder)
    let later = try #require(try ClusterArray(at: array.folder).folder.lastingResults().last)
    #expect(later.clockNote(at: made + 10)?.contains("17 min ahead of") == true)
    #expect(later.clockNote(at: made + 1_001) == nil)
  }

  @Test func `is none that is named otherwise, or holds what is not ours`() throws {
    let own = try array().folder
    let all = BundleFolder.all(in: state)
    let empty = BundleFolder("000002-0a", in: state)
    try DurableFile.makeFolder(empty.path)
    let foreign = ["000001-abc-copy", "000003-0b", "9223372036854775807-1", "lost+found", "notes"]
      .map { all.appending($0) }
    for path in foreign {
      try DurableFile.makeFolder(path)
      try DurableFile.write([], to: path.appending("notes.txt"))
    }
    #expect(try BundleFolder.folders(in: state) == [own, empty])
    #expect(try BundleFolder.foreignFolders(in: state) == foreign)
  }

  @Test func `has a path from the root on, also before it is made`() {
    let here = FilePath(FileManager.default.currentDirectoryPath).absolute
    #expect(FilePath("no/such/state").absolute == here.appending("no/such/state"))
    #expect(FilePath("state-to-be").absolute == here.appending("state-to-be"))
    #expect(FilePath("/no/such").absolute == "/no/such")
  }

  @Test func `holds a bundle for an attempt that renews its lease, and no longer`() throws {
    let array = try array()
    #expect(!array.isHeld(0))
    let lock = try FileLock(acquiring: array.folder.lock(0))
    #expect(array.isHeld(0))
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -100_000)],
      ofItemAtPath: array.folder.lock(0).string)
    #expect(!array.isHeld(0), "it stands still, and another may take it over")
    withExtendedLifetime(lock) {}
  }

  @Test func `keeps everything else from the state folder, and says whose it is`() throws {
    let (own, other) = (state.appending("own.yaml"), state.appending("other.yaml"))
    try DurableFile.write([], to: own)
    let folder = try array(pipeline: own.string).folder
    func message(_ body: () throws -> Void) -> String {
      do { try body() } catch { return "\(error)" }
      return ""
    }
    func messages(_ file: FilePath) -> (none: String, other: String) {
      (
        message { try ClusterWork.requireNone(in: state, of: file) },
        message { try ClusterWork.requireNoOther(in: state, than: file) }
      )
    }
    #expect(messages(own).none.hasPrefix("Bundles of this pipeline are on a cluster (000001-abc"))
    #expect(messages(own).other == "")
    #expect(messages(other).none.hasPrefix("Bundles of \(own) are on a cluster"))
    #expect(messages(other).other == messages(other).none)
    // Without its file nobody can tell whose it is.
    try DurableFile.removeIfPresent(own)
    #expect(messages(other).none.hasPrefix("Bundles of this pipeline are on a cluster"))
    #expect(messages(other).other == "")
    try folder.revoke()
    #expect(messages(own).none == "")
  }

  @Test func `is not overlooked where a link leads to it`() throws {
    let all = BundleFolder.all(in: state)
    #expect(try BundleFolder.folders(in: state).isEmpty)
    try DurableFile.write([], to: all.appending("follower.log"))
    #expect(try BundleFolder.folders(in: state).isEmpty)
    try FileManager.default.createSymbolicLink(
      atPath: all.appending("000001-abc").string, withDestinationPath: "/tmp")
    #expect(throws: DurabilityError.self) { try BundleFolder.folders(in: state) }
  }

  @Test(arguments: [true, false])
  func `of all arrays is a folder`(isLink: Bool) throws {
    let all = BundleFolder.all(in: state)
    try DurableFile.removeTree(all)
    #expect(try BundleFolder.folders(in: state).isEmpty)
    if isLink {
      try FileManager.default.createSymbolicLink(
        atPath: all.string, withDestinationPath: "/tmp")
    } else {
      try DurableFile.write([], to: all)
    }
    #expect(throws: DurabilityError.self) { try BundleFolder.folders(in: state) }
  }
}
