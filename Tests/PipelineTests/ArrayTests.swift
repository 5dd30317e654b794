import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

/// Bundles of a manifest, done by whoever starts `godwit worker`: here, the test.
@Suite struct `Stores in bundles` {
  private func orders(_ count: Int, pipeline: String = "") throws -> PipelineFolder {
    let folder = try PipelineFolder.orders((0..<count).map { "s\($0)" })
    try folder.addToPipeline(
      "engine: { array: { bundle: { stores: 2 } } }\n" + pipeline)
    return folder
  }

  /// A folder with the same stores, migrated by the engine local.
  private func reference(_ count: Int) throws -> (PipelineFolder, Godwit.Run) {
    let folder = try orders(count)
    let run = try folder.godwit(["run"], ["--engine", "local"])
    try #require(run.status == 0, "\(run.messages)")
    return (folder, run)
  }

  private func manifests(_ folder: PipelineFolder) throws -> [String] {
    let arrays = folder.path("state/cluster")
    guard FileManager.default.fileExists(atPath: arrays) else { return [] }
    return try FileManager.default.contentsOfDirectory(atPath: arrays).sorted()
      .map { "\(arrays)/\($0)/manifest.jsonl" }
  }

  private func bundles(_ manifest: String) throws -> Int {
    let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: manifest)), as: UTF8.self)
    let header = try #require(text.split(separator: "\n").first)
    let fields = try JSONSerialization.jsonObject(with: Data(header.utf8)) as? [String: Any]
    return try #require(fields?["bundles"] as? [Any]).count
  }

  private func task(_ manifest: String, _ index: Int, killAfter step: Int? = nil) throws
    -> Godwit.Run
  {
    try Godwit.run(["worker", "--manifest", manifest, "--index", "\(index)"], killAfter: step)
  }

  private func doAll(_ folder: PipelineFolder) throws {
    for manifest in try manifests(folder) {
      for index in try 0..<bundles(manifest) { #expect(try task(manifest, index).status == 0) }
    }
  }

  @Test func `give what the engine local gives: files, events, ledger and summary`() throws {
    let (wanted, local) = try reference(5)
    let folder = try orders(5)
    let submitted = try folder.godwit(["run"], ["--detach"])
    #expect(submitted.status == 0, "\(submitted.messages)")
    #expect(submitted.summary["detached"] as? Bool == true)
    #expect(try manifests(folder).map(bundles) == [3])
    try doAll(folder)
    let run = try folder.godwit(["run"])
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.counts == local.counts)
    let stores = wanted.storeFiles().filter { !$0.contains(".godwit-") }
    #expect(stores.count == 5)
    for store in stores {
      #expect(
        try folder.content("stores/" + store) == wanted.content("stores/" + store), "\(store)")
    }
    func events(_ run: Godwit.Run) -> [String] {
      run.lines.compactMap { line in
        guard let event = line["event"] as? String,
          ["plan", "stage", "stage-finished"].contains(event)
        else { return nil }
        let store = URL(fileURLWithPath: line["store"] as? String ?? "").lastPathComponent
        return "\(store) \(event) \(line["stage"] ?? "")"
      }.sorted()
    }
    #expect(!events(local).isEmpty)
    #expect(events(run) == events(local))
    func attempts(_ folder: PipelineFolder) throws -> [String] {
      try Connection(path: folder.path("ledger.sqlite"), mode: .readOnly).drawn(
        "SELECT verdict, rows, digest IS NOT NULL, losses FROM attempts ORDER BY store")
    }
    #expect(try attempts(folder) == attempts(wanted))
    #expect(try manifests(folder).isEmpty, "what is over goes")
  }

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

  @Test func `are not copied again while they are in use and nothing changes`() throws {
    let folder = try orders(2)
    try folder.set(
      "engine: { array: { bundle: { stores: 2 } } }",
      stores: "{ roots: stores, in-use: snapshot }")
    let reader = try folder.reader(of: "s0")
    for night in 1...3 {
      #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
      try doAll(folder)
      let run = try folder.godwit(["run"])
      #expect(run.status == 0, "night \(night): \(run.messages)")
      #expect(run.counts.hasPrefix("2 found"))
      #expect(folder.storeFiles().count { $0.hasPrefix("s0.godwit-snapshot-") } == 1)
      let result = try #require(run.results[folder.path("stores/s0.sqlite")])
      #expect((result["output"] as? String)?.contains(".godwit-snapshot-") == true)
    }
    try reader.close()
  }

  @Test func `may be done twice`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifest = try #require(try manifests(folder).first)
    #expect(try task(manifest, 0).status == 0)
    let contents = try folder.storeContents()
    #expect(try task(manifest, 0).status == 0, "a finished task that runs again does nothing")
    #expect(try folder.storeContents() == contents)
    #expect(try folder.godwit(["run"]).counts == "2 found, 2 migrated")
  }

  /// Kills fall before the start marker, in the middle of stores, and before the bundle's own marker.
  @Test(arguments: [1, 2, 5, 9, 14])
  func `may be cut off anywhere, and begun again`(step: Int) throws {
    let (wanted, _) = try reference(2)
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifest = try #require(try manifests(folder).first)
    let first = try task(manifest, 0, killAfter: step)
    #expect(first.status == -9 || first.status == 0)
    #expect(try task(manifest, 0).status == 0)
    let run = try folder.godwit(["run"])
    #expect(run.counts == "2 found, 2 migrated")
    #expect(try folder.content("stores/s0.sqlite") == wanted.content("stores/s0.sqlite"))
    let backups = folder.storeFiles().filter { $0.contains(".godwit-backup-") }
    #expect(backups.count == 2, "nothing is committed twice")
  }

  @Test func `are done by one attempt at a time`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifest = try #require(try manifests(folder).first)
    let lock = open(
      URL(fileURLWithPath: manifest).deletingLastPathComponent().path + "/0.lock",
      O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    try #require(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
    let run = try task(manifest, 0)
    #expect(run.status == 75)
    #expect(run.messages.contains("another attempt"))
    close(lock)
    #expect(try task(manifest, 0).status == 0)
  }

  @Test func `are not touched once their permit is gone`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let contents = try folder.storeContents()
    let manifest = try #require(try manifests(folder).first)
    try FileManager.default.removeItem(
      atPath: URL(fileURLWithPath: manifest).deletingLastPathComponent().path + "/permit")
    let run = try task(manifest, 0)
    #expect(run.status == 0)
    #expect(run.messages.contains("no longer wanted"))
    #expect(try folder.storeContents() == contents)
  }

  @Test(arguments: [
    ["run", "--engine", "local"], ["rollback"], ["backups", "prune", "--keep", "1d"],
  ])
  func `keep other commands from the pipeline`(command: [String]) throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--engine", "local"]).status == 0)
    try folder.writeOrder(to: "stores/s0.sqlite")
    let model = folder.path("Orders.xcdatamodeld/Orders.xcdatamodel")
    #expect(FileManager.default.fileExists(atPath: model))
    try folder.write(
      "stores/new.sqlite", "Orders.xcdatamodeld/Orders",
      "INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) VALUES (1, 1, 1, 'A', 5)")
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let words = command.prefix { !$0.hasPrefix("-") }
    let run = try folder.godwit(Array(words), Array(command.dropFirst(words.count)))
    #expect(run.status == 11, "\(run.messages)")
    #expect(run.messages.contains("on a cluster") || run.output.contains("on a cluster"))
  }

  @Test func `are told by status, on whichever machine`() throws {
    let folder = try orders(4)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifest = try #require(try manifests(folder).first)
    #expect(try task(manifest, 0).status == 0)
    let status = try folder.godwit(["status"])
    #expect(status.status == 3)
    #expect(status.summary["state"] as? String == "detached")
    let cluster = status.summary["cluster"] as? [String: Any]
    let array = (cluster?["arrays"] as? [[String: Any]])?.first
    #expect(array?["finished"] as? Int == 1)
    #expect(array?["results"] as? Int == 2)
    let counts = status.summary["counts"] as? [String: Any]
    #expect(counts?["migrated"] as? Int == 2 && counts?["pending"] as? Int == 2, "\(counts ?? [:])")
  }

  /// Whoever follows the tasks may be gone for good.
  @Test func `are known to verify and to the list of backups before any run takes them over`()
    throws
  {
    let folder = try orders(4)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try doAll(folder)
    for _ in 1...2 {
      let verify = try folder.godwit(["verify"])
      #expect(verify.status == 0 && verify.summary["sound"] as? Int == 4, "\(verify.output)")
      #expect(try folder.godwit(["backups", "list"]).summary["backups"] as? Int == 4)
    }
    try folder.changeUnseen(folder.path("stores/s0.sqlite"))
    #expect(try folder.godwit(["verify"]).summary["damaged"] as? Int == 1)
    #expect(try folder.godwit(["run"]).status == 0)
    let attempts = try Connection(path: folder.path("ledger.sqlite"), mode: .readOnly).drawn(
      "SELECT count(*), count(DISTINCT store) FROM attempts")
    #expect(attempts == ["4 4"], "nothing is told twice: \(attempts)")
  }

  /// A run that goes on over many starts stops where one in one piece does.
  @Test func `hold the failure budget and the waves over starts that are detached`() throws {
    let folder = try orders(8, pipeline: "canary: [2, 4, 100%]\nlimits: { failure-budget: 1 }\n")
    for name in ["s0", "s1", "s2", "s3"] { try folder.writeBad(name) }
    let good = try (4..<8).map { try folder.bytes("stores/s\($0).sqlite") }
    var run = try folder.godwit(["run"], ["--detach"])
    for _ in 0..<8 where run.status == 0 {
      try doAll(folder)
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
  private func finish(_ folder: PipelineFolder) throws -> Godwit.Run {
    var run = try folder.godwit(["run"], ["--detach"])
    for _ in 0..<8 where run.summary["detached"] as? Bool == true {
      try doAll(folder)
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
    try doAll(folder)
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

  @Test func `end although applications write to what they have migrated`() throws {
    let folder = try orders(4)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try doAll(folder)
    for name in ["s0", "s1", "s2"] {
      let connection = try Connection(path: folder.path("stores/\(name).sqlite"), mode: .readWrite)
      try connection.execute("UPDATE ZORDER SET Z_OPT = Z_OPT + 1")
      try connection.close()
      #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
      try doAll(folder)
    }
    for _ in 0..<2 {
      #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
      try doAll(folder)
    }
    #expect(try manifests(folder).isEmpty)
    #expect(try folder.godwit(["status"]).summary["state"] as? String == "ended")
  }

  @Test(arguments: [["-s", "-1"], ["-s", "0"]])
  func `are not believed where results were cut off after their end`(size: [String]) throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try doAll(folder)
    let array = URL(fileURLWithPath: try #require(try manifests(folder).first))
      .deletingLastPathComponent().path
    let names = try FileManager.default.contentsOfDirectory(atPath: array)
    let results = "\(array)/\(try #require(names.first { $0.hasPrefix("0.results-") }))"
    let process = try Process.run(
      URL(fileURLWithPath: "/usr/bin/env"), arguments: ["truncate"] + size + [results])
    process.waitUntilExit()
    for command in [["verify"], ["backups", "list"], ["run"]] {
      let run = try folder.godwit(command)
      #expect(run.status == 78, "\(command): \(run.output)")
      #expect(run.messages.contains("cut off or removed"), "\(run.messages)")
    }
    #expect(try entries(of: array).contains("0.done"))
  }

  private func entries(of path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path)
  }

  @Test func `are cut again where their state folder was moved`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try FileManager.default.moveItem(atPath: folder.path("state"), toPath: folder.path("moved"))
    let state = ["--state", folder.path("moved")]
    let run = try folder.godwit(["run"], ["--detach"] + state)
    #expect(run.status == 0, "\(run.messages)")
    let arrays = folder.path("moved/cluster")
    for name in try entries(of: arrays) {
      let run = try task("\(arrays)/\(name)/manifest.jsonl", 0)
      #expect(run.status == 0, "\(run.messages)")
    }
    #expect(try folder.godwit(["run"], state).counts == "2 found, 2 migrated")
  }

  @Test func `are not passed over by verify where a line of their results is damaged`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifest = try #require(try manifests(folder).first)
    #expect(try task(manifest, 0).status == 0)
    let array = URL(fileURLWithPath: manifest).deletingLastPathComponent().path
    let names = try FileManager.default.contentsOfDirectory(atPath: array)
    let results = "\(array)/\(try #require(names.first { $0.hasPrefix("0.results-") }))"
    var text = try String(contentsOfFile: results, encoding: .utf8)
    text.replace(#""result":"#, with: #""resu t":"#, maxReplacements: 1)
    text.replace("{", with: "[", maxReplacements: 1)
    try text.write(toFile: results, atomically: true, encoding: .utf8)
    let verify = try folder.godwit(["verify"])
    #expect(verify.status == 78, "\(verify.output)")
    #expect(verify.messages.contains(results), "\(verify.messages)")
  }

  @Test func `are taken back by a signal, with what was committed`() throws {
    let folder = try orders(4)
    let stopped = try Godwit.run(
      ["run", folder.url.path, "--json"], stopAt: "\"event\":\"submit\"")
    #expect(stopped.status == 75)
    // Nothing is left for others to do, and the engine local goes on.
    let run = try folder.godwit(["run"], ["--engine", "local"])
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.counts == "4 found, 4 migrated")
  }

  @Test func `are taken back where the operator has left out their stores since`() throws {
    let folder = try orders(4)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let old = try manifests(folder)
    let run = try folder.godwit(["run"], ["--detach", "--only", "s1.sqlite"])
    #expect(run.status == 0, "\(run.messages)")
    #expect(try Set(manifests(folder)).isDisjoint(with: old))
    try doAll(folder)
    let end = try folder.godwit(["run"], ["--only", "s1.sqlite"])
    #expect(end.counts == "1 found, 1 migrated")
    #expect(folder.storeFiles().filter { $0.contains(".godwit-backup-") }.count == 1)
  }

  @Test func `are taken back where what may be lost has changed since`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach", "--losses", "allow"]).status == 0)
    let old = try manifests(folder)
    #expect(try folder.godwit(["run"], ["--detach", "--losses", "refuse"]).status == 0)
    #expect(try Set(manifests(folder)).isDisjoint(with: old))
    let same = try manifests(folder)
    #expect(try folder.godwit(["run"], ["--detach", "--losses", "refuse"]).status == 0)
    #expect(try manifests(folder) == same)
  }

  @Test func `of another destination are not the present one's`() throws {
    let folder = try PipelineFolder("total-cost")
    func set(_ destination: String) throws {
      try """
      name: total-cost
      stores: { roots: stores }
      models: ../../Fixtures/Recipes.xcdatamodeld
      destination: \(destination)
      engine: array
      """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    }
    try folder.write(
      "stores/a.sqlite", "../../Fixtures/Recipes.xcdatamodeld/Recipes", "")
    func version() throws -> String? {
      let run = try Godwit.run(
        ["inspect", folder.path("stores/a.sqlite"), "--json"]
          + ["--models", folder.path("../../Fixtures/Recipes.xcdatamodeld")])
      return run.lines.last?["version"] as? String
    }
    for destination in ["Recipes 2", "Recipes"] {
      try set(destination)
      #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
      try doAll(folder)
      if destination == "Recipes 2" { #expect(try version() == destination) }
    }
    #expect(try folder.godwit(["run"]).status == 0)
    #expect(try version() == "Recipes")
  }

  @Test func `are left to the pipeline that cut them`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try doAll(folder)
    let other = folder.path("other.yaml")
    try FileManager.default.copyItem(atPath: folder.path("pipeline.yaml"), toPath: other)
    for engine in ["array", "local"] {
      let run = try Godwit.run(["run", other, "--engine", engine, "--json"])
      #expect(run.status == 11)
      #expect(run.messages.contains("pipeline.yaml are on a cluster"), "\(run.messages)")
    }
    let run = try folder.godwit(["run"])
    #expect(run.status == 0 && run.counts == "2 found, 2 migrated", "\(run.messages)")
    #expect(try folder.godwit(["rollback"]).status == 0)
  }

  @Test func `end though a store was deleted since the search`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try FileManager.default.removeItem(atPath: folder.path("stores/s1.sqlite"))
    let manifest = try #require(try manifests(folder).first)
    #expect(try task(manifest, 0).status == 0)
    let run = try folder.godwit(["run"])
    #expect(run.counts == "1 found, 1 migrated", "\(run.messages)")
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

  @Test func `say which stores failed, and go on with the others`() throws {
    let folder = try orders(4)
    try Data("no store".utf8).write(to: URL(fileURLWithPath: folder.path("stores/s1.sqlite")))
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try doAll(folder)
    let run = try folder.godwit(["run"])
    #expect(run.status == 3)
    #expect(run.counts == "4 found, 3 migrated, 1 refused")
  }

  @Test func `of a wave wait for the wave before`() throws {
    let folder = try orders(4, pipeline: "limits: { failure-budget: 1 }\ncanary: [1, 100%]")
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    #expect(try manifests(folder).map(bundles) == [1], "the first wave has one store")
    try doAll(folder)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    #expect(try manifests(folder).map(bundles) == [2], "the rest")
    try doAll(folder)
    #expect(try folder.godwit(["run"]).counts == "4 found, 4 migrated")
  }

  @Test func `are refused where the manifest has no such bundle`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifest = try #require(try manifests(folder).first)
    #expect(try task(manifest, 7).status == 78)
    #expect(try task(folder.path("pipeline.yaml"), 0).status == 78)
    #expect(
      try Godwit.run(["worker", "--manifest", manifest, "--index-from", "GODWIT_NOTHING"]).status
        == 64)
  }

  @Test func `are done by GNU parallel`() throws {
    let parallel = "/usr/bin/parallel"
    guard FileManager.default.isExecutableFile(atPath: parallel) else {
      print("skipped: GNU parallel is not installed")
      return
    }
    let folder = try orders(6)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifest = try #require(try manifests(folder).first)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: parallel)
    process.arguments =
      ["-j2", Godwit.path, "worker", "--manifest", manifest, "--index", "{}", ":::"]
      + (try 0..<bundles(manifest)).map(String.init)
    process.standardInput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    #expect(try folder.godwit(["run"]).counts == "6 found, 6 migrated")
  }
}
