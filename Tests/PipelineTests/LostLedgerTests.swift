import Foundation
import StoreFixtures
import Testing

@Suite struct `A ledger that is lost` {
  /// Whichever it is: what a run does not read would stand in the way of a rollback for ever.
  @Test func `is set aside with any page damaged`() throws {
    let folder = try PipelineFolder.orders()
    #expect(try Godwit.run(folder).status == 0)
    let whole = try folder.bytes("ledger.sqlite")
    let ledger = URL(fileURLWithPath: folder.path("ledger.sqlite"))
    for page in 0..<whole.count / 4096 {
      var bytes = whole
      bytes.replaceSubrange(
        page * 4096..<(page + 1) * 4096, with: Data(repeating: 0xAA, count: 4096))
      try bytes.write(to: ledger)
      // What is on a page that is free is nobody's.
      let isDamage = (try? folder.table("ledger.sqlite", "PRAGMA integrity_check")) != ["ok"]
      let run = try Godwit.run(folder)
      #expect(run.counts == "2 found, 2 same-model" && run.status == 0, "page \(page)")
      #expect(run.messages.contains("set aside") == isDamage, "page \(page)")
      #expect(try folder.table("ledger.sqlite", "PRAGMA integrity_check") == ["ok"])
      let none = ["rollback", folder.url.path, "--store", folder.path("stores/none.sqlite")]
      #expect(try Godwit.run(none).messages.contains("set aside") == false, "page \(page)")
    }
  }

  /// The state folder has what the last run did.
  @Test(arguments: ["removed", "emptied", "removed, and a run since"])
  func `is begun again with what the last run did, and said`(how: String) throws {
    let folder = try PipelineFolder.orders()
    let before = try folder.storeContents()
    #expect(try Godwit.run(folder).status == 0)
    let list = try folder.godwit(["backups", "list"]).lines.count
    let ledger = folder.path("ledger.sqlite")
    try FileManager.default.removeItem(atPath: ledger)
    if how == "emptied" { try Data().write(to: URL(fileURLWithPath: ledger)) }
    if how.hasSuffix("since") {
      let run = try Godwit.run(folder)
      #expect(run.messages.contains("There is no ledger at \(ledger) any more"), "\(run.messages)")
    }
    if how != "emptied" {
      #expect(try folder.godwit(["backups", "list"]).lines.count == list)
    }
    let back = try Godwit.run(["rollback", folder.url.path, "--json"])
    #expect(back.status == 0, "\(back.messages)")
    let after = try folder.contentsOfStoresAlone()
    #expect(after == before, "\(back.output)")
  }

  @Test(arguments: ["others may write to it", "a later version", "another name"])
  func `is not what doctor says where a run does not begin`(how: String) throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    let ledger = folder.path("ledger.sqlite")
    if how == "a later version" {
      var bytes = try folder.bytes("ledger.sqlite")
      bytes[63] = 99
      try bytes.write(to: URL(fileURLWithPath: ledger))
    } else if how == "another name" {
      #expect(link(ledger, folder.path("copy")) == 0)
    } else {
      #expect(chmod(ledger, 0o666) == 0)
    }
    let doctor = try Godwit.run(["doctor", folder.url.path])
    #expect(doctor.status == 78, "\(doctor.output)")
    #expect(doctor.output.contains("would not begin"), "\(doctor.output)")
    #expect(try Godwit.run(folder).status == 78)
  }
}

@Suite struct `What no run may pass over` {
  @Test func `are stores in its state folder`() throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    let inside = folder.path("stores/inside")
    try FileManager.default.createDirectory(atPath: inside, withIntermediateDirectories: true)
    try FileManager.default.moveItem(
      atPath: folder.path("stores/b.sqlite"), toPath: inside + "/b.sqlite")
    let run = try Godwit.run(["run", folder.url.path, "--state", inside, "--json"])
    #expect(run.status == 3, "\(run.messages)")
    #expect(run.output.contains("it is the state folder, and holds 1 file"), "\(run.output)")
    #expect(run.output.contains("b.sqlite"))
  }

  @Test func `is a folder for temporary files that is not there`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let nowhere = folder.path("nowhere")
    for words in [["plan", folder.url.path], ["plan", folder.url.path, "--samples", "0"]] {
      let plan = try Godwit.run(words, temporaryFolder: nowhere)
      #expect(plan.status == 73 && plan.messages.contains("Point TMPDIR"), "\(plan.messages)")
    }
    #expect(!FileManager.default.fileExists(atPath: nowhere))
  }

  @Test func `is an address that is none`() throws {
    let folder = try PipelineFolder.orders(["a"])
    try folder.addToPipeline("report: { ping: 'ftp://x' }")
    for word in ["plan", "run", "doctor"] {
      let run = try Godwit.run([word, folder.url.path])
      #expect(run.status == 78 && run.messages.contains("hc-ping.com"), "\(word) \(run.messages)")
    }
  }
}
