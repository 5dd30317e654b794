import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `A ledger that is lost` {
  /// Whichever it is: what a run does not read would stand in the way of a rollback for ever.
  @Test func `is set aside with any page damaged`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    let whole = try folder.bytes("ledger.sqlite")
    let ledger = URL(fileURLWithPath: folder.path("ledger.sqlite"))
    for page in 0..<whole.count / 4096 {
      var bytes = whole
      bytes.replaceSubrange(
        page * 4096..<(page + 1) * 4096, with: Data(repeating: 0xAA, count: 4096))
      try bytes.write(to: ledger)
      // What is on a page that is free is nobody's.
      let isDamage = (try? folder.table("ledger.sqlite", "PRAGMA integrity_check")) != ["ok"]
      let run = try Godwit.run(folder)
      #expect(run.counts == "2 found, 2 same-model" && run.status == 0, "page \(page)")
      #expect(run.messages.contains("set aside") == isDamage, "page \(page)")
      #expect(try folder.table("ledger.sqlite", "PRAGMA integrity_check") == ["ok"])
      let none = ["rollback", folder.url.path, "--store", folder.path("stores/none.sqlite")]
      #expect(try Godwit.run(none).messages.contains("set aside") == false, "page \(page)")
    }
  }

  /// The state folder has what the last run did.
  @Test(arguments: ["removed", "emptied", "removed, and a run since"])
  func `is begun again with what the last run did, and said`(how: String) throws {
    let folder = try PipelineFolder.orders()
    let before = try folder.storeContents()
    #expect(try Godwit.run(folder).status == 0)
    let list = try folder.godwit(["backups", "list"]).lines.count
    let ledger = folder.path("ledger.sqlite")
    try FileManager.default.removeItem(atPath: ledger)
    if how == "emptied" { try Data().write(to: URL(fileURLWithPath: ledger)) }
    if how == "removed" {
      let doctor = try Godwit.run(["doctor", folder.url.path])
      #expect(doctor.status == 78, "\(doctor.output)")
      #expect(
        doctor.output.contains("There is no ledger at \(ledger) any more"), "\(doctor.output)")
    }
    if how.hasSuffix("since") {
      let run = try Godwit.run(folder)
      #expect(run.messages.contains("There is no ledger at \(ledger) any more"), "\(run.messages)")
    }
    let read = how == "emptied" ? nil : try folder.godwit(["backups", "list"])
    if let read { #expect(read.lines.count == list) }
    let back = try Godwit.run(["rollback", folder.url.path, "--json"])
    #expect(back.status == 0, "\(back.messages)")
    // Whichever command takes it up first, and no later one.
    let said = [read, back].map {
      $0?.messages.contains("There is no ledger at \(ledger) any more")
    }
    #expect(said == [read.map { _ in how == "removed" }, how == "emptied"])
    let after = try folder.contentsOfStoresAlone()
    #expect(after == before, "\(back.output)")
  }

  @Test func `is begun again with the fleet of a pipeline that was renamed since`() throws {
    let folder = try PipelineFolder.orders(["a", "b"], "name: orders")
    #expect(try Godwit.run(folder).status == 0)
    try FileManager.default.removeItem(atPath: folder.path("ledger.sqlite"))
    let file = folder.path("renamed.yaml")
    try FileManager.default.moveItem(atPath: folder.path("pipeline.yaml"), toPath: file)
    #expect(try Godwit.run(["run", file, "--only", "a.sqlite"]).status == 0)
    let status = try Godwit.run(["status", file, "--json"]).summary
    let counts = try #require(status["counts"] as? [String: Any])
    #expect(
      ["found", "migrated", "same-model", "pending"].map { counts[$0] as? Int } == [2, 1, 1, 0])
  }

  /// As a nightly copy of it is, once it was put back.
  @Test(arguments: ["nothing", "a run", "a start that fails"])
  func `or is older than the last run goes on with what that did`(since: String) throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    let copy = try folder.bytes("ledger.sqlite")
    try folder.writeOrder("b")
    let store = try folder.bytes("stores/b.sqlite")
    #expect(try Godwit.run(folder).status == 0)
    func history() throws -> [String] {
      try folder.godwit(["history"]).lines.map {
        "\($0["name"] ?? "") \($0["exitCode"] ?? "") \($0["starts"] ?? "")"
      }
    }
    let (runs, list) = (try history(), try folder.godwit(["backups", "list"]).output)
    try copy.write(to: URL(fileURLWithPath: folder.path("ledger.sqlite")))
    switch since {
    case "a run":
      let run = try Godwit.run(folder)
      #expect(run.messages.contains("ledger.sqlite is older than the last run"), "\(run.messages)")
    case "a start that fails":
      try folder.set("destination: Nope")
      let run = try Godwit.run(folder)
      #expect(run.status == 65)
      #expect(run.messages.contains("ledger.sqlite is older than the last run"), "\(run.messages)")
      try folder.set("")
    default:
      let status = try folder.godwit(["status"])
      #expect(
        status.status == 3 && status.messages.contains("ledger.sqlite is older than the last run"))
      #expect(try folder.godwit(["status"]).status == 0)
    }
    #expect(try history().suffix(2) == runs[...])
    #expect(try folder.godwit(["backups", "list"]).output == list)
    let status = try folder.godwit(["status"]).summary["counts"] as? [String: Any]
    #expect(status?["found"] as? Int == 2)
    let back = try folder.godwit(["rollback"], ["--store", folder.path("stores/b.sqlite")])
    #expect(back.status == 0, "\(back.messages)")
    #expect(try folder.bytes("stores/b.sqlite") == store)
  }

  @Test(arguments: [true, false])
  func `or is older than the last rollback says so until the next run`(isOlder: Bool) throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    let ledger = URL(fileURLWithPath: folder.path("ledger.sqlite"))
    let copy = try Data(contentsOf: ledger)
    #expect(try folder.godwit(["rollback"]).status == 0)
    try FileManager.default.removeItem(at: ledger)
    if isOlder { try copy.write(to: ledger) }
    _ = try folder.godwit(["status"])
    let status = try folder.godwit(["status"])
    #expect(status.status == 3, "\(status.output)")
    #expect(status.messages.contains("does not have the last rollback"), "\(status.messages)")
    #expect(try Godwit.run(folder).status == 0)
    #expect(try folder.godwit(["status"]).status == 0)
  }

  @Test(arguments: [true, false])
  func `leaves no rollback that was cut off without an end, or a word`(knows: Bool) throws {
    var cut = 0
    for step in stride(from: 60, to: 30, by: -3) where cut < 3 {
      let folder = try PipelineFolder.orders(["a"])
      let before = try folder.contentsOfStoresAlone()
      // The second run lets go of what the first one has written down in the state folder.
      for _ in 0..<2 { #expect(try Godwit.run(folder).status == 0) }
      guard try folder.godwit(["rollback"], killAfter: step).status == -SIGKILL,
        let name = try? folder.names(in: "state/rollbacks").first,
        FileManager.default.fileExists(atPath: folder.path("state/rollbacks/\(name)/journal.json"))
      else { continue }
      cut += 1
      try FileManager.default.removeItem(atPath: folder.path("ledger.sqlite"))
      let task = "state/rollbacks/\(name)/restore.json"
      if !knows { try FileManager.default.removeItem(atPath: folder.path(task)) }
      let rollback = try Godwit.run(["rollback", folder.url.path, "--json"])
      if knows {
        #expect(rollback.status == 0, "step \(step): \(rollback.messages)")
        #expect(try folder.contentsOfStoresAlone() == before, "step \(step)")
        #expect(try folder.names(in: "state/rollbacks").isEmpty)
      } else {
        #expect(rollback.status == 3, "step \(step): \(rollback.messages)")
        #expect(
          rollback.output.contains("A rollback of \(folder.path("stores/a.sqlite")) was cut off"))
        #expect(try Godwit.run(folder).messages.contains("was cut off"), "step \(step)")
      }
    }
    #expect(cut == 3)
  }

  @Test(arguments: ["marks", "kind", "state"])
  func `has a row of a backup that cannot be read, and rollback says so`(column: String) throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    let before = try folder.contentsOfStoresAlone()
    #expect(try Godwit.run(folder).status == 0)
    let ledger = try Connection(path: folder.path("ledger.sqlite"), mode: .readWrite)
    let rows = try ledger.rows("SELECT path FROM backups WHERE path LIKE '%/a.sqlite.godwit-%'")
    let backup = try #require(rows.first?.first?.text)
    try ledger.execute("UPDATE backups SET \(column) = 'x' WHERE path LIKE '%/a.sqlite.godwit-%'")
    try ledger.close()
    let list = try folder.godwit(["backups", "list"])
    #expect(
      list.lines.contains {
        $0["path"] as? String == backup && $0["state"] as? String == "unreadable"
      })
    let prune = try folder.godwit(["backups", "prune", "--keep", "0s"])
    #expect(prune.status == 0 && FileManager.default.fileExists(atPath: backup))
    let rollback = try Godwit.run(["rollback", folder.url.path, "--json"])
    #expect(rollback.status == 3, "\(rollback.output)")
    #expect(rollback.output.contains("cannot be read") && rollback.output.contains(backup))
    #expect(try folder.bytes("stores/a.sqlite") != before["a.sqlite"])
  }

  @Test func `was none, but another program's, which stays as it is`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let other = try Connection(path: folder.path("ledger.sqlite"), mode: .create)
    try other.execute("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)")
    try other.close()
    let before = try folder.bytes("ledger.sqlite")
    for words in [["run"], ["status"], ["plan"], ["rollback"], ["doctor"], ["backups", "list"]] {
      let run = try folder.godwit(words)
      #expect(run.status == 78, "\(words): \(run.output)\(run.messages)")
      #expect((run.output + run.messages).contains("of another program"), "\(words)")
    }
    #expect(try folder.bytes("ledger.sqlite") == before)
  }

  @Test(arguments: ["others may write to it", "a later version", "another name"])
  func `is not what doctor says where a run does not begin`(how: String) throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    let ledger = folder.path("ledger.sqlite")
    if how == "a later version" {
      var bytes = try folder.bytes("ledger.sqlite")
      bytes[63] = 99
      try bytes.write(to: URL(fileURLWithPath: ledger))
    } else if how == "another name" {
      #expect(link(ledger, folder.path("copy")) == 0)
    } else {
      #expect(chmod(ledger, 0o666) == 0)
    }
    let doctor = try Godwit.run(["doctor", folder.url.path])
    #expect(doctor.status == 78, "\(doctor.output)")
    #expect(doctor.output.contains("would not begin"), "\(doctor.output)")
    #expect(try Godwit.run(folder).status == 78)
  }
}

