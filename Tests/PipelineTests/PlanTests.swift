import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `godwit plan of a pipeline` {
  @Test func `prints cohorts, reasons and a forecast, and a line for each store only on request`()
    throws
  {
    let folder = try PipelineFolder.orders((1...9).map { "s\($0)" })
    for name in ["b1", "b2", "b3", "b4"] { try folder.writeBad(name) }
    let files = folder.storeFiles()
    let run = try Godwit.run(["plan", folder.url.path])
    #expect(run.status == 3)
    #expect(run.output.contains("Orders → Orders 2: 9 stores"))
    #expect(run.output.contains("by ") && run.output.contains("orders.mapping.yaml"))
    #expect(run.output.contains("4 stores refused: store"))
    #expect(run.output.contains("  and 1 more"))
    #expect(run.output.contains("Forecast, from 6 stores migrated privately"))
    #expect(!run.output.contains("s5.sqlite") && !run.messages.contains("b4.sqlite"))
    let all = try Godwit.run(["plan", folder.url.path, "--verbose", "--samples", "0"])
    #expect(all.output.contains("s5.sqlite: would be migrated"))
    #expect(!all.output.contains("Forecast"))
    #expect(folder.storeFiles() == files)
    #expect(!FileManager.default.fileExists(atPath: folder.path("state")))
  }

  @Test func `has the same in JSON`() throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    let run = try Godwit.run(["plan", folder.url.path, "--json"])
    #expect(run.status == 0 && run.counts == "2 found, 2 migrated")
    let plan = try #require(run.lines("fleet-plan").first)
    let cohort = try #require((plan["cohorts"] as? [[String: Any]])?.first)
    #expect(cohort["stores"] as? Int == 2 && cohort["source"] as? String == "Orders")
    let forecast = try #require(plan["forecast"] as? [String: Any])
    #expect(forecast["stores"] as? Int == 2 && forecast["sampled"] as? Int == 2)
    #expect((forecast["seconds"] as? Double ?? 0) > 0)
  }

  /// A filter is evaluated by whoever migrates, and by no plan of a store.
  @Test func `tells what its sample lost beside what is counted`() throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    let mapping = folder.path("orders.mapping.yaml")
    let text = try String(contentsOfFile: mapping, encoding: .utf8)
    try text.replacing(
      "destination: Order\n", with: "destination: Order\n    filter: $source.amount > 9\n"
    )
    .write(toFile: mapping, atomically: true, encoding: .utf8)
    let plan = try #require(try folder.godwit(["plan"]).lines("fleet-plan").first)
    #expect((plan["losses"] as? [Any])?.isEmpty == true)
    let losses = (plan["trial"] as? [String: Any])?["losses"] as? [[String: Any]]
    #expect(losses?.map { $0["kind"] as? String } == ["left-out"])
    #expect(losses?.first?["count"] as? Int == 2 && losses?.first?["stores"] as? Int == 2)
    let lost = "Order: 2 objects that no entity mapping selects in 2 stores"
    #expect(try Godwit.run(["plan", folder.url.path]).output.contains(lost))
    let quiet = try Godwit.run(["plan", folder.url.path, "--quiet"])
    #expect(quiet.status == 0 && quiet.output.contains(lost), "\(quiet.output)")
  }

  @Test(arguments: [([], true), (["--losses", "allow"], false)] as [([String], Bool)])
  func `is silent but for losses where somebody wants it quiet`(
    options: [String], isTold: Bool
  ) throws {
    let folder = try PipelineFolder("recipes-2.0")
    try FileManager.default.createDirectory(
      atPath: folder.path("stores/a"), withIntermediateDirectories: true)
    try StoreGenerator(FixtureModels.Recipes.one.model(), options: StoreOptions(seed: 3, rows: 9))
      .write(to: folder.path("stores/a/Recipes.sqlite"))
    let run = try Godwit.run(["plan", folder.url.path, "--quiet"] + options)
    #expect(run.status == 0 && run.messages.isEmpty, "\(run.messages)")
    #expect(run.output.isEmpty == !isTold && run.output.contains("Recipe.isFavorite") == isTold)
    // Losses of a sample that the plan counts are not told twice.
    #expect(!run.output.contains("sample") && !run.output.contains("Forecast"), "\(run.output)")
  }

  @Test(arguments: ["removed", "written"])
  func `is not carried out where external data is no longer what it was`(change: String) throws {
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: 2, rows: 400, seed: 21)
    fleet.external = true
    try fleet.write(to: folder.path("stores"))
    let plan = folder.path("plan.json")
    #expect(try Godwit.run(["plan", folder.url.path, "--out", plan, "--samples", "0"]).status == 0)
    let files = folder.storeFiles().filter { $0.contains("_EXTERNAL_DATA/") }
    let file = folder.path("stores/" + (try #require(files.first)))
    if change == "removed" {
      try FileManager.default.removeItem(atPath: file)
    } else {
      try "other".write(toFile: file, atomically: false, encoding: .utf8)
    }
    let run = try Godwit.run(["run", folder.url.path, "--plan", plan])
    #expect(run.status == 65)
    #expect(run.messages.contains("1 changed: "), "\(run.messages)")
  }

  /// With a mapping model rows go through several units, and some of these weigh more than what they read.
  @Test func `of a store has no more bytes of rows than the store`() throws {
    let folder = try PipelineFolder("recipes-ingredients")
    let store = folder.path("stores/a.sqlite")
    try StoreGenerator(FixtureModels.Recipes.one.model(), options: StoreOptions(seed: 1, rows: 20))
      .write(to: store)
    let models = FixtureModels.folder.appendingPathComponent("Recipes.xcdatamodeld").path
    let run = try Godwit.run([
      "plan", store, "--models", models, "--to", "Recipes 2 M", "--mapping",
      folder.path("ingredients.mapping.yaml"), "--json",
    ])
    let plan = try #require(run.summary["plan"] as? [String: Any], "\(run.messages)")
    let bytes = try #require(plan["bytes"] as? Int)
    let size = try folder.bytes("stores/a.sqlite").count
    #expect(bytes > 0 && bytes <= size)
    let tables = try #require(plan["tables"] as? [[String: Any]])
    #expect(tables.allSatisfy { $0["bytes"] as? Int ?? .max <= bytes })
    #expect(tables.contains { $0["bytes"] as? Int ?? 0 > 0 })
  }

  @Test func `is carried out only with the stores it was made for`() throws {
    let folder = try PipelineFolder.orders(["a", "b", "c"])
    let plan = folder.path("plan.json")
    let made = try Godwit.run(["plan", folder.url.path, "--out", plan, "--samples", "0"])
    #expect(made.status == 0)
    let store = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
    try store.execute("UPDATE ZORDER SET ZAMOUNT = 6")
    try store.close()
    try FileManager.default.removeItem(atPath: folder.path("stores/b.sqlite"))
    try folder.writeOrder("d")
    let files = folder.storeFiles()
    let run = try Godwit.run(["run", folder.url.path, "--plan", plan])
    #expect(run.status == 65)
    #expect(run.messages.contains("1 changed: \(folder.path("stores/a.sqlite"))"))
    #expect(run.messages.contains("1 vanished: \(folder.path("stores/b.sqlite"))"))
    #expect(run.messages.contains("1 new: \(folder.path("stores/d.sqlite"))"))
    #expect(folder.storeFiles() == files)
    let report = try Godwit.run(["report", folder.url.path, "--json"]).lines.first
    let start = try #require(report?["run"] as? [String: Any])
    #expect(start["exitCode"] as? Int == 65)
    #expect((start["message"] as? String)?.contains("1 vanished: ") == true, "\(start)")
    let page = try Godwit.run(["report", folder.url.path, "--format", "html"]).output
    #expect(page.contains("<h1>This start did not begin with any store</h1>"))
    #expect(page.contains("1 vanished: "))

    #expect(try Godwit.run(["plan", folder.url.path, "--out", plan, "--samples", "0"]).status == 0)
    let done = try Godwit.run(["run", folder.url.path, "--plan", plan, "--json"])
    #expect(done.status == 0 && done.counts == "3 found, 3 migrated")
    let ended = try Godwit.run(["report", folder.url.path, "--json"]).lines.first
    #expect((ended?["run"] as? [String: Any])?["message"] == nil)
    #expect(
      try Godwit.run(["run", folder.url.path, "--plan", folder.path("nowhere")]).status == 65)
  }

  /// An application has taken the output of `a` up.
  @Test(
    arguments: [("nothing", 2, 0), ("the store", 1, 3), ("the state", 0, 3)]
      as [(String, Int, Int32)])
  func `counts outputs that earlier runs wrote as a run does`(
    changed: String, earlier: Int, status: Int32
  ) throws {
    let folder = try PipelineFolder.orders(["a", "b"], "commit: { beside: -2 }")
    #expect(try Godwit.run(folder).status == 0)
    let application = try Connection(path: folder.path("stores/a-2.sqlite"), mode: .readWrite)
    try application.execute("PRAGMA journal_mode = WAL")
    try application.execute("UPDATE ZORDER SET Z_OPT = Z_OPT + 1")
    if changed == "the store" {
      let store = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
      try store.execute("UPDATE ZORDER SET ZAMOUNT = 6")
      try store.close()
    }
    if changed == "the state" {
      try FileManager.default.removeItem(atPath: folder.path("state"))
    }
    let files = ["run.json", "ledger.jsonl"].map { "state/" + $0 }
    let before = files.map { try? folder.bytes($0) }
    let plan = try folder.godwit(["plan"], ["--out", folder.path("plan.json")])
    #expect(files.map { try? folder.bytes($0) } == before)
    let run = try folder.godwit(["run"], ["--plan", folder.path("plan.json")])
    for end in [plan, run] {
      #expect(end.status == status, "\(end.messages)")
      #expect(end.summary["earlier"] as? Int ?? 0 == earlier)
      #expect(end.reason(of: "a") == (status == 0 ? nil : "output"))
    }
    let fleet = try #require(plan.lines("fleet-plan").first)
    #expect((fleet["forecast"] == nil) == (earlier > 0), "what is written needs no time")
    try application.close()
  }

  @Test func `knows what runs with --state know`() throws {
    let folder = try PipelineFolder.orders(["a"], "commit: { beside: -2 }")
    let state = ["--state", folder.path("elsewhere")]
    #expect(try folder.godwit(["run"], state).status == 0)
    #expect(try folder.godwit(["plan"], state).summary["earlier"] as? Int == 1)
    #expect(try folder.godwit(["plan"]).summary["earlier"] == nil)
    for name in folder.storeFiles() {
      try FileManager.default.removeItem(atPath: folder.path("stores/" + name))
    }
    for (options, reason) in [(state, "empty-root"), ([], "no-stores")] {
      let plan = try folder.godwit(["plan"], options)
      #expect(plan.status == 3 && "\(plan.results)".contains(reason), "\(plan.messages)")
    }
  }

  @Test(arguments: [1, 2])
  func `that is stopped ends with 75, says what it has not come to, and is not kept`(
    signals: Int
  ) throws {
    let folder = try PipelineFolder.orders((1...30).map { "s\($0)" }, "workers: 1")
    let plan = folder.path("plan.json")
    let run = try Godwit.run(
      ["plan", folder.url.path, "--out", plan, "--samples", "30", "--json"],
      stopAt: #""verdict":"migrated""#, signals: signals)
    #expect(run.status == 75, "\(run.messages)")
    #expect(run.summary["event"] as? String == "summary" && run.summary["found"] as? Int == 30)
    let migrated = run.summary["migrated"] as? Int ?? 0
    #expect(migrated + (run.summary["pending"] as? Int ?? 0) == 30, "\(run.summary)")
    let told = run.lines("result")
    #expect(told.filter { $0["verdict"] as? String == "migrated" }.count == migrated)
    if signals == 1 { #expect(told.count == 30) }
    #expect(!"\(run.lines)".contains("resume") && !run.messages.contains("resume"))
    #expect(!FileManager.default.fileExists(atPath: plan))
  }

  @Test func `that is stopped while it takes samples ends with 75, and knows of every store`()
    throws
  {
    let folder = try PipelineFolder.orders((1...30).map { "s\($0)" }, "workers: 1")
    let plan = folder.path("plan.json")
    let stopped = try Godwit.run(
      ["plan", folder.url.path, "--out", plan, "--samples", "30", "--json"],
      // The last store in their order.
      stopAt: "s9.sqlite")
    #expect(stopped.status == 75, "\(stopped.messages)")
    #expect(stopped.counts == "30 found, 30 migrated")
    #expect(stopped.messages.contains("Stopped before the whole sample was migrated"))
    let fleet = try #require(stopped.lines("fleet-plan").first)
    // Of none, or of those that were migrated before the signal.
    if let trial = fleet["trial"] as? [String: Any] {
      let stores = trial["stores"] as? Int ?? 0
      #expect(stores > 0 && (trial["reasons"] as? [Any])?.isEmpty == true, "\(trial)")
    }
    let run = try Godwit.run(["run", folder.url.path, "--plan", plan, "--json"])
    #expect(run.status == 0 && run.counts == "30 found, 30 migrated", "\(run.messages)")
  }

  @Test func `of an interrupted run is carried out to the end`() throws {
    let names = (1...12).map { "s\($0)" }
    let folder = try PipelineFolder.orders(names, "workers: 1")
    let plan = folder.path("plan.json")
    #expect(try Godwit.run(["plan", folder.url.path, "--out", plan, "--samples", "0"]).status == 0)
    let stopped = try Godwit.run(
      ["run", folder.url.path, "--plan", plan, "--json"], stopAt: #""verdict":"migrated""#)
    #expect(stopped.status == 75)
    let run = try Godwit.run(["run", folder.url.path, "--plan", plan, "--json"])
    #expect(run.status == 0 && run.counts == "12 found, 12 migrated", "\(run.messages)")
  }

  /// A store with a WAL is replaced in several steps.
  @Test func `of a run that was killed in a commit is carried out to the end`() throws {
    var cutOff = 0
    for step in stride(from: 20, to: 90, by: 3) {
      let folder = try PipelineFolder("recipes-2.0")
      let models = FixtureModels.folder.appendingPathComponent("Recipes.xcdatamodeld").path
      let store = folder.path("stores/a.sqlite")
      let made = try Godwit.run([
        "fixture", "\(models):Recipes", "-o", store, "--rows", "10", "--ascii", "--wal",
        "--valid-for", "\(models):Recipes 2",
      ])
      #expect(made.status == 0, "\(made.messages)")
      try "stores: { roots: stores }\nmodels: \(models)\ndestination: Recipes 2\n"
        .write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
      let plan = folder.path("plan.json")
      #expect(
        try Godwit.run(["plan", folder.url.path, "--out", plan, "--samples", "0"]).status == 0)
      let before = try folder.contentsOfStoresAlone()
      let options = ["--plan", plan]
      guard try folder.godwit(["run"], options, killAfter: step).status == -SIGKILL else { break }
      let left = (try? folder.names(in: "state/stores").first).map { "state/stores/\($0)" }
      if let left, try folder.names(in: left).contains("journal.json"),
        try folder.contentsOfStoresAlone() != before
      {
        cutOff += 1
      }
      let run = try folder.godwit(["run"], options)
      #expect(run.status == 0, "step \(step): \(run.messages)")
    }
    #expect(cutOff > 0, "some are killed in a commit")
  }

  @Test(arguments: ["--only", "--files-from"])
  func `is not carried out in part where a store of that part has vanished`(option: String) throws {
    let folder = try PipelineFolder.orders(["a/1", "a/2", "b/1"], "")
    let (plan, list) = (folder.path("plan.json"), folder.path("list"))
    let paths = ["a/1", "a/2"].map { folder.path("stores/\($0).sqlite") }
    try paths.joined(separator: "\n").write(toFile: list, atomically: true, encoding: .utf8)
    #expect(try Godwit.run(["plan", folder.url.path, "--out", plan, "--samples", "0"]).status == 0)
    try FileManager.default.removeItem(atPath: paths[1])
    let files = folder.storeFiles()
    let part = [option, option == "--only" ? "a/*" : list]
    let run = try Godwit.run(["run", folder.url.path, "--plan", plan] + part)
    #expect(run.status == 65 && run.messages.contains("1 vanished: \(paths[1])"), "\(run.messages)")
    #expect(folder.storeFiles() == files)
    let other = try Godwit.run(["run", folder.url.path, "--plan", plan, "--only", "b/*"])
    #expect(other.status == 0, "\(other.messages)")
  }

  @Test func `is carried out beside stores that a run does not open`() throws {
    let folder = try PipelineFolder.orders(["a"], "")
    try folder.writeBad("bad")
    for _ in 0..<3 { #expect(try Godwit.run(folder).status == 3) }
    for name in ["b", "linked"] { try folder.writeOrder(name) }
    // External data behind a link is refused before the store is looked at.
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("stores/.linked_SUPPORT"), withDestinationPath: folder.path("."))
    let plan = folder.path("plan.json")
    let made = try Godwit.run(
      ["plan", folder.url.path, "--out", plan, "--samples", "0", "--json", "--verbose"])
    let verdict = { (name: String) in
      made.results[folder.path("stores/\(name).sqlite")]?["verdict"] as? String
    }
    #expect(verdict("bad") == "quarantined" && verdict("linked") == "refused")
    let run = try Godwit.run(["run", folder.url.path, "--plan", plan, "--json"])
    #expect(run.status == 3, "\(run.messages)")
    #expect(run.counts == "4 found, 1 migrated, 1 same-model, 1 refused, 1 quarantined")
    try folder.writeBad("bad")
    let changed = try Godwit.run(["run", folder.url.path, "--plan", plan])
    #expect(changed.status == 65 && changed.messages.contains("1 changed: "))
  }

  @Test func `is carried out in parts, and again`() throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    let plan = folder.path("plan.json")
    #expect(try Godwit.run(["plan", folder.url.path, "--out", plan, "--samples", "0"]).status == 0)
    for options in [["--only", "a.sqlite"], [], []] {
      let run = try Godwit.run(["run", folder.url.path, "--plan", plan, "--json"] + options)
      #expect(run.status == 0, "\(options): \(run.messages)")
    }
  }
}
