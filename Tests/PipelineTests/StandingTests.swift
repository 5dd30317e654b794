import Foundation
import GodwitSQLite
import Testing

@Suite struct `What is known of a fleet` {
  private func counts(_ folder: PipelineFolder) throws -> (status: Int32, [String: Int]) {
    let status = try folder.godwit(["status"])
    let counts = status.summary["counts"] as? [String: Any] ?? [:]
    return (status.status, counts.compactMapValues { $0 as? Int }.filter { $0.value > 0 })
  }

  private func refusedMetric(_ folder: PipelineFolder) throws -> Bool {
    String(decoding: try folder.bytes("m.prom"), as: UTF8.self)
      .contains(#"godwit_stores{pipeline="total-cost",verdict="refused"} 1"#)
  }

  private static let metrics = "report: { metrics: m.prom }"

  @Test(arguments: [["--only", "a.sqlite"], ["--only", "nobody.sqlite"]])
  func `is not what a run over some of it finds`(selection: [String]) throws {
    let folder = try PipelineFolder.orders(["a", "b"], Self.metrics)
    try folder.writeBad("c")
    #expect(try Godwit.run(folder).status == 3)
    #expect(try refusedMetric(folder))
    let run = try folder.godwit(["run"], selection)
    #expect(run.status == (selection[1] == "a.sqlite" ? 0 : 3))
    #expect(
      run.messages.contains("mean none of the pipeline's 3 stores") == (selection[1] != "a.sqlite"))
    let (status, known) = try counts(folder)
    #expect(status == 3)
    #expect(known["found"] == 3 && known["refused"] == 1)
    #expect(try refusedMetric(folder))
    #expect(try folder.godwit(["status"]).output.contains("c.sqlite"))
    // What such a run mends is mended.
    try FileManager.default.removeItem(atPath: folder.path("stores/c.sqlite"))
    try folder.writeOrder("c")
    #expect(try folder.godwit(["run"], ["--only", "c.sqlite"]).status == 0)
    let (after, all) = try counts(folder)
    #expect(after == 0 && all["found"] == 3 && all["refused"] == nil, "\(all)")
  }

  /// An alert that a start clears although nobody looked at the store is no alert.
  @Test func `stays while a start comes to no store`() throws {
    let folder = try PipelineFolder.orders(["a"], Self.metrics)
    try folder.writeBad("b")
    #expect(try Godwit.run(folder).status == 3)
    for limit in [PipelineFolder.closedWindow, "limits: { failure-budget: 0 }"] {
      try folder.set(limit + "\n" + Self.metrics)
      if limit == PipelineFolder.closedWindow { try folder.writeOrder("c") }
      #expect(try Godwit.run(folder).status != 0)
      let (status, known) = try counts(folder)
      #expect(status == 3)
      #expect(known["refused"] == 1, "\(known)")
      #expect(known["migrated"] == 1 || known["same-model"] ?? 0 >= 1, "\(known)")
      #expect(try refusedMetric(folder))
      #expect(try folder.godwit(["status"]).output.contains("b.sqlite"))
    }
  }

  @Test func `is not what a list of paths that are gone finds`() throws {
    let folder = try PipelineFolder.orders(["a"], Self.metrics)
    try folder.writeBad("b")
    #expect(try Godwit.run(folder).status == 3)
    let list = folder.path("list")
    try folder.path("stores/gone.sqlite").write(toFile: list, atomically: true, encoding: .utf8)
    let run = try folder.godwit(["run"], ["--files-from", list])
    #expect(run.status == 3 && run.messages.contains("mean none of the pipeline's 2 stores"))
    #expect(try counts(folder).status == 3)
  }

