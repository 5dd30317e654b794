import Foundation
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `A store that fails every night` {
  /// Three stores, the second with a damaged property list in one of its rows.
  private func things(rows: Int = 12) throws -> (PipelineFolder, bad: String) {
    let folder = try PipelineFolder("bucket")
    let model = try FixtureModels.model(at: folder.path("Things.xcdatamodeld/Things.xcdatamodel"))
    let stores = try ThingsFleet(stores: 3, things: rows, seed: 5, damaged: 1)
      .write(model, to: folder.path("stores"))
    return (folder, stores[1].path)
  }

  @Test func `is not tried after three times, until it changes`() throws {
    let (folder, bad) = try things()
    for _ in 0..<3 {
      let run = try Godwit.run(folder)
      #expect(run.status == 3 && run.results[bad]?["verdict"] as? String != "quarantined")
    }
    let run = try Godwit.run(folder)
    #expect(run.status == 3)
    #expect(run.counts == "3 found, 2 same-model, 1 quarantined")
    let result = run.results[bad]
    #expect(result?["verdict"] as? String == "quarantined")
    #expect(result?["attempts"] as? Int == 3)
    let list = try folder.godwit(["quarantine", "list"])
    #expect(list.lines("quarantine").map { $0["store"] as? String } == [bad])
    #expect(
      list.summary["event"] as? String == "summary" && list.summary["quarantined"] as? Int == 1)
    #expect(list.lines.first?["attempts"] as? Int == 3)
    let plan = try folder.godwit(["plan"], ["--samples", "0", "--verbose"])
    #expect(plan.results[bad]?["verdict"] as? String == "quarantined", "what a run would do")
    let connection = try Connection(path: bad, mode: .readWrite)
    try connection.execute("UPDATE ZTHING SET ZNAME = 'touched' WHERE Z_PK = 1")
    try connection.close()
    #expect(try Godwit.run(folder).results[bad]?["verdict"] as? String == "refused")
  }

  @Test func `is tried again when it is released, or when the mapping model changes`() throws {
    let (folder, bad) = try things()
    for _ in 0..<4 { _ = try Godwit.run(folder) }
    let released = try folder.godwit(["quarantine", "release"], [bad])
    #expect(released.status == 0 && released.summary["released"] as? Int == 1)
    #expect(try folder.godwit(["quarantine", "release"], [bad]).status == 3, "once")
    for _ in 0..<3 {
      #expect(try Godwit.run(folder).results[bad]?["verdict"] as? String == "refused")
    }
    #expect(try Godwit.run(folder).results[bad]?["verdict"] as? String == "quarantined")
    #expect(
      try folder.godwit(["quarantine", "release"], ["--all"]).summary["released"] as? Int == 1)
    #expect(try Godwit.run(folder).results[bad]?["verdict"] as? String == "refused")
    try FileManager.default.removeItem(atPath: bad)
    let list = try folder.godwit(["quarantine", "list"], ["--all"])
    #expect(list.lines("quarantine").map { $0["isGone"] as? Bool } == [true])
  }

  @Test func `is forgotten once a run finds that it is deleted`() throws {
    let (folder, bad) = try things()
    for _ in 0..<4 { _ = try Godwit.run(folder) }
    #expect(try folder.godwit(["status"]).summary["quarantined"] as? Int == 1)
    try FileManager.default.removeItem(atPath: bad)
    #expect(try Godwit.run(folder).counts == "2 found, 2 same-model")
    #expect(try folder.godwit(["status"]).summary["quarantined"] as? Int == 0)
    #expect(try folder.godwit(["quarantine", "list"], ["--all"]).lines("quarantine").isEmpty)
  }

  @Test func `is tried as often as the pipeline says`() throws {
    let (folder, bad) = try things()
    try folder.addToPipeline("quarantine: { after: 1 }")
    #expect(try Godwit.run(folder).results[bad]?["verdict"] as? String == "refused")
    #expect(try Godwit.run(folder).results[bad]?["verdict"] as? String == "quarantined")
    // What it says today holds for a store that is quarantined by then, too.
    let text = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
    for (limit, verdicts) in [
      (3, ["refused", "refused", "quarantined"]), (4, ["refused", "quarantined"]),
      (0, ["refused", "refused", "refused"]), (1_000, ["refused"]),
      (2, ["refused", "quarantined"]),
    ] {
      try text.replacing("after: 1", with: "after: \(limit)")
        .write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
      for verdict in verdicts {
        let plan = try folder.godwit(["plan"], ["--samples", "0", "--verbose"])
        let isLeftOut = plan.results[bad]?["verdict"] as? String == "quarantined"
        #expect(isLeftOut == (verdict == "quarantined"), "after \(limit)")
        for command in [["quarantine", "list"], ["status"]] {
          let count = try folder.godwit(command).summary["quarantined"] as? Int
          #expect(count == (isLeftOut ? 1 : 0), "\(command), after \(limit)")
        }
        #expect(
          try Godwit.run(folder).results[bad]?["verdict"] as? String == verdict, "after \(limit)")
      }
    }
  }

  @Test func `is not quarantined by starts that the failure budget stopped`() throws {
    let names = (1...10).map { "s\($0)" }
    let keys = "limits: { failure-budget: 1 }\ncanary: [5, 100%]\nworkers: 1"
    let folder = try PipelineFolder.orders(names, keys)
    for name in ["b1", "b2", "b3"] { try folder.writeBad(name) }
    // Every wave of the pipeline has two bad stores or a place for one: it never gets past them.
    for start in 1...5 {
      let run = try Godwit.run(folder)
      #expect(run.status == 4, "start \(start): \(run.counts)")
      #expect(run.summary["quarantined"] as? Int == 0)
    }
    #expect(try folder.godwit(["quarantine", "list", "--all"]).lines("quarantine").isEmpty)
    // The operator's decision lets it go on, and from then on failures count.
    try folder.set("limits: { failure-budget: 3 }\ncanary: [5, 100%]\nworkers: 1")
    for _ in 1...3 { #expect(try Godwit.run(folder).status == 3) }
    #expect(try Godwit.run(folder).counts == "13 found, 10 same-model, 3 quarantined")
  }

  @Test func `can be exported as the smallest store that fails likewise, without its values`()
    throws
  {
    let (folder, bad) = try things(rows: 40)
    let connection = try Connection(path: bad, mode: .readWrite)
    try connection.execute("UPDATE ZTHING SET ZNAME = 'my secret ' || Z_PK")
    // What an application may have put beside: its trigger writes down what is replaced.
    try connection.execute(
      """
      CREATE TABLE audit (v);
      CREATE TABLE SQLiteCache (v); INSERT INTO SQLiteCache VALUES ('a secret');
      CREATE TABLE ZCACHE (v); INSERT INTO ZCACHE VALUES ('a secret');
      PRAGMA secure_delete = OFF; CREATE TABLE old (v);
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
      INSERT INTO old SELECT 'a secret that is deleted' FROM n;
      DROP TABLE old;
      CREATE TRIGGER watch AFTER UPDATE ON ZTHING BEGIN INSERT INTO audit VALUES (old.ZNAME); END;
      CREATE TRIGGER gone AFTER DELETE ON ZTHING BEGIN INSERT INTO audit VALUES (old.ZNAME); END;
      """)
    try connection.close()
    let before = try Data(contentsOf: URL(fileURLWithPath: bad))
    let output = folder.path("small.sqlite")
    let export = try folder.godwit(["quarantine", "export"], [bad, "--output", output])
    #expect(export.status == 0, "\(export.messages)")
    #expect(export.summary["rowsBefore"] as? Int == 40)
    #expect(export.summary["rows"] as? Int == 1)
    #expect((export.summary["keptColumns"] as? [String])?.isEmpty == true)
    #expect(try Data(contentsOf: URL(fileURLWithPath: bad)) == before, "the store is only read")
    let small = try Data(contentsOf: URL(fileURLWithPath: output))
    #expect(small.range(of: Data("secret".utf8)) == nil)
    #expect(small.range(of: Data("spare".utf8)) == nil)
    // And it fails in the same way.
    try FileManager.default.removeItem(atPath: folder.path("stores"))
    try FileManager.default.createDirectory(
      atPath: folder.path("stores/x"), withIntermediateDirectories: true)
    try small.write(to: URL(fileURLWithPath: folder.path("stores/x/Things.sqlite")))
    let run = try Godwit.run(folder)
    let result = run.results.values.first
    #expect(result?["verdict"] as? String == export.summary["verdict"] as? String)
    #expect(try folder.godwit(["quarantine", "export"], [bad, "--output", output]).status != 0)
  }

  @Test func `is not said to need its values where the time was too short`() throws {
    let (folder, bad) = try things(rows: 40)
    let output = folder.path("small.sqlite")
    let export = try folder.godwit(
      ["quarantine", "export"], [bad, "--output", output, "--limit", "0s"])
    #expect(!export.messages.contains("--keep-values"), "\(export.messages)")
    #expect(export.status == 0 || export.messages.contains("--limit"))
  }

  @Test func `is not exported from outside of the roots`() throws {
    let (folder, bad) = try things(rows: 4)
    let outside = folder.path("outside.sqlite")
    try FileManager.default.copyItem(atPath: bad, toPath: outside)
    let output = folder.path("small.sqlite")
    let export = try folder.godwit(["quarantine", "export"], [outside, "--output", output])
    #expect(export.status == 65 && export.messages.contains("outside of the pipeline's roots"))
    #expect(!FileManager.default.fileExists(atPath: output))
  }

  @Test func `is exported as the run tried it that said what may be lost`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    try FileManager.default.createDirectory(
      atPath: folder.path("stores/a"), withIntermediateDirectories: true)
    let store = folder.path("stores/a/Recipes.sqlite")
    try StoreGenerator(FixtureModels.Recipes.one.model(), options: StoreOptions(seed: 3, rows: 9))
      .write(to: store)
    let run = try folder.godwit(["run"], ["--losses", "refuse"])
    #expect(run.counts == "1 found, 1 refused", "\(run.messages)")
    let words = [store, "--output", folder.path("small.sqlite")]
    let other = try folder.godwit(["quarantine", "export"], words)
    #expect(other.status == 65 && other.messages.contains("Give --losses"), "\(other.messages)")
    let export = try folder.godwit(["quarantine", "export"], words + ["--losses", "refuse"])
    #expect(export.status == 0, "\(export.messages)")
    #expect(
      (export.summary["reasons"] as? [String])?.contains("lost-attribute Recipe.isFavorite")
        == true)
  }

  @Test func `and does so no longer is not exported`() throws {
    let (folder, _) = try things()
    let good = folder.path("stores/user-0001/Things.sqlite")
    let output = folder.path("small.sqlite")
    let export = try folder.godwit(["quarantine", "export"], [good, "--output", output])
    #expect(export.status == 65 && export.messages.contains("does not fail"), "\(export.messages)")
    #expect(export.messages.contains("release` where it is quarantined"))
    #expect(!FileManager.default.fileExists(atPath: output))
  }
}