@Suite struct `What no run may pass over` {
  @Test func `are stores in its state folder`() throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    let inside = folder.path("stores/inside")
    try FileManager.default.createDirectory(atPath: inside, withIntermediateDirectories: true)
    try FileManager.default.moveItem(
      atPath: folder.path("stores/b.sqlite"), toPath: inside + "/b.sqlite")
    let run = try Godwit.run(["run", folder.url.path, "--state", inside, "--json"])
    #expect(run.status == 3, "\(run.messages)")
    #expect(run.output.contains("it is the state folder, and holds 1 file"), "\(run.output)")
    #expect(run.output.contains("b.sqlite"))
  }

  @Test func `is a folder for temporary files that is not there`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let nowhere = folder.path("nowhere")
    for words in [["plan", folder.url.path], ["plan", folder.url.path, "--samples", "0"]] {
      let plan = try Godwit.run(words, temporaryFolder: nowhere)
      #expect(plan.status == 73 && plan.messages.contains("Point TMPDIR"), "\(plan.messages)")
    }
    #expect(!FileManager.default.fileExists(atPath: nowhere))
  }

  @Test func `is a folder for temporary files that is a file`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let doctor = try Godwit.run(
      ["doctor", folder.path("stores")], temporaryFolder: folder.path("stores/a.sqlite"))
    #expect(doctor.status == 78 && doctor.output.contains("Point TMPDIR"), "\(doctor.output)")
  }

  @Test func `is an address that is none`() throws {
    let folder = try PipelineFolder.orders(["a"])
    try folder.addToPipeline("report: { ping: 'ftp://x' }")
    for word in ["plan", "run", "doctor"] {
      let run = try Godwit.run([word, folder.url.path])
      #expect(run.status == 78 && run.messages.contains("hc-ping.com"), "\(word) \(run.messages)")
    }
  }
}
