import Foundation
import StoreFixtures
import Testing

@Suite struct `Two pipelines in one folder` {
  /// `p1.yaml` with the stores of `one`, `p2.yaml` with those of `two`; both have run.
  private func pair() throws -> PipelineFolder {
    let folder = try PipelineFolder("total-cost")
    let text = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
      .split(separator: "\n").filter { !$0.hasPrefix("name:") }
    try FileManager.default.removeItem(atPath: folder.path("pipeline.yaml"))
    for (file, root) in [("p1", "one"), ("p2", "two")] {
      try FileManager.default.createDirectory(
        atPath: folder.path("stores/" + root), withIntermediateDirectories: true)
      try folder.write(
        "stores/\(root)/a.sqlite", "Orders.xcdatamodeld/Orders",
        "INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) VALUES (1, 1, 1, 'A', 5)")
      try (["name: \(file)"] + text).joined(separator: "\n")
        .replacing("stores: stores", with: "stores: stores/\(root)")
        .replacing("roots: stores", with: "roots: stores/\(root)")
        .write(toFile: folder.path("\(file).yaml"), atomically: true, encoding: .utf8)
      let run = try godwit(folder, "run", file)
      try #require(run.status == 0 && run.summary["found"] as? Int == 1, "\(run.messages)")
    }
    return folder
  }

  private func godwit(
    _ folder: PipelineFolder, _ command: String, _ file: String, _ options: [String] = [],
    killAfter step: Int? = nil
  ) throws -> Godwit.Run {
    let words = command.split(separator: " ").map(String.init)
    return try Godwit.run(
      words + [folder.path("\(file).yaml"), "--json"] + options, killAfter: step)
  }

