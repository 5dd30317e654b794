import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPlanning
import SystemPackage
import Testing

@testable import GodwitFleet

/// A folder for the length of a test.
struct Scratch: ~Copyable {
  let path: FilePath

  init(in folder: String = FileManager.default.temporaryDirectory.path) throws {
    path = FilePath(folder).appending("godwit-fleet-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      atPath: path.string, withIntermediateDirectories: true)
  }

  func file(_ name: String, _ text: String = "") -> FilePath {
    let file = path.appending(name)
    _ = FileManager.default.createFile(atPath: file.string, contents: Data(text.utf8))
    return file
  }

  var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path.string)) ?? []).sorted()
  }

  deinit { try? FileManager.default.removeItem(atPath: path.string) }
}

@Suite struct `A store's run` {
  private func run(
    _ store: FilePath, output: FilePath? = nil, state: FilePath
  ) async -> MigrationResult {
    let request = MigrationRequest(
      store: store, models: [], destination: nil, output: output, snapshotFolder: "")
    return await StoreRun(
      request, directory: RunDirectory(state),
      settings: .init(pool: .init(executable: "/bin/false", workerCount: 1))
    ).run()
  }

  /// Policies and handlers may change where the process stands.
  @Test func `works with whole paths`() throws {
    let request = MigrationRequest(
      store: "a.sqlite", models: [], destination: nil, output: "./b.sqlite", snapshotFolder: "")
    let run = StoreRun(
      request, directory: RunDirectory("a.sqlite.godwit"),
      settings: .init(
        pool: .init(executable: "/bin/false", workerCount: 1), uriTable: "uris.tsv"))
    let here = try #require(FilePath(".").resolved)
    #expect(run.request.store == here.appending("a.sqlite"))
    #expect(run.request.output == here.appending("b.sqlite"))
    #expect(run.directory.path == here.appending("a.sqlite.godwit"))
    #expect(run.settings.uriTable == here.appending("uris.tsv"))
    let pipeline = try Pipeline(
      bytes: Array("stores: { roots: /data }\nmodels: a.mom".utf8), file: "pipeline.yaml")
    for state in [nil, "other/state"] as [FilePath?] {
      let places = PipelinePlaces(pipeline, state: state)
      #expect(places.state == here.pushing(state ?? "state"))
      #expect(places.ledger.isAbsolute)
    }
  }

  @Test func `leaves nothing beside what is no store`() async throws {
    let scratch = try Scratch()
    let store = scratch.file("a.sqlite", "no store at all")
    let result = await run(store, state: scratch.path.appending("a.sqlite.godwit"))
    #expect(result.verdict == .refused)
    #expect(result.ending == .badInput)
    #expect(result.reasons.count == 1)
    #expect(scratch.names == ["a.sqlite"])
  }

  @Test func `says that a store is not there, or is a folder`() async throws {
    let scratch = try Scratch()
    let state = scratch.path.appending("state")
    #expect(await run(scratch.path.appending("b"), state: state).ending == .badInput)
    #expect(await run(scratch.path, state: state).ending == .badInput)
    #expect(scratch.names == [])
  }

  // Whoever may write there could have put a journal or checkpoints there.
  @Test func `uses no run directory that others may write to`() async throws {
    let scratch = try Scratch()
    let store = scratch.file("a.sqlite", "no store at all")
    let state = scratch.path.appending("a.sqlite.godwit")
    try DurableFile.makeFolder(state)
    #expect(chmod(state.string, 0o777) == 0)
    let result = await run(store, state: state)
    #expect(result.ending == .configuration)
    #expect(scratch.names == ["a.sqlite", "a.sqlite.godwit"])
  }

  @Test func `refuses a store that is a symbolic link, and says where it leads`() async throws {
    let scratch = try Scratch()
    let store = scratch.file("a.sqlite", "no store at all")
    let link = scratch.path.appending("link.sqlite")
    #expect(symlink(store.string, link.string) == 0)
    let result = await run(link, state: scratch.path.appending("state"))
    #expect(result.ending == .badInput)
    #expect(result.reasons.first?.message.contains("\(store)") == true)
    #expect(scratch.names == ["a.sqlite", "link.sqlite"])
  }

  @Test func `never overwrites an output`() async throws {
    let scratch = try Scratch()
    let (store, output) = (scratch.file("a", "source"), scratch.file("b", "precious"))
    let result = await run(store, output: output, state: scratch.path.appending("b.godwit"))
    #expect(result.ending == .cannotCreateOutput)
    #expect(scratch.names == ["a", "b"])
    // Neither does it follow a link to nowhere.
    let link = scratch.path.appending("c")
    symlink("/nowhere/at/all", link.string)
    let other = await run(store, output: link, state: scratch.path.appending("c.godwit"))
    #expect(other.ending == .cannotCreateOutput)
  }

  @Test func `wants the output's folder to be there`() async throws {
    let scratch = try Scratch()
    let result = await run(
      scratch.file("a"), output: scratch.path.appending("x").appending("y"),
      state: scratch.path.appending("state"))
    #expect(result.ending == .cannotCreateOutput)
    #expect(scratch.names == ["a"])
  }

