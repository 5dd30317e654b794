import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

/// Starts that leave the work to others.
extension `Stores in bundles` {
  @Test func `show that they are paused while no command follows them`() throws {
    let folder = try orders(3)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    func held(after action: String) throws -> [String?] {
      let request = try folder.godwit(["control"], [action])
      #expect(request.status == 0 && request.summary["event"] as? String == "control")
      #expect(request.summary["isPaused"] as? Bool == (action == "pause"))
      let asked = try folder.godwit(["control"], ["status"])
      #expect(asked.status == 0, "\(asked.messages)")
      return [asked, try folder.godwit(["status"])].map { $0.summary["held"] as? String }
    }
    #expect(try held(after: "pause") == ["paused", "paused"])
    #expect(try held(after: "resume") == [nil, nil])
  }

  @Test func `hold the failure budget and the waves over starts that are detached`() throws {
    let folder = try orders(8, pipeline: "canary: [2, 4, 100%]\nlimits: { failure-budget: 1 }\n")
    for name in ["s0", "s1", "s2", "s3"] { try folder.writeBad(name) }
    let good = try (4..<8).map { try folder.bytes("stores/s\($0).sqlite") }
    var run = try folder.godwit(["run"], ["--detach"])
    for _ in 0..<8 where run.status == 0 {
      try folder.doAll()
      run = try folder.godwit(["run"], ["--detach"])
    }
    #expect(run.status == 4, "\(run.messages)")
    let left = try (4..<8).map { try folder.bytes("stores/s\($0).sqlite") }
    #expect(zip(good, left).contains { $0 == $1 }, "the last wave has not begun")
    let attempts = try Connection(path: folder.path("ledger.sqlite"), mode: .readOnly).drawn(
      "SELECT max(n) FROM (SELECT count(*) AS n FROM attempts WHERE verdict <> 'migrated' GROUP BY store)"
    )
    #expect(attempts == ["1"], "each failure counts once: \(attempts)")
  }

  /// Starts until the run is not detached any more.
  func finish(_ folder: PipelineFolder) throws -> Godwit.Run {
    var run = try folder.godwit(["run"], ["--detach"])
    for _ in 0..<8 where run.summary["detached"] as? Bool == true {
      try folder.doAll()
      run = try folder.godwit(["run"], ["--detach"])
    }
    return run
  }

  @Test func `try stores again once a start has stopped for its failures`() throws {
    let folder = try orders(4, pipeline: "canary: [2, 100%]\nlimits: { failure-budget: 1 }\n")
    for name in ["s0", "s1", "s2", "s3"] { try folder.writeBad(name) }
    #expect(try finish(folder).status == 4)
    let text = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
    try text.replacing("failure-budget: 1", with: "failure-budget: 4")
      .write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    let run = try finish(folder)
    #expect(run.summary["resumed"] as? Bool == true)
    #expect(run.counts == "4 found, 4 refused", "\(run.messages)")
    let attempts = try Connection(path: folder.path("ledger.sqlite"), mode: .readOnly).drawn(
      "SELECT count(*) AS n FROM attempts GROUP BY store ORDER BY n")
    #expect(attempts == ["1", "1", "2", "2"], "those of the first wave again: \(attempts)")
  }

  @Test func `try a store again that was mended between detached starts`() throws {
    let folder = try orders(4, pipeline: "canary: [2, 100%]\nlimits: { failure-budget: 4 }\n")
    for name in ["s0", "s1", "s2", "s3"] { try folder.writeBad(name) }
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try folder.doAll()
    // Now two of them have failed, and the others are submitted.
    let run = try folder.godwit(["run"], ["--detach"])
    #expect(run.summary["detached"] as? Bool == true && run.summary["refused"] as? Int == 2)
    for name in ["s0", "s1", "s2", "s3"] {
      try FileManager.default.removeItem(atPath: folder.path("stores/\(name).sqlite"))
      try folder.writeOrder(name)
    }
    let last = try finish(folder)
    #expect(last.counts == "4 found, 4 migrated", "\(last.messages)")
  }

