import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

/// What one detached start leaves to the next.
extension `Stores in bundles` {
  private static let names = ["s0", "s1", "s2"]

  /// Stores in two waves.
  private func waves(
    _ keys: String = "", stores: String = "{ roots: stores }"
  ) throws -> PipelineFolder {
    let folder = try PipelineFolder.orders(Self.names)
    try folder.set(
      "engine: array\ncanary: [1, 100%]\nlimits: { failure-budget: 9 }\n" + keys, stores: stores)
    return folder
  }

  @Test func `are done afresh by every start of a run that is to do so`() throws {
    let folder = try waves("commit: { beside: \"-2\" }")
    #expect(try folder.godwit(["run"], ["--engine", "local"]).status == 0)
    // What is in the way is another's by now.
    for name in Self.names {
      let output = try Connection(path: folder.path("stores/\(name)-2.sqlite"), mode: .readWrite)
      try output.execute("UPDATE ZORDER SET Z_OPT = Z_OPT + 1")
      try output.close()
    }
    #expect(try folder.godwit(["run"], ["--fresh", "--detach"]).status == 0)
    try folder.doAll()
    let run = try finish(folder)
    #expect(run.status == 3 && run.counts == "3 found, 3 failed", "\(run.messages)")
    for name in Self.names { #expect(run.reason(of: name) == "output") }
  }

  @Test(arguments: ["skip", "{ wait: 1s }", "snapshot"])
  func `come to an end where stores of every wave are in use`(inUse: String) throws {
    let folder = try waves(stores: "{ roots: stores, in-use: \(inUse) }")
    let readers = try Self.names.map(folder.reader)
    let isSnapshot = inUse == "snapshot"
    for _ in 1...(isSnapshot ? 2 : 1) {
      let run = try finish(folder)
      #expect(run.status == (isSnapshot ? 0 : 75), "\(run.messages)")
      #expect(run.counts == "3 found, 3 \(isSnapshot ? "migrated" : "pending")")
      for name in Self.names where !isSnapshot { #expect(run.reason(of: name) == "in-use") }
    }
    for reader in readers { try reader.close() }
    let run = try finish(folder)
    #expect(run.counts == "3 found, 3 migrated", "each is tried again: \(run.messages)")
  }

  /// Also where they were of the destination's version before the run.
  @Test(arguments: [("", false), ("", true), ("commit: { beside: \"-2\" }", false)])
  func `come to an end where applications write to them all the time`(
    keys: String, isDone: Bool
  ) throws {
    let folder = try waves(keys)
    if isDone { #expect(try folder.godwit(["run"], ["--engine", "local"]).status == 0) }
    func write() throws {
      let made = folder.storeFiles().filter {
        $0.contains(".godwit-backup-") || $0.hasSuffix("-2.sqlite")
      }
      for name in Self.names where made.contains(where: { $0.hasPrefix(name) }) {
        let store = try Connection(path: folder.path("stores/\(name).sqlite"), mode: .readWrite)
        try store.execute("UPDATE ZORDER SET Z_OPT = Z_OPT + 1")
        try store.close()
      }
    }
    try write()
    var run = try folder.godwit(["run"], ["--detach"])
    for _ in 0..<8 where run.summary["detached"] as? Bool == true {
      try folder.doAll()
      try write()
      run = try folder.godwit(["run"], ["--detach"])
    }
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.counts == "3 found, 3 \(isDone ? "same-model" : "migrated")", "\(run.messages)")
  }

  /// Its text about settings has one part, and says as much of what stores become.
  @Test func `are done where an earlier version handed them out`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifests = try folder.manifests()
    let manifest = try #require(manifests.first)
    let text = try String(contentsOfFile: manifest, encoding: .utf8)
    let earlier = text.replacing(/"settings":"([0-9a-f]{64})-[0-9a-f]{64}"/) {
      "\"settings\":\"\($0.1)\""
    }
    try #require(earlier != text)
    try earlier.write(toFile: manifest, atomically: true, encoding: .utf8)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    #expect(try folder.manifests() == manifests, "the next start attaches")
    try folder.doAll()
    let run = try folder.godwit(["run"])
    #expect(run.status == 0 && run.counts == "2 found, 2 migrated", "\(run.messages)")
  }

  @Test func `stay paused where a start is killed between two waves, until the run ends`() throws {
    let folder = try waves()
    let arguments = ["run", folder.url.path, "--detach", "--json"]
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try folder.doAll()
    #expect(try folder.godwit(["control"], ["pause"]).status == 0)
    let killed = try Godwit.run(arguments, at: "\"wave\":2") { process in
      for _ in 0..<600 where try !folder.manifests().isEmpty { usleep(100_000) }
      kill(process, SIGKILL)
    }
    #expect(try killed.status == -9 && folder.manifests().isEmpty, "\(killed.messages)")
    var held: [String?] = []
    let next = try Godwit.run(arguments, at: "\"wave\":2") { _ in
      usleep(1_500_000)
      held.append(try folder.godwit(["status"]).summary["held"] as? String)
      #expect(try folder.manifests().isEmpty, "the second wave has not begun")
      #expect(try folder.godwit(["control"], ["resume"]).status == 0)
    }
    #expect(next.summary["detached"] as? Bool == true && held == ["paused"], "\(next.messages)")
    try folder.doAll()
    #expect(try finish(folder).counts == "3 found, 3 migrated")
    #expect(!FileManager.default.fileExists(atPath: folder.path("state/control.json")))
  }

  @Test func `have no other number of workers by control, which says so`() throws {
    let folder = try waves()
    func limit(_ limits: String...) throws -> Godwit.Run {
      try folder.godwit(["control"], ["limit"] + limits)
    }
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let refused = try limit("io=20MiB/s", "workers=1")
    #expect(refused.status == 64 && refused.messages.contains("is on a cluster"))
    #expect(!FileManager.default.fileExists(atPath: folder.path("state/control.json")))
    #expect(try limit("io=20MiB/s", "workers=default").status == 0)
    #expect(try finish(folder).counts == "3 found, 3 migrated")
  }
}
