import Foundation
import Testing

@Suite struct `godwit run within limits` {
  private static let names = (1...20).map { "s\($0)" }

  @Test func `stops with 4 when more stores fail than the budget allows`() throws {
    let folder = try PipelineFolder.orders(Self.names, "workers: 1\nlimits: { failure-budget: 1 }")
    for name in Self.names.prefix(12) { try folder.writeBad(name) }
    let run = try Godwit.run(folder)
    #expect(run.status == 4)
    #expect(run.summary["stopped"] as? String == "failure-budget")
    #expect((run.summary["refused"] as? Int ?? 0) >= 2)
    #expect((run.summary["pending"] as? Int ?? 0) > 0, "\(run.counts)")
    #expect(run.messages.contains("failure budget allows 1"))
    // The next run has its own budget, and the rest to do.
    try folder.set("workers: 1\nlimits: { failure-budget: 60% }")
    let again = try Godwit.run(folder)
    #expect(again.status == 3)
    #expect(again.counts == "20 found, 8 migrated, 12 refused")
  }

  @Test func `does not stop within the budget`() throws {
    let folder = try PipelineFolder.orders(Self.names, "limits: { failure-budget: 5% }")
    try folder.writeBad("s3")
    let run = try Godwit.run(folder)
    #expect(run.status == 3 && run.counts == "20 found, 19 migrated, 1 refused")
    #expect(run.summary["stopped"] == nil)
  }

  @Test func `takes a root that has lost its stores for one that failed`() throws {
    let folder = try PipelineFolder.orders([])
    for name in ["one", "two"] {
      try FileManager.default.createDirectory(
        atPath: folder.path("stores/" + name), withIntermediateDirectories: true)
    }
    for name in ["one/a", "two/b"] { try folder.writeOrder(name) }
    let roots = "{ roots: [stores/one, stores/two] }"
    try folder.set("limits: { failure-budget: 0 }", stores: roots)
    #expect(try Godwit.run(folder).status == 0)
    try FileManager.default.removeItem(atPath: folder.path("stores/two/b.sqlite"))
    try folder.writeOrder("one/c")
    let run = try Godwit.run(folder)
    #expect(run.status == 4, "\(run.messages)")
    #expect(run.counts == "3 found, 1 same-model, 1 failed, 1 pending")
    #expect(run.summary["stopped"] as? String == "failure-budget")
    try folder.set("limits: { failure-budget: 1 }", stores: roots)
    #expect(try Godwit.run(folder).counts == "3 found, 1 migrated, 1 same-model, 1 failed")
  }

  @Test func `gives every kind of failure its reason, in a small store's process, too`() throws {
    let folder = try PipelineFolder.orders(["a"])
    try folder.writeBad("b")
    let run = try Godwit.run(folder)
    #expect(run.reason(of: "b") == "store")
    #expect(try Godwit.run(["plan", folder.url.path, "--json"]).reason(of: "b") == "store")
  }

  @Test func `begins nothing outside of its window, and ends with 75`() throws {
    let folder = try PipelineFolder.orders(["a"], PipelineFolder.closedWindow)
    let before = try folder.bytes("stores/a.sqlite")
    let run = try Godwit.run(folder)
    #expect(run.status == 75)
    #expect(run.counts == "1 found, 1 pending")
    #expect(run.summary["stopped"] as? String == "window")
    #expect(run.messages.contains("outside of the window"))
    #expect(try folder.bytes("stores/a.sqlite") == before)
    try folder.set("limits: { window: \"00:00-24:00\" }")
    #expect(try Godwit.run(folder).counts == "1 found, 1 migrated")
  }

  @Test func `ends a store that takes too long, and no other`() throws {
    // So many bytes a second that no store is ever done; two may run side by side.
    let folder = try PipelineFolder.orders(
      ["a", "b"], "limits: { store-timeout: 1s, io: 1KiB/s }")
    let run = try Godwit.run(folder)
    #expect(run.status == 3, "\(run.messages)")
    #expect(run.counts == "2 found, 2 failed")
    #expect(run.reason(of: "a") == "timeout" && run.reason(of: "b") == "timeout")
    try folder.set("limits: { store-timeout: 10m, io: 1GiB/s }")
    #expect(try Godwit.run(folder).counts == "2 found, 2 migrated")
  }
}

