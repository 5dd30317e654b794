import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitMapping
import GodwitObjectModel
import GodwitPlanning
import Synchronization
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `A run directory` {
  /// A private folder with these files, each with some text in it but for those named `NAME=text`.
  private func folder(_ scratch: borrowing Scratch, _ files: [String]) throws -> RunFolder {
    let path = scratch.path.appending("run")
    try DurableFile.makeFolder(path)
    for file in files {
      let parts = file.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let place = path.appending(String(parts[0]))
      if file.hasSuffix("/") {
        try DurableFile.makeFolder(place)
      } else {
        try DurableFile.makeFolder(place.removingLastComponent())
        try DurableFile.write(Array((parts.count > 1 ? parts[1] : "precious").utf8), to: place)
      }
    }
    return RunFolder(directory: RunDirectory(path))
  }

  @Test(arguments: [
    [".bashrc"], [".ssh/id_ed25519"], [".lock"], ["lock"], ["lock=1\n"], ["lock/"],
    ["external/photo.jpg"], ["copy/letter.txt"], ["copy/000001.ckpt.txt"], ["copy/1.ckpt"],
    ["verify/a/b.txt"], ["snapshot/disk.img"], ["associations/names.pairs.txt"], ["steps/one"],
    ["rows/.hidden"], [".sound/x"], [".git/config"], [".nfsroot"],
    ["plan.json"], ["journal.json"], ["events.jsonl"], ["result.json"], ["chain.json"], ["name"],
    ["offsets.json"], ["edges.sqlite"], ["rejects.sqlite"],
    ["plan.json={\"formatVersion\":1,\"digest\":\"0\"}"], ["events.jsonl={\"event\":\"other\"}"],
    // A run's lock does not make another's files its own.
    ["lock=1", ".bashrc"], ["lock=1", "external/photo.jpg"], ["lock=", "notes.txt"],
    ["lock=", "plan.json"], ["lock=", "journal.json"], ["lock=", "offsets.json"],
    ["lock=1", "snapshot/.hidden"],
  ])
  func `is none that holds what no run has made`(files: [String]) throws {
    let scratch = try Scratch()
    let folder = try folder(scratch, files)
    #expect(throws: FleetError.self) { try folder.take() }
    for file in files where !file.hasSuffix("/") {
      let place = folder.directory.path.appending(String(file.prefix { $0 != "=" }))
      #expect(try DurableFile.exists(place), "\(file)")
    }
  }

  @Test func `is none that holds a name that is no text`() throws {
    let scratch = try Scratch()
    let folder = try folder(scratch, [])
    let name = Array(folder.directory.path.string.utf8) + Array("/caf".utf8) + [0xE9, 0]
    let file = open(name.map { CChar(bitPattern: $0) }, O_CREAT | O_WRONLY, 0o600)
    try #require(file >= 0)
    close(file)
    #expect(throws: FleetError.self) { try folder.take() }
  }

  private static let offsets =
    #"{"fingerprint":"a","offsets":{},"policyOffsets":{},"highest":{"0":7},"files":{}}"#

  /// What a run has written, with a digest that is not its.
  private static let sealed =
    #"{"formatVersion":0,"digest":""# + String(repeating: "0", count: 64) + #""}"#

  @Test(arguments: [
    // At its very beginning, by the steps after which it was cut off.
    [], ["snapshot/"], ["snapshot/", "rows/", "copy/"], ["snapshot/", "verify/", "lock="],
    ["lock=1"], ["lock=12", ".lock-next=", ".lock-takeover="],
    // In the middle, and after it took another's work over.
    [
      "lock=1", "plan.json", "journal.json", "events.jsonl", "name", "result.json", "offsets.json",
      "associations/0.pairs", "associations/1.forward", "associations/user-info-after-copy.json",
      "associations/.pairs.partial-0", "edges.sqlite", "edges.sqlite.building-journal",
      "external/0E984725-C51C-4BF4-9960-E1C80E27ABA0", "snapshot/store-0a1b.sqlite",
      "snapshot/store-0a1b.partial-wal", "rows/000000.ckpt", "copy/1000000.ckpt",
      "copy/.000001.ckpt.partial-3", "assembled.sqlite", "assembled.sqlite-journal", "etilqs_1a",
      ".plan.json.partial-0", ".nfs000000000a1b2c3d00000001",
    ],
    ["lock=3", "chain.json", "steps/1/store.sqlite", "steps/12/done.json", "rejects.sqlite"],
    // Where a power cut has taken what the lock said, or the lock.
    ["lock=", "chain.json={\"fingerprint\":\"a\"}", "steps/1/store.sqlite", "plan.json"],
    ["lock=", "rejects.sqlite", "edges.sqlite-journal", "plan.json=", "journal.json="],
    ["lock=\0", "copy/000000.ckpt", "result.json={\"ending\":\"do"],
    ["events.jsonl=", "rows/000000.ckpt"], ["journal.json={\"formatVersion\":1}"],
    ["lock=", "offsets.json=\(offsets)", "edges.sqlite", "rows/000000.ckpt"],
    // Of another version, or a byte has become another since.
    ["journal.json=\(sealed)"], ["plan.json=\(sealed)"], ["result.json=\(sealed)"],
    ["chain.json=\(sealed)", "steps/1/store.sqlite"],
    ["name=20261121T010203-004"], ["events.jsonl={\"event\":\"note\",\"message\":\"x\"}\n{"],
    // At its end, by a version that removed the lock first.
    ["copy/000000.ckpt", "associations/0.pairs", "assembled.sqlite"],
  ])
  func `of an earlier run is taken, wherever that was cut off`(files: [String]) throws {
    let scratch = try Scratch()
    let folder = try folder(scratch, files)
    try folder.take()
    try folder.directory.remove()
    #expect(scratch.names == [])
  }

  @Test func `keeps its lock until nothing else is in it`() throws {
    let scratch = try Scratch()
    let folder = try folder(
      scratch, ["lock=1", "plan.json", "copy/000000.ckpt", "assembled.sqlite"])
    struct Crash: Error {}
    var count = 1
    while try DurableFile.exists(folder.directory.path) {
      let left = Mutex(count)
      do {
        try DurableSteps.observing(
          with: { _, _ in
            if left.withLock({
              $0 -= 1; return $0 == 0
            }) {
              throw Crash()
            }
          }
        ) { try folder.directory.remove() }
      } catch is Crash {
        try folder.check()
      }
      count = count == 1 ? 2 : 1
    }
    #expect(scratch.names == [])
  }

  /// Two names alone would be anybody's.
  @Test func `keeps its lock until no power cut brings anything else back`() throws {
    let scratch = try Scratch()
    let folder = try folder(scratch, ["lock=1", "edges.sqlite", "offsets.json"])
    let path = folder.directory.path
    let steps = Mutex<[String]>([])
    try DurableSteps.observing(
      with: { step, path in steps.withLock { $0.append("\(step) \(path)") } }
    ) { try folder.directory.remove() }
    #expect(
      steps.withLock { $0.suffix(3) }
        == ["folderSynced \(path)", "removed \(path)", "folderSynced \(scratch.path)"])
  }
}

