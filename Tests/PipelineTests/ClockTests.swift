import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `A clock that was set` {
  private func backups(_ folder: PipelineFolder) -> Int {
    folder.storeFiles().count { $0.contains(".godwit-backup-") }
  }

  /// As if all that the ledger knows had been so much earlier by the clock.
  private func shift(_ folder: PipelineFolder, days: Double) throws {
    let connection = try Connection(path: folder.path("ledger.sqlite"), mode: .readWrite)
    let seconds = days * 86_400
    try connection.execute(
      """
      UPDATE backups SET made = made - \(seconds), changed = changed - \(seconds);
      UPDATE runs SET started = started - \(seconds), ended = ended - \(seconds);
      UPDATE starts SET time = time - \(seconds);
      """)
    try connection.close()
  }

  @Test func `removes no backup until later starts have shown that the time has passed`() throws {
    let folder = try PipelineFolder.orders(["a", "b"], "backups: { keep: 14d }")
    #expect(try Godwit.run(folder).status == 0)
    try shift(folder, days: 365)
    let first = try Godwit.run(folder)
    #expect(first.status == 0 && backups(folder) == 2)
    #expect(first.messages.contains("2 backups look too old and stay"), "\(first.messages)")
    #expect(first.messages.contains("the start before this one was 365 d ago"))
    // They are as old as the start after the jump.
    try shift(folder, days: 13)
    #expect(try !Godwit.run(folder).messages.contains("look too old"), "that is said once")
    #expect(backups(folder) == 2)
    try shift(folder, days: 2)
    let last = try Godwit.run(folder)
    #expect(last.summary["pruned-backups"] as? Int == 2 && backups(folder) == 0)
  }

  @Test func `is none where nobody ran the pipeline for some weeks`() throws {
    let folder = try PipelineFolder.orders(["a", "b"], "backups: { keep: 14d }")
    #expect(try Godwit.run(folder).status == 0)
    try shift(folder, days: 21)
    #expect(try Godwit.run(folder).summary["pruned-backups"] as? Int == 2)
  }

  @Test func `removes none for a start in the future, and neither the next one`() throws {
    let folder = try PipelineFolder.orders(["a", "b"], "backups: { keep: 14d }")
    #expect(try Godwit.run(folder).status == 0)
    try shift(folder, days: 1)
    #expect(try Godwit.run(folder).status == 0)
    // The start that follows believes to be a year later, and the one after that does not.
    for days in [365.0, -364] {
      try shift(folder, days: days)
      #expect(try Godwit.run(folder).status == 0)
      #expect(backups(folder) == 2)
    }
    #expect(try folder.godwit(["rollback"]).summary["restored"] as? Int == 2)
  }

  @Test func `removes what is not kept at all, and what is too much, all the same`() throws {
    for options in [["--keep", "0s"], ["--max", "1B"]] {
      let folder = try PipelineFolder.orders()
      #expect(try Godwit.run(folder).status == 0)
      try shift(folder, days: -365)
      let prune = try folder.godwit(["backups", "prune"], options)
      #expect(prune.summary["pruned"] as? Int == 2, "\(options)")
    }
  }
}

