import Foundation
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `Models of several applications` {
  @Test(arguments: [true, false])
  func `bring a store to the current version of its own model, whichever was given last`(
    isLast: Bool
  ) throws {
    let folder = try PipelineFolder.orders(["a"])
    let models = [
      folder.root.appendingPathComponent("Fixtures/Recipes.xcdatamodeld").path,
      folder.path("Orders.xcdatamodeld"),
    ]
    let run = try Godwit.run(
      ["migrate", folder.path("stores/a.sqlite"), "--json"]
        + (isLast ? models : models.reversed()).flatMap { ["--models", $0] }
        + ["--mapping", folder.path("orders.mapping.yaml")])
    #expect(run.status == 0, "\(run.messages)")
    let result = try #require(run.results.values.first)
    #expect((result["destination"] as? String)?.hasPrefix("Orders") == true, "\(result)")
    #expect(try folder.table("stores/a.sqlite", "SELECT count(*) FROM ZORDER") == ["1"])
  }

  @Test func `do not make an empty store of one whose application is not the destination's`() throws
  {
    let folder = try PipelineFolder.orders(["a"])
    let store = folder.path("stores/a.sqlite")
    let recipes = folder.root.appendingPathComponent("Fixtures/Recipes.xcdatamodeld").path
    let before = try Data(contentsOf: URL(fileURLWithPath: store))
    let run = try Godwit.run(
      ["migrate", store, "--json", "--to", "Recipes 2"]
        + [folder.path("Orders.xcdatamodeld"), recipes].flatMap { ["--models", $0] })
    #expect(run.status == 65 && run.reason(of: "a") == "foreign-store", "\(run.output)")
    #expect(try Data(contentsOf: URL(fileURLWithPath: store)) == before)
  }

  /// As `mergedModel(from:)` makes it. For the repair the store's own copy of it is lost.
  @Test func `are the model of a store that was opened with their merger`() throws {
    let folder = try PipelineFolder("notes-progressive")
    let paths = [
      FixtureModels.folder.appendingPathComponent("Recipes.xcdatamodeld/Recipes.xcdatamodel").path,
      folder.path("Notes.xcdatamodeld"),
    ]
    let models = [
      try FixtureModels.Recipes.one.model(),
      try FixtureModels.model(at: folder.path("Notes.xcdatamodeld/Notes 3.xcdatamodel")),
    ]
    let merged = try ManagedObjectModel(merging: models.map { ("", $0) })
    let store = folder.path("stores/merged.sqlite")
    try StoreGenerator(merged, options: StoreOptions(seed: 5, rows: 12)).write(to: store)
    let given = paths.flatMap { ["--models", $0] }
    for words in [["verify", store], ["inspect", store], ["repair", store, "-o", store + "2"]] {
      if words[0] == "repair" {
        let connection = try Connection(path: store, mode: .readWrite)
        try connection.execute("DELETE FROM Z_MODELCACHE")
        try connection.close()
      }
      let run = try Godwit.run(words + ["--json"] + given)
      #expect(run.status == 0, "\(words[0]): \(run.messages)\(run.output.prefix(400))")
      #expect(run.output.contains(#""version":"Recipes + Notes 3""#), "\(run.output.prefix(400))")
    }
  }
}