  @Test func `gives way to another run`() async throws {
    let scratch = try Scratch()
    let state = RunDirectory(scratch.path.appending("state"))
    try state.create()
    let lock = try FileLock(acquiring: state.lock)
    let result = await run(scratch.file("a"), state: state.path)
    #expect(result.ending == .locked)
    #expect(try state.exists)
    _ = consume lock
  }

  @Test func `does not take a folder with other things in it`() async throws {
    let scratch = try Scratch()
    _ = scratch.file("holiday.jpg")
    let result = await run(scratch.file("a.sqlite"), state: scratch.path)
    #expect(result.ending == .cannotCreateOutput)
    #expect(scratch.names == ["a.sqlite", "holiday.jpg"])
  }
}

@Suite struct `A run folder` {
  @Test func `gives a run one name and keeps it`() throws {
    let scratch = try Scratch()
    let folder = RunFolder(directory: RunDirectory(scratch.path.appending("state")))
    try folder.take()
    let name = try folder.name(now: 1_800_000_000.25, replacing: nil)
    #expect(name == "20270115T080000-250")
    #expect(try folder.name(now: 1_900_000_000, replacing: nil) == name)
  }

  @Test func `gives another name where a backup of that name stayed`() throws {
    let scratch = try Scratch()
    let store = scratch.file("a.sqlite")
    let folder = RunFolder(directory: RunDirectory(scratch.path.appending("state")))
    try folder.take()
    let name = try folder.name(now: 1_800_000_000.25, replacing: store)
    let backup = scratch.file("a.sqlite.godwit-backup-\(name).sqlite")
    let next = try folder.name(now: 1_800_000_000.25, replacing: store)
    #expect(next == "20270115T080000-251")
    #expect(try folder.name(now: 1_900_000_000, replacing: store) == next, "and keeps that")
    #expect(try DurableFile.exists(backup))
  }

  /// What a plan says of it before a run takes it.
  @Test(arguments: [("folder", true), ("state", true), ("file", false), ("other", false)])
  func `is looked at without being made`(name: String, isFree: Bool) throws {
    let scratch = try Scratch()
    _ = scratch.file("file")
    try RunFolder(directory: RunDirectory(scratch.path.appending("state"))).take()
    let other = scratch.path.appending("other")
    try DurableFile.makeFolder(other)
    try DurableFile.write([1], to: other.appending("holiday.jpg"))
    let folder = RunFolder(directory: RunDirectory(scratch.path.appending(name)))
    if isFree {
      try folder.check()
    } else {
      #expect(throws: FleetError.self) { try folder.check() }
    }
    #expect(scratch.names == ["file", "other", "state"])
  }

  @Test(arguments: ["", "../../etc/passwd", "a b", String(repeating: "1", count: 33)])
  func `trusts no name that it did not give`(name: String) throws {
    let scratch = try Scratch()
    let folder = RunFolder(directory: RunDirectory(scratch.path.appending("state")))
    try folder.take()
    try DurableFile.write(Array(name.utf8), to: folder.directory.path.appending("name"))
    #expect(try folder.name(now: 0, replacing: nil) == "19700101T000000-000")
  }
}

@Suite struct `Disk space` {
  @Test(arguments: [
    (0 as Int64, 0 as Int64, 1 << 20 as Int64),
    (100, 0, 220 + 1 << 20),
    (100, 50, 270 + 1 << 20),
    (0, .max, .max),
    (.max, 0, .max),  // a size from a damaged header is no reason to trap
    (.max, .max, .max),
  ])
  func `needed is the source twice and some to spare`(source: Int64, external: Int64, needed: Int64)
  {
    #expect(
      DiskSpace.needed(sourceBytes: source, externalBytes: external, isInPlace: false) == needed)
  }

  @Test func `that is not there is said before the first row`() throws {
    #expect(throws: FleetError.self) { try DiskSpace.check(.max, at: "/tmp") }
    try DiskSpace.check(0, at: "/tmp")
  }
}

@Suite struct `A result line` {
  @Test func `has the words of the contract`() throws {
    var result = MigrationResult(
      store: "/a/b.sqlite", verdict: .needsMapping, ending: .badInput, code: 134_190,
      reasons: [Reason(reason: "attribute-type", entity: "Recipe", property: "x", message: "no")])
    result.seconds = 1.5
    #expect(
      result.jsonLine()
        == #"{"code":134190,"event":"result","findings":[],"losses":[],"notes":[],"reasons":[{"entity":"Recipe","#
        + #""message":"no","property":"x","reason":"attribute-type"}],"seconds":1.5,"#
        + #""store":"/a/b.sqlite","verdict":"needs-mapping"}"#)
  }

  @Test func `reads back as it was written`() throws {
    let result = MigrationResult(store: "s", verdict: .sameModel, ending: .done, notes: ["a"])
    let back = try JSONDecoder().decode(
      MigrationResult.self, from: Data(result.jsonLine().utf8))
    #expect(back.verdict == .sameModel)
    #expect(back.ending == .done)
    #expect(back.notes == ["a"])
  }
}
