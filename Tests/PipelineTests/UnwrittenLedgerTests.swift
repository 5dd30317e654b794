import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `A ledger that could not be written` {
  /// A run ended well, and the next one with 3 while somebody read the ledger, who still does.
  private func held() throws -> (folder: PipelineFolder, reader: Connection) {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    try Data("no store".utf8).write(to: URL(fileURLWithPath: folder.path("stores/bad.sqlite")))
    let reader = try Connection(path: folder.path("ledger.sqlite"), mode: .readOnly)
    try reader.execute("BEGIN")
    _ = try reader.rows("SELECT count(*) FROM runs")
    let run = try Godwit.run(folder)
    #expect(run.status == 3 && run.messages.contains("could not be written"), "\(run.messages)")
    return (folder, reader)
  }

  @Test func `hides nothing of the last run from those who ask`() throws {
    let (folder, reader) = try held()
    let commands = [["status"], ["history"], ["report"], ["verify"], ["quarantine", "list"]]
    let before = try commands.map { try folder.godwit($0) }
    #expect(before[0].status == 3)
    #expect((before[0].summary["counts"] as? [String: Any])?["found"] as? Int == 2)
    #expect(before[1].lines.map { $0["exitCode"] as? Int } == [3, 0])
    #expect(try folder.table("ledger.sqlite", "SELECT count(*) FROM runs") == ["1"])
    try reader.execute("COMMIT")
    try reader.close()
    let after = try commands.map { try folder.godwit($0) }
    #expect(try folder.table("ledger.sqlite", "SELECT count(*) FROM runs") == ["2"])
    for (early, late) in zip(before, after) {
      #expect(early.output == late.output && early.status == late.status)
    }
  }

  @Test func `lets status end with 3 where what it lacks cannot be read`() throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    #expect(try folder.godwit(["status"]).status == 0)
    #expect(chmod(folder.path("state/run.json"), 0o666) == 0)
    let status = try folder.godwit(["status"])
    #expect(status.status == 3, "\(status.output)")
    #expect(status.messages.contains("may lack what the last runs did"), "\(status.messages)")
    #expect(status.summary["warning"] as? String != nil)
    let history = try folder.godwit(["history"])
    #expect(history.messages.contains("may lack what the last runs did"), "\(history.messages)")
  }
}