@Suite struct `A store that takes longer than it may` {
  @Test func `keeps no other store from being migrated`() throws {
    let folder = try PipelineFolder.orders(
      ["a", "b", "c"], "workers: 1\nlimits: { io: 2MiB/s, store-timeout: 5s }")
    // So large that at 2 MiB/s it takes much longer. The largest comes first.
    try folder.write(
      "stores/large.sqlite", "Orders.xcdatamodeld/Orders",
      """
      INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT)
      WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 40000)
      SELECT i, 1, 1, printf('%0400d', i), 5 FROM n
      """)
    let run = try Godwit.run(folder)
    #expect(run.counts == "4 found, 3 migrated, 1 failed", "\(run.messages)")
    #expect(run.status == 3 && run.reason(of: "large") == "timeout")
  }
}

@Suite struct `godwit run in canary waves` {
  private static let names = (1...20).map { "s\($0)" }
  private static let keys = "limits: { failure-budget: 10% }\ncanary: [1, 10%, 100%]"

  @Test func `ends one wave before the next begins`() throws {
    let folder = try PipelineFolder.orders(Self.names, Self.keys)
    let run = try Godwit.run(folder)
    #expect(run.status == 0 && run.counts == "20 found, 20 migrated")
    #expect(run.lines("wave").map { $0["stores"] as? Int } == [1, 1, 18])
    let order = run.lines.compactMap { line -> String? in
      switch line["event"] as? String {
      case "wave": return "wave"
      case "result": return "store"
      default: return nil
      }
    }
    #expect(order.split(separator: "wave").map(\.count) == [1, 1, 18])
  }

  @Test func `stops in the wave that breaks the budget, and never begins the next`() throws {
    let folder = try PipelineFolder.orders(Self.names, Self.keys)
    let first = try Godwit.run(folder)
    let stores = first.lines("result").compactMap { $0["store"] as? String }
    #expect(stores.count == 20)
    // The same stores again; the second wave has a bad one.
    let again = try PipelineFolder.orders(Self.names, Self.keys)
    // The waves go by paths, so they are found out for these ones.
    let probe = try Godwit.run(
      ["run", again.url.path, "--json"], stopAt: #""event":"wave","stores":1"#)
    #expect(probe.status == 75 || probe.status == 0)
    let file = try again.bytes("state/waves.json")
    let known = try #require(
      try JSONSerialization.jsonObject(with: file) as? [String: Any])
    let waves = try #require(known["waves"] as? [[String]])
    try #require(waves.map(\.count) == [1, 1])
    try again.writeBad(String((waves[1][0] as NSString).lastPathComponent.dropLast(7)))
    let broken = try Godwit.run(again)
    #expect(broken.status == 4, "\(broken.messages)")
    #expect(broken.summary["wave"] as? Int == 2)
    #expect(broken.messages.contains("of wave 2"))
    #expect((broken.summary["migrated"] as? Int ?? 99) <= 1)
    #expect(broken.lines("wave").count == 2)
  }

  @Test func `has the waves of all stores also after a start over some of them`() throws {
    let folder = try PipelineFolder.orders(Self.names, Self.keys)
    try folder.writeBad("s3")
    let some = try folder.godwit(["run"], ["--only", "s3.sqlite", "--only", "s4.sqlite"])
    #expect(some.status == 4, "\(some.messages)")
    try FileManager.default.removeItem(atPath: folder.path("stores/s3.sqlite"))
    try folder.writeOrder("s3")
    #expect(try Godwit.run(folder).lines("wave").map { $0["stores"] as? Int } == [1, 1, 18])
  }

  @Test func `needs a budget`() throws {
    let folder = try PipelineFolder.orders(["a"], "canary: [1, 100%]")
    let run = try Godwit.run(folder)
    #expect(run.status == 78 && run.messages.contains("failure-budget"))
  }
}