@Suite struct `A backup that the ledger does not list` {
  @Test func `is found beside its store, and left alone`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    for name in ["state", "ledger.sqlite"] {
      try FileManager.default.removeItem(atPath: folder.path(name))
    }
    #expect(try Godwit.run(folder).counts == "2 found, 2 same-model")
    let list = try folder.godwit(["backups", "list"])
    #expect(list.lines("backup").map { $0["state"] as? String } == ["unlisted", "unlisted"])
    #expect(list.lines("backup").allSatisfy { $0["run"] == nil })
    #expect(
      list.lines("backup").map { $0["store"] as? String } == [
        folder.path("stores/a.sqlite"), folder.path("stores/b.sqlite"),
      ])
    #expect(list.summary["backups"] as? Int == 0 && list.summary["unlisted"] as? Int == 2)
    let files = folder.storeFiles()
    #expect(try folder.godwit(["backups", "prune"], ["--keep", "0s"]).status == 0)
    #expect(folder.storeFiles() == files)
  }

  @Test func `is none that it lists`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    #expect(try folder.godwit(["rollback"]).status == 0)
    let list = try folder.godwit(["backups", "list"])
    #expect(list.summary["backups"] as? Int == 4 && list.summary["unlisted"] as? Int == 0)
  }

  /// Another user's files need a privileged one.
  @Test(.enabled(if: geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0))
  func `is not left by a run that may not replace the store`() throws {
    let folder = try PipelineFolder.orders(["a"], "")
    try folder.set("", stores: "{ roots: stores, in-use: offline }")
    // Written by all, renamed by their owners alone.
    let (user, stores) = (gid_t(65_534), folder.path("stores"))
    let walk = FileManager.default.enumerator(atPath: folder.root.path)
    for name in [""] + (walk?.compactMap { $0 as? String } ?? []) {
      #expect(chown(folder.root.path + "/" + name, user, user) == 0)
    }
    #expect(chown(stores, 0, 0) == 0 && chmod(stores, 0o1777) == 0)
    #expect(chown(stores + "/a.sqlite", 0, 0) == 0 && chmod(stores + "/a.sqlite", 0o666) == 0)
    let wrapper = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    let before = try folder.storeContents()
    for _ in 0..<2 {
      let run = try Godwit.run(["run", folder.url.path, "--json"], wrapper: wrapper)
      #expect(run.counts == "1 found, 1 failed", "\(run.messages)")
      #expect(run.reason(of: "a") == "output" && run.messages.contains("sticky"))
      #expect(try folder.storeContents() == before)
    }
    let doctor = try Godwit.run(["doctor", folder.url.path], wrapper: wrapper)
    #expect(doctor.output.contains("sticky"), "\(doctor.output)")
  }

  @Test func `and somebody else removed is not said to be removed by a command`() throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    let backup = try #require(folder.storeFiles().first { $0.contains(".godwit-backup-") })
    try FileManager.default.removeItem(atPath: folder.path("stores/" + backup))
    #expect(
      try folder.godwit(["backups", "prune"], ["--keep", "0s"]).summary["missing"] as? Int == 1)
    let history = try folder.godwit(["history"], [folder.path("stores/a.sqlite")])
    #expect(history.lines("backup").map { $0["state"] as? String } == ["missing"])
    #expect(try folder.godwit(["backups", "list"]).lines("backup").isEmpty)
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 3 && rollback.reason(of: "a") == "no-backup")
    #expect(!rollback.messages.contains("removed by `backups prune`"), "\(rollback.messages)")
  }
}

@Suite struct `A rollback that is stopped` {
  @Test func `says so in the history, and is finished by the same command`() throws {
    let names = (1...96).map { "s\($0)" }
    let folder = try PipelineFolder.orders(names)
    #expect(try Godwit.run(folder).status == 0)
    let stopped = try Godwit.run(
      ["rollback", folder.url.path, "--json"], stopAt: #""verdict":"restored""#)
    try #require(stopped.status == 75, "\(stopped.messages)")
    let restored = stopped.lines("result").count { $0["verdict"] as? String == "restored" }
    #expect(restored > 0 && restored < 96)
    let left = stopped.lines("result").count { $0["verdict"] as? String == "pending" }
    let summary = stopped.summary
    #expect(summary["event"] as? String == "summary" && summary["found"] as? Int == 96)
    #expect(restored + left == 96 && summary["pending"] as? Int == left, "\(summary)")
    let history = try folder.godwit(["history"])
    #expect(history.lines.map { $0["exitCode"] as? Int } == [75, 0])
    let counts = history.lines.first?["counts"] as? [String: Any]
    #expect(counts?["found"] as? Int == 96 && counts?["pending"] as? Int == left)
    let name = try #require(summary["rollback"] as? String)
    func report(_ format: String) throws -> Godwit.Run {
      try Godwit.run(["report", folder.url.path, "--run", name, "--format", format])
    }
    #expect(try report("html").output.contains("<h1>\(restored) of 96 stores "))
    #expect(
      try report("junit").output.contains(
        "tests=\"96\" failures=\"0\" errors=\"0\" skipped=\"\(left)\""))
    let rest = try folder.godwit(["rollback"])
    #expect(rest.status == 0 && rest.summary["restored"] as? Int == 96 - restored)
    #expect(
      try folder.godwit(["history"]).lines.map { $0["exitCode"] as? Int } == [0, 75, 0])
  }

  @Test func `after its last store has ended as if nobody had stopped it`() throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    #expect(try Godwit.run(folder).status == 0)
    let rollback = try Godwit.run(
      ["rollback", folder.url.path, "--json"], stopAt: #""verdict":"restored""#)
    #expect(rollback.status == 0 && rollback.summary["restored"] as? Int == 2)
    #expect(
      try folder.godwit(["history"]).lines.map { $0["exitCode"] as? Int } == [0, 0])
  }
}
