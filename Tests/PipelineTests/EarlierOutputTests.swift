import Foundation
import GodwitSQLite
import Testing

/// Its mapping model makes no output twice.
@Suite struct `An output that an earlier run wrote beside its store` {
  private static let output = "stores/a-2.sqlite"

  private func set(_ keys: String, in folder: PipelineFolder) throws {
    try folder.set("commit: { beside: -2 }\n" + keys)
  }

  private func map(_ totalCost: String, in folder: PipelineFolder) throws {
    try """
    mapping-model: 1
    entity-mappings:
      - source: Order
        destination: Order
        attributes: { totalCost: \(totalCost) }
    """.write(toFile: folder.path("orders.mapping.yaml"), atomically: true, encoding: .utf8)
  }

  private func migrated(_ keys: String = "") throws -> PipelineFolder {
    let folder = try PipelineFolder.orders(["a"])
    try map("now().timeIntervalSinceReferenceDate", in: folder)
    try set(keys, in: folder)
    try #require(try Godwit.run(folder).counts == "1 found, 1 migrated")
    return folder
  }

  private func notes(_ run: Godwit.Run) -> [String] {
    run.results.values.first?["notes"] as? [String] ?? []
  }

  @Test(
    arguments: [
      ("", "invalid: set-aside", true), ("invalid: default", "invalid: fail", true),
      ("", "chain: progressive", true), ("", "infer: false", true), ("", "migrate: false", true),
      ("", "losses: refuse", false), ("", "workers: 2", false),
    ] as [(String, String, Bool)])
  func `counts under other settings, for a plan, too`(
    before: String, after: String, makesOthers: Bool
  ) throws {
    for isTakenUp in [false, true] {
      let folder = try migrated(before)
      if isTakenUp { try folder.writeOrder(to: Self.output) }
      let bytes = try folder.bytes(Self.output)
      try set(after, in: folder)
      for command in ["plan", "run", "run"] {
        let run = try folder.godwit([command])
        #expect(run.status == 0 && run.counts == "1 found, 1 migrated", "\(run.messages)")
        #expect(run.summary["earlier"] as? Int == 1)
        #expect(notes(run).contains { $0.contains("under other settings") } == makesOthers)
      }
      #expect(try folder.bytes(Self.output) == bytes)
    }
  }

  /// Its text about these models is as it was before such texts had two parts.
  @Test func `counts where an earlier version wrote it, which told models and their use in one`()
    throws
  {
    let folder = try migrated()
    let progress = folder.path("state/ledger.jsonl")
    let lines = try String(contentsOfFile: progress, encoding: .utf8)
      .replacing(/,"digest":"[0-9a-f]{64}"}\n/, with: "}\n")
    let earlier = lines.replacing(/"settings":"([0-9a-f]{64})-[0-9a-f]{64}"/) {
      "\"settings\":\"\($0.1)\""
    }
    try #require(
      earlier.contains(
        #""settings":"17f2f6fd43989db58f7c4a7683322ddb38ec516bbc31803be4f4b1250aa440be""#))
    try earlier.write(toFile: progress, atomically: true, encoding: .utf8)
    for command in ["plan", "run", "run"] {
      let run = try folder.godwit([command])
      #expect(run.status == 0 && run.counts == "1 found, 1 migrated", "\(run.messages)")
      #expect(notes(run).first == "Its output was written before.")
    }
    try map("$source.amount", in: folder)
    let run = try Godwit.run(folder)
    #expect(run.status == 3 && run.reason(of: "a") == "output", "\(run.messages)")
  }

  @Test func `does not count where the mapping model is another`() throws {
    let folder = try migrated()
    try map("$source.amount", in: folder)
    let run = try Godwit.run(folder)
    #expect(run.status == 3 && run.reason(of: "a") == "output", "\(run.messages)")
  }

  @Test func `is no reason to leave a failed store alone`() throws {
    let folder = try migrated()
    try map("$source.amount", in: folder)
    #expect(try Godwit.run(folder).counts == "1 found, 1 failed")
    try FileManager.default.removeItem(atPath: folder.path(Self.output))
    try set("invalid: default", in: folder)
    #expect(try Godwit.run(folder).counts == "1 found, 1 migrated")
  }

  @Test func `is not taken for that of a start under other settings that was killed`() throws {
    for step in stride(from: 10, to: 60, by: 2) {
      let folder = try migrated()
      try FileManager.default.removeItem(atPath: folder.path(Self.output))
      try set("invalid: default", in: folder)
      guard try Godwit.run(folder, killAfter: step).status == -SIGKILL else { break }
      let stores = folder.path("state/stores")
      let names = (try? FileManager.default.contentsOfDirectory(atPath: stores)) ?? []
      guard FileManager.default.fileExists(atPath: folder.path(Self.output)),
        names.contains(where: {
          FileManager.default.fileExists(atPath: "\(stores)/\($0)/journal.json")
        })
      else { continue }
      let next = try Godwit.run(folder)
      #expect(next.counts == "1 found, 1 migrated", "\(next.messages)")
      #expect(notes(next) == ["The commit of an earlier run was finished."])
      #expect(notes(try Godwit.run(folder)).first == "Its output was written before.")
      return
    }
    Issue.record("no step was met after which a commit is under way")
  }
}

