import Foundation
import GodwitSQLite
import Testing

@Suite struct `A process that is stopped past its lease` {
  /// Lets the lease look as if nobody had renewed it for an hour.
  private func runOut(_ lock: String) throws {
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -3_600)], ofItemAtPath: lock)
  }

  private func backups(_ folder: PipelineFolder, of name: String) -> Int {
    folder.storeFiles().count {
      $0.hasPrefix("\(name).sqlite.godwit-backup-") && $0.hasSuffix(".sqlite")
    }
  }

  @Test(arguments: ["rows", "copy", "assemble", "verify"])
  func `publishes nothing when it goes on: one store`(stage: String) throws {
    let folder = try PipelineFolder.orders(["a"])
    let store = folder.path("stores/a.sqlite")
    let connection = try Connection(path: store, mode: .readWrite)
    try connection.execute(
      """
      WITH RECURSIVE n(i) AS (VALUES (2) UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
      INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) SELECT i, 1, 1, i, 5 FROM n
      """)
    try connection.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = 20000 WHERE Z_NAME = 'Order'")
    try connection.close()
    let command =
      ["migrate", store, "--models", folder.path("Orders.xcdatamodeld"), "--json"]
      + (stage == "rows" ? [] : ["--mapping", folder.path("orders.mapping.yaml")])
    var other: Godwit.Run?
    var taken = Data()
    let first = try Godwit.run(
      command, at: #""stage":"\#(stage)""#,
      { process in
        kill(process, SIGSTOP)
        defer { kill(process, SIGCONT) }
        try #require(backups(folder, of: "a") == 0, "it was stopped before its commit")
        try runOut(store + ".godwit/lock")
        other = try Godwit.run(command)
        taken = try folder.bytes("stores/a.sqlite")
      })
    // A process that is stopped may have the store open, as any other: then it waits its turn.
    let second = try #require(other)
    #expect(second.status == 0 || second.reason(of: "a") == "in-use", "\(second.messages)")
    #expect(first.status == 11, "\(first.messages)")
    #expect(first.summary["verdict"] as? String == "pending")
    #expect(first.reason(of: "a") == "lease")
    #expect(try folder.bytes("stores/a.sqlite") == taken)
    #expect(backups(folder, of: "a") == (second.status == 0 ? 1 : 0))
    #expect(try Godwit.run(command).status == 0)
    #expect(backups(folder, of: "a") == 1)
    #expect(
      try folder.table("stores/a.sqlite", "SELECT count(*) FROM ZORDER") == ["20000"])
  }

  @Test func `publishes nothing when it goes on: a pipeline's run`() throws {
    let names = (1...8).map { "s\($0)" }
    // So slow that it has not come far.
    let folder = try PipelineFolder.orders(names, "limits: { io: 1KiB/s }\nworkers: 1")
    var other: Godwit.Run?
    let first = try Godwit.run(
      ["run", folder.url.path, "--json"], at: #""event":"plan""#,
      { process in
        kill(process, SIGSTOP)
        defer { kill(process, SIGCONT) }
        try runOut(folder.path("state/lock"))
        try folder.set("workers: 1")
        other = try Godwit.run(folder)
      })
    let second = try #require(other)
    // What the processes of the first have in hand is theirs as long as they live.
    #expect(second.status == 0 || second.status == 75, "\(second.messages)")
    #expect(second.summary["failed"] as? Int == 0)
    let done = second.summary["migrated"] as? Int ?? 0
    #expect(done >= 6)
    #expect(first.status == 11, "\(first.messages)")
    #expect(first.summary["migrated"] as? Int == 0)
    #expect(first.summary["stopped"] as? String == "lease")
    let ledger = try Connection(path: folder.path("ledger.sqlite"), mode: .readOnly)
    #expect(try ledger.drawn("SELECT * FROM attempts WHERE reason = 'lease'") == [])
    try ledger.close()
    // The rest is done by the next, and no store was replaced twice.
    let last = try Godwit.run(folder)
    #expect(last.status == 0)
    for name in names { #expect(backups(folder, of: name) == 1) }
  }
}
