import Foundation
import StoreFixtures
import Testing

@Suite struct `A run over all files` {
  // What is at its place is somebody's, and nothing says that the migration is still there.
  @Test(arguments: ["", "junk"])
  func `calls no store migrated whose output was overwritten`(text: String) throws {
    let folder = try PipelineFolder.orders(["a"], "commit: { beside: \"-2.0\" }")
    #expect(try Godwit.run(folder).status == 0)
    #expect(try Godwit.run(folder).status == 0)
    let output = URL(fileURLWithPath: folder.path("stores/a-2.0.sqlite"))
    try Data(text.utf8).write(to: output)
    let run = try Godwit.run(folder)
    #expect(run.status != 0 && run.summary["migrated"] as? Int == 0, "\(run.messages)")
    #expect(try Data(contentsOf: output) == Data(text.utf8))
  }

  @Test func `calls no store migrated whose output has lost its external data`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: 1, rows: 400, seed: 17)
    fleet.external = true
    try fleet.write(to: folder.path("stores"))
    try folder.addToPipeline("commit: { beside: \"-2.0\" }")
    #expect(try Godwit.run(folder).status == 0)
    #expect(try Godwit.run(folder).counts == "1 found, 1 migrated")
    let user = try #require(folder.names(in: "stores").first)
    let files = folder.path("stores/\(user)/.Recipes-2.0_SUPPORT")
    try #require(FileManager.default.fileExists(atPath: files))
    try FileManager.default.removeItem(atPath: files)
    let run = try Godwit.run(folder)
    #expect(run.status == 3 && run.counts == "1 found, 1 failed", "\(run.messages)")
  }

  @Test func `takes no ledger for a store, wherever it lies`() throws {
    let folder = try PipelineFolder.orders()
    try folder.set("", stores: "{ roots: . }")
    #expect(try Godwit.run(folder).status == 0)
    try FileManager.default.copyItem(
      atPath: folder.path("ledger.sqlite"), toPath: folder.path("stores/ledger.sqlite.damaged-1"))
    let again = try Godwit.run(folder)
    #expect(again.status == 0 && again.summary["found"] as? Int == 2, "\(again.messages)")
  }
}
