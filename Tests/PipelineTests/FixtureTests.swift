import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `godwit fixture` {
  /// A folder that is gone when the test is over.
  private final class Folder {
    let url = FileManager.default.temporaryDirectory
      .appendingPathComponent("godwit-fixture-\(UUID().uuidString)")
    init() throws {
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }
    deinit { try? FileManager.default.removeItem(at: url) }
    func path(_ name: String) -> String { url.appendingPathComponent(name).path }
    var names: [String] {
      get throws { try FileManager.default.contentsOfDirectory(atPath: url.path).sorted() }
    }
  }

  private static let recipes = FixtureModels.Recipes.one.path

  @Test func `writes a store that verify finds sound and that migrates`() throws {
    let folder = try Folder()
    let store = folder.path("a.sqlite")
    let made = try Godwit.run([
      "fixture", Self.recipes, "-o", store, "--rows", "30", "--entity-rows", "Recipe=7", "--json",
    ])
    #expect(made.status == 0, "\(made.messages)")
    let objects = try #require(made.lines.last?["objects"] as? [String: Int])
    #expect(objects["Recipe"] == 7 && objects["Ingredient"] == 30)
    #expect(try folder.names == ["a.sqlite"], "and nothing beside it")
    let connection = try Connection(path: store, mode: .immutable)
    #expect(try connection.drawn("SELECT count(*) FROM ZRECIPE") == ["7"])
    #expect(try Godwit.run(["verify", store]).status == 0)
    let migrated = try Godwit.run([
      "migrate", store, "--models", FixtureModels.Recipes.two.path, "--output",
      folder.path("b.sqlite"),
    ])
    #expect(migrated.status == 0, "\(migrated.messages)")
  }

  @Test func `gives equal bytes for equal seeds and others for others`() throws {
    let folder = try Folder()
    for (name, seed) in [("a", "5"), ("b", "5"), ("c", "6")] {
      let run = try Godwit.run([
        "fixture", Self.recipes, "-o", folder.path(name), "--rows", "9", "--seed", seed,
      ])
      #expect(run.status == 0, "\(run.messages)")
    }
    func bytes(_ name: String) throws -> Data {
      try Data(contentsOf: URL(fileURLWithPath: folder.path(name)))
    }
    #expect(try bytes("a") == bytes("b"))
    #expect(try bytes("a") != bytes("c"))
  }

  @Test func `leaves the last rows in a write-ahead log, and external data in files`() throws {
    let folder = try Folder()
    let store = folder.path("a.sqlite")
    let run = try Godwit.run([
      "fixture", Self.recipes, "-o", store, "--rows", "20", "--wal", "--external", "1", "--nulls",
      "0", "--json",
    ])
    #expect(run.status == 0, "\(run.messages)")
    #expect(try folder.names == [".a_SUPPORT", "a.sqlite", "a.sqlite-wal"])
    let files = try #require(run.lines.last?["externalFiles"] as? Int)
    let found = try FileManager.default.contentsOfDirectory(
      atPath: folder.path(".a_SUPPORT/_EXTERNAL_DATA"))
    #expect(files > 0 && found.count == files)
    #expect(try Godwit.run(["verify", store]).status == 0)
  }

  @Test func `and rehearse take relative paths, a bare name among them`() throws {
    let folder = try Folder()
    try FileManager.default.copyItem(
      atPath: FixtureModels.folder.appendingPathComponent("Recipes.xcdatamodeld").path,
      toPath: folder.path("Recipes.xcdatamodeld"))
    let made = try Godwit.run(
      ["fixture", "Recipes.xcdatamodeld:Recipes", "-o", "a.sqlite", "--rows", "5"],
      workingFolder: folder.url.path)
    #expect(made.status == 0, "\(made.messages)")
    #expect(made.output.hasPrefix("a.sqlite: 40 objects of Recipes, "), "\(made.output)")
    let run = try Godwit.run(
      [
        "rehearse", "Recipes.xcdatamodeld", "--stores", ".", "--to",
        "Recipes.xcdatamodeld:Recipes 2", "--junit", "out.xml",
      ], workingFolder: folder.url.path)
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.output.contains("rehearsal: 1 store: 1 migrated"))
    #expect(try folder.names == ["Recipes.xcdatamodeld", "a.sqlite", "out.xml"])
  }

  @Test(arguments: ["", "-wal", "-journal"])
  func `overwrites nothing, a file of the store beside it included`(suffix: String) throws {
    let folder = try Folder()
    let store = folder.path("a.sqlite")
    let old = URL(fileURLWithPath: store + suffix)
    try Data("mine".utf8).write(to: old)
    let run = try Godwit.run(["fixture", Self.recipes, "-o", store, "--json"])
    #expect(run.status == 73)
    #expect(run.messages.contains("already exists and is not overwritten"))
    #expect(try Data(contentsOf: old) == Data("mine".utf8))
    #expect(try folder.names == [old.lastPathComponent])
  }

  @Test func `says what is wrong with its words, and makes nothing`() throws {
    let folder = try Folder()
    let store = folder.path("a.sqlite")
    let cases: [(words: [String], status: Int32, message: String)] = [
      (["--entity-rows", "Recipes=3"], 64, "no concrete entity Recipes"),
      (["--entity-rows", "Recipe"], 64, "ENTITY=COUNT"),
      (["--nulls", "2"], 64, "from 0 to 1"),
      (["--rows", "2000000000"], 64, "more rows than"),
    ]
    for (words, status, message) in cases {
      let run = try Godwit.run(["fixture", Self.recipes, "-o", store] + words)
      #expect(run.status == status && run.messages.contains(message), "\(run.messages)")
    }
    let nowhere = try Godwit.run(["fixture", Self.recipes, "-o", folder.path("none/a.sqlite")])
    #expect(nowhere.status == 73, "\(nowhere.messages)")
    let noModel = try Godwit.run(["fixture", folder.path("none.xcdatamodel"), "-o", store])
    #expect(noModel.status == 65, "\(noModel.messages)")
    #expect(try folder.names == [])
  }
}
