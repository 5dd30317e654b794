import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

/// Its backup has a WAL: several files, which no one step puts back.
@Suite struct `A rollback of a store that is gone, and had a write-ahead log` {
  /// Another volume than that of the stores.
  private static let otherVolume = "/dev/shm"

  private func lostStore(_ state: [String]) throws -> (PipelineFolder, [String: Data], String) {
    let (folder, before, store) = try migratedStore(state)
    try FileManager.default.removeItem(atPath: store)
    return (folder, before, store)
  }

  private func migratedStore(
    _ state: [String] = []
  ) throws -> (PipelineFolder, [String: Data], String) {
    let (folder, before, store) = try newStore()
    let run = try Godwit.run(["run", folder.url.path, "--json"] + state)
    try #require(run.status == 0, "\(run.messages)")
    return (folder, before, store)
  }

  private func newStore() throws -> (PipelineFolder, [String: Data], String) {
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: 1, rows: 60, seed: 21)
    (fleet.logs, fleet.external) = (.all, true)
    try fleet.write(to: folder.path("stores"))
    let before = try folder.storeContents()
    let log = try #require(before.keys.first { $0.hasSuffix("-wal") })
    return (folder, before, folder.path("stores/\(log.dropLast(4))"))
  }

  private func rollBack(
    _ folder: PipelineFolder, _ state: [String] = [], killAfter step: Int? = nil
  ) throws -> Godwit.Run {
    try Godwit.run(["rollback", folder.url.path, "--json"] + state, killAfter: step)
  }

  /// What an application would read, of copies; nil where nothing of the store is there.
  private func rows(_ store: String, in folder: PipelineFolder) throws -> [String]? {
    let files = FileManager.default
    guard files.fileExists(atPath: store) else {
      for log in ["-wal", "-journal", "-shm"] {
        #expect(!files.fileExists(atPath: store + log), "\(log) lies alone")
      }
      return nil
    }
    let copy = folder.root.appendingPathComponent("copy-\(UUID().uuidString)").path
    for suffix in ["", "-wal", "-journal"] where files.fileExists(atPath: store + suffix) {
      try files.copyItem(atPath: store + suffix, toPath: copy + suffix)
    }
    let connection = try Connection(path: copy, mode: .readWrite)
    defer { try? connection.close() }
    #expect(try connection.drawn("PRAGMA integrity_check") == ["ok"])
    return try connection.drawn("SELECT Z_PK, ZNAME FROM ZRECIPE ORDER BY 1")
  }

  private func leftovers(_ folder: PipelineFolder) -> [String] {
    folder.storeFiles().filter { $0.contains(".godwit-") && !$0.contains(".godwit-backup-") }
  }

  @Test(arguments: [false, true])
  func `has a whole store or none at the path, wherever it is killed`(isElsewhere: Bool) throws {
    guard !isElsewhere || FileManager.default.isWritableFile(atPath: Self.otherVolume) else {
      return
    }
    var whole: Set<[String]> = []
    var (step, isDone) = (isElsewhere ? 2 : 1, false)
    while !isDone {
      let place = "\(Self.otherVolume)/godwit-state-\(UUID().uuidString)"
      defer { try? FileManager.default.removeItem(atPath: place) }
      let state = isElsewhere ? ["--state", place] : []
      let (folder, before, store) = try lostStore(state)
      let killed = try rollBack(folder, state, killAfter: step)
      try #require([0, -SIGKILL].contains(killed.status), "step \(step): \(killed.messages)")
      isDone = killed.status == 0
      if let rows = try rows(store, in: folder) { whole.insert(rows) }
      let last = try rollBack(folder, state)
      #expect(last.status == 0, "step \(step): \(last.output) \(last.messages)")
      #expect(try folder.contentsOfStoresAlone() == before, "step \(step)")
      #expect(leftovers(folder) == [], "step \(step)")
      if !isElsewhere {
        #expect(try folder.names(in: "state/rollbacks").isEmpty, "step \(step)")
        #expect(try folder.godwit(["verify"]).status == 0, "step \(step)")
      }
      step += isElsewhere ? 3 : 1
    }
    #expect(step > 20)
    #expect(whole.count == 1, "it reads the same at every moment")
  }

  /// Kills the rollback as soon as the copy has the store's name, and the log is not beside it yet.
  private func copyAtPath() throws -> (PipelineFolder, [String: Data], String) {
    for step in 2..<60 {
      let (folder, before, store) = try lostStore([])
      try #require(try rollBack(folder, killAfter: step).status == -SIGKILL)
      if FileManager.default.fileExists(atPath: store) { return (folder, before, store) }
    }
    throw CocoaError(.fileNoSuchFile)
  }

  @Test func `leaves what an application has written to the copy since, and says so`() throws {
    let (folder, _, store) = try copyAtPath()
    let application = try Connection(path: store, mode: .readWrite)
    try application.execute("UPDATE ZRECIPE SET ZNAME = 'mine'")
    try application.close()
    let written = try Data(contentsOf: URL(fileURLWithPath: store))
    let rollback = try rollBack(folder)
    #expect(rollback.status == 3)
    let reason = (rollback.results[store]?["reasons"] as? [[String: Any]])?.first
    #expect(reason?["reason"] as? String == "changed-since")
    #expect((reason?["message"] as? String)?.contains("stays as it is") == true)
    #expect(try Data(contentsOf: URL(fileURLWithPath: store)) == written)
    #expect(!FileManager.default.fileExists(atPath: store + "-wal"))
    #expect(leftovers(folder) == [])
    #expect(try folder.names(in: "state/rollbacks").isEmpty)
  }

  @Test func `waits for whoever has the copy open, and then goes on`() throws {
    let (folder, before, store) = try copyAtPath()
    let application = try FileHandle(forReadingFrom: URL(fileURLWithPath: store))
    let rollback = try rollBack(folder)
    #expect(rollback.status == 3)
    let reason = (rollback.results[store]?["reasons"] as? [[String: Any]])?.first
    #expect(reason?["reason"] as? String == "in-use")
    #expect(!FileManager.default.fileExists(atPath: store + "-wal"))
    #expect(leftovers(folder) == [])
    try application.close()
    #expect(try rollBack(folder).status == 0)
    #expect(try folder.contentsOfStoresAlone() == before)
    #expect(leftovers(folder) == [])
  }

  private func externalData(of store: String) -> Set<String> {
    let file = URL(fileURLWithPath: store)
    let stem = file.deletingPathExtension().lastPathComponent
    let folder = file.deletingLastPathComponent().path + "/.\(stem)_SUPPORT/_EXTERNAL_DATA"
    return Set((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
  }

  /// Whether a rollback was cut off whose journal says that the backup is in its place.
  private func isReplaced(in folder: PipelineFolder) -> Bool {
    guard let name = try? folder.names(in: "state/rollbacks").first,
      let journal = try? folder.bytes("state/rollbacks/\(name)/journal.json")
    else { return false }
    let text = String(decoding: journal, as: UTF8.self)
    return ["replaced", "finished"].contains { text.contains(#""state":"\#($0)""#) }
  }

  /// It was cut off while the store was there.
  @Test func `puts all of the backup back where the store is removed after a crash in it`() throws {
    var (step, aside, replaced) = (2, 0, 0)
    while true {
      let (folder, before, store) = try migratedStore()
      let external = externalData(of: store)
      let killed = try rollBack(folder, killAfter: step)
      if killed.status == 0 { break }
      try #require(killed.status == -SIGKILL, "step \(step): \(killed.messages)")
      for suffix in ["", "-wal", "-shm"] {
        try? FileManager.default.removeItem(atPath: store + suffix)
      }
      let dry = try rollBack(folder, ["--dry-run"])
      // Written down as restored: who removes it then has removed a store that was whole.
      if dry.summary["found"] as? Int == 0 { break }
      #expect(dry.status == 0 && dry.summary["restored"] as? Int == 1, "step \(step)")
      // It is killed once more, or refused, before it ends.
      if isReplaced(in: folder) {
        #expect(try rollBack(folder, killAfter: 5).status == -SIGKILL, "step \(step)")
        replaced += 1
      } else if step.isMultiple(of: 2) {
        try Data(count: 5000).write(to: URL(fileURLWithPath: store + "-wal"))
        #expect(try rollBack(folder).status == 3, "step \(step)")
        try FileManager.default.removeItem(atPath: store + "-wal")
      }
      let rollback = try rollBack(folder)
      #expect(rollback.status == 0, "step \(step): \(rollback.output) \(rollback.messages)")
      #expect(try folder.contentsOfStoresAlone() == before, "step \(step)")
      #expect(try folder.names(in: "state/rollbacks").isEmpty, "step \(step)")
      // What it had replaced is in the list with the backup, and nothing else is left.
      let kept = leftovers(folder).filter { $0.hasSuffix(".sqlite") }
      let list = try folder.godwit(["backups", "list"]).lines("backup")
      #expect(
        Set(list.compactMap { $0["path"] as? String }).isSuperset(
          of: kept.map { folder.path("stores/" + $0) }), "step \(step)")
      #expect(!list.contains { $0["state"] as? String == "unlisted" }, "step \(step)")
      #expect(leftovers(folder).allSatisfy { $0.contains("rolled-back") }, "step \(step)")
      for name in kept {
        #expect(externalData(of: folder.path("stores/" + name)) == external, "step \(step)")
      }
      if !kept.isEmpty { aside += 1 }
      step += 5
    }
    #expect(aside > 3 && replaced > 0)
  }

  /// It is the source, and no backup has it whole.
  @Test func `refuses one that went before the commit of a killed run had replaced it`() throws {
    for step in stride(from: 15, to: 75, by: 6) {
      let (folder, before, store) = try newStore()
      guard try Godwit.run(folder, killAfter: step).status == -SIGKILL else { break }
      let names = (try? folder.names(in: "state/stores")) ?? []
      guard
        names.contains(where: {
          FileManager.default.fileExists(atPath: folder.path("state/stores/\($0)/journal.json"))
        }),
        try folder.contentsOfStoresAlone() == before
      else { continue }
      for suffix in ["", "-wal", "-shm"] {
        try? FileManager.default.removeItem(atPath: store + suffix)
      }
      for options in [["--dry-run"], []] {
        let rollback = try rollBack(folder, options)
        #expect(rollback.status == 3, "\(options): \(rollback.messages)")
        let reasons = rollback.results[store]?["reasons"] as? [[String: Any]]
        #expect(reasons?.first?["reason"] as? String == "commit", "\(options)")
      }
      return
    }
    Issue.record("no step between the journal and the exchange")
  }

  @Test func `ends with what an application wrote to the copy that was in the store's place`()
    throws
  {
    var (step, written) = (40, 0)
    while true {
      let (folder, _, store) = try migratedStore()
      let after = try rows(store, in: folder)
      guard try rollBack(folder, killAfter: step).status == -SIGKILL else { break }
      step += 1
      // The new one, or the backup itself with its log.
      guard try !FileManager.default.fileExists(atPath: store + "-wal"),
        try Connection(path: store, mode: .immutable).drawn(
          "SELECT count(*) FROM sqlite_master WHERE name = 'ZCATEGORY'") == ["0"]
      else { continue }
      let application = try Connection(path: store, mode: .readWrite)
      try application.execute("UPDATE ZRECIPE SET ZNAME = 'mine'")
      try application.close()
      let rollback = try rollBack(folder)
      #expect(rollback.status == 0, "step \(step): \(rollback.output) \(rollback.messages)")
      let found = try rows(store, in: folder) ?? []
      #expect(found.count == after?.count && found.allSatisfy { $0.contains("mine") })
      #expect(try folder.godwit(["verify"]).status == 0, "step \(step)")
      let list = try folder.godwit(["backups", "list"]).lines("backup")
      #expect(list.count == 2 && !list.contains { $0["state"] as? String == "unlisted" })
      written += 1
    }
    #expect(written > 0)
  }

  @Test func `puts nothing beside a store that somebody has put there since`() throws {
    var (step, own, isDone) = (2, 0, false)
    while !isDone {
      defer { step += 2 }
      let (folder, _, store) = try lostStore([])
      let killed = try rollBack(folder, killAfter: step)
      isDone = killed.status == 0
      guard !isDone, !FileManager.default.fileExists(atPath: store) else { continue }
      own += 1
      let mine = try Connection(path: store, mode: .create)
      try mine.execute("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)")
      try mine.close()
      let bytes = try Data(contentsOf: URL(fileURLWithPath: store))
      _ = try rollBack(folder)
      #expect(try Data(contentsOf: URL(fileURLWithPath: store)) == bytes, "step \(step)")
      #expect(!FileManager.default.fileExists(atPath: store + "-wal"), "step \(step)")
      #expect(leftovers(folder) == [], "step \(step)")
    }
    #expect(own > 3)
  }
}
