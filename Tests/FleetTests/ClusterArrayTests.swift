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
    let header = BundleManifest.Header(
      name: "000001-abc", pipeline: pipeline, state: state.string, pipelineDigest: "d",
      run: "r", settings: "s", losses: .warn, isStoreOffline: false, wave: 0, workers: 1, slots: 6,
      isFresh: false, tellsEvents: true, units: nil, handsOut: false, bundles: [])
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
