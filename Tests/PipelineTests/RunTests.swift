import Foundation
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `godwit run` {
  /// Two stores of one order each.
  private func orders(_ stores: [String] = ["a", "b"]) throws -> PipelineFolder {
    let folder = try PipelineFolder("total-cost")
    for name in stores { try writeOrder(to: "stores/\(name).sqlite", in: folder) }
    return folder
  }

  private func writeOrder(to store: String, in folder: PipelineFolder) throws {
    try folder.write(
      store, "Orders.xcdatamodeld/Orders",
      "INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) VALUES (1, 1, 1, 'A', 5)")
  }

  private func write(_ pipeline: String, to folder: PipelineFolder) throws {
    try pipeline.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
  }

  @Test func `says a result line for each store, and a summary that adds up`() throws {
    let folder = try orders(["a", "b", "c"])
    try Data("no store".utf8).write(to: URL(fileURLWithPath: folder.path("stores/b.sqlite")))
    let run = try Godwit.run(folder)
    #expect(run.status == 3, "one bad store does not stop the others")
    #expect(run.counts == "3 found, 2 migrated, 1 refused")
    #expect(run.results.count == 3)
    #expect(run.lines.first?["event"] as? String == "pipeline")
    #expect(run.lines.first?["stores"] as? Int == 3)
    #expect(run.summary["event"] as? String == "summary")
    let plans = run.lines("plan")
    #expect(plans.count == 2 && plans.allSatisfy { ($0["store"] as? String)?.isEmpty == false })
    let stages = run.results[folder.path("stores/a.sqlite")]?["stages"] as? [[String: Any]]
    #expect(stages?.contains { $0["stage"] as? String == "commit" } == true)
    #expect(try folder.bytes("stores/b.sqlite") == Data("no store".utf8))
  }

  /// What is done to a sound store's bytes: lost, torn, or never a store's.
  @Test(arguments: ["no store", "nothing", "a page of zeros", "the last page", "half a header"])
  func `says the same of a damaged store as migrate does`(damage: String) throws {
    let folder = try orders(["a"])
    let store = URL(fileURLWithPath: folder.path("stores/a.sqlite"))
    var bytes = try Data(contentsOf: store)
    switch damage {
    case "no store": bytes = Data("no store".utf8)
    case "nothing": bytes = Data()
    case "a page of zeros": bytes.replaceSubrange(8192..<12288, with: Data(count: 4096))
    case "the last page": bytes.removeLast(4096)
    default: bytes.replaceSubrange(16..<60, with: Data(count: 44))  // half a header
    }
    try bytes.write(to: store)
    func verdict(_ lines: [[String: Any]]) throws -> [String] {
      let result = try #require(lines.last { $0["event"] as? String == "result" })
      let reasons = result["reasons"] as? [[String: Any]] ?? []
      return ["\(result["verdict"] ?? "")", "\(result["code"] ?? "")"]
        + reasons.map { "\($0["reason"] ?? ""): \($0["message"] ?? "")" }
    }
    let alone = try Godwit.run([
      "migrate", store.path, "--models", folder.path("Orders.xcdatamodeld"), "--mapping",
      folder.path("orders.mapping.yaml"), "--json", "--output", folder.path("out.sqlite"),
    ])
    let run = try Godwit.run(folder)
    #expect(try verdict(run.lines) == verdict(alone.lines))
    #expect(try Data(contentsOf: store) == bytes)
  }

  @Test func `does nothing twice`() throws {
    let folder = try orders()
    #expect(try Godwit.run(folder).counts == "2 found, 2 migrated")
    let after = folder.storeFiles()
    let again = try Godwit.run(folder)
    #expect(again.status == 0)
    #expect(again.counts == "2 found, 2 same-model")
    #expect(folder.storeFiles() == after)
  }

  @Test func `goes on with an interrupted run, and counts what was done before`() throws {
    // So many that they are not committed together, and one worker, so that one comes after the other.
    let folder = try orders((1...12).map { "store-\($0)" })
    let text = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
    try write(text + "workers: 1\n", to: folder)
    var step = 20
    var killed = try Godwit.run(folder, killAfter: step)
    while killed.status == -SIGKILL, !killed.results.values.contains(where: isMigrated) {
      step += 4
      killed = try Godwit.run(folder, killAfter: step)
    }
    try #require(killed.status == -SIGKILL, "there must be something left to do")
    let run = try Godwit.run(folder)
    #expect(run.status == 0)
    #expect(run.counts == "12 found, 12 migrated")
    #expect(run.summary["resumed"] as? Bool == true)
    #expect((run.summary["earlier"] as? Int ?? 0) > 0)
    #expect(killed.lines.first?["run"] as? String == run.summary["run"] as? String)
  }

  @Test(arguments: [1, 2])
  func `stops early at a signal, and goes on when run again`(signals: Int) throws {
    let names = (1...12).map { "store-\($0)" }
    let folder = try orders(names)
    let text = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
    try write(text + "workers: 1\n", to: folder)
    let stopped = try Godwit.run(
      ["run", folder.url.path, "--json"], stopAt: #""verdict":"migrated""#, signals: signals)
    #expect(stopped.status == 75)
    #expect(stopped.summary["event"] as? String == "summary")
    #expect(stopped.lines.count { $0["event"] as? String == "summary" } == 1)
    let left = stopped.summary["pending"] as? Int ?? 0
    #expect(left > 0 && stopped.summary["failed"] as? Int == 0)
    #expect(stopped.summary["migrated"] as? Int == 12 - left)
    let run = try Godwit.run(folder)
    #expect(run.status == 0)
    #expect(run.counts == "12 found, 12 migrated")
    #expect((run.summary["earlier"] as? Int ?? 0) >= 12 - left)
  }

  /// A terminal that is closed; but not for what `nohup` started.
  @Test(arguments: [false, true])
  func `stops early when its terminal is closed, unless it is to go on`(isIgnored: Bool) throws {
    let names = (1...30).map { "store-\($0)" }
    let folder = try orders(names)
    let text = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
    try write(text + "workers: 1\nreport: { metrics: m.prom }\n", to: folder)
    let run = try Godwit.run(
      ["run", folder.url.path, "--json"], at: #""verdict":"migrated""#,
      wrapper: ["/usr/bin/env", isIgnored ? "--ignore-signal=HUP" : "--default-signal=HUP"]
    ) { kill($0, SIGHUP) }
    #expect(run.status == (isIgnored ? 0 : 75), "\(run.messages)")
    #expect(run.summary["event"] as? String == "summary")
    #expect((run.summary["pending"] as? Int == 0) == isIgnored)
    #expect(try folder.bytes("m.prom").isEmpty == false, "whoever waits for the run hears of it")
  }

  @Test(arguments: ["replace", "{ beside: -2 }"])
  func `goes through versions between, and is killed on the way`(commit: String) throws {
    let folder = try orders()
    // A third version, inferred from the second, which only the mapping model leads to.
    let second = try folder.bytes("Orders.xcdatamodeld/Orders 2.xcdatamodel/contents")
    let third = String(decoding: second, as: UTF8.self).replacingOccurrences(
      of: "</entity>",
      with: #"<attribute name="remark" optional="YES" attributeType="String"/></entity>"#)
    let model = folder.path("Orders.xcdatamodeld/Orders 3.xcdatamodel")
    try FileManager.default.createDirectory(atPath: model, withIntermediateDirectories: true)
    try third.write(toFile: model + "/contents", atomically: true, encoding: .utf8)
    // Names alone would fit the second step, too.
    let first = try FixtureModels.model(at: folder.path("Orders.xcdatamodeld/Orders.xcdatamodel"))
    let hash = try #require(try EntityHierarchy(first).versionHashes["Order"])
    let mapping = String(decoding: try folder.bytes("orders.mapping.yaml"), as: UTF8.self)
      .replacingOccurrences(
        of: "source: Order\n",
        with: "source: Order\n    source-hash: \(Data(hash.bytes).base64EncodedString())\n")
    try mapping.write(
      toFile: folder.path("orders.mapping.yaml"), atomically: true, encoding: .utf8)
    try write(
      """
      stores: { roots: stores }
      models: Orders.xcdatamodeld
      destination: Orders 3
      mappings: orders.mapping.yaml
      chain: progressive
      commit: \(commit)
      """, to: folder)
    var (kills, step) = (0, 11)
    var run = try Godwit.run(folder, killAfter: step)
    while run.status == -SIGKILL {
      (kills, step) = (kills + 1, step + 40 + step / 6)
      run = try Godwit.run(folder, killAfter: step)
    }
    #expect(kills > 0)
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.counts == "2 found, 2 migrated")
    for name in commit == "replace" ? ["a", "b"] : ["a-2", "b-2"] {
      #expect(
        try folder.table("stores/\(name).sqlite", "SELECT ZNUMBER, ZTOTALCOST, ZREMARK FROM ZORDER")
          == ["A 5.0 -"])
    }
    let again = try Godwit.run(folder)
    #expect(again.counts == (commit == "replace" ? "2 found, 2 same-model" : "2 found, 2 migrated"))
  }

  private func isMigrated(_ result: [String: Any]) -> Bool {
    result["verdict"] as? String == "migrated"
  }

  @Test(arguments: [[], ["--fresh"]])
  func `takes no other file in the place of an output for its own`(options: [String]) throws {
    let folder = try PipelineFolder.orders(["a"], "commit: { beside: -2 }")
    #expect(try Godwit.run(folder).counts == "1 found, 1 migrated")
    try folder.bytes("stores/a.sqlite")
      .write(to: URL(fileURLWithPath: folder.path("stores/a-2.sqlite")))
    let run = try folder.godwit(["run"], options)
    #expect(run.status == 3 && run.reason(of: "a") == "output", "\(run.messages)")
  }

  @Test func `takes none either where its clock was a day ahead, and is right since`() throws {
    let folder = try PipelineFolder.orders(["a"], "commit: { beside: -2 }")
    #expect(try Godwit.run(folder).counts == "1 found, 1 migrated")
    let lines = String(decoding: try folder.bytes("state/ledger.jsonl"), as: UTF8.self)
      .replacing(/,"digest":"[0-9a-f]{64}"}\n/, with: "}\n")
    let ahead = lines.replacing(/"time":[0-9.]+/, with: "\"time\":\(time(nil) + 86_400)")
    try #require(ahead != lines)
    try ahead.write(
      toFile: folder.path("state/ledger.jsonl"), atomically: true, encoding: .utf8)
    #expect(try Godwit.run(folder).counts == "1 found, 1 migrated")
    try folder.bytes("stores/a.sqlite")
      .write(to: URL(fileURLWithPath: folder.path("stores/a-2.sqlite")))
    let run = try Godwit.run(folder)
    #expect(run.status == 3 && run.reason(of: "a") == "output", "\(run.messages)")
  }

  @Test func `knows an output beside its store as its own, until the store changes`() throws {
    let folder = try PipelineFolder("celsius")
    try folder.write(
      "stores/w.sqlite", "Weather.xcdatamodeld/Weather",
      """
      INSERT INTO ZREADING (Z_PK, Z_ENT, Z_OPT, ZPLACE, ZTEMPERATURE) VALUES (1, 1, 1, 'Imst', 50)
      """)
    #expect(try Godwit.run(folder).counts == "1 found, 1 migrated")
    let output = try folder.bytes("stores/w-celsius.sqlite")
    let again = try Godwit.run(folder)
    #expect(again.status == 0)
    #expect(again.counts == "1 found, 1 migrated", "the output is no store of the pipeline's")
    #expect(again.summary["earlier"] as? Int == 1)

    let store = try Connection(path: folder.path("stores/w.sqlite"), mode: .readWrite)
    try store.execute("UPDATE ZREADING SET ZTEMPERATURE = 60")
    try store.close()
    let later = try Godwit.run(folder)
    #expect(later.status == 3, "an output is never overwritten")
    #expect("\(later.results)".contains("already exists"))
    #expect(try folder.bytes("stores/w-celsius.sqlite") == output)
  }

  @Test func `does not take a stranger's file for its output`() throws {
    let folder = try PipelineFolder("celsius")
    try folder.write("stores/w.sqlite", "Weather.xcdatamodeld/Weather", "SELECT 1")
    // Not of the pipeline's making, so not known to it.
    try Data("precious".utf8).write(
      to: URL(fileURLWithPath: folder.path("stores/w-celsius.sqlite")))
    #expect(try Godwit.run(folder).status == 3)
    #expect(try folder.bytes("stores/w-celsius.sqlite") == Data("precious".utf8))
  }

  @Test func `follows no link, and opens nothing outside a root`() throws {
    let folder = try orders(["a"])
    let files = FileManager.default
    try writeOrder(to: "elsewhere/b.sqlite", in: folder)
    let before = try folder.bytes("elsewhere/b.sqlite")
    try files.createSymbolicLink(
      atPath: folder.path("stores/folder"), withDestinationPath: folder.path("elsewhere"))
    try files.createSymbolicLink(
      atPath: folder.path("stores/b.sqlite"), withDestinationPath: folder.path("elsewhere/b.sqlite")
    )
    // A store whose write-ahead log leads outside.
    try writeOrder(to: "stores/c.sqlite", in: folder)
    try Data("log".utf8).write(to: URL(fileURLWithPath: folder.path("elsewhere/log")))
    try files.createSymbolicLink(
      atPath: folder.path("stores/c.sqlite-wal"), withDestinationPath: folder.path("elsewhere/log"))
    let run = try Godwit.run(folder)
    #expect(run.status == 3)
    #expect(run.counts == "2 found, 1 migrated, 1 refused")
    #expect(run.lines.first?["links"] as? Int == 2)
    #expect("\(run.results)".contains("symbolic link"))
    #expect(try folder.bytes("elsewhere/b.sqlite") == before)
    #expect(try folder.names(in: "elsewhere") == ["b.sqlite", "log"])
  }

  @Test func `gives way to a run in the same state folder`() throws {
    let folder = try orders()
    #expect(try Godwit.run(folder).status == 0)
    let lock = open(folder.path("state/lock"), O_RDWR | O_CLOEXEC)
    try #require(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
    defer { close(lock) }
    let run = try Godwit.run(folder)
    #expect(run.status == 11)
    #expect(run.messages.contains("Another run"))
  }

  @Test(arguments: [
    (text: "stores: { roots: stores }\nmodels: Orders.xcdatamodeld\nmapings: x", said: "line 3"),
    (text: "stores: { roots: stores }", said: "models"),
    (
      text: "stores: { roots: stores }\nmodels: Orders.xcdatamodeld\nengine: x",
      said: "local, slurm"
    ),
    (text: "stores: { roots: nowhere }\nmodels: Orders.xcdatamodeld", said: "nowhere"),
    (text: "", said: "empty"),
  ])
  func `ends with 78 where the file cannot be run`(text: String, said: String) throws {
    let folder = try orders()
    let files = folder.storeFiles()
    try write(text, to: folder)
    for command in ["run", "plan"] {
      let run = try Godwit.run([command, folder.url.path])
      #expect(run.status == 78)
      #expect(run.messages.contains(said), "\(run.messages)")
    }
    #expect(folder.storeFiles() == files)
  }

  @Test(arguments: [
    (text: "models: Nowhere.xcdatamodeld", said: "Nowhere"),
    (text: "models: Orders.xcdatamodeld\ndestination: Orders 3", said: "Orders 3"),
    (text: "models: Orders.xcdatamodeld\nmappings: nowhere.yaml", said: "nowhere.yaml"),
  ])
  func `ends with 65 where a model or mapping model is not good enough`(
    text: String, said: String
  ) throws {
    let folder = try orders()
    try write("stores: { roots: stores }\n" + text, to: folder)
    let run = try Godwit.run(folder)
    #expect(run.status == 65)
    #expect(run.messages.contains(said), "\(run.messages)")
  }

  @Test func `finds no store and says so`() throws {
    let folder = try orders([])
    let run = try Godwit.run(folder)
    #expect(run.status == 3)
    #expect(run.counts == "1 found, 1 failed")
    #expect(run.messages.contains("No store was found in"))
  }

  @Test func `has a plan that changes nothing`() throws {
    let folder = try orders()
    let before = try folder.bytes("stores/a.sqlite")
    let run = try Godwit.run(["plan", folder.url.path, "--json"])
    #expect(run.status == 0)
    #expect(run.counts == "2 found, 2 migrated")
    #expect(try folder.bytes("stores/a.sqlite") == before)
    #expect(folder.storeFiles() == ["a.sqlite", "b.sqlite"])
    #expect(!FileManager.default.fileExists(atPath: folder.path("state")))
    #expect(try Godwit.run(["plan", folder.url.path, "--to", "Orders 2"]).status == 64)
  }

  @Test func `says which stores need a mapping model when it may not infer one`() throws {
    let folder = try orders()
    try write(
      """
      stores: { roots: stores }
      models: Orders.xcdatamodeld
      infer: false
      """, to: folder)
    let run = try Godwit.run(folder)
    #expect(run.status == 3)
    #expect(run.counts == "2 found, 2 needs-mapping")
    #expect(run.results.values.allSatisfy { $0["code"] as? Int == 134_140 })
  }

  @Test func `names the entities of a version that no model has`() throws {
    let folder = try orders(["a"])
    let store = folder.path("stores/a.sqlite")
    let connection = try Connection(path: store, mode: .readWrite)
    try connection.execute("DELETE FROM Z_MODELCACHE")
    try connection.close()
    let run = try Godwit.run([
      "migrate", store, "--models", folder.path("Orders.xcdatamodeld/Orders 2.xcdatamodel"),
      "--json",
    ])
    #expect(run.status == 65)
    let reasons = run.results[store]?["reasons"] as? [[String: Any]]
    #expect(reasons?.first?["reason"] as? String == "version-hash")
    #expect(reasons?.first?["entity"] as? String == "Order")
  }

  /// Deeper than a path of the system may be, so that not even the superuser can read it.
  @Test func `counts a folder that cannot be searched as one that failed`() throws {
    let folder = try orders(["a"])
    let deep = "for i in {1..20}; do mkdir \(String(repeating: "d", count: 250)) && cd d*; done"
    func shell(_ line: String) throws -> Int32 {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/bin/bash")
      process.arguments = ["-c", line]
      process.currentDirectoryURL = URL(fileURLWithPath: folder.path("stores"))
      try process.run()
      process.waitUntilExit()
      return process.terminationStatus
    }
    #expect(try shell(deep) == 0)
    defer { _ = try? shell("rm -rf d*") }
    #expect(try folder.godwit(["plan"]).output.contains("unreadable-folder"))
    let run = try Godwit.run(folder)
    #expect(run.status == 3)
    #expect(run.counts == "2 found, 1 migrated, 1 failed")
    #expect("\(run.results)".contains("unreadable-folder"))
    #expect(try folder.godwit(["status"]).output.contains("unreadable-folder"), "in the morning")
  }

  @Test func `reports stores of another version when it may not migrate`() throws {
    let folder = try orders()
    try write(
      """
      stores: { roots: stores }
      models: Orders.xcdatamodeld
      migrate: false
      """, to: folder)
    let run = try Godwit.run(folder)
    #expect(run.status == 3)
    #expect(run.results.values.allSatisfy { $0["code"] as? Int == 134_100 })
    #expect("\(run.results)".contains("incompatible"))
  }
}
