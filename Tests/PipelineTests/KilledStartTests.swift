import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

/// What is said of a run's stores where a start of it was killed, and where the ledger could not be written.
@Suite struct `A run of which a start was killed` {
  private static let migrated = #""verdict":"migrated""#

  /// Kills the tool once it has told of a store that it migrated. Slowed down, it has more of them to do.
  private func killAtResult(_ folder: PipelineFolder) throws -> Godwit.Run {
    let file = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
    try folder.addToPipeline("\nlimits: { io: 256KiB/s }")
    defer {
      try? file.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    }
    let run = try Godwit.run(
      ["run", folder.url.path, "--json"], at: Self.migrated, { kill($0, SIGKILL) })
    try #require(run.status == -SIGKILL, "\(run.messages)")
    return run
  }

  private func text(_ value: Any?) throws -> String {
    let data = try JSONSerialization.data(
      withJSONObject: [value ?? "none"], options: .sortedKeys)
    return String(decoding: data, as: UTF8.self)
  }

  private func count(_ name: String, _ counts: String, _ folder: PipelineFolder) throws -> Int? {
    let status = try folder.godwit(["status"]).summary
    return (status[counts] as? [String: Any])?[name] as? Int
  }

  @Test func `says of stores that it migrated what it said then`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    for name in ["a", "b", "c", "d", "e"] {
      try folder.write(
        "stores/\(name).sqlite", "../../Fixtures/Recipes.xcdatamodeld/Recipes",
        """
        INSERT INTO ZINGREDIENT (Z_PK, Z_ENT, Z_OPT, ZNAME, ZAMOUNT, ZDISPLAYORDER, ZRECIPE)
        VALUES (1, 5, 1, 'Salt', '1', 1, 4711)
        """)
    }
    try """
    stores: { roots: stores }
    models: ../../Fixtures/Recipes.xcdatamodeld
    destination: Recipes 2
    workers: 1
    """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    let first = try killAtResult(folder).results
    let second = try Godwit.run(folder)
    #expect(second.status == 0, "\(second.messages)")
    #expect(second.counts == "5 found, 5 migrated")
    for (store, before) in first where before["verdict"] as? String == "migrated" {
      let after = try #require(second.results[store])
      for key in ["counts", "findings", "losses", "path", "rows", "source", "destination"] {
        #expect(try text(before[key]) == text(after[key]), "\(key)")
      }
      #expect((before["findings"] as? [Any])?.isEmpty == false, "there is damage that is carried")
      let notes = after["notes"] as? [String] ?? []
      for note in before["notes"] as? [String] ?? [] { #expect(notes.contains(note)) }
      #expect(notes.contains("An earlier start of this run migrated it."))
    }
  }