  @Test func `are limited by control while nobody follows them, and stay so`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let control = try Godwit.run(
      ["control", folder.url.path, "limit", "io=20MiB/s"])
    #expect(control.status == 0, "\(control.messages)")
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let asked = try String(contentsOfFile: folder.path("state/control.json"), encoding: .utf8)
    #expect(asked.contains("20971520"))
  }

  @Test func `are not begun again by a start that is no longer wanted`() throws {
    let folder = try orders(2)
    let contents = try folder.storeContents()
    let run = try folder.godwit(["run"], ["--engine", "local", "--follower-token", "old"])
    #expect(run.status == 0, "\(run.messages)")
    #expect(try folder.storeContents() == contents)
  }

  @Test func `are taken over under the plan that they were submitted with`() throws {
    let folder = try orders(3)
    let plan = ["--plan", folder.path("plan.json")]
    #expect(try folder.godwit(["plan"], ["--out", folder.path("plan.json")]).status == 0)
    #expect(try folder.godwit(["run"], plan + ["--detach"]).status == 0)
    try folder.doAll()
    let run = try folder.godwit(["run"], plan)
    #expect(run.status == 0 && run.counts == "3 found, 3 migrated", "\(run.messages)")
    try folder.writeOrder(to: "stores/s0.sqlite")
    #expect(try folder.godwit(["run"], plan).status == 65, "that was nobody of the run")
  }

  @Test func `keep no start waiting while they are paused`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    #expect(try folder.godwit(["control"], ["pause"]).status == 0)
    let run = try folder.godwit(["run"], ["--detach"])
    #expect(run.status == 0 && run.summary["detached"] as? Bool == true, "\(run.messages)")
    #expect(try folder.godwit(["control"], ["resume"]).status == 0)
    try folder.doAll()
    #expect(try folder.godwit(["run"]).counts == "2 found, 2 migrated")
  }

  @Test func `count for the quarantine once the run ends, and not where the budget stopped it`()
    throws
  {
    for budget in [1, 9] {
      let folder = try orders(
        3,
        pipeline: "canary: [1, 100%]\nquarantine: { after: 1 }\n"
          + "limits: { failure-budget: \(budget) }")
      for store in 0..<3 {
        let file = try FileHandle(
          forUpdating: URL(fileURLWithPath: folder.path("stores/s\(store).sqlite")))
        try file.write(contentsOf: Data("no database".utf8))
        try file.close()
      }
      let run = try finish(folder)
      #expect(run.status == (budget == 1 ? 4 : 3), "\(run.messages)")
      let listed = try folder.godwit(["quarantine", "list"]).lines("quarantine")
      #expect(listed.count == (budget == 1 ? 0 : 3))
    }
  }

  /// A large store in bundles of its shards, brought to its end by starts that are detached.
  private func cut(
    _ pipeline: String, _ model: String, rows: Int, seed: Int, keys: String
  ) throws -> (run: Godwit.Run, starts: Int) {
    let folder = try PipelineFolder(pipeline)
    let made = try Godwit.run([
      "fixture", folder.path(model), "--rows", "\(rows)", "--seed", "\(seed)",
      "-o", folder.path("stores/large.sqlite"),
    ])
    try #require(made.status == 0, "\(made.messages)")
    try """
    stores: { roots: stores }
    shard: { bytes: 16KiB }
    engine: { array: { bundle: { bytes: 40KiB } } }
    \(keys)
    """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    var (starts, run) = (1, try folder.godwit(["run"], ["--detach"]))
    while try !folder.manifests().isEmpty, starts < 20 {
      try folder.doAll()
      run = try folder.godwit(["run"], ["--detach"])
      starts += 1
    }
    return (run, starts)
  }

  @Test func `hold the units of every step of a chain`() throws {
    let (run, starts) = try cut(
      "notes-progressive", "Notes.xcdatamodeld:Notes", rows: 400, seed: 1,
      keys: "models: Notes.xcdatamodeld\nchain: progressive")
    #expect(run.status == 0 && run.counts == "1 found, 1 migrated", "\(run.messages)")
    #expect(starts > 4, "the shards of several steps were handed out")
  }

  @Test func `end where a unit cannot be performed`() throws {
    let (run, starts) = try cut(
      "bucket", "Things.xcdatamodeld:Things", rows: 400, seed: 3,
      keys: "models: Things.xcdatamodeld\nmappings: things.mapping.yaml")
    #expect(run.status == 3 && run.counts == "1 found, 1 refused", "\(run.messages)")
    #expect(starts < 6)
  }

  /// Recipes in stores of their own folders.
  private func recipes(
    _ version: String, stores: [String], rows: Int, keys: String
  ) throws -> PipelineFolder {
    let folder = try PipelineFolder("recipes-2.0")
    let models = folder.root.appendingPathComponent("Fixtures/Recipes.xcdatamodeld").path
    for name in stores {
      let made = try Godwit.run([
        "fixture", "\(models):\(version)", "--rows", "\(rows)", "--seed", "1",
        "-o", folder.path("stores/\(name).sqlite"),
      ])
      try #require(made.status == 0, "\(made.messages)")
    }
    try """
    stores: { roots: stores }
    models: \(models)
    \(keys)
    """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    return folder
  }

  @Test func `hand out nothing again of a store that has come further, while another one waits`()
    throws
  {
    let folder = try recipes(
      "Recipes", stores: ["a", "b"], rows: 900,
      keys: "destination: Recipes 2\nshard: { bytes: 256KiB }\n"
        + "engine: { array: { bundle: { bytes: 512KiB } } }")
    var run = try folder.godwit(["run"], ["--detach"])
    let first = try #require(try folder.manifests().first)
    #expect(try Godwit.bundles(first) == 2, "both are cut over machines")
    var known: [Set<String>] = [[first]]
    for start in 1...12 where run.summary["migrated"] as? Int != 1 {
      for manifest in try folder.manifests() {
        // The second store's first step waits in a queue all the time.
        for index in try 0..<Godwit.bundles(manifest) where manifest != first || index == 0 {
          #expect(try Godwit.task(manifest, index).status == 0)
        }
      }
      run = try folder.godwit(["run"], ["--detach"])
      known.append(Set(try folder.manifests()).subtracting(known.joined()))
      #expect(known[start].count <= 1, "one step after the other: \(known[start])")
    }
    #expect(run.summary["migrated"] as? Int == 1 && known.count > 3, "\(run.messages)")
    #expect(try folder.manifests() == [first], "nothing is left of it")
    run = try folder.godwit(["run"], ["--detach"])
    #expect(run.summary["detached"] as? Bool == true && run.summary["migrated"] as? Int == 1)
    #expect(try folder.manifests() == [first])
    // One that is another since is looked at from its beginning.
    let done = try #require(folder.storeFiles().first { $0.contains(".godwit-backup-") })
    let connection = try Connection(
      path: folder.path("stores/\(done.prefix(1)).sqlite"), mode: .readWrite)
    try connection.execute("UPDATE ZRECIPE SET Z_OPT = Z_OPT + 1")
    try connection.close()
    #expect(try folder.godwit(["run"], ["--detach"]).summary["detached"] as? Bool == true)
    #expect(try folder.manifests().map(Godwit.bundles) == [2, 1])
    run = try finish(folder)
    #expect(run.status == 0 && run.counts == "2 found, 2 migrated", "\(run.messages)")
  }

  /// Of the first wave an earlier start has taken over what became of it.
  @Test func `give every reason of a store that failed, with its place, as the engine local does`()
    throws
  {
    func reasons(_ run: Godwit.Run, in folder: PipelineFolder) throws -> [String: String] {
      #expect(run.status == 3 && run.counts.hasPrefix("2 found"), "\(run.messages)")
      var known: [String: String] = [:]
      for (store, result) in run.results {
        let said = try #require(result["reasons"] as? [[String: Any]])
        #expect(said.contains { $0["entity"] != nil }, "\(said)")
        let text = try JSONSerialization.data(
          withJSONObject: said, options: [.sortedKeys, .withoutEscapingSlashes])
        known[URL(fileURLWithPath: store).lastPathComponent] =
          String(decoding: text, as: UTF8.self).replacing(folder.url.path, with: "")
      }
      return known
    }
    func folder() throws -> PipelineFolder {
      try recipes(
        "Recipes 2", stores: ["a", "b"], rows: 60,
        keys: "destination: Recipes\ncanary: [1, 100%]\nlimits: { failure-budget: 5 }\n"
          + "engine: array")
    }
    let (here, others) = (try folder(), try folder())
    let local = try reasons(here.godwit(["run"], ["--engine", "local"]), in: here)
    #expect(local.count == 2)
    #expect(try reasons(finish(others), in: others) == local)
  }
}
