import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `The history of a pipeline` {
  private func backups(_ folder: PipelineFolder) throws -> Set<String> {
    let list = try folder.godwit(["backups", "list"])
    return Set(
      list.lines.filter { $0["event"] as? String == "backup" }.compactMap { $0["path"] as? String })
  }

  private func backupsOnDisk(_ folder: PipelineFolder) -> Set<String> {
    Set(
      folder.storeFiles().filter { $0.contains(".godwit-backup-") && $0.hasSuffix(".sqlite") }
        .map { folder.path("stores/" + $0) })
  }

  @Test func `keeps every run and backup, whatever becomes of later runs and of the state`() throws
  {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    let made = backupsOnDisk(folder)
    #expect(made.count == 2)
    #expect(try Godwit.run(folder).counts == "2 found, 2 same-model")
    try FileManager.default.removeItem(atPath: folder.path("state"))
    #expect(try Godwit.run(folder).counts == "2 found, 2 same-model")
    #expect(try backups(folder) == made)
    let history = try folder.godwit(["history"])
    #expect(history.lines.map { $0["event"] as? String } == ["run", "run", "run"])
    #expect(history.lines.map { $0["exitCode"] as? Int } == [0, 0, 0])
    let migrated = history.lines.map { ($0["counts"] as? [String: Any])?["migrated"] as? Int }
    #expect(migrated == [0, 0, 2], "the newest first")
  }

  @Test func `lies in the folder of --state, if one is given`() throws {
    let folder = try PipelineFolder.orders()
    let state = folder.path("elsewhere")
    #expect(try Godwit.run(["run", folder.url.path, "--state", state, "--json"]).status == 0)
    #expect(try folder.names(in: "elsewhere").contains("ledger.sqlite"))
    #expect(try !folder.names(in: ".").contains("ledger.sqlite"))
    #expect(try folder.godwit(["status"], ["--state", state]).status == 0)
    #expect(try folder.godwit(["history"]).status == 78, "beside the pipeline there is none")
  }

  @Test func `of a store tells every attempt and its backups`() throws {
    let folder = try PipelineFolder.orders(["a"])
    try Data("no store".utf8).write(to: URL(fileURLWithPath: folder.path("stores/b.sqlite")))
    for _ in 0..<2 { #expect(try Godwit.run(folder).status == 3) }
    let bad = try folder.godwit(["history"], [folder.path("stores/b.sqlite")])
    let attempts = bad.lines.compactMap { $0["attempt"] as? [String: Any] }
    #expect(attempts.map { $0["verdict"] as? String } == ["refused", "refused"])
    #expect(attempts.first?["code"] as? Int == 134_080)
    let reasons = attempts.first?["reasons"] as? [[String: Any]]
    #expect(reasons?.first?["reason"] as? String == "store", "and not a word of the run directory")
    let good = try folder.godwit(["history"], [folder.path("stores/a.sqlite")])
    #expect(good.lines.map { $0["event"] as? String }.contains("backup"))
    #expect(try folder.godwit(["history"], [folder.path("stores/c.sqlite")]).status == 64)
  }

  @Test func `names every backup, wherever a run was killed`() throws {
    let folder = try PipelineFolder.orders(["a", "b", "c"])
    var (step, kills) = (4, 0)
    while true {
      let run = try Godwit.run(folder, killAfter: step)
      if run.status == 0 { break }
      try #require(run.status == -SIGKILL, "step \(step): \(run.messages)")
      kills += 1
      step += 4
      let status = try folder.godwit(["status"])
      let state = status.summary["state"] as? String
      // The first steps come before the ledger knows of the run.
      #expect(state == "interrupted" ? status.status == 3 : state == "never" && step < 30)
    }
    #expect(kills > 3)
    #expect(backupsOnDisk(folder).count >= 3)
    #expect(try backups(folder) == backupsOnDisk(folder))
    let status = try folder.godwit(["status"])
    #expect(status.status == 0)
    #expect((status.summary["counts"] as? [String: Any])?["migrated"] as? Int == 3)
  }

  @Test(arguments: ["gone", "damaged"])
  func `when lost takes nothing else with it`(how: String) throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    let stores = try folder.storeContents()
    if how == "gone" {
      try FileManager.default.removeItem(atPath: folder.path("ledger.sqlite"))
    } else {
      try Data(repeating: 0x41, count: 9_000).write(
        to: URL(fileURLWithPath: folder.path("ledger.sqlite")))
    }
    let run = try Godwit.run(folder)
    #expect(run.counts == "2 found, 2 same-model")
    #expect(run.messages.contains("set aside") == (how == "damaged"))
    #expect(try folder.storeContents() == stores)
    #expect(try folder.godwit(["status"]).status == 0)
    let aside = try folder.names(in: ".").filter { $0.contains("ledger.sqlite.damaged-") }
    #expect(aside.count == (how == "damaged" ? 1 : 0))
  }

  @Test(arguments: [false, true])
  func `is whole although somebody reads it for long`(untilEnd: Bool) throws {
    let folder = try PipelineFolder.orders(["a"], "report: { metrics: m.prom }")
    #expect(try Godwit.run(folder).status == 0)
    for name in ["b", "c"] { try folder.writeOrder(name) }
    try folder.writeBad("d")
    let reader = try Connection(path: folder.path("ledger.sqlite"), mode: .readOnly)
    try reader.execute("BEGIN")
    _ = try reader.rows("SELECT count(*) FROM runs")
    let run = try Godwit.run(
      ["run", folder.url.path, "--json"], at: #""event":"result""#,
      { _ in if !untilEnd { try reader.close() } })
    #expect(run.status == 3, "\(run.messages)")
    #expect(run.messages.contains("could not be written") == untilEnd, "\(run.messages)")
    #expect(!run.messages.contains("lost"))
    #expect(try folder.names(in: "state").contains("endings.json") == untilEnd)
    let metrics = String(decoding: try folder.bytes("m.prom"), as: UTF8.self)
    #expect(metrics.contains("godwit_run_exit_code{pipeline=\"total-cost\"} 3"))
    try? reader.close()
    for _ in 0..<2 {
      let status = try folder.godwit(["status"])
      #expect(status.summary["state"] as? String == "ended")
      let counts = status.summary["counts"] as? [String: Any]
      #expect(counts?["found"] as? Int == 4 && counts?["pending"] as? Int == 0)
      #expect(counts?["refused"] as? Int == 1)
      let history = try folder.godwit(["history"])
      #expect(history.lines.map { $0["exitCode"] as? Int } == [3, 0])
    }
    #expect(try backups(folder) == backupsOnDisk(folder))
    #expect(try Godwit.run(folder).counts == "4 found, 3 same-model, 1 refused")
    #expect(try !folder.names(in: "state").contains("endings.json"))
    #expect(try folder.godwit(["history"]).lines.map { $0["exitCode"] as? Int } == [3, 3, 0])
  }

  @Test func `of a later version stops the run before any store is opened`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    try folder.write(
      "stores/late.sqlite", "Orders.xcdatamodeld/Orders",
      "INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) VALUES (1, 1, 1, 'A', 5)")
    let ledger = try Connection(path: folder.path("ledger.sqlite"), mode: .readWrite)
    try ledger.execute("PRAGMA user_version = 99")
    try ledger.close()
    let stores = try folder.storeContents()
    let run = try Godwit.run(folder)
    #expect(run.status == 78 && run.messages.contains("format version 99"), "\(run.messages)")
    #expect(try folder.storeContents() == stores)
  }

  @Test func `is told as a report, for people's tools`() throws {
    let folder = try PipelineFolder.orders()
    try Data("no store".utf8).write(to: URL(fileURLWithPath: folder.path("stores/c.sqlite")))
    #expect(try Godwit.run(folder).status == 3)
    let run = try Godwit.run(["report", folder.url.path, "--format", "json"])
    let report = try #require(run.lines.first)
    #expect((report["counts"] as? [String: Any])?["found"] as? Int == 3)
    #expect((report["stores"] as? [[String: Any]])?.count == 3)
    let failures = report["failures"] as? [[String: Any]]
    #expect(failures?.first?["count"] as? Int == 1)
    #expect((failures?.first?["advice"] as? String)?.isEmpty == false)
    let stages = report["stages"] as? [[String: Any]]
    #expect(stages?.contains { $0["stage"] as? String == "commit" } == true)
    #expect((report["spans"] as? [Any])?.count == 3)
    #expect(try Godwit.run(["report", folder.url.path, "--json"]).output == run.output)
    #expect(
      try Godwit.run(["report", folder.url.path, "--json", "--format", "html"]).status == 64)
    #expect(try Godwit.run(["report", folder.url.path]).status == 64)
    let file = folder.path("report.xml")
    let written = try Godwit.run(
      ["report", folder.url.path, "--format", "junit", "--output", file])
    #expect(written.status == 0 && written.output.isEmpty)
    #expect(
      String(decoding: try folder.bytes("report.xml"), as: UTF8.self)
        .contains("tests=\"3\" failures=\"1\" errors=\"0\""))
    #expect(
      try Godwit.run(["report", folder.url.path, "--format", "json", "--run", "x"]).status == 64)
  }

  @Test func `is told as test cases of all stores, those that were done before included`() throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    #expect(try Godwit.run(["run", folder.url.path, "--only", "a.sqlite"]).status == 0)
    for _ in 0..<2 {
      #expect(try Godwit.run(folder).status == 0)
      let junit = try Godwit.run(["report", folder.url.path, "--format", "junit"]).output
      #expect(junit.contains("tests=\"2\" failures=\"0\""), "\(junit)")
      #expect(junit.contains("name=\"\(folder.path("stores/a.sqlite"))\""))
    }
  }

  @Test func `of a run that meant none of its stores says so`() throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(["run", folder.url.path, "--only", "x.sqlite"]).status == 3)
    let page = try Godwit.run(["report", folder.url.path, "--format", "html"]).output
    #expect(page.contains("<h1>No store of the pipeline was selected</h1>"))
  }
}