  @Test func `counts a run that is resumed over some of its stores as a whole`() throws {
    let names = (1...6).map { "s\($0)" }
    let folder = try PipelineFolder.orders(names, "workers: 1\nlimits: { failure-budget: 0 }")
    for name in names.prefix(5) { try folder.writeBad(name) }
    #expect(try Godwit.run(folder).status == 4)
    #expect(try folder.godwit(["run"], ["--only", "s6.sqlite"]).counts == "1 found, 1 migrated")
    let (status, known) = try counts(folder)
    #expect(status == 3 && known["found"] == 6 && known["migrated"] == 1)
    let report = try #require(
      try Godwit.run(["report", folder.url.path, "--format", "json"]).lines.first)
    #expect((report["counts"] as? [String: Any])?["found"] as? Int == 6)
    #expect((report["stores"] as? [Any])?.count == 6)
  }

  @Test func `forgets stores that are gone, and no store that cannot be seen`() throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    #expect(try Godwit.run(folder).status == 0)
    try FileManager.default.removeItem(atPath: folder.path("stores/b.sqlite"))
    #expect(try Godwit.run(folder).status == 0)
    #expect(try counts(folder).1["found"] == 1)
    let stores = folder.path("stores")
    try FileManager.default.moveItem(atPath: stores, toPath: folder.path("elsewhere"))
    try FileManager.default.createDirectory(
      atPath: stores, withIntermediateDirectories: false)
    let run = try Godwit.run(folder)
    #expect(run.status == 3 && run.counts == "1 found, 1 failed")
    #expect(run.messages.contains("an earlier run knows of 1"), "\(run.messages)")
    #expect("\(run.results)".contains("empty-root"))
    #expect(try counts(folder).1["found"] == 2)
    #expect(try Godwit.run(folder).status == 3, "until somebody looks")
    let fresh = try folder.godwit(["run"], ["--fresh"])
    #expect(fresh.status == 3 && fresh.counts == "1 found, 1 failed")
    #expect("\(fresh.results)".contains("no-stores"), "a pipeline that finds nothing is no success")
    #expect(try counts(folder).1["found"] == 1)
  }

  @Test func `forgets with --fresh the stores of one of several roots`() throws {
    let folder = try PipelineFolder.orders(["a/a", "b/b"])
    try folder.set("", stores: "{ roots: [stores/a, stores/b] }")
    #expect(try Godwit.run(folder).status == 0)
    try FileManager.default.removeItem(atPath: folder.path("stores/b/b.sqlite"))
    let plan = try folder.godwit(["plan"], ["--samples", "0"])
    #expect(plan.status == 3 && "\(plan.lines)".contains("empty-root"), "what a run would do")
    #expect(try Godwit.run(folder).status == 3)
    #expect(try folder.godwit(["run"], ["--fresh"]).counts == "1 found, 1 same-model")
    #expect(try Godwit.run(folder).status == 0)
    #expect(try counts(folder).status == 0)
  }

  @Test func `that was never there is no success, not even a quiet one`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let stores = "{ roots: stores, include: \"{a,b}.sqlite\" }"
    try folder.set("", stores: stores)
    for command in ["plan", "run", "run"] {
      let run = try Godwit.run([command, folder.url.path, "--quiet"])
      #expect(run.status == 3)
      let said = run.output + run.messages
      #expect(said.contains("no-stores") && said.contains(folder.path("stores")), "\(said)")
    }
    let run = try Godwit.run(folder)
    #expect(run.counts == "1 found, 1 failed")
    #expect(run.messages.contains("No store was found in \(folder.path("stores"))"))
    #expect(run.messages.contains("Brackets and braces stand for themselves"))
    #expect(try counts(folder).status == 3)
    try folder.set("")
    #expect(try Godwit.run(folder).status == 0)
    let (status, known) = try counts(folder)
    #expect(status == 0 && known["found"] == 1)
  }

  @Test func `leaves out what is called like a file of SQLite's, and says so`() throws {
    let folder = try PipelineFolder.orders(["a"])
    try FileManager.default.copyItem(
      atPath: folder.path("stores/a.sqlite"), toPath: folder.path("stores/my-journal"))
    try folder.set("", stores: "{ roots: stores, include: [a.sqlite, my-journal] }")
    let run = try Godwit.run(["run", folder.url.path, "--quiet"])
    #expect(run.status == 0)
    #expect(
      run.messages.contains(
        "warning: \(folder.path("stores/my-journal")) that stores.include names"),
      "\(run.messages)")
    let found = try Godwit.run(folder).lines.first
    #expect(found?["leftOut"] as? [String] == [folder.path("stores/my-journal")])
  }

  @Test func `has none of the stores that went while the run was under way`() throws {
    let names = (10...59).map { "s\($0)" }
    let folder = try PipelineFolder.orders(names, "workers: 1\nlimits: { failure-budget: 0 }")
    let gone = (30...34).map { folder.path("stores/s\($0).sqlite") }
    let run = try Godwit.run(
      ["run", folder.url.path, "--json"], at: #""verdict":"migrated""#
    ) { _ in
      for path in gone { try FileManager.default.removeItem(atPath: path) }
    }
    #expect(run.status == 75, "\(run.messages)")
    #expect(run.counts == "50 found, 45 migrated, 5 pending")
    for path in gone {
      let reasons = run.results[path]?["reasons"] as? [[String: Any]]
      #expect(reasons?.map { $0["reason"] as? String } == ["gone"])
    }
    #expect(try Godwit.run(folder).counts == "45 found, 45 migrated")
    #expect(try counts(folder).status == 0)
  }

  @Test func `keeps names apart that are not UTF-8`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let stores = open(folder.path("stores"), O_RDONLY | O_DIRECTORY)
    defer { close(stores) }
    for byte in [0xFE, 0xFF] {
      let name = [CChar(98), CChar(truncatingIfNeeded: byte), 0]
      try #require(mkdirat(stores, name, 0o700) == 0)
    }
    let run = try Godwit.run(folder)
    #expect(run.status == 3 && run.counts == "3 found, 1 migrated, 2 failed")
    let names = [0xFE, 0xFF].map { "$'\(folder.path("stores"))/b\\x\(String($0, radix: 16))'" }
    #expect(Set(run.results.keys).isSuperset(of: names), "\(run.results.keys)")
    let known = try counts(folder).1
    #expect(known["found"] == 3 && known["failed"] == 2)
    let report = try #require(
      try Godwit.run(["report", folder.url.path, "--format", "json"]).lines.first)
    #expect((report["stores"] as? [Any])?.count == 3)
  }

  @Test func `is not what a start outside of its window finds`() throws {
    let folder = try PipelineFolder.orders(["a", "b"], Self.metrics)
    #expect(try Godwit.run(folder).status == 0)
    try folder.set(Self.metrics + "\n" + PipelineFolder.closedWindow)
    let run = try Godwit.run(folder)
    #expect(run.status == 0 && run.counts == "2 found, 2 same-model", "\(run.messages)")
    #expect(try folder.godwit(["status"]).status == 0)
    // What an application has written to has to be looked at, and is migrated as far as is known.
    let store = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
    try store.execute("UPDATE ZORDER SET ZNUMBER = 'C'")
    try store.close()
    let late = try Godwit.run(folder)
    #expect(late.status == 75 && late.counts == "2 found, 1 same-model, 1 pending")
    let (status, known) = try counts(folder)
    #expect(status == 3, "the start has not come to its end")
    #expect(known["found"] == 2 && known["pending"] == nil, "\(known)")
    let metrics = String(decoding: try folder.bytes("m.prom"), as: UTF8.self)
    #expect(metrics.contains(#"godwit_stores{pipeline="total-cost",verdict="pending"} 0"#))
  }

  @Test func `is not what a killed start with nothing to do has come to`() throws {
    let folder = try PipelineFolder.orders(["a", "b", "c"])
    #expect(try Godwit.run(folder).status == 0)
    var interrupted = 0
    // Between the begin and the end of such a run nothing is written that a step could be counted by.
    for _ in 0..<20 where interrupted == 0 {
      _ = try Godwit.run(["run", folder.url.path, "--json"], at: "{") { kill($0, SIGKILL) }
      let status = try folder.godwit(["status"])
      guard status.summary["state"] as? String == "interrupted" else { continue }
      interrupted += 1
      let counts = status.summary["counts"] as? [String: Any]
      #expect(counts?["found"] as? Int == 3 && counts?["pending"] as? Int == 0)
      let ofRun = status.summary["runCounts"] as? [String: Any]
      #expect(ofRun?["pending"] as? Int == 0)
      let report = try Godwit.run(["report", folder.url.path, "--format", "json"]).lines.first
      #expect((report?["failures"] as? [Any])?.isEmpty == true)
    }
    #expect(interrupted > 0)
  }

  @Test func `and of a resumed run is without stores that are gone since`() throws {
    // So many that some are left when the first one's failure stops the run.
    let folder = try PipelineFolder.orders(
      ["a"] + (1...30).map { "b\($0)" }, "limits: { failure-budget: 0 }\nworkers: 1")
    try folder.writeBad("a")
    #expect(try Godwit.run(folder).status == 4)
    try FileManager.default.removeItem(atPath: folder.path("stores/a.sqlite"))
    #expect(try Godwit.run(folder).status == 0)
    let report = try #require(
      try Godwit.run(["report", folder.url.path, "--format", "json"]).lines.first)
    #expect((report["counts"] as? [String: Any])?["found"] as? Int == 30)
    #expect((report["stores"] as? [Any])?.count == 30)
    #expect((report["failures"] as? [Any])?.isEmpty == true)
    let history = try folder.godwit(["history"], [folder.path("stores/a.sqlite")])
    let verdicts = history.lines.map { ($0["attempt"] as? [String: Any])?["verdict"] as? String }
    #expect(verdicts == ["refused", "gone"])
  }

  @Test func `takes a rollback and what comes after it into account`() throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    #expect(try Godwit.run(folder).status == 0)
    #expect(try folder.godwit(["rollback"]).status == 0)
    let status = try folder.godwit(["status"])
    #expect(status.status == 3 && status.summary["rolledBack"] as? Int == 2)
    let known = try counts(folder).1
    #expect(known["restored"] == 2 && known["migrated"] == nil, "\(known)")
    let page = try Godwit.run(["report", folder.url.path, "--format", "html"]).output
    #expect(page.contains("<h1>0 of 2 stores are at") && page.contains("put 2 stores back since"))
    #expect(try folder.godwit(["run"], ["--only", "a.sqlite"]).status == 0)
    let later = try folder.godwit(["status"])
    #expect(later.status == 3 && later.summary["rolledBack"] as? Int == 1)
    #expect(try Godwit.run(folder).status == 0)
    #expect(try folder.godwit(["status"]).status == 0)
  }

  @Test func `names a store once, when its third failure quarantines it`() throws {
    let folder = try PipelineFolder.orders(["a"])
    try folder.writeBad("b")
    for _ in 0..<3 { #expect(try Godwit.run(folder).status == 3) }
    let failed = try folder.godwit(["status"])
    let groups = failed.summary["failures"] as? [[String: Any]]
    #expect(groups?.map { $0["verdict"] as? String } == ["refused"])
    #expect(failed.summary["quarantined"] as? Int == 1)
    #expect(
      try Godwit.run(["status", folder.url.path]).output.contains(
        "1 of those that failed is quarantined"))
    #expect(try Godwit.run(folder).counts == "2 found, 1 same-model, 1 quarantined")
    let after = try folder.godwit(["status"]).summary["failures"] as? [[String: Any]]
    #expect(after?.map { $0["verdict"] as? String } == ["quarantined"])
    #expect(after?.first?["count"] as? Int == 1)
  }

  @Test func `has one result for each store of a run that stopped, everywhere`() throws {
    let names = (1...7).map { "s\($0)" }
    let folder = try PipelineFolder.orders(names, "workers: 1\nlimits: { failure-budget: 10% }")
    for name in ["b1", "b2", "b3"] { try folder.writeBad(name) }
    let run = try Godwit.run(folder)
    #expect(run.status == 4)
    #expect(run.results.count == 10 && run.lines("result").count == 10)
    let pending = run.results.values.filter { $0["verdict"] as? String == "pending" }
    #expect(pending.count == run.summary["pending"] as? Int && !pending.isEmpty)
    let reasons = try #require(run.summary["reasons"] as? [[String: Any]])
    let stopped = reasons.filter { $0["reason"] as? String == "stopped" }
    #expect(stopped.map { $0["count"] as? Int } == [pending.count])
    let groups = try #require(
      try folder.godwit(["status"]).summary["failures"] as? [[String: Any]])
    let waiting = groups.filter { $0["verdict"] as? String == "pending" }
    #expect(waiting.map { $0["count"] as? Int } == [pending.count])
    #expect((waiting.first?["examples"] as? [String])?.count == min(3, pending.count))
    let report = try #require(
      try Godwit.run(["report", folder.url.path, "--format", "json"]).lines.first)
    #expect((report["stores"] as? [Any])?.count == 10)
    let junit = try Godwit.run(["report", folder.url.path, "--format", "junit"]).output
    #expect(junit.contains("tests=\"10\"") && junit.contains("skipped=\"\(pending.count)\""))
  }

  @Test func `of a run that goes on tells that it does, or why not`() throws {
    let folder = try PipelineFolder.orders(["a", "b", "c"], "limits: { io: 1KiB/s }\nworkers: 1")
    var status: [Godwit.Run] = []
    let run = try Godwit.run(["run", folder.url.path, "--json"], at: #""event":"plan""#) { _ in
      status.append(try Godwit.run(["status", folder.url.path]))
      _ = try Godwit.run(["control", folder.url.path, "pause"])
      for _ in 0..<200 where status.last?.output.contains("paused") != true {
        status.append(try Godwit.run(["status", folder.url.path]))
      }
      _ = try Godwit.run(["control", folder.url.path, "limit", "io=none"])
      _ = try Godwit.run(["control", folder.url.path, "resume"])
    }
    #expect(run.status == 0)
    #expect(status.count > 1 && status.allSatisfy { $0.output.contains("running since") })
    #expect(status.allSatisfy { !$0.output.contains("same command") }, "\(status[0].output)")
    #expect(status.last?.output.contains("paused") == true)
  }
}

