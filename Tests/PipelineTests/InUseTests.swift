import Foundation
import GodwitSQLite
import Testing

@Suite struct `godwit run with stores in use` {
  private func folder(_ inUse: String) throws -> PipelineFolder {
    let folder = try PipelineFolder.orders(["a", "b"])
    try folder.set("", stores: "{ roots: stores, in-use: \(inUse) }")
    return folder
  }

  /// What an application's save does.
  private func insertOrder(_ connection: Connection) throws {
    try connection.execute(
      "INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) VALUES (2, 1, 1, 'B', 7)")
    try connection.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = 2 WHERE Z_NAME = 'Order'")
  }

  @Test func `skips them unless it is told otherwise`() throws {
    let folder = try folder("skip")
    let reader = try folder.reader(of: "a")
    let run = try Godwit.run(folder)
    #expect(run.status == 75 && run.counts == "2 found, 1 migrated, 1 pending")
    #expect(run.reason(of: "a") == "in-use")
    try reader.execute("COMMIT")
    try reader.close()
    #expect(try Godwit.run(folder).counts == "2 found, 2 migrated")
  }

  /// There the new store is assembled beside the old one, and nothing else would find it again.
  @Test(.enabled(if: FileManager.default.isWritableFile(atPath: "/dev/shm")))
  func `leaves nothing beside one where the run directory is on another volume`() throws {
    let folder = try folder("skip")
    let state = "/dev/shm/godwit-state-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: state) }
    let files = folder.storeFiles().filter { $0.hasPrefix("a.") || $0.hasPrefix(".a.") }
    // Without a lock: it is noticed when the store is about to be replaced.
    let application = try #require(FileHandle(forReadingAtPath: folder.path("stores/a.sqlite")))
    let run = try Godwit.run(["run", folder.url.path, "--state", state, "--json"])
    #expect(run.status == 75 && run.reason(of: "a") == "in-use", "\(run.messages)")
    #expect(
      folder.storeFiles().filter { $0.hasPrefix("a.") || $0.hasPrefix(".a.") } == files)
    try application.close()
    let last = try Godwit.run(["run", folder.url.path, "--state", state, "--json"])
    #expect(last.status == 0 && last.counts == "2 found, 2 migrated", "\(last.messages)")
  }

  @Test func `is preceded by a plan that says so, and locks nothing`() throws {
    let folder = try folder("skip")
    let words = [
      "plan", folder.path("stores/a.sqlite"), "--models", folder.path("Orders.xcdatamodeld"),
      "--json",
    ]
    func notes() throws -> [String] {
      let plan = try Godwit.run(
        words + ["--mapping", folder.path("orders.mapping.yaml"), "--to", "Orders 2"])
      #expect(plan.status == 0, "\(plan.messages)")
      return (plan.lines.last?["notes"] as? [String] ?? []).filter { $0.contains("in use now") }
    }
    #expect(try notes() == [])
    let reader = try folder.reader(of: "a")
    #expect(try notes().count == 1)
    try reader.execute("COMMIT")
    try insertOrder(reader)
    try reader.close()
  }

  @Test func `waits for them as long as it is told to`() throws {
    let folder = try folder("{ wait: 10m }")
    let reader = try folder.reader(of: "a")
    let run = try Godwit.run(
      ["run", folder.url.path, "--json"], at: #""event":"retry""#,
      { _ in
        try insertOrder(reader)
        try reader.execute("COMMIT")
        try reader.close()
      })
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.counts == "2 found, 2 migrated")
    #expect(run.lines("retry").first?["reason"] as? String == "in-use")
    #expect(
      try folder.table("stores/a.sqlite", "SELECT ZNUMBER FROM ZORDER ORDER BY 1") == ["A", "B"],
      "what was committed meanwhile is there")
  }

  @Test func `gives up when the time is over`() throws {
    let folder = try folder("{ wait: 1s }")
    let reader = try folder.reader(of: "a")
    let run = try Godwit.run(folder)
    #expect(run.status == 75 && run.reason(of: "a") == "in-use")
    try reader.close()
  }

  @Test func `migrates a snapshot beside one, and leaves the store alone`() throws {
    let folder = try folder("snapshot")
    let reader = try folder.reader(of: "a")
    let before = try folder.bytes("stores/a.sqlite")
    try #require(chmod(folder.path("stores/a.sqlite"), 0o664) == 0)
    let run = try Godwit.run(folder)
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.counts == "2 found, 2 migrated")
    #expect(try folder.bytes("stores/a.sqlite") == before)
    let names = folder.storeFiles().filter { $0.hasPrefix("a.sqlite.godwit-snapshot-") }
    let snapshot = try #require(names.first)
    #expect(names.count == 1)
    let attributes = try FileManager.default.attributesOfItem(
      atPath: folder.path("stores/" + snapshot))
    #expect(attributes[.posixPermissions] as? Int == 0o664, "who may read the store may read it")
    #expect(
      try folder.table("stores/" + snapshot, "SELECT ZNUMBER, ZTOTALCOST FROM ZORDER") == ["A 5.0"])
    let result = try #require(run.results[folder.path("stores/a.sqlite")])
    #expect(result["output"] as? String == folder.path("stores/" + snapshot))
    #expect("\(result["notes"] ?? "")".contains("stays as it is"))

    #expect(run.summary["snapshots"] as? Int == 1)

    // Nothing changed: there is nothing more to do, and no second snapshot.
    let again = try Godwit.run(folder)
    #expect(again.summary["snapshots"] as? Int == 1)
    let said = "1 of those migrated is a snapshot beside its store"
    #expect(try Godwit.run(["run", folder.url.path]).output.contains(said))
    #expect(try Godwit.run(["status", folder.url.path]).output.contains(said))
    let counts = try folder.godwit(["status"]).summary["counts"] as? [String: Any]
    #expect(counts?["migrated"] as? Int == 1 && counts?["snapshots"] as? Int == 1)
    let page = try Godwit.run(["report", folder.url.path, "--format", "html"]).output
    #expect(page.contains("<h1>1 of 2 stores is at "), "and not all")
    #expect(page.contains("1 has a snapshot beside it</h1>"))
    #expect(page.contains("1 store of them by an earlier run."))
    #expect(again.status == 0 && again.counts == "2 found, 1 migrated, 1 same-model")
    #expect(folder.storeFiles().count { $0.hasPrefix("a.sqlite.godwit-snapshot-") } == 1)

    // A commit of the application: a further snapshot has it, and so has the store.
    try reader.execute("COMMIT")
    try insertOrder(reader)
    try reader.execute("BEGIN")
    _ = try reader.rows("SELECT count(*) FROM ZORDER")
    #expect(try Godwit.run(folder).status == 0)
    let snapshots = folder.storeFiles().filter { $0.hasPrefix("a.sqlite.godwit-snapshot-") }
      .sorted()
    #expect(snapshots.count == 2)
    #expect(
      try folder.table("stores/" + (snapshots.last ?? ""), "SELECT ZNUMBER FROM ZORDER ORDER BY 1")
        == ["A", "B"])
    #expect(try reader.rows("SELECT count(*) FROM ZORDER")[0][0].integer == 2)
    try reader.close()

    // Nobody uses it any more: it is migrated in its place.
    let last = try Godwit.run(folder)
    #expect(last.status == 0 && last.summary["snapshots"] == nil)
    let name = try #require(again.summary["run"] as? String)
    let report = try folder.godwit(["report"], ["--run", name]).lines.first
    #expect((report?["counts"] as? [String: Any])?["snapshots"] as? Int == 1, "as it was then")
    #expect(
      try folder.table("stores/a.sqlite", "SELECT ZNUMBER, ZTOTALCOST FROM ZORDER ORDER BY 1")
        == ["A 5.0", "B 7.0"])
  }

  @Test func `takes no other output of a store for its snapshot`() throws {
    let folder = try PipelineFolder.orders(["a", "b"], "commit: { beside: -2 }")
    let reader = try folder.reader(of: "a")
    #expect(try Godwit.run(folder).counts == "2 found, 2 migrated")
    try folder.set("", stores: "{ roots: stores, exclude: \"*-2.sqlite\", in-use: snapshot }")
    for _ in 1...2 {
      let run = try Godwit.run(folder)
      #expect(run.status == 0 && run.summary["snapshots"] as? Int == 1, "\(run.messages)")
      #expect(folder.storeFiles().count { $0.hasPrefix("a.sqlite.godwit-snapshot-") } == 1)
    }
    try reader.close()
  }
}
