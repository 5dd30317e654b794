import Foundation
import StoreFixtures
import Testing

/// What a killed command has put aside, and somebody has removed before it was written down.
@Suite struct `A backup that is gone before it is recorded` {
  private struct NoMoment: Error {}

  private func remove(_ word: String, in folder: PipelineFolder) throws -> String {
    let name = try #require(
      folder.storeFiles().first { $0.contains(word) && $0.hasSuffix(".sqlite") })
    try FileManager.default.removeItem(atPath: folder.path("stores/" + name))
    return folder.path("stores/" + name)
  }

  /// A run that was killed when the store was replaced, and that not written down.
  private func killedRun() throws -> PipelineFolder {
    for step in 1..<80 {
      let folder = try PipelineFolder.orders(["a"])
      let before = try folder.bytes("stores/a.sqlite")
      guard try Godwit.run(folder, killAfter: step).status == -SIGKILL else { break }
      let known = (try? folder.bytes("state/ledger.jsonl")).map {
        String(decoding: $0, as: UTF8.self)
      }
      let isReplaced = try folder.contentsOfStoresAlone()["a.sqlite"] != before
      if isReplaced, known?.contains("a.sqlite") != true { return folder }
    }
    throw NoMoment()
  }

  @Test func `lets the rollback end with 3, and not pass over its store`() throws {
    let folder = try killedRun()
    let path = try remove(".godwit-backup-", in: folder)
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 3, "\(rollback.output)")
    #expect(rollback.summary["refused"] as? Int == 1)
    let history = try folder.godwit(["history"], [folder.path("stores/a.sqlite")])
    let backup = try #require(history.lines("backup").first)
    #expect(backup["path"] as? String == path && backup["state"] as? String == "missing")
    #expect(try folder.godwit(["backups", "list"]).lines("backup").isEmpty)
  }

  @Test func `is in the ledger as missing where a rollback put it aside`() throws {
    for step in 1..<80 {
      let folder = try PipelineFolder.orders(["a"])
      let before = try folder.bytes("stores/a.sqlite")
      #expect(try Godwit.run(folder).status == 0)
      guard try folder.godwit(["rollback"], killAfter: step).status == -SIGKILL else { break }
      let isUnderWay = (try? folder.names(in: "state/rollbacks"))?.isEmpty == false
      guard isUnderWay, try folder.contentsOfStoresAlone()["a.sqlite"] == before else { continue }
      let path = try remove(".godwit-rolled-back-", in: folder)
      let rollback = try folder.godwit(["rollback"])
      #expect(rollback.status == 0, "\(rollback.messages)")
      #expect(rollback.messages.contains("\(path) was removed"), "\(rollback.messages)")
      let history = try folder.godwit(["history"], [folder.path("stores/a.sqlite")])
      let states = Dictionary(
        history.lines("backup").map { ($0["path"] as? String ?? "", $0["state"] as? String) },
        uniquingKeysWith: { $1 })
      #expect(states[path] == "missing", "\(states)")
      return
    }
    throw NoMoment()
  }
}