  @Test func `each have their own runs, backups and stores`() throws {
    let folder = try pair()
    let stores = ["one", "two"].map { folder.path("stores/\($0)/a.sqlite") }
    for (file, store) in zip(["p1", "p2"], stores) {
      let status = try godwit(folder, "status", file).summary
      let run = try #require(status["run"] as? [String: Any])["name"] as? String
      #expect(status["pipeline"] as? String == file && status["backups"] as? Int == 1)
      #expect(
        try godwit(folder, "history", file).lines.map { $0["name"] as? String } == [run])
      #expect(
        try godwit(folder, "backups list", file).lines("backup").map { $0["store"] as? String }
          == [store])
      #expect(try godwit(folder, "verify", file).results.keys.sorted() == [store])
      let report = try Godwit.run(["report", folder.path("\(file).yaml"), "--format", "json"])
      #expect(report.output.contains(store))
    }
  }

  @Test func `control no run of each other`() throws {
    let folder = try pair()
    try folder.writeOrder("one/b")
    let file = folder.path("p1.yaml")
    let slow = try String(contentsOfFile: file, encoding: .utf8) + "\nlimits: { io: 6KiB/s }\n"
    try slow.write(toFile: file, atomically: true, encoding: .utf8)
    var said: [Godwit.Run] = []
    let run = try Godwit.run(
      ["run", file, "--json"], at: #""event":"plan""#,
      { _ in
        for words in [["status"], ["pause"], ["limit", "workers=1"]] {
          said.append(try Godwit.run(["control", folder.path("p2.yaml")] + words))
        }
        #expect(!FileManager.default.fileExists(atPath: folder.path("state/control.json")))
        said.append(try Godwit.run(["control", file, "status", "--json"]))
        said.append(try Godwit.run(["control", file, "limit", "io=none"]))
      })
    #expect(run.status == 0, "\(run.messages)")
    #expect(said.map(\.status) == [69, 69, 69, 0, 0])
    for refusal in said.prefix(3) { #expect(refusal.messages.contains(file)) }
    #expect(said[3].summary["pipeline"] as? String == "p1")
  }

  @Test func `are rolled back and pruned apart`() throws {
    let folder = try pair()
    let stores = ["one", "two"].map { folder.path("stores/\($0)/a.sqlite") }
    let second = try folder.bytes("stores/two/a.sqlite")
    let rollback = try godwit(folder, "rollback", "p1")
    #expect(rollback.status == 0 && rollback.results.keys.sorted() == [stores[0]])
    #expect(try folder.bytes("stores/two/a.sqlite") == second)
    #expect(try godwit(folder, "status", "p2").summary["rolledBack"] as? Int == 0)
    let none = try godwit(folder, "rollback", "p1", ["--store", stores[1]])
    #expect(none.status == 3 && none.reason(of: "two/a") == "no-backup")
    let pruned = try godwit(folder, "backups prune", "p1", ["--keep", "0s"])
    #expect(pruned.lines("backup").allSatisfy { $0["store"] as? String == stores[0] })
    #expect(try godwit(folder, "backups list", "p2").summary["backups"] as? Int == 1)
  }

  @Test func `resume no run of each other`() throws {
    let folder = try pair()
    for name in ["b", "c"] {
      try folder.write(
        "stores/one/\(name).sqlite", "Orders.xcdatamodeld/Orders",
        "INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) VALUES (1, 1, 1, 'A', 5)")
    }
    let killed = try godwit(folder, "run", "p1", killAfter: 20)
    try #require(killed.status == -SIGKILL)
    let other = try godwit(folder, "run", "p2")
    #expect(other.status == 0 && other.summary["resumed"] as? Bool == false)
    #expect(try godwit(folder, "run", "p1").status == 0)
    #expect(try godwit(folder, "verify", "p1").summary["found"] as? Int == 3)
    #expect(try godwit(folder, "verify", "p2").summary["found"] as? Int == 1)
  }

  @Test func `finish a rollback of each other, which stays of the one that began it`() throws {
    var finished = 0
    for step in stride(from: 4, to: 60, by: 3) {
      let folder = try PipelineFolder.orders(["a"])
      #expect(try Godwit.run(folder).status == 0)
      guard try folder.godwit(["rollback"], killAfter: step).status == -SIGKILL else { break }
      let lines = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
        .split(separator: "\n").filter { !$0.hasPrefix("name:") }
      try (["name: other"] + lines).joined(separator: "\n")
        .write(toFile: folder.path("other.yaml"), atomically: true, encoding: .utf8)
      let other = try Godwit.run(["rollback", folder.path("other.yaml"), "--json"])
      guard other.summary["restored"] as? Int == 1 else { continue }
      finished += 1
      let status = try folder.godwit(["status"])
      #expect(status.status == 3 && status.summary["rolledBack"] as? Int == 1, "step \(step)")
      let list = try folder.godwit(["backups", "list"]).lines("backup")
      let kept = list.compactMap { $0["path"] as? String }
      #expect(kept.contains { $0.contains(".godwit-rolled-back-") }, "step \(step): \(kept)")
    }
    #expect(finished > 0)
  }

  @Test func `that was renamed keeps its runs`() throws {
    let folder = try pair()
    try FileManager.default.moveItem(
      atPath: folder.path("p1.yaml"), toPath: folder.path("p3.yaml"))
    #expect(try godwit(folder, "rollback", "p3").summary["restored"] as? Int == 1)
  }

  /// The run of one is killed, and its file renamed before anybody asks; then the other one runs.
  @Test func `that was renamed keeps what a killed run of it has done, and its time`() throws {
    var seen = 0
    for step in stride(from: 14, to: 36, by: 2) {
      let folder = try pair()
      for name in ["b", "c"] { try folder.writeOrder("one/\(name)") }
      guard try godwit(folder, "run", "p1", killAfter: step).status == -SIGKILL else { break }
      try FileManager.default.moveItem(
        atPath: folder.path("p1.yaml"), toPath: folder.path("p3.yaml"))
      let status = try godwit(folder, "status", "p3").summary
      let counts = try #require(status["counts"] as? [String: Any])
      let found = try #require(counts["found"] as? Int)
      let pending = try #require(counts["pending"] as? Int)
      let backups = try #require(status["backups"] as? Int)
      #expect(found - pending == backups, "step \(step)")
      try #require(try godwit(folder, "run", "p2").status == 0)
      guard backups > 1 else { continue }
      seen += 1
      let killed = try #require(try godwit(folder, "history", "p3").lines.first)
      #expect(killed["ended"] == nil && killed["workedSeconds"] as? Double ?? 0 > 0)
    }
    #expect(seen > 0)
  }

  @Test func `act on no store outside of the present roots`() throws {
    let folder = try pair()
    let file = folder.path("p1.yaml")
    try String(decoding: folder.bytes("p1.yaml"), as: UTF8.self)
      .replacing("stores/one", with: "stores/two")
      .write(toFile: file, atomically: true, encoding: .utf8)
    let before = try folder.storeContents()
    let verify = try godwit(folder, "verify", "p1")
    #expect(verify.status == 0 && verify.summary["outside"] as? Int == 1)
    let rollback = try godwit(folder, "rollback", "p1")
    #expect(rollback.status == 3 && rollback.reason(of: "one/a") == "outside-roots")
    let pruned = try godwit(folder, "backups prune", "p1", ["--keep", "0s"])
    #expect(pruned.lines("backup").map { $0["reason"] as? String } == ["outside-roots"])
    #expect(try folder.storeContents() == before)
  }
}