/// Outputs that were written without some of them, and have lost the store that these are in.
extension `Rows that the destination refuses` {
  @Test func `are set aside again beside an output whose store of rejects is gone`() throws {
    let folder = try folder("set-aside")
    try folder.addToPipeline("\ncommit: { beside: \"-2\" }")
    func rejects() -> [String] { folder.storeFiles().filter { $0.contains(".godwit-rejects-") } }
    func remove() throws {
      try FileManager.default.removeItem(atPath: folder.path("stores/" + #require(rejects().first)))
    }
    #expect(try Godwit.run(folder).counts == "1 found, 1 migrated")
    try remove()
    let again = try Godwit.run(folder)
    #expect(again.status == 0 && again.counts == "1 found, 1 migrated", "\(again.messages)")
    #expect(rejects().count == 1)
    let result = try #require(again.results.values.first)
    #expect(
      result["rejects"] as? String == rejects().first.map { folder.path("stores/" + $0) })
    // An output that an application has taken up is not looked at again, and nothing is said to be there that is not.
    try remove()
    let output = try Connection(path: folder.path("stores/a-2.sqlite"), mode: .readWrite)
    try output.execute("UPDATE ZORDER SET ZAMOUNT = 8")
    for isInUse in [true, false] {
      if !isInUse { try output.close() }
      let later = try Godwit.run(folder)
      #expect(later.status == 0 && later.counts == "1 found, 1 migrated", "\(later.messages)")
      let told = try #require(later.results.values.first)
      #expect(told["rejects"] == nil && told["setAside"] as? Int == 3)
      #expect("\(told["notes"] ?? "")".contains("is gone"))
    }
  }

  /// That an output cannot be written has many causes, and most of them pass.
  @Test(.enabled(if: geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0))
  func `are set aside again once their folder can be written to`() throws {
    let folder = try folder("set-aside")
    try folder.addToPipeline("\ncommit: { beside: \"-2\" }")
    let user: uid_t = 65_534
    let walk = FileManager.default.enumerator(atPath: folder.root.path)
    for name in [""] + (walk?.compactMap { $0 as? String } ?? []) {
      try #require(lchown(folder.root.path + "/" + name, user, user) == 0)
    }
    func rejects() -> [String] { folder.storeFiles().filter { $0.contains(".godwit-rejects-") } }
    func run() throws -> Godwit.Run {
      try Godwit.run(
        ["run", folder.url.path, "--json"],
        wrapper: ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
    }
    let first = try run()
    try #require(first.counts == "1 found, 1 migrated", "\(first.messages)")
    try FileManager.default.removeItem(atPath: folder.path("stores/" + #require(rejects().first)))
    try #require(chown(folder.path("stores"), 0, 0) == 0)
    let refused = try run()
    #expect(refused.status == 3 && refused.counts == "1 found, 1 failed", "\(refused.messages)")
    #expect(refused.reason(of: "a") == "output")
    try #require(chown(folder.path("stores"), user, user) == 0)
    let again = try run()
    #expect(again.status == 0 && again.counts == "1 found, 1 migrated", "\(again.messages)")
    #expect(rejects().count == 1)
  }

  /// With `now()`, what is made again is not what lies there.
  @Test(arguments: ["local", "array"])
  func `are not set aside again beside an output that is not made again`(engine: String) throws {
    let folder = try folder("set-aside")
    try folder.addToPipeline("\ncommit: { beside: \"-2\" }")
    let mapping = String(decoding: try folder.bytes("shop.yaml"), as: UTF8.self)
    let moment = "TERNARY($source.amount < 0, $source.amount, now().timeIntervalSinceReferenceDate)"
    let changed = mapping.replacingOccurrences(
      of: #"FUNCTION($source, "valueForKey:", "amount")"#, with: moment)
    try #require(changed != mapping)
    try changed.write(toFile: folder.path("shop.yaml"), atomically: true, encoding: .utf8)
    let first = try Godwit.run(folder)
    try #require(first.counts == "1 found, 1 migrated", "\(first.messages)")
    let output = try folder.bytes("stores/a-2.sqlite")
    let rejects = try #require(folder.storeFiles().first { $0.contains(".godwit-rejects-") })
    try FileManager.default.removeItem(atPath: folder.path("stores/" + rejects))
    for night in 1...2 {
      let options = engine == "local" ? [] : ["--engine", engine, "--detach"]
      var run = try folder.godwit(["run"], options)
      if run.summary["detached"] as? Bool == true {
        #expect(night == 1, "nothing is made in vain every night")
        try folder.doAll()
        run = try folder.godwit(["run"], options)
      }
      #expect(run.status == 0 && run.counts == "1 found, 1 migrated", "\(run.messages)")
      #expect(run.summary["earlier"] as? Int == 1)
      #expect(run.lines.contains { $0["event"] as? String == "plan" } == (night == 1))
      let told = try #require(run.results.values.first)
      #expect(told["rejects"] == nil && told["setAside"] as? Int == 3)
      #expect("\(told["notes"] ?? "")".contains("is gone"))
    }
    #expect(try folder.bytes("stores/a-2.sqlite") == output)
    #expect(folder.storeFiles() == ["a-2.sqlite", "a.sqlite"])
    #expect(try folder.godwit(["plan"]).summary["earlier"] as? Int == 1)
  }
}
