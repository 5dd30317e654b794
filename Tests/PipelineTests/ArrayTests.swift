import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

/// Bundles of a manifest, done by whoever starts `godwit worker`: here, the test.
@Suite struct `Stores in bundles` {
  func orders(_ count: Int, pipeline: String = "") throws -> PipelineFolder {
    let folder = try PipelineFolder.orders((0..<count).map { "s\($0)" })
    try folder.addToPipeline(
      "engine: { array: { bundle: { stores: 2 } } }\n" + pipeline)
    return folder
  }

  /// A folder with the same stores, migrated by the engine local.
  func reference(_ count: Int) throws -> (PipelineFolder, Godwit.Run) {
    let folder = try orders(count)
    let run = try folder.godwit(["run"], ["--engine", "local"])
    try #require(run.status == 0, "\(run.messages)")
    return (folder, run)
  }

  @Test func `give what the engine local gives: files, events, ledger and summary`() throws {
    let (wanted, local) = try reference(5)
    let folder = try orders(5)
    let submitted = try folder.godwit(["run"], ["--detach"])
    #expect(submitted.status == 0, "\(submitted.messages)")
    #expect(submitted.summary["detached"] as? Bool == true)
    #expect(try folder.manifests().map(Godwit.bundles) == [3])
    try folder.doAll()
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
    #expect(try folder.manifests().isEmpty, "what is over goes")
  }

  @Test func `are not copied again while they are in use and nothing changes`() throws {
    let folder = try orders(2)
    try folder.set(
      "engine: { array: { bundle: { stores: 2 } } }",
      stores: "{ roots: stores, in-use: snapshot }")
    let reader = try folder.reader(of: "s0")
    for night in 1...3 {
      #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
      try folder.doAll()
      let run = try folder.godwit(["run"])
      #expect(run.status == 0, "night \(night): \(run.messages)")
      #expect(run.counts.hasPrefix("2 found"))
      #expect(folder.storeFiles().count { $0.hasPrefix("s0.sqlite.godwit-snapshot-") } == 1)
      let result = try #require(run.results[folder.path("stores/s0.sqlite")])
      #expect((result["output"] as? String)?.contains(".godwit-snapshot-") == true)
    }
    try reader.close()
  }

  @Test func `may be done twice`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifest = try #require(try folder.manifests().first)
    #expect(try Godwit.task(manifest, 0).status == 0)
    let contents = try folder.storeContents()
    #expect(
      try Godwit.task(manifest, 0).status == 0, "a finished task that runs again does nothing")
    #expect(try folder.storeContents() == contents)
    #expect(try folder.godwit(["run"]).counts == "2 found, 2 migrated")
  }

  /// Kills fall before the start marker, in the middle of stores, and before the bundle's own marker.
  @Test(arguments: [1, 2, 5, 9, 14])
  func `may be cut off anywhere, and begun again`(step: Int) throws {
    let (wanted, _) = try reference(2)
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifest = try #require(try folder.manifests().first)
    let first = try Godwit.task(manifest, 0, killAfter: step)
    #expect(first.status == -9 || first.status == 0)
    #expect(try Godwit.task(manifest, 0).status == 0)
    let run = try folder.godwit(["run"])
    #expect(run.counts == "2 found, 2 migrated")
    #expect(try folder.content("stores/s0.sqlite") == wanted.content("stores/s0.sqlite"))
    let backups = folder.storeFiles().filter { $0.contains(".godwit-backup-") }
    #expect(backups.count == 2, "nothing is committed twice")
  }

  @Test func `are done by one attempt at a time`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifest = try #require(try folder.manifests().first)
    let lock = open(
      URL(fileURLWithPath: manifest).deletingLastPathComponent().path + "/0.lock",
      O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    try #require(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
    let run = try Godwit.task(manifest, 0)
    #expect(run.status == 75)
    #expect(run.messages.contains("another attempt"))
    close(lock)
    #expect(try Godwit.task(manifest, 0).status == 0)
  }

  /// A task says that a bundle is done, waits for the disk, and lets go of it. One that stands still meanwhile
  /// is not waited for long.
  @Test(arguments: [true, false])
  func `leave no folder where a task ends after what it has said`(ends: Bool) throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifest = try #require(try folder.manifests().first)
    let array = URL(fileURLWithPath: manifest).deletingLastPathComponent().path
    #expect(try Godwit.task(manifest, 0).status == 0)
    let lock = open(array + "/0.lock", O_RDWR | O_CLOEXEC)
    try #require(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && futimens(lock, nil) == 0)
    if ends {
      Thread.detachNewThread {
        sleep(2)
        close(lock)
      }
    }
    let run = try folder.godwit(["run"])
    #expect(run.status == 0 && run.counts == "2 found, 2 migrated", "\(run.messages)")
    #expect(try folder.manifests().isEmpty == ends)
    guard !ends else { return }
    close(lock)
    #expect(try folder.godwit(["run"]).status == 0)
    #expect(try folder.manifests().isEmpty)
  }

  @Test func `are not touched once their permit is gone`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let contents = try folder.storeContents()
    let manifest = try #require(try folder.manifests().first)
    try FileManager.default.removeItem(
      atPath: URL(fileURLWithPath: manifest).deletingLastPathComponent().path + "/permit")
    let run = try Godwit.task(manifest, 0)
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
    let manifest = try #require(try folder.manifests().first)
    #expect(try Godwit.task(manifest, 0).status == 0)
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
    try folder.doAll()
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
  @Test func `end although applications write to what they have migrated`() throws {
    let folder = try orders(4)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try folder.doAll()
    for name in ["s0", "s1", "s2"] {
      let connection = try Connection(path: folder.path("stores/\(name).sqlite"), mode: .readWrite)
      try connection.execute("UPDATE ZORDER SET Z_OPT = Z_OPT + 1")
      try connection.close()
      #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
      try folder.doAll()
    }
    for _ in 0..<2 {
      #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
      try folder.doAll()
    }
    #expect(try folder.manifests().isEmpty)
    #expect(try folder.godwit(["status"]).summary["state"] as? String == "ended")
  }
}