  /// What they were brought to before says nothing of it; nor does a start over some of them.
  /// Or that had nothing to be done.
  @Test(arguments: [
    ("Recipes 2", "Recipes", "migrated"), ("Recipes 1.1", "Recipes 2", "same-model"),
  ])
  func `has still to come to stores that are done by another destination`(
    first: String, second: String, verdict: String
  ) throws {
    let folder = try PipelineFolder("recipes-2.0")
    for name in ["a", "b", "c", "d", "e"] {
      try folder.write(
        "stores/\(name).sqlite", "../../Fixtures/Recipes.xcdatamodeld/Recipes", "SELECT 1")
    }
    func set(_ destination: String) throws {
      try """
      stores: { roots: stores }
      models: ../../Fixtures/Recipes.xcdatamodeld
      destination: \(destination)
      losses: allow
      workers: 1
      """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    }
    try set(first)
    #expect(try Godwit.run(folder).counts == "5 found, 5 \(verdict)")
    try set(second)
    let done = try #require(
      try killAtResult(folder).results.first { $0.value["verdict"] as? String == "migrated" })
    let come = try #require(try count("migrated", "runCounts", folder))
    #expect((1...4).contains(come))
    #expect(try count("pending", "runCounts", folder) == 5 - come)
    #expect(try folder.godwit(["run"], ["--only", String(done.key.suffix(8))]).status == 0)
    #expect(try count("pending", "runCounts", folder) == 5 - come)
    #expect(try Godwit.run(folder).counts == "5 found, 5 migrated")
    #expect(try count("migrated", "runCounts", folder) == 5)
  }

  @Test func `has its stores in the fleet though somebody read the ledger all the time`() throws {
    let folder = try PipelineFolder.orders(["a", "b", "c", "d"], "workers: 1")
    #expect(try folder.godwit(["run"], ["--only", "a.sqlite"]).status == 0)
    let reader = try folder.readerOfLedger()
    _ = try killAtResult(folder)
    try reader.close()
    let lines = String(decoding: try folder.bytes("state/ledger.jsonl"), as: UTF8.self)
    let written = lines.split(separator: "\n").count { $0.contains(Self.migrated) }
    #expect(written >= 2)
    for _ in 0..<2 {
      #expect(try count("migrated", "counts", folder) == written)
      #expect(try count("pending", "counts", folder) == 4 - written)
      #expect(try count("found", "runCounts", folder) == 4)
    }
    #expect(try Godwit.run(folder).status == 0)
    #expect(try count("found", "runCounts", folder) == 4)
    #expect(try count("pending", "counts", folder) == 0)
  }

  @Test(arguments: [false, true])
  func `stays whole when it is resumed over some of its stores`(isLedgerRead: Bool) throws {
    let folder = try PipelineFolder.orders(["a", "b", "c", "d"], "workers: 1")
    _ = try killAtResult(folder)
    #expect(try count("found", "runCounts", folder) == 4)
    let reader = isLedgerRead ? try folder.readerOfLedger() : nil
    let part = try folder.godwit(["run"], ["--only", "d.sqlite"])
    #expect(part.status == 0, "\(part.messages)")
    #expect(part.messages.contains("could not be written") == isLedgerRead)
    try reader?.close()
    for _ in 0..<2 {
      #expect(try count("found", "runCounts", folder) == 4)
      let counts = try folder.godwit(["report"], ["--format", "json"]).summary["counts"]
      #expect((counts as? [String: Any])?["found"] as? Int == 4)
    }
    let rest = try Godwit.run(folder)
    #expect(rest.status == 0 && rest.counts == "4 found, 4 migrated")
    #expect(try count("found", "runCounts", folder) == 4)
  }

  /// Whether or not anybody asks before the next start.
  @Test(arguments: [false, true])
  func `is counted as far as it came where the next one fails before it has a result`(
    isAsked: Bool
  ) throws {
    let folder = try PipelineFolder.orders(["a", "b", "c", "d"], "workers: 1")
    _ = try killAtResult(folder)
    if isAsked { #expect(try count("found", "runCounts", folder) == 4) }
    try folder.set("destination: Nope")
    #expect(try Godwit.run(folder).status == 65)
    let status = try folder.godwit(["status"]).summary
    let report = try Godwit.run(["report", folder.url.path, "--format", "json"]).summary
    let history = try #require(try folder.godwit(["history"]).lines.first)
    #expect(try count("found", "counts", folder) == 4)
    let migrated = try #require(try count("migrated", "counts", folder))
    #expect(migrated > 0)
    for counts in [status["runCounts"], report["counts"], history["counts"]] {
      let counts = counts as? [String: Any]
      #expect(counts?["found"] as? Int == 4 && counts?["migrated"] as? Int == migrated)
      #expect(counts?["pending"] as? Int == 4 - migrated)
    }
    #expect(history["exitCode"] as? Int == 65)
  }

  /// An application has the store open, and closes it, or does not, before the next start.
  @Test(arguments: [false, true])
  func `leaves no private copy of a store in use`(isClosed: Bool) throws {
    func copies(_ folder: PipelineFolder) -> [String] {
      (try? folder.names(in: "state/stores"))?.filter { $0.hasSuffix("-snapshot") } ?? []
    }
    var seen = 0
    for step in stride(from: 2, to: 90, by: 4) {
      let folder = try PipelineFolder.orders(["a"])
      try folder.set("", stores: "{ roots: stores, in-use: snapshot }")
      let reader = try folder.reader(of: "a")
      let run = try Godwit.run(folder, killAfter: step)
      guard run.status == -SIGKILL else { break }
      if copies(folder).isEmpty { continue }
      seen += 1
      if isClosed { try reader.close() }
      let next = try Godwit.run(folder)
      #expect(next.status == 0, "step \(step): \(next.messages)")
      #expect(copies(folder) == [], "step \(step)")
      if !isClosed { #expect(folder.snapshots().count == 1, "step \(step)") }
    }
    #expect(seen > 0)
  }

  /// An application writes to the store after the start that is killed.
  @Test func `makes a further snapshot of a store in use that was written to since`() throws {
    var (cutOff, recorded) = (0, 0)
    for step in stride(from: 34, to: 120, by: 3) {
      let folder = try PipelineFolder("recipes-2.0")
      var fleet = RecipesFleet(stores: 1, rows: 400, seed: 21)
      fleet.external = true
      try fleet.write(to: folder.path("stores"))
      try """
      stores: { roots: stores, in-use: snapshot }
      models: ../../Fixtures/Recipes.xcdatamodeld
      destination: Recipes 2
      """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
      let store = folder.path("stores/user-0001/Recipes.sqlite")
      let application = try Connection(path: store, mode: .readWrite)
      let read = "BEGIN; SELECT count(*) FROM ZRECIPE"
      try application.execute("PRAGMA journal_mode = WAL; \(read)")
      guard try Godwit.run(folder, killAfter: step).status == -SIGKILL else { break }
      let before = try folder.snapshots().map { try folder.bytes("stores/\($0)") }
      let copy = try folder.names(in: "state/stores").first { $0.hasSuffix("-snapshot") }
      let journal = folder.path("state/stores/\(copy ?? "")/run/journal.json")
      if FileManager.default.fileExists(atPath: journal) { cutOff += 1 }
      let known = (try? folder.bytes("state/ledger.jsonl")) ?? Data()
      if known.range(of: Data(".godwit-snapshot-".utf8)) != nil { recorded += 1 }
      try application.execute(
        "COMMIT; UPDATE ZRECIPE SET ZNAME = 'newer', Z_OPT = Z_OPT + 1; \(read)")
      let run = try Godwit.run(folder)
      #expect(
        run.status == 0 && run.counts == "1 found, 1 migrated", "step \(step): \(run.messages)")
      #expect(run.summary["snapshots"] as? Int == 1)
      let output = try #require(run.results[store]?["output"] as? String)
      let snapshot = try Connection(path: output, mode: .immutable)
      #expect(
        try snapshot.drawn("SELECT DISTINCT ZNAME FROM ZRECIPE") == ["newer"], "step \(step)")
      let after = try folder.snapshots().map { try folder.bytes("stores/\($0)") }
      #expect(after.count > before.count && before.allSatisfy(after.contains), "step \(step)")
      #expect(try folder.names(in: "state/stores").allSatisfy { !$0.hasSuffix("-snapshot") })
      try application.close()
    }
    #expect(cutOff > 0 && recorded > 0, "some are killed in the commit, and some after it")
  }
}

extension PipelineFolder {
  /// The main files of snapshots.
  fileprivate func snapshots() -> [String] {
    storeFiles().filter {
      $0.contains(".godwit-snapshot-") && !$0.contains("_SUPPORT/") && $0.hasSuffix(".sqlite")
    }
  }

  /// Somebody who has the ledger open, as a dashboard does, until this is closed.
  fileprivate func readerOfLedger() throws -> Connection {
    let reader = try Connection(path: path("ledger.sqlite"), mode: .readOnly)
    try reader.execute("BEGIN")
    _ = try reader.rows("SELECT * FROM runs")
    return reader
  }
}