@Suite struct `A store with damaged pages` {
  @Test func `is not exported, and who wants an account of it is told where to get it`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let store = folder.path("stores/a.sqlite")
    try `An error of a command itself`.losePages(of: store)
    let output = folder.path("small.sqlite")
    let export = try folder.godwit(["quarantine", "export"], [store, "--output", output])
    #expect(export.status == 65 && export.messages.contains("`godwit repair --json`"))
    #expect(!FileManager.default.fileExists(atPath: output))
  }
}

@Suite struct `A store that fails by its file and not by its rows` {
  /// Values that were replaced, and rows that were deleted, may lie anywhere in such a file.
  @Test func `is not exported`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let store = folder.path("stores/a.sqlite")
    let connection = try Connection(path: store, mode: .readWrite)
    try connection.execute(
      """
      PRAGMA secure_delete = OFF; CREATE TABLE old (v);
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
      INSERT INTO old SELECT 'a secret that is deleted' FROM n;
      DROP TABLE old;
      """)
    try connection.close()
    // The header's count of free pages, which VACUUM makes again.
    var bytes = try folder.bytes("stores/a.sqlite")
    bytes[39] += 1
    try bytes.write(to: URL(fileURLWithPath: store))
    let output = folder.path("small.sqlite")
    for options in [[], ["--keep-values"]] {
      let export = try folder.godwit(
        ["quarantine", "export"], [store, "--output", output] + options)
      #expect(
        export.status == 65 && export.messages.contains("a store of the same rows does not fail"),
        "\(export.messages)")
      #expect(!FileManager.default.fileExists(atPath: output))
    }
  }
}

