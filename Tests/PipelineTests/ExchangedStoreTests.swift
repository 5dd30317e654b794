import Foundation
import GodwitSQLite
import Testing

/// Stores of five versions that inferred mappings lead through: they keep their UUIDs.
@Suite struct `What a store was, where something else was written` {
  private func write(_ store: String, to folder: PipelineFolder, uuid: String, body: String) throws
  {
    try? FileManager.default.removeItem(atPath: folder.path(store))
    try folder.write(
      store, "Notes.xcdatamodeld/Notes",
      "INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZBODY, ZCREATED) SELECT 1, Z_ENT, 1, '\(body)', 0 "
        + "FROM Z_PRIMARYKEY WHERE Z_NAME = 'Note'")
    let connection = try Connection(path: folder.path(store), mode: .readWrite)
    try connection.execute(
      "UPDATE Z_METADATA SET Z_UUID = '12345678-1234-4234-8234-12345678123\(uuid)'")
    try connection.close()
  }

  private func set(
    _ file: String = "pipeline", to version: String, _ keys: String = "",
    in folder: PipelineFolder
  ) throws {
    try """
    name: \(file)
    stores: { roots: stores, exclude: "*-next.sqlite", in-use: snapshot }
    models: Notes.xcdatamodeld
    chain: progressive
    destination: \(version)
    \(keys)
    """.write(toFile: folder.path("\(file).yaml"), atomically: true, encoding: .utf8)
  }

  /// A store at `Notes 3`, with its backup.
  private func migrated(_ keys: String = "") throws -> PipelineFolder {
    let folder = try PipelineFolder("notes-progressive")
    try write("stores/a.sqlite", to: folder, uuid: "A", body: "first")
    try set(to: "Notes 3", keys, in: folder)
    let run = try Godwit.run(folder)
    try #require(run.status == 0, "\(run.messages)")
    return folder
  }

  private func backups(_ folder: PipelineFolder) -> [String] {
    folder.storeFiles().filter { $0.contains(".godwit-backup-") && $0.hasSuffix(".sqlite") }
  }

  private func prune(_ folder: PipelineFolder) throws -> [String?] {
    try folder.godwit(["backups", "prune"], ["--keep", "0s"]).lines("backup").map {
      $0["pruned"] as? Bool == true ? nil : $0["reason"] as? String
    }
  }

