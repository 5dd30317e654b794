import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `A rollback` {
  /// Stores of several versions, with WALs and external data.
  private func recipes(stores: Int = 6, seed: UInt64 = 21) throws -> PipelineFolder {
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: stores, rows: 400, seed: seed)
    (fleet.version, fleet.logs, fleet.external) = (.mixed, .some, true)
    try fleet.write(to: folder.path("stores"))
    return folder
  }

  @Test func `restores every store bit for bit, WAL and external data included`() throws {
    let folder = try recipes()
    let before = try folder.storeContents()
    #expect(before.keys.contains { $0.hasSuffix("-wal") })
    #expect(before.keys.contains { $0.contains("_EXTERNAL_DATA") })
    let run = try Godwit.run(folder)
    #expect(run.status == 0, "\(run.messages)")
    let migrated = run.summary["migrated"] as? Int ?? 0
    #expect(migrated > 2)
    #expect(try folder.contentsOfStoresAlone() != before)
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 0, "\(rollback.messages)")
    #expect(rollback.summary["restored"] as? Int == migrated)
    #expect(try folder.contentsOfStoresAlone() == before)
    let kept = folder.storeFiles().filter { $0.hasSuffix(".sqlite") && $0.contains("rolled-back") }
    #expect(kept.count == migrated)
    let status = try folder.godwit(["status"])
    #expect(status.status == 3 && status.summary["rolledBack"] as? Int == migrated)
    // What was kept is no store of the pipeline, and the stores can be migrated again.
    let again = try Godwit.run(folder)
    #expect(again.status == 0 && again.summary["migrated"] as? Int == migrated, "\(again.messages)")
    #expect(again.summary["found"] as? Int == run.summary["found"] as? Int)
    #expect(try folder.godwit(["status"]).status == 0)
  }

  @Test(arguments: [nil, "{}"])
  func `is finished where nothing but its journal says what it was to do`(left: String?) throws {
    var exchanged = 0
    var step = 60
    while exchanged < 2, step > 5 {
      defer { step -= 1 }
      let folder = try PipelineFolder.orders(["a"])
      let before = try folder.contentsOfStoresAlone()
      #expect(try Godwit.run(folder).status == 0)
      guard try folder.godwit(["rollback"], killAfter: step).status == -SIGKILL,
        let name = try? folder.names(in: "state/rollbacks").first
      else { continue }
      let own = folder.path("state/rollbacks/\(name)") + "/"
      guard FileManager.default.fileExists(atPath: own + "journal.json") else { continue }
      if try folder.bytes("stores/a.sqlite") == before["a.sqlite"] { exchanged += 1 }
      try FileManager.default.removeItem(atPath: own + "restore.json")
      try left?.write(toFile: own + "restore.json", atomically: true, encoding: .utf8)
      if left != nil { #expect(chmod(own + "restore.json", 0o600) == 0) }
      let status = try folder.godwit(["status"])
      #expect(status.summary["underWay"] as? [String] == [folder.path("stores/a.sqlite")])
      let again = try folder.godwit(["rollback"])
      #expect(again.status == 0, "step \(step): \(again.messages)")
      #expect(try folder.contentsOfStoresAlone() == before, "step \(step)")
      #expect(try folder.names(in: "state/rollbacks").isEmpty, "step \(step)")
    }
    #expect(exchanged == 2)
  }

  @Test func `that was killed is told by a dry run as the next one does it`() throws {
    var underWay = 0
    for step in stride(from: 4, to: 60, by: 3) {
      let folder = try PipelineFolder.orders(["a"])
      #expect(try Godwit.run(folder).status == 0)
      guard try folder.godwit(["rollback"], killAfter: step).status == -SIGKILL else { break }
      underWay += (try folder.godwit(["status"]).summary["underWay"] as? [String] ?? []).count
      let before = try folder.storeContents()
      let dry = try folder.godwit(["rollback"], ["--dry-run"])
      #expect(try folder.storeContents() == before)
      let rollback = try folder.godwit(["rollback"])
      #expect(rollback.status == 0 && dry.status == 0, "step \(step): \(dry.messages)")
      for key in ["found", "restored"] {
        #expect(dry.summary[key] as? Int == rollback.summary[key] as? Int, "step \(step)")
      }
      let codes = try folder.godwit(["history"]).lines.compactMap { $0["exitCode"] as? Int }
      #expect(codes.allSatisfy { $0 == 0 }, "step \(step): one that was killed has none")
    }
    #expect(underWay > 0)
  }

  @Test func `ends with the same stores however often it is killed`() throws {
    let folder = try recipes(stores: 4, seed: 5)
    let before = try folder.storeContents()
    #expect(try Godwit.run(folder).status == 0)
    var (step, kills, unfinished) = (2, 0, 0)
    while true {
      let rollback = try folder.godwit(["rollback"], killAfter: step)
      // The last store of a run may have been finished by the start before.
      if rollback.status == 0 { break }
      try #require(rollback.status == -SIGKILL, "step \(step): \(rollback.messages)")
      kills += 1
      step += 5 + step / 8
      let status = try folder.godwit(["status"])
      let cutOff = status.summary["underWay"] as? [String] ?? []
      for store in cutOff {
        #expect(status.status == 3)
        let verified = try folder.godwit(["verify"]).lines.first { $0["store"] as? String == store }
        let reasons = (verified?["reasons"] as? [[String: Any]] ?? []).map {
          $0["reason"] as? String
        }
        #expect(verified?["verdict"] as? String == "sound" || reasons == ["rollback"], "\(store)")
      }
      unfinished += cutOff.count
    }
    #expect(kills > 3 && unfinished > 0)
    _ = try folder.godwit(["rollback"])
    #expect(try folder.godwit(["status"]).summary["underWay"] as? [String] == [])
    #expect(try folder.contentsOfStoresAlone() == before)
    #expect(try folder.names(in: "state/rollbacks").isEmpty)
    let list = try folder.godwit(["backups", "list"])
    let known = Set(list.lines.compactMap { $0["path"] as? String })
    let found = folder.storeFiles().filter { $0.contains(".godwit-") && $0.hasSuffix(".sqlite") }
    #expect(Set(found.map { folder.path("stores/" + $0) }) == known, "nothing is left unnamed")
    let stores = try Connection(path: folder.path("ledger.sqlite"), mode: .readOnly).drawn(
      "SELECT store FROM attempts WHERE verdict = 'restored'")
    #expect(Set(stores).count == stores.count, "what is put back is recorded once")
    let restored = try folder.godwit(["history"]).lines.compactMap { run in
      (run["counts"] as? [String: Any])?["restored"] as? Int
    }
    #expect(restored.reduce(0, +) == stores.count, "\(restored)")
  }

  /// Whatever it has come to by then.
  @Test func `is no damage to who verifies the stores meanwhile`() throws {
    let folder = try recipes(stores: 8, seed: 5)
    #expect(try Godwit.run(folder).status == 0)
    var rollback: Godwit.Run?
    let verify = try Godwit.run(
      ["verify", folder.url.path, "--json"], at: #""event":"result""#,
      { _ in rollback = try folder.godwit(["rollback"]) })
    #expect(rollback?.status == 0)
    #expect(verify.status == 0, "\(verify.output) \(verify.messages)")
    #expect(verify.summary["changed"] as? Int == 0, "no application wrote")
    let history = try folder.godwit(["history"])
    let counts = try #require(history.lines.first?["counts"] as? [String: Any])
    #expect(counts["migrated"] as? Int == 0)
    #expect(counts["restored"] as? Int == rollback?.summary["restored"] as? Int)
  }

  @Test func `that was killed is finished by the next run first`() throws {
    let folder = try recipes(stores: 3, seed: 8)
    #expect(try Godwit.run(folder).status == 0)
    var step = 20
    while try folder.godwit(["rollback"], killAfter: step).status == -SIGKILL, step < 60 {
      step += 11
      let run = try Godwit.run(folder)
      #expect(run.status == 0, "step \(step): \(run.messages)")
      #expect(try folder.names(in: "state/rollbacks").isEmpty)
    }
    while try folder.godwit(["rollback"]).summary["restored"] as? Int ?? 0 > 0 {}
    #expect(try folder.godwit(["verify"]).status == 0)
  }

  @Test func `puts all of a backup where the store is gone, however often it is killed`() throws {
    let folder = try recipes(stores: 6, seed: 21)
    let before = try folder.storeContents()
    #expect(before.keys.contains { $0.hasSuffix("-wal") })
    let run = try Godwit.run(folder)
    let migrated = run.results.filter { $0.value["verdict"] as? String == "migrated" }.keys
    try #require(migrated.count > 2)
    for store in migrated {
      try FileManager.default.removeItem(atPath: store)
      let folder = URL(fileURLWithPath: store).deletingLastPathComponent()
      try? FileManager.default.removeItem(at: folder.appendingPathComponent(".Recipes_SUPPORT"))
    }
    let dry = try folder.godwit(["rollback"], ["--dry-run"])
    #expect(dry.status == 0 && dry.summary["restored"] as? Int == migrated.count, "\(dry.messages)")
    var (step, kills) = (2, 0)
    while try folder.godwit(["rollback"], killAfter: step).status == -SIGKILL {
      kills += 1
      step += 3 + step / 4
    }
    #expect(kills > 3)
    #expect(try folder.godwit(["rollback"]).status == 0)
    #expect(try folder.contentsOfStoresAlone() == before)
    #expect(try folder.names(in: "state/rollbacks").isEmpty)
    #expect(try folder.godwit(["verify"]).status == 0)
    #expect(try Godwit.run(folder).summary["migrated"] as? Int == migrated.count)
  }

  @Test func `puts nothing beside what is left of a store that is gone, and names every file`()
    throws
  {
    let folder = try recipes(stores: 6, seed: 21)
    let before = try folder.storeContents()
    let run = try Godwit.run(folder)
    let store = try #require(
      run.results.first {
        $0.value["verdict"] as? String == "migrated"
          && before.keys.contains(
            String($0.key.dropFirst(folder.path("stores").count + 1)) + "-wal")
      }?.key)
    try FileManager.default.removeItem(atPath: store)
    try Data("left".utf8).write(to: URL(fileURLWithPath: store + "-wal"))
    let refused = try folder.godwit(["rollback"], ["--store", store])
    #expect(refused.status == 3)
    let reason = (refused.results[store]?["reasons"] as? [[String: Any]])?.first
    #expect(reason?["reason"] as? String == "remains")
    let message = reason?["message"] as? String ?? ""
    #expect(message.contains("\(store)-wal. ") && message.contains(" to \(store)-wal"))
    #expect(!FileManager.default.fileExists(atPath: store))
    try FileManager.default.removeItem(atPath: store + "-wal")
    #expect(try folder.godwit(["rollback"], ["--store", store]).status == 0)
    let name = String(store.dropFirst(folder.path("stores").count + 1))
    #expect(try folder.bytes("stores/" + name) == before[name])
    #expect(try folder.bytes("stores/\(name)-wal") == before[name + "-wal"])
  }

  @Test func `refuses a store of which there is no backup`() throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    try folder.writeOrder("later")
    let rollback = try folder.godwit(["rollback", "--store", folder.path("stores/later.sqlite")])
    #expect(rollback.status == 3)
    #expect(rollback.reason(of: "later") == "no-backup")
    let both = try folder.godwit(
      ["rollback"], ["a", "later"].flatMap { ["--store", folder.path("stores/\($0).sqlite")] })
    let name = try #require(both.summary["rollback"] as? String)
    let report = try #require(
      try Godwit.run(["report", folder.url.path, "--run", name, "--json"]).lines.first)
    #expect((report["counts"] as? [String: Any])?["refused"] as? Int == 1)
    let stores = report["stores"] as? [[String: Any]] ?? []
    #expect(stores.map { $0["verdict"] as? String } == ["restored", "refused"])
    #expect((report["failures"] as? [[String: Any]])?.map { $0["count"] as? Int } == [1])
  }

  @Test func `does not advise to add a root for a store that was moved`() throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    try FileManager.default.moveItem(atPath: folder.path("stores"), toPath: folder.path("moved"))
    try folder.set("", stores: "{ roots: moved }")
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.reason(of: "a") == "outside-roots")
    #expect(rollback.output.contains("move it back with its backup"), "\(rollback.output)")
    #expect(!rollback.output.contains("Add its root"))
  }

  @Test func `has a report that says how much is restored, and how long each store took`() throws {
    let folder = try PipelineFolder.orders(["a", "b", "c"])
    #expect(try Godwit.run(folder).status == 0)
    let rollback = try folder.godwit(["rollback"])
    let name = try #require(rollback.summary["rollback"] as? String)
    let page = try Godwit.run(["report", folder.url.path, "--format", "html", "--run", name]).output
    #expect(page.contains("<h1>All 3 stores are restored</h1>"))
    let report = try Godwit.run(["report", folder.url.path, "--json", "--run", name]).lines.first
    let stores = try #require(report?["stores"] as? [[String: Any]])
    #expect(stores.count == 3)
    for store in stores {
      let result = rollback.results[store["path"] as? String ?? ""]
      let (told, took) = (store["seconds"] as? Double ?? -1, result?["seconds"] as? Double ?? -2)
      #expect(abs(told - took) < 1e-4)
    }
  }

  @Test func `refuses a store that was changed since, by name, and restores the others`() throws {
    let folder = try PipelineFolder.orders(["a", "b", "c"])
    let before = try folder.storeContents()
    #expect(try Godwit.run(folder).status == 0)
    try folder.writeOrder(to: "stores/b.sqlite")
    let changed = try folder.bytes("stores/b.sqlite")
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 3)
    let refused = rollback.results.filter { $0.value["verdict"] as? String == "refused" }
    #expect(refused.keys.sorted() == [folder.path("stores/b.sqlite")])
    let reasons = refused.values.first?["reasons"] as? [[String: Any]]
    #expect(reasons?.first?["reason"] as? String == "changed-since")
    #expect(try folder.bytes("stores/b.sqlite") == changed)
    for name in ["a.sqlite", "c.sqlite"] {
      #expect(try folder.bytes("stores/" + name) == before[name])
    }
  }

  /// Of which nothing but its bytes tells; and whether the ledger has a digest of it.
  @Test(arguments: ["", "-wal"], [true, false])
  func `refuses a backup that the disk has changed`(suffix: String, isRecorded: Bool) throws {
    // Nothing but its digest tells of a log.
    guard isRecorded || suffix.isEmpty else { return }
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: 1, rows: 400, seed: 3)
    fleet.logs = .all
    try fleet.write(to: folder.path("stores"))
    #expect(try Godwit.run(folder).status == 0)
    let backup = try #require(
      folder.storeFiles().first { $0.contains("-backup-") && $0.hasSuffix(".sqlite" + suffix) })
    if !isRecorded {
      let ledger = try Connection(path: folder.path("ledger.sqlite"), mode: .readWrite)
      try ledger.execute("UPDATE backups SET marks = json_remove(marks, '$.content')")
      try ledger.close()
    }
    // Without a record what kind of page it is.
    try folder.changeUnseen(folder.path("stores/" + backup), at: isRecorded ? nil : 3 * 4_096)
    let before = try folder.storeContents()
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 3)
    #expect("\(rollback.results)".contains("backup-changed"), "\(rollback.output)")
    #expect(try folder.storeContents() == before)
  }

  @Test func `refuses a store that somebody has open`() throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    let before = try folder.storeContents()
    #expect(try Godwit.run(folder).status == 0)
    let application = try FileHandle(
      forReadingFrom: URL(fileURLWithPath: folder.path("stores/a.sqlite")))
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 3)
    let result = rollback.results[folder.path("stores/a.sqlite")]
    let reasons = result?["reasons"] as? [[String: Any]]
    #expect(reasons?.first?["reason"] as? String == "in-use")
    #expect(try folder.bytes("stores/b.sqlite") == before["b.sqlite"])
    try application.close()
    #expect(
      try folder.godwit(["rollback"], ["--store", folder.path("stores/a.sqlite")]).status == 0)
    #expect(try folder.contentsOfStoresAlone() == before)
  }

  @Test func `takes one store, one version or one run`() throws {
    let folder = try recipes(stores: 8, seed: 3)
    let run = try Godwit.run(folder)
    #expect(run.status == 0)
    let migrated = run.results.filter { $0.value["verdict"] as? String == "migrated" }
    let one = try #require(migrated.keys.min())
    let dry = try folder.godwit(["rollback"], ["--dry-run"])
    #expect(dry.summary["restored"] as? Int == migrated.count)
    let first = try folder.godwit(["rollback"], ["--store", one])
    #expect(first.results.keys.sorted() == [one])
    #expect(try folder.godwit(["rollback"], ["--cohort", "none"]).status == 64)
    let version = try #require(migrated.values.first?["source"] as? String)
    let cohort = try folder.godwit(["rollback"], ["--cohort", version])
    let expected = migrated.filter { $0.value["source"] as? String == version && $0.key != one }
    let restored = cohort.results.filter { $0.value["verdict"] as? String == "restored" }
    #expect(Set(restored.keys) == Set(expected.keys))
    #expect(try folder.godwit(["rollback"], ["--run", "nobody's"]).status == 64)
    let unknown = try folder.godwit(["rollback"], ["--store", folder.path("stores/none")])
    #expect(unknown.status == 3)
  }

  @Test func `leaves nothing that a pipeline of all files takes for a store`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).counts == "2 found, 2 migrated")
    #expect(try folder.godwit(["rollback"]).status == 0)
    #expect(folder.storeFiles().contains { $0.contains(".godwit-rolled-back-") })
    #expect(try Godwit.run(folder).counts == "2 found, 2 migrated")
  }

  @Test func `waits for no other run`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    let lock = open(folder.path("state/lock"), O_RDWR | O_CLOEXEC)
    #expect(flock(lock, LOCK_EX | LOCK_NB) == 0)
    #expect(try folder.godwit(["rollback"]).status == 11)
    #expect(try folder.godwit(["backups", "prune"], ["--keep", "1d"]).status == 11)
    #expect(try folder.godwit(["status"]).status == 0, "but can be asked")
    close(lock)
  }

  @Test func `of a pipeline that writes beside its stores has nothing to do`() throws {
    let folder = try PipelineFolder("celsius")
    try folder.write(
      "stores/w.sqlite", "Weather.xcdatamodeld/Weather",
      "INSERT INTO ZREADING (Z_PK, Z_ENT, Z_OPT, ZPLACE, ZTAKEN, ZTEMPERATURE) "
        + "VALUES (1, 1, 1, 'Prutz', 7e8, 32)")
    #expect(try Godwit.run(folder).status == 0)
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 0 && rollback.summary["found"] as? Int == 0)
  }
}