@Suite struct `What a store's run reads` {
  @Test(arguments: [
    ".app.sqlite", "copy/app.sqlite", "snapshot/app.sqlite", "external/app.sqlite", "app.sqlite",
  ])
  func `does not lie in its run directory`(name: String) async throws {
    let scratch = try Scratch()
    let state = scratch.path.appending("run")
    let store = state.appending(name)
    try DurableFile.makeFolder(store.removingLastComponent())
    try DurableFile.write(Array("SQLite format 3\0".utf8), to: store)
    let outputs: [FilePath?] = [nil, scratch.path.appending("out.sqlite")]
    for output in outputs {
      let request = MigrationRequest(
        store: store, models: [], destination: nil, output: output, snapshotFolder: "")
      let run = StoreRun(
        request, directory: RunDirectory(state),
        settings: .init(pool: .init(executable: "/bin/false", workerCount: 1)))
      let result = await run.run()
      #expect(
        result.ending == .cannotCreateOutput && result.reasons.first?.reason == "run-directory")
      #expect(try DurableFile.exists(store))
    }
  }

  @Test func `has no run directory within it, nor is a model or a mapping model in one`() throws {
    let scratch = try Scratch()
    let store = scratch.file("app.sqlite", "x")
    let bundle = scratch.path.appending("M.xcdatamodeld")
    let state = scratch.path.appending("run")
    try DurableFile.makeFolder(bundle.appending("M.xcdatamodel"))
    try DurableFile.makeFolder(state.appending("N.xcdatamodeld/N.xcdatamodel"))
    let mapping = state.appending("a.mapping.yaml")
    try DurableFile.write([1], to: mapping)
    func check(_ models: [FilePath], _ mappings: [FilePath], _ directory: FilePath) throws {
      let versions = models.map {
        ModelVersion(
          name: "M", model: ManagedObjectModel(entities: []), isCurrent: true, path: $0.string)
      }
      let request = MigrationRequest(
        store: store, models: versions, destination: versions.first, output: nil,
        snapshotFolder: "",
        mappings: mappings.map {
          MappingFile(file: $0.string, document: MappingDocument(entityMappings: []))
        })
      try StoreRun.checkPaths(request, RunDirectory(directory), uriTable: nil)
    }
    let version = bundle.appending("M.xcdatamodel")
    let inside = state.appending("N.xcdatamodeld/N.xcdatamodel")
    try check([version], [], state)
    let cases: [([FilePath], [FilePath], FilePath)] = [
      ([inside], [], state), ([], [mapping], state), ([version], [], bundle.appending("run")),
      ([version], [], version.appending("run")), ([], [], store),
    ]
    for (models, mappings, directory) in cases {
      #expect(throws: FleetError.self) { try check(models, mappings, directory) }
    }
  }
}