@Suite struct `Verifying a pipeline` {
  @Test func `finds every store as it was left`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    let verify = try folder.godwit(["verify"])
    #expect(verify.status == 0)
    #expect(verify.summary["sound"] as? Int == 2)
  }

  @Test func `tells what was changed, damaged and lost`() throws {
    let folder = try PipelineFolder.orders(["a", "b", "c", "d"])
    #expect(try Godwit.run(folder).status == 0)
    try folder.writeOrder(to: "stores/a.sqlite")
    // A bit that changes on the disk while nobody writes.
    let rotten = folder.path("stores/b.sqlite")
    var times = [timespec(), timespec()]
    var status = stat()
    #expect(stat(rotten, &status) == 0)
    times[0] = status.st_atim
    times[1] = status.st_mtim
    let connection = try Connection(path: rotten, mode: .immutable)
    let page = try #require(
      try connection.rows("SELECT rootpage FROM sqlite_master WHERE name = 'ZORDER'").first?[0]
        .integer)
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: rotten))
    try file.seek(toOffset: UInt64(page) * 4_096 - 1)
    let last = try #require(try file.read(upToCount: 1))
    try file.seek(toOffset: UInt64(page) * 4_096 - 1)
    try file.write(contentsOf: Data([last[0] ^ 1]))
    try file.close()
    #expect(utimensat(AT_FDCWD, rotten, &times, 0) == 0)
    try FileManager.default.removeItem(atPath: folder.path("stores/c.sqlite"))
    let verify = try folder.godwit(["verify"])
    #expect(verify.status == 3)
    let verdicts = verify.results.mapValues { $0["verdict"] as? String }
    #expect(
      ["a", "b", "c", "d"].map { verdicts[folder.path("stores/\($0).sqlite")] } == [
        "changed", "damaged", "missing", "sound",
      ])
  }

  @Test func `does not take another store, or an older one, for an application's change`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    let old = try #require(folder.storeFiles().first { $0.hasPrefix("a.sqlite.godwit-backup-") })
    try folder.bytes("stores/\(old)").write(
      to: URL(fileURLWithPath: folder.path("stores/a.sqlite")))
    try FileManager.default.removeItem(atPath: folder.path("stores/b.sqlite"))
    try folder.write("stores/b.sqlite", "Orders.xcdatamodeld/Orders 2", "")
    let verify = try folder.godwit(["verify"])
    #expect(verify.status == 3 && verify.summary["damaged"] as? Int == 2, "\(verify.messages)")
    #expect(verify.reason(of: "a") == "other-version")
    #expect(verify.reason(of: "b") == "other-store")
  }

  @Test func `without a ledger says that there is none`() throws {
    #expect(try PipelineFolder.orders().godwit(["verify"]).status == 78)
  }
}
