import Foundation
import StoreFixtures
import Testing

@Suite struct `An output beside a store` {
  private static let versions =
    #"["Orders.xcdatamodeld/Orders.xcdatamodel", "Orders.xcdatamodeld/Orders 2.xcdatamodel"]"#

  @Test func `is not taken for that of another destination by a pipeline`() throws {
    for step in 14..<140 {
      let folder = try PipelineFolder("notes-progressive")
      let model = try FixtureModels.model(at: folder.path("Notes.xcdatamodeld/Notes.xcdatamodel"))
      try StoreGenerator(model, options: StoreOptions(seed: 1, rows: 20))
        .write(to: folder.path("stores/a.sqlite"))
      func set(_ version: String) throws {
        try """
        stores: { roots: stores, include: a.sqlite }
        models: Notes.xcdatamodeld
        workers: 1
        commit: { beside: -new }
        destination: \(version)

        """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
      }
      try set("Notes 4")
      guard try Godwit.run(folder, killAfter: step).status == -SIGKILL else { break }
      let stores = folder.path("state/stores")
      let names = (try? FileManager.default.contentsOfDirectory(atPath: stores)) ?? []
      guard
        names.contains(where: {
          FileManager.default.fileExists(atPath: "\(stores)/\($0)/journal.json")
        })
      else { continue }
      try set("Notes 3")
      for _ in 1...2 {
        let run = try Godwit.run(folder)
        #expect(run.status == 3 && run.counts == "1 found, 1 failed", "\(run.messages)")
        #expect(run.reason(of: "a") == "output")
      }
      return
    }
    throw KillError()
  }

  /// Each version that is given by itself is the current one of its bundle.
  @Test(
    arguments: [
      ("Orders.xcdatamodeld", ""), (versions, ""), (versions, "destination: Orders 2"),
    ])
  func `is told from a store of the fleet that lies in its place`(
    models: String, destination: String
  ) throws {
    let folder = try PipelineFolder.orders(["a-2"])
    try """
    stores: { roots: stores }
    models: \(models)
    mappings: orders.mapping.yaml
    commit: { beside: -2 }
    \(destination)
    """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    try folder.write("stores/a.sqlite", "Orders.xcdatamodeld/Orders 2", "SELECT 1")
    #expect(try folder.godwit(["plan"]).summary["found"] as? Int == 2)
    #expect(try Godwit.run(["doctor", folder.url.path]).output.contains("stores: 2 with "))
    for earlier in 0...1 {
      let run = try Godwit.run(folder)
      #expect(run.status == 0 && run.counts == "2 found, 1 migrated, 1 same-model")
      #expect(run.summary["earlier"] as? Int == earlier)
    }
    #expect(
      folder.storeFiles().filter { !$0.hasPrefix(".") }
        == ["a-2-2.sqlite", "a-2.sqlite", "a.sqlite"])
  }

  /// It is looked at before any store is.
  @Test(arguments: ["plan", "run"])
  func `is asked nothing where its metadata is a view`(command: String) throws {
    let folder = try PipelineFolder.orders(["a-2"], "commit: { beside: -2 }")
    try folder.write("stores/a.sqlite", "Orders.xcdatamodeld/Orders 2", "SELECT 1")
    try folder.makeMetadataEndless("stores/a-2.sqlite")
    #expect(try folder.godwit([command]).counts == "2 found, 1 refused, 1 failed")
  }

  /// Where both are lost, it is a store of an older version like any other.
  @Test(arguments: ["", "state", "ledger.sqlite"])
  func `is none of an earlier destination that a run is known to have written`(
    lost: String
  ) throws {
    let folder = try PipelineFolder("notes-progressive")
    let model = try FixtureModels.model(at: folder.path("Notes.xcdatamodeld/Notes.xcdatamodel"))
    try StoreGenerator(model, options: StoreOptions(seed: 1, rows: 20))
      .write(to: folder.path("stores/a.sqlite"))
    for (version, counts) in [("Notes 3", "1 found, 1 migrated"), ("Notes 4", "1 found, 1 failed")]
    {
      try """
      stores: { roots: stores }
      models: Notes.xcdatamodeld
      commit: { beside: -new }
      destination: \(version)

      """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
      let run = try Godwit.run(folder)
      #expect(run.counts == counts, "\(run.messages)")
      if !lost.isEmpty { try? FileManager.default.removeItem(atPath: folder.path(lost)) }
    }
  }
}

/// No step was met after which a commit is under way.
private struct KillError: Error {}
