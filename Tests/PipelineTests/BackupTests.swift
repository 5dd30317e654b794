import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `Backups` {
  private func backups(_ folder: PipelineFolder) -> [String] {
    folder.storeFiles().filter { $0.contains(".godwit-backup-") }
  }

  private func prune(_ folder: PipelineFolder, _ options: [String] = ["--keep", "0s"]) throws
    -> Godwit.Run
  {
    try folder.godwit(["backups", "prune"], options)
  }

  @Test func `are kept for ever unless the pipeline says otherwise`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    #expect(try Godwit.run(folder).status == 0)
    #expect(backups(folder).count == 2)
    #expect(try folder.godwit(["backups", "prune"]).status == 64)
  }

  @Test func `go at the end of a run when they are too old`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    try folder.addToPipeline("backups: { keep: 1h }")
    #expect(try Godwit.run(folder).status == 0)
    #expect(backups(folder).count == 2, "an hour has not passed")
    try String(decoding: folder.bytes("pipeline.yaml"), as: UTF8.self)
      .replacing("keep: 1h", with: "keep: 0s")
      .write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    let run = try Godwit.run(folder)
    #expect(run.summary["pruned-backups"] as? Int == 2)
    #expect(backups(folder).isEmpty)
    #expect(try folder.godwit(["backups", "list"]).summary["backups"] as? Int == 0)
  }

  /// Backups of two runs, of `a` and then of `b`, and the bytes of either.
  private func twoOfOneSize() throws -> (folder: PipelineFolder, size: Int) {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    try folder.write(
      "stores/b.sqlite", "Orders.xcdatamodeld/Orders",
      "INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) VALUES (1, 1, 1, 'A', 5)")
    #expect(try Godwit.run(folder).status == 0)
    let list = try folder.godwit(["backups", "list"]).lines
    let size = try #require(list.first?["bytes"] as? Int)
    return (folder, size)
  }

  @Test func `go while they are too large together, the oldest first`() throws {
    let (folder, size) = try twoOfOneSize()
    let result = try prune(folder, ["--max", "\(size + 1)"])
    #expect(result.summary["pruned"] as? Int == 1)
    #expect(backups(folder).allSatisfy { $0.hasPrefix("b.sqlite") })
    #expect(backups(folder).count == 1)
  }

  @Test func `that somebody removed let none go that is there`() throws {
    let (folder, size) = try twoOfOneSize()
    for name in folder.storeFiles() where name.hasPrefix("b.") {
      try FileManager.default.removeItem(atPath: folder.path("stores/\(name)"))
    }
    let result = try prune(folder, ["--max", "\(size + 1)"])
    #expect(result.summary["pruned"] as? Int == 0)
    #expect(backups(folder).count == 1)
  }

  @Test func `that somebody removed are listed as missing`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    let name = try #require(backups(folder).first)
    try FileManager.default.removeItem(atPath: folder.path("stores/\(name)"))
    let list = try folder.godwit(["backups", "list"])
    let states = Set(list.lines("backup").compactMap { $0["state"] as? String })
    #expect(states == ["missing", "kept"])
    #expect(list.summary["backups"] as? Int == 2 && list.summary["missing"] as? Int == 1)
  }

  // SQLite makes an empty WAL for who only reads a store in WAL mode.
  @Test func `that somebody looked at can be put back`() throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    let name = try #require(backups(folder).first)
    try Data().write(to: URL(fileURLWithPath: folder.path("stores/\(name)-wal")))
    #expect(try folder.godwit(["rollback"]).summary["restored"] as? Int == 1)
  }

  @Test func `that were removed are named by a rollback, which does not call it done`() throws {
    let folder = try PipelineFolder.orders()
    let name = try #require(try Godwit.run(folder).summary["run"] as? String)
    #expect(try prune(folder, ["--keep", "0s"]).summary["pruned"] as? Int == 2)
    for options in [[], ["--run", name], ["--dry-run"]] {
      let rollback = try folder.godwit(["rollback"], options)
      #expect(rollback.status == 3, "\(options): \(rollback.messages)")
      #expect(rollback.summary["refused"] as? Int == 2)
      #expect(rollback.reason(of: "a") == "no-backup")
    }
  }

  @Test func `of stores that were put back may go, and a rollback has nothing left to do`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    #expect(try folder.godwit(["rollback"]).status == 0)
    #expect(try prune(folder, ["--keep", "0s"]).status == 0)
    #expect(backups(folder).isEmpty)
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 0 && rollback.summary["found"] as? Int == 0, "\(rollback.messages)")
  }

  @Test func `that somebody removed are listed until a pruning forgets them`() throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    for name in backups(folder) {
      try FileManager.default.removeItem(atPath: folder.path("stores/" + name))
    }
    let dry = try Godwit.run(["backups", "prune", folder.url.path, "--keep", "0s", "--dry-run"])
    #expect(dry.messages.contains("would no longer be listed"), "\(dry.messages)")
    #expect(try folder.godwit(["backups", "list"]).lines.count { $0["path"] != nil } == 1)
    let pruned = try Godwit.run(["backups", "prune", folder.url.path, "--keep", "0s"])
    #expect(pruned.messages.contains("is no longer listed"), "\(pruned.messages)")
  }

  @Test func `that were put back are no loss once they are pruned`() throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    let rollback = ["rollback", folder.url.path, "--store", folder.path("stores/a.sqlite")]
    #expect(try Godwit.run(rollback).status == 0)
    let before = try Godwit.run(rollback)
    _ = try prune(folder)
    #expect(backups(folder).isEmpty)
    let after = try Godwit.run(rollback)
    #expect(after.status == before.status && after.messages == before.messages, "\(after.messages)")
    #expect(after.messages.contains("restored already"), "\(after.messages)")
  }

  @Test func `go with their WAL and external data`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: 3, rows: 400, seed: 17)
    (fleet.logs, fleet.external) = (.all, true)
    try fleet.write(to: folder.path("stores"))
    #expect(try Godwit.run(folder).status == 0)
    let after = try folder.contentsOfStoresAlone()
    #expect(backups(folder).contains { $0.contains("_EXTERNAL_DATA") })
    let dry = try prune(folder, ["--keep", "0s", "--dry-run"])
    #expect(dry.summary["pruned"] as? Int == 3)
    #expect(!backups(folder).isEmpty)
    #expect(try prune(folder).summary["pruned"] as? Int == 3)
    #expect(backups(folder).isEmpty)
    #expect(try folder.contentsOfStoresAlone() == after, "and nothing else goes")
  }

  enum Trouble: String, CaseIterable {
    case storeMissing = "store-missing"
    case storeDamaged = "store-damaged"
    case otherStore = "other-store"
    case backupChanged = "backup-changed"

    func make(_ folder: PipelineFolder, _ backup: String) throws {
      let store = folder.path("stores/a.sqlite")
      switch self {
      case .storeMissing: try FileManager.default.removeItem(atPath: store)
      case .storeDamaged:
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: store))
        try file.truncate(atOffset: 5_000)
        try file.close()
      case .otherStore:
        let connection = try Connection(path: store, mode: .readWrite)
        try connection.execute(
          "UPDATE Z_METADATA SET Z_UUID = '9F1C2B61-0000-4000-8000-0000000000FF'")
        try connection.close()
      case .backupChanged:
        // Another file of the same size.
        let path = folder.path("stores/" + backup)
        let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
        try FileManager.default.removeItem(atPath: path)
        try Data(repeating: 1, count: size).write(to: URL(fileURLWithPath: path))
      }
    }
  }

  @Test(arguments: Trouble.allCases)
  func `that may be the only good copy, or are not ours, stay`(trouble: Trouble) throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    let backup = try #require(backups(folder).first { $0.hasPrefix("a.sqlite") })
    try trouble.make(folder, backup)
    let before = try? folder.bytes("stores/" + backup)
    let result = try prune(folder)
    #expect(result.summary["pruned"] as? Int == 1, "that of the other store")
    #expect(result.summary["kept"] as? Int == 1)
    let item = result.lines.first { $0["pruned"] as? Bool == false }
    #expect(item?["reason"] as? String == trouble.rawValue, "\(item ?? [:])")
    #expect((try? folder.bytes("stores/" + backup)) == before)
  }

  @Test func `of a store that an application wrote to since may go`() throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    try folder.writeOrder(to: "stores/a.sqlite")
    #expect(try prune(folder).summary["pruned"] as? Int == 1)
  }

  @Test func `that a removal was killed in are removed by the next`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: 3, rows: 100, seed: 2)
    (fleet.logs, fleet.external) = (.all, true)
    try fleet.write(to: folder.path("stores"))
    #expect(try Godwit.run(folder).status == 0)
    var (step, kills) = (1, 0)
    while try folder.godwit(["backups", "prune"], ["--keep", "0s"], killAfter: step).status != 0 {
      kills += 1
      step += 1
    }
    #expect(kills > 2)
    #expect(try prune(folder).status == 0)
    #expect(backups(folder).isEmpty)
  }

  @Test func `that a removal was killed in leave no empty folder`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: 3, rows: 400, seed: 17)
    (fleet.logs, fleet.external) = (.all, true)
    try fleet.write(to: folder.path("stores"))
    #expect(try Godwit.run(folder).status == 0)
    let walk = FileManager.default.enumerator(atPath: folder.path("stores"))
    let emptied = (walk?.compactMap { $0 as? String } ?? []).filter {
      $0.contains(".godwit-backup-") && $0.hasSuffix("_SUPPORT/_EXTERNAL_DATA")
    }
    try #require(!emptied.isEmpty)
    for name in emptied {
      try FileManager.default.removeItem(atPath: folder.path("stores/" + name))
    }
    let ledger = try Connection(path: folder.path("ledger.sqlite"), mode: .readWrite)
    try ledger.execute("UPDATE backups SET state = 'pruning'")
    try ledger.close()
    #expect(try prune(folder).summary["pruned"] as? Int == 3)
    let left = FileManager.default.enumerator(atPath: folder.path("stores"))
    let names = left?.compactMap { $0 as? String } ?? []
    #expect(!names.contains { $0.contains(".godwit-backup-") }, "\(names)")
  }
}
