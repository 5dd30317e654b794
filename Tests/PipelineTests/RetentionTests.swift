import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `Backups that may be the last copy` {
  /// Stores with external data, migrated; and those that have some.
  private func recipes() throws -> (PipelineFolder, external: [String]) {
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: 10, rows: 400, seed: 17)
    fleet.external = true
    try fleet.write(to: folder.path("stores"))
    #expect(try Godwit.run(folder).status == 0)
    let external = try folder.names(in: "stores").filter { !files(of: $0, folder).isEmpty }
    return (folder, external)
  }

  /// The external data of a user's store.
  private func files(of user: String, _ folder: PipelineFolder) -> [String] {
    let path = folder.path("stores/\(user)/.Recipes_SUPPORT/_EXTERNAL_DATA")
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.sorted().map { path + "/" + $0 }
  }

  private func prune(_ folder: PipelineFolder) throws -> Godwit.Run {
    try folder.godwit(["backups", "prune"], ["--keep", "0s"])
  }

  private func kept(_ run: Godwit.Run, _ reason: String) -> [String] {
    run.lines("backup").filter { $0["reason"] as? String == reason }
      .compactMap { $0["store"] as? String }.sorted()
  }

  @Test func `stay where external data of the store is lost, a file or the whole folder`() throws {
    let (folder, external) = try recipes()
    try #require(external.count >= 2)
    try FileManager.default.removeItem(
      atPath: folder.path("stores/\(external[0])/.Recipes_SUPPORT"))
    try FileManager.default.removeItem(atPath: try #require(files(of: external[1], folder).first))
    let verify = try folder.godwit(["verify"])
    #expect(verify.status == 3 && verify.summary["damaged"] as? Int == 2, "\(verify.output)")
    let result = try prune(folder)
    let lost = external.prefix(2).map { folder.path("stores/\($0)/Recipes.sqlite") }
    #expect(kept(result, "store-damaged") == lost.sorted())
    #expect(result.summary["pruned"] as? Int == 8)
    #expect(try folder.godwit(["backups", "list"]).summary["backups"] as? Int == 2)
  }

  @Test func `stay where a file of external data was exchanged, or written to`() throws {
    let (folder, external) = try recipes()
    try #require(external.count >= 2)
    let exchanged = try #require(files(of: external[0], folder).first)
    let written = try #require(files(of: external[1], folder).first)
    let size = try Data(contentsOf: URL(fileURLWithPath: exchanged)).count
    // One gets another file of its size, the other, which its backup shares, another first byte.
    try FileManager.default.removeItem(atPath: exchanged)
    try Data(repeating: 7, count: size).write(to: URL(fileURLWithPath: exchanged))
    let file = try #require(FileHandle(forUpdatingAtPath: written))
    let first = try #require(try file.read(upToCount: 1)?.first)
    try file.seek(toOffset: 0)
    try file.write(contentsOf: Data([first ^ 1]))
    try file.close()
    let damaged = external.prefix(2).map { folder.path("stores/\($0)/Recipes.sqlite") }
    let verify = try folder.godwit(["verify"])
    #expect(verify.status == 3 && verify.summary["damaged"] as? Int == 2, "\(verify.output)")
    for (store, path) in zip(damaged, [exchanged, written]) {
      let reasons = verify.results[store]?["reasons"] as? [[String: Any]]
      #expect(reasons?.first?["reason"] as? String == "external")
      #expect((reasons?.first?["message"] as? String)?.hasPrefix(path) == true, "\(reasons ?? [])")
    }
    let result = try prune(folder)
    #expect(kept(result, "store-damaged") == damaged.sorted(), "\(result.output)")
    #expect(!result.output.contains("by hand once nobody needs it"))
    #expect(result.summary["pruned"] as? Int == 8)
  }

  @Test func `stay where the bytes of the store changed, although nobody wrote`() throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    let path = folder.path("stores/a.sqlite")
    try folder.changeUnseen(path)
    #expect(kept(try prune(folder), "store-damaged") == [path])
  }

  @Test func `stay, and stay listed, while their volume is away`() throws {
    let (folder, _) = try recipes()
    let before = try folder.godwit(["backups", "list"]).summary["backups"] as? Int
    let (stores, away) = (folder.path("stores"), folder.path("away"))
    try FileManager.default.moveItem(atPath: stores, toPath: away)
    for isRootThere in [false, true] {
      if isRootThere {
        try FileManager.default.createDirectory(
          atPath: stores, withIntermediateDirectories: false)
      }
      let result = try prune(folder)
      #expect(result.status == 0 && result.summary["pruned"] as? Int == 0)
      #expect(kept(result, "backup-unreachable").count == 10)
    }
    try FileManager.default.removeItem(atPath: stores)
    try FileManager.default.moveItem(atPath: away, toPath: stores)
    #expect(try folder.godwit(["backups", "list"]).summary["backups"] as? Int == before)
    #expect(try folder.godwit(["rollback"]).summary["restored"] as? Int == 10)
  }

  @Test func `stay, and stay listed, on an empty root`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    try FileManager.default.moveItem(atPath: folder.path("stores"), toPath: folder.path("away"))
    try FileManager.default.createDirectory(
      atPath: folder.path("stores"), withIntermediateDirectories: false)
    #expect(kept(try prune(folder), "store-missing").count == 2)
    #expect(try folder.godwit(["backups", "list"]).summary["backups"] as? Int == 2)
  }

  @Test func `are not said to be removed where somebody else did`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    let backups = folder.storeFiles().filter { $0.contains(".godwit-backup-") }
    try FileManager.default.removeItem(
      atPath: folder.path("stores/" + (try #require(backups.first))))
    let result = try prune(folder)
    #expect(result.summary["pruned"] as? Int == 1 && result.summary["missing"] as? Int == 1)
    #expect(
      result.lines("backup").first { $0["pruned"] as? Bool == false }?["reason"] as? String
        == "backup-missing")
    #expect(result.summary["left"] as? Int == 0)
    #expect(try folder.godwit(["backups", "list"]).summary["backups"] as? Int == 0)
  }

  @Test func `stay as they were where they cannot be removed`() throws {
    let folder = try PipelineFolder.orders()
    let before = try folder.storeContents()
    #expect(try Godwit.run(folder).status == 0)
    let backups = folder.storeFiles().filter { $0.contains(".godwit-backup-") }
    let obstacle = folder.path("stores/" + (try #require(backups.first)) + "-shm")
    try FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: false)
    let result = try prune(folder)
    #expect(result.status == 0 && result.summary["pruned"] as? Int == 1, "that of the other")
    #expect(kept(result, "backup-unreachable") == [folder.path("stores/a.sqlite")])
    let list = try folder.godwit(["backups", "list"])
    #expect(list.lines("backup").map { $0["state"] as? String } == ["kept"])
    try FileManager.default.removeItem(atPath: obstacle)
    #expect(try folder.godwit(["rollback"]).summary["restored"] as? Int == 1)
    #expect(try folder.bytes("stores/a.sqlite") == before["a.sqlite"])
  }

  @Test(arguments: ["DELETE", "WAL"])
  func `stay while another process is in a write transaction`(mode: String) throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    let store = folder.path("stores/a.sqlite")
    let writer = try Connection(path: store, mode: .readWrite)
    _ = try writer.rows("PRAGMA journal_mode = \(mode)")
    try writer.execute("BEGIN IMMEDIATE")
    #expect(kept(try prune(folder), "store-in-use") == [store])
    try writer.execute("COMMIT")
    try writer.close()
    #expect(try prune(folder).summary["pruned"] as? Int == 1)
  }

  @Test func `stay where they were copied, and nobody is told to remove the last copy`() throws {
    let folder = try PipelineFolder.orders(["a", "b", "c"])
    #expect(try Godwit.run(folder).status == 0)
    // As a restore or a move to another volume leaves them: each is another file.
    for backup in folder.storeFiles() where backup.contains(".godwit-backup-") {
      let path = folder.path("stores/" + backup)
      try FileManager.default.copyItem(atPath: path, toPath: path + ".new")
      try FileManager.default.removeItem(atPath: path)
      try FileManager.default.moveItem(atPath: path + ".new", toPath: path)
    }
    try FileManager.default.removeItem(atPath: folder.path("stores/a.sqlite"))
    try Data("junk".utf8).write(to: folder.url.appendingPathComponent("stores/b.sqlite"))
    let result = try prune(folder)
    #expect(result.summary["pruned"] as? Int == 0)
    #expect(kept(result, "store-missing") == [folder.path("stores/a.sqlite")])
    #expect(kept(result, "store-damaged") == [folder.path("stores/b.sqlite")])
    #expect(kept(result, "backup-changed") == [folder.path("stores/c.sqlite")])
    for line in result.lines("backup") {
      let isSound = line["store"] as? String == folder.path("stores/c.sqlite")
      let message = line["message"] as? String ?? ""
      #expect(message.contains("emove the backup by hand") == isSound, "\(message)")
      #expect(message.contains("restore it by hand, copy") != isSound, "\(message)")
    }
  }

  @Test func `do not count as gone where they stay: others go until the rest is small enough`()
    throws
  {
    let names = ["a", "b", "c", "d", "e", "f"]
    let folder = try PipelineFolder.orders(names)
    for name in names {
      #expect(try folder.godwit(["run"], ["--only", "\(name).sqlite"]).status == 0)
    }
    let all = try folder.godwit(["backups", "list"]).summary["bytes"] as? Int ?? 0
    for name in names.prefix(3) {
      try FileManager.default.removeItem(atPath: folder.path("stores/\(name).sqlite"))
    }
    let options = ["--max", "\(all / 2)B"]
    let dry = try folder.godwit(["backups", "prune"], options + ["--dry-run"])
    let result = try folder.godwit(["backups", "prune"], options)
    #expect(result.summary["pruned"] as? Int == 3 && result.summary["kept"] as? Int == 3)
    #expect(dry.summary["leftBytes"] as? Int == result.summary["leftBytes"] as? Int)
    #expect(result.summary["leftBytes"] as? Int ?? 0 <= all / 2, "\(result.output)")
  }

  /// Mounting needs a privileged user.
  @Test(.enabled(if: geteuid() == 0))
  func `make room on a full volume, although the ledger cannot be written there`() throws {
    let folder = try PipelineFolder.orders([])
    let small = folder.path("small")
    try FileManager.default.createDirectory(atPath: small, withIntermediateDirectories: true)
    func run(_ program: String, _ arguments: [String]) throws -> Int32 {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: program)
      process.arguments = arguments
      process.standardError = FileHandle.nullDevice
      try process.run()
      process.waitUntilExit()
      return process.terminationStatus
    }
    // A container may forbid it.
    guard try run("/bin/mount", ["-t", "tmpfs", "-o", "size=8m", "none", small]) == 0 else {
      return
    }
    defer { _ = try? run("/bin/umount", [small]) }
    try FileManager.default.createDirectory(
      atPath: small + "/stores", withIntermediateDirectories: true)
    for name in ["a", "b", "c"] {
      try folder.write(
        "small/stores/\(name).sqlite", "Orders.xcdatamodeld/Orders",
        "INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) VALUES (1, 1, 1, 'A', 5)")
    }
    let file = folder.path("pipeline.yaml")
    let text = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
    try text.replacingOccurrences(of: "roots: stores", with: "roots: small/stores")
      .write(toFile: file, atomically: true, encoding: .utf8)
    let state = ["--state", small + "/state"]
    #expect(try folder.godwit(["run"], state).status == 0)
    let filler = open(small + "/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    let zeros = [UInt8](repeating: 0, count: 4_096)
    while write(filler, zeros, zeros.count) == zeros.count {}
    close(filler)
    // One that finds no room has changed nothing, and keeps nobody from making some.
    #expect(try folder.godwit(["rollback"], state).status == 75)
    let result = try folder.godwit(["backups", "prune"], state + ["--keep", "0s"])
    #expect(result.status == 0, "\(result.messages)")
    #expect(result.summary["pruned"] as? Int == 3 && result.summary["left"] as? Int == 0)
    let list = try folder.godwit(["backups", "list"], state)
    #expect(list.summary["backups"] as? Int == 0)
  }

  @Test func `that a run removes are counted in its text, too`() throws {
    let folder = try PipelineFolder.orders()
    try folder.addToPipeline("backups: { keep: 0s }")
    let run = try Godwit.run(["run", folder.url.path])
    #expect(run.status == 0 && run.messages.contains("2 backups were removed ("), "\(run.messages)")
  }
}