@Suite struct `A start that fails before it has a result` {
  /// A program of the name of `curl` that notes what it is to call.
  private func calls(_ folder: PipelineFolder) throws -> String {
    try folder.program("curl", "grep ^url >>'\(folder.path("calls"))'")
  }

  enum Fault: String, CaseIterable { case model, root, state, plan, selection }

  private static let keys = "report: { metrics: m.prom, ping: \"https://ping.invalid/x\" }"

  @Test(arguments: Fault.allCases) func `is told like any other`(fault: Fault) throws {
    let folder = try PipelineFolder.orders(["a"], Self.keys)
    let bin = try calls(folder)
    func run(_ words: [String] = []) throws -> Godwit.Run {
      try Godwit.run(["run", folder.url.path] + words, programs: bin)
    }
    if fault != .root {
      #expect(try run().status == 0)
      #expect(try folder.godwit(["status"]).status == 0)
    }
    try? FileManager.default.removeItem(atPath: folder.path("calls"))
    var words: [String] = []
    var code: Int32 = 65
    switch fault {
    case .model: try folder.set(Self.keys + "\ndestination: Nope")
    case .root:
      try folder.set(Self.keys, stores: "{ roots: nowhere }")
      code = 78
    case .state:
      try FileManager.default.setAttributes(
        [.posixPermissions: 0o777], ofItemAtPath: folder.path("state"))
      code = 78
    case .plan:
      words = ["--plan", folder.path("fleet.plan")]
      #expect(try folder.godwit(["plan"], ["--samples", "0", "--out", words[1]]).status == 0)
      try folder.writeOrder("b")
    case .selection: words = ["--files-from", folder.path("nothing")]
    }
    #expect(try run(words).status == code)
    let calls = String(decoding: try folder.bytes("calls"), as: UTF8.self)
    #expect(
      calls.split(separator: "\n") == [
        "url = \"https://ping.invalid/x/start\"", "url = \"https://ping.invalid/x/fail\"",
      ])
    let metrics = String(decoding: try folder.bytes("m.prom"), as: UTF8.self)
    #expect(metrics.contains("godwit_run_exit_code{pipeline=\"total-cost\"} \(code)"))
    let status = try folder.godwit(["status"])
    #expect(status.status == 3)
    #expect((status.summary["run"] as? [String: Any])?["exitCode"] as? Int == Int(code))
    let found = (status.summary["counts"] as? [String: Any])?["found"] as? Int
    #expect(found == (fault == .root ? 0 : 1), "what is known of the stores stays")
    #expect(
      try folder.godwit(["history"]).lines.map { $0["exitCode"] as? Int }
        == [Int(code)] + (fault == .root ? [] : [0]))
  }

  @Test func `says so where its history lies in a state folder that is not to be trusted`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let words = ["run", folder.url.path, "--state", folder.path("elsewhere")]
    #expect(try Godwit.run(words).status == 0)
    let ledger = try folder.bytes("elsewhere/ledger.sqlite")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o777], ofItemAtPath: folder.path("elsewhere"))
    let run = try Godwit.run(words)
    #expect(run.status == 78 && run.messages.contains("The ledger does not know of this start"))
    #expect(try folder.bytes("elsewhere/ledger.sqlite") == ledger)
  }

  @Test func `because another one is going on calls nobody`() throws {
    let folder = try PipelineFolder.orders(["a"], Self.keys + "\nlimits: { io: 1KiB/s }")
    let bin = try calls(folder)
    var seen: [Substring] = []
    func called() throws -> [Substring] {
      String(decoding: try folder.bytes("calls"), as: UTF8.self).split(separator: "\n")
    }
    let run = try Godwit.run(
      ["run", folder.url.path, "--json"], at: #""event":"plan""#, programs: bin
    ) { _ in
      let second = try Godwit.run(["run", folder.url.path], programs: bin)
      #expect(second.status == 11, "\(second.messages)")
      seen = try called()
      _ = try Godwit.run(["control", folder.url.path, "limit", "io=none"])
    }
    #expect(run.status == 0)
    #expect(seen == ["url = \"https://ping.invalid/x/start\""])
    #expect(try called() == seen + ["url = \"https://ping.invalid/x\""])
  }

  /// While a service that is to be told does not answer.
  @Test(arguments: [Int32(0), 78])
  func `like one that ends well, is not stopped any more once it has ended`(code: Int32) throws {
    let folder = try PipelineFolder.orders(["a"])
    try folder.set(Self.keys, stores: code == 0 ? "{ roots: stores }" : "{ roots: nowhere }")
    let called = folder.path("called")
    let bin = try folder.program(
      "curl", "grep -q /start && exit\n: >'\(called)'\nexec sleep 20")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Godwit.path)
    process.arguments = ["run", folder.url.path]
    process.environment = ProcessInfo.processInfo.environment
    process.environment?["PATH"] = bin + ":/usr/bin:/bin"
    let messages = folder.path("messages")
    try Data().write(to: URL(fileURLWithPath: messages))
    process.standardOutput = FileHandle.nullDevice
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: messages))
    try process.run()
    let end = Date(timeIntervalSinceNow: 60)
    while !FileManager.default.fileExists(atPath: called), Date() < end {
      Thread.sleep(forTimeInterval: 0.02)
    }
    process.terminate()
    Thread.sleep(forTimeInterval: 0.2)
    process.terminate()
    process.waitUntilExit()
    #expect(process.terminationReason == .exit && process.terminationStatus == code)
    let said = String(decoding: try folder.bytes("messages"), as: UTF8.self)
    #expect(!said.contains("Stopping"), "\(said)")
    #expect(try folder.godwit(["history"]).lines.map { $0["exitCode"] as? Int } == [Int(code)])
  }

  @Test func `belongs to the run that the next start resumes`() throws {
    // So many that some are left when the first one's failure stops the run.
    let folder = try PipelineFolder.orders(
      ["a"] + (1...30).map { "b\($0)" }, "limits: { failure-budget: 0 }\nworkers: 1")
    try folder.writeBad("a")
    #expect(try Godwit.run(folder).status == 4)
    try folder.set("destination: Nope")
    #expect(try Godwit.run(folder).status == 65)
    let run = try #require(try folder.godwit(["history"]).lines.first)
    #expect(run["exitCode"] as? Int == 65 && run["starts"] as? Int == 2)
    #expect((run["counts"] as? [String: Any])?["found"] as? Int == 31)
    try folder.set("")
    #expect(try Godwit.run(folder).status == 3)
    #expect(try folder.godwit(["history"]).lines.map { $0["starts"] as? Int } == [3])
  }
}