@Suite struct `The status of a pipeline` {
  @Test func `that was never run says so`() throws {
    let folder = try PipelineFolder.orders()
    let status = try folder.godwit(["status"])
    #expect(status.status == 3, "its stores are not migrated")
    #expect(status.summary["state"] as? String == "never")
    // A folder that somebody mistyped is not a pipeline without stores.
    #expect(try Godwit.run(folder).status == 0)
    #expect(try folder.godwit(["status"]).status == 0)
    let wrong = try Godwit.run(["status", folder.url.path, "--state", folder.path("stat")])
    #expect(wrong.status == 3)
    #expect(wrong.output.contains("There is no state folder at \(folder.path("stat"))"))
  }

  @Test func `groups what is not migrated by reason, with three examples`() throws {
    let folder = try PipelineFolder.orders()
    for number in 0..<5 {
      try Data("no store".utf8).write(
        to: URL(fileURLWithPath: folder.path("stores/bad-\(number).sqlite")))
    }
    #expect(try Godwit.run(folder).status == 3)
    let status = try folder.godwit(["status"])
    #expect(status.status == 3)
    let failures = try #require(status.summary["failures"] as? [[String: Any]])
    #expect(failures.count == 1)
    #expect(failures[0]["count"] as? Int == 5)
    #expect((failures[0]["examples"] as? [String])?.count == 3)
    #expect(status.summary["backups"] as? Int == 2)
    let text = try Godwit.run(["status", folder.url.path])
    #expect(text.status == 3)
    #expect(text.output.contains("7 stores, 2 migrated, 5 refused"), "\(text.output)")
    for number in 0..<5 {
      try FileManager.default.removeItem(atPath: folder.path("stores/bad-\(number).sqlite"))
    }
    #expect(try Godwit.run(folder).status == 0)
    #expect(try folder.godwit(["status"]).status == 0)
  }
}
