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

  /// Xcode calls the versions of every bundle alike.
  @Test(arguments: [["Notes", "Songs"], ["Songs", "Notes"]])
  func `are told apart by their bundles where their versions have the same names`(
    order: [String]
  ) throws {
    let folder = try PipelineFolder.orders([])
    try FileManager.default.createDirectory(
      atPath: folder.path("many"), withIntermediateDirectories: true)
    func write(_ path: String, _ text: String) throws {
      let url = URL(fileURLWithPath: folder.path(path))
      try FileManager.default.createDirectory(
        at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(text.utf8).write(to: url)
    }
    for (bundle, own) in [("Notes", "Note"), ("Songs", "Song")] {
      for (version, attributes) in [("Model", ["name"]), ("Model 2", ["name", "more"])] {
        let properties = attributes.map {
          "<attribute name=\"\($0)\" optional=\"YES\" attributeType=\"String\"/>"
        }.joined()
        try write(
          "\(bundle).xcdatamodeld/\(version).xcdatamodel/contents",
          "<model type=\"com.apple.IDECoreDataModeler.DataModel\" documentVersion=\"1.0\">"
            + "<entity name=\"User\">\(properties)</entity><entity name=\"\(own)\"/></model>")
      }
      let model = try FixtureModels.model(
        at: folder.path("\(bundle).xcdatamodeld/Model.xcdatamodel"))
      try StoreGenerator(model, options: StoreOptions(seed: 5, rows: 3))
        .write(to: folder.path("many/\(bundle).sqlite"))
    }
    let version = "Notes.xcdatamodeld/Model"
    try write(
      "mapping.yaml",
      "mapping-model: 1\nsource-model: \(version).xcdatamodel\n"
        + "destination-model: \(version) 2.xcdatamodel\nentity-mappings:\n"
        + "- {source: User, destination: User, attributes: {more: '\"mapped\"'}}\n"
        + "- {source: Note, destination: Note}\n")
    try write(
      "many.yaml",
      "name: many\nstores: {roots: [many], include: ['*.sqlite']}\ndestination: Model 2\n"
        + "models: [\(order.map { $0 + ".xcdatamodeld" }.joined(separator: ", "))]\n"
        + "mappings: [mapping.yaml]\n")
    let plan = try Godwit.run(["plan", folder.path("many.yaml")])
    let cohorts = plan.output.split(separator: "\n").filter { $0.contains("Model → Model 2 (") }
    #expect(cohorts.count == 2 && cohorts.allSatisfy { $0.contains(": 1 store") }, "\(plan.output)")
    let run = try Godwit.run(["run", folder.path("many.yaml")])
    #expect(run.status == 0, "\(run.messages)")
    let values = "SELECT DISTINCT ifnull(ZMORE, 'none') FROM ZUSER"
    #expect(try folder.table("many/Notes.sqlite", values) == ["mapped"])
    #expect(try folder.table("many/Songs.sqlite", values) == ["none"])
    for (bundle, own) in [("Notes", "Note"), ("Songs", "Song")] {
      let names = "SELECT Z_NAME FROM Z_PRIMARYKEY ORDER BY Z_NAME"
      #expect(try folder.table("many/\(bundle).sqlite", names) == [own, "User"])
      #expect(
        try folder.table("many/\(bundle).sqlite", "SELECT count(*) FROM Z\(own.uppercased())") == [
          "3"
        ])
    }
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