  @Test(arguments: [("A", "other-version"), ("B", "other-store")])
  func `keeps the backup of a store in whose place another was put, also once a run migrated that`(
    uuid: String, reason: String
  ) throws {
    let folder = try migrated("backups: { keep: 1s }")
    let first = try #require(backups(folder).first)
    let bytes = try folder.bytes("stores/\(first)")
    try write("stores/a.sqlite", to: folder, uuid: uuid, body: "other")
    #expect(try folder.godwit(["verify"]).reason(of: "a") == "other-version")
    #expect(try prune(folder) == ["other-version"])
    Thread.sleep(forTimeInterval: 1.1)
    for _ in 0..<2 { #expect(try Godwit.run(folder).status == 0) }
    #expect(try folder.bytes("stores/\(first)") == bytes)
    #expect(try prune(folder) == [reason, nil], "that of the other may go")
    #expect(backups(folder) == [first])
    #expect(try folder.godwit(["verify"]).summary["sound"] as? Int == 1)
  }

  @Test func `lets backups go of a store that applications wrote to and later runs migrated`()
    throws
  {
    let folder = try migrated()
    for version in ["Notes 4", "Notes 5"] {
      let connection = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
      try connection.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1")
      try connection.close()
      try set(to: version, in: folder)
      #expect(try Godwit.run(folder).status == 0)
    }
    #expect(try prune(folder) == [nil, nil, nil])
  }

  @Test func `lets them go after a rollback of a mapping model, whose store has its own UUID`()
    throws
  {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    #expect(try folder.godwit(["rollback"]).status == 0)
    let connection = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
    try connection.execute("UPDATE ZORDER SET Z_OPT = Z_OPT + 1")
    try connection.close()
    #expect(try folder.godwit(["verify"]).summary["changed"] as? Int == 1)
    #expect(try prune(folder) == [nil, nil])
  }

  @Test func `asks for a store and for the snapshot that a later run made beside it`() throws {
    let folder = try migrated()
    try set(to: "Notes 5", in: folder)
    let reader = try Connection(path: folder.path("stores/a.sqlite"), mode: .readOnly)
    try reader.execute("BEGIN")
    _ = try reader.rows("SELECT count(*) FROM ZNOTE")
    #expect(try Godwit.run(folder).status == 0)
    try reader.close()
    #expect(try folder.godwit(["verify"]).summary["sound"] as? Int == 2)
    let path = folder.path("stores/a.sqlite")
    try folder.changeUnseen(path)
    let verify = try folder.godwit(["verify"])
    #expect(verify.status == 3 && verify.reason(of: "a") == "digest", "\(verify.output)")
    #expect(try prune(folder) == ["store-damaged"])
    try FileManager.default.removeItem(atPath: path)
    #expect(try folder.godwit(["verify"]).reason(of: "a") == "missing")
  }

  @Test func `asks for a store of which another pipeline wrote an output`() throws {
    let folder = try migrated()
    try set("other", to: "Notes 5", "commit: { beside: -next }", in: folder)
    let other = folder.path("other.yaml")
    #expect(try Godwit.run(["run", other]).status == 0)
    let outputs = try Godwit.run(["verify", other, "--json"]).results
    #expect(outputs.keys.sorted() == [folder.path("stores/a-next.sqlite")])
    #expect(try folder.godwit(["verify"]).status == 0)
    try Data().write(to: URL(fileURLWithPath: folder.path("stores/a.sqlite")))
    #expect(try folder.godwit(["verify"]).summary["damaged"] as? Int == 1)
    #expect(try Godwit.run(["verify", other]).status == 0)
  }

  @Test func `asks for what a rollback put back`() throws {
    let folder = try migrated()
    try set(to: "Notes 5", in: folder)
    #expect(try Godwit.run(folder).status == 0)
    #expect(try folder.godwit(["rollback"]).status == 0)
    #expect(try folder.godwit(["verify"]).summary["sound"] as? Int == 1)
    let old = try #require(backups(folder).first)
    let path = folder.path("stores/a.sqlite")
    try folder.bytes("stores/\(old)").write(to: URL(fileURLWithPath: path))
    #expect(try folder.godwit(["verify"]).reason(of: "a") == "other-version")
    #expect(try prune(folder).allSatisfy { $0 == "other-version" })
    try Data().write(to: URL(fileURLWithPath: path))
    #expect(try folder.godwit(["verify"]).status == 3)
  }

  @Test func `knows the fleet of a pipeline that was renamed`() throws {
    let folder = try migrated()
    try FileManager.default.createDirectory(
      atPath: folder.path("stores/more"), withIntermediateDirectories: false)
    try write("stores/more/b.sqlite", to: folder, uuid: "B", body: "b")
    #expect(try Godwit.run(folder).status == 0)
    let file = folder.path("renamed.yaml")
    try FileManager.default.moveItem(atPath: folder.path("pipeline.yaml"), toPath: file)
    func counts() throws -> [Int?] {
      let counts = try Godwit.run(["status", file, "--json"]).summary["counts"] as? [String: Any]
      return ["found", "pending", "restored"].map { counts?[$0] as? Int }
    }
    #expect(try counts() == [2, 0, 0], "before anything was written there")
    #expect(try Godwit.run(["run", file, "--only", "a.sqlite"]).status == 0)
    #expect(try counts() == [2, 0, 0])
    let store = folder.path("stores/a.sqlite")
    #expect(try Godwit.run(["rollback", file, "--store", store]).status == 0)
    #expect(try counts() == [2, 0, 1])
    try FileManager.default.moveItem(
      atPath: folder.path("stores"), toPath: folder.path("elsewhere"))
    try FileManager.default.createDirectory(
      atPath: folder.path("stores"), withIntermediateDirectories: false)
    let run = try Godwit.run(["run", file, "--json"])
    #expect(run.status == 3 && "\(run.results)".contains("empty-root"), "\(run.messages)")
  }
}
