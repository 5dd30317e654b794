import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `godwit rehearse` {
  private static let bundle =
    FixtureModels.folder.appendingPathComponent("Recipes.xcdatamodeld").path

  /// Notes of five versions, each in a folder named for its version.
  private static func notes() throws -> PipelineFolder {
    let folder = try PipelineFolder("notes-progressive")
    for (number, version) in ["Notes", "Notes 2", "Notes 3", "Notes 4", "Notes 5"].enumerated() {
      let model = try FixtureModels.model(
        at: folder.path("Notes.xcdatamodeld/\(version).xcdatamodel"))
      let place = folder.path("stores/\(number + 1).0")
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
      var options = StoreOptions(seed: UInt64(number + 1), rows: 12)
      options.leavesWAL = number == 1
      try StoreGenerator(model, options: options).write(to: place + "/Notes.sqlite")
    }
    return folder
  }

  private static func rehearse(
    _ folder: PipelineFolder, _ models: String, _ options: [String] = []
  ) throws -> Godwit.Run {
    let place = folder.path("temporary")
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    return try Godwit.run(
      ["rehearse", models, "--stores", folder.path("stores")] + options, temporaryFolder: place)
  }

  @Test func `migrates stores of five versions privately and leaves them as they are`() throws {
    let folder = try Self.notes()
    let before = try folder.storeContents()
    let run = try Self.rehearse(
      folder, folder.path("Notes.xcdatamodeld"), ["--json", "--chain", "progressive"])
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.counts == "5 found, 4 migrated, 1 same-model")
    let versions = run.results.values.compactMap { $0["source"] as? String }.sorted()
    #expect(versions == ["Notes", "Notes 2", "Notes 3", "Notes 4", "Notes 5"])
    #expect(run.results.values.allSatisfy { $0["output"] == nil && $0["backup"] == nil })
    #expect(try folder.storeContents() == before)
    #expect(
      try folder.names(in: ".") == [
        "Notes.xcdatamodeld", "pipeline.yaml", "stores", "temporary",
      ])
    #expect(try folder.names(in: "temporary") == [])
  }

  /// A store of this name could not be replaced, and nothing is written beside it.
  @Test func `migrates a store with the longest name that any may have`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    let name = String(repeating: "n", count: 251 - ".sqlite".utf8.count)
    try StoreGenerator(FixtureModels.Recipes.one.model(), options: StoreOptions(seed: 3, rows: 9))
      .write(to: folder.path("stores/a.sqlite"))
    try FileManager.default.moveItem(
      atPath: folder.path("stores/a.sqlite"), toPath: folder.path("stores/\(name).sqlite"))
    let run = try Self.rehearse(folder, Self.bundle, ["--json"])
    #expect(run.status == 0 && run.counts == "1 found, 1 migrated", "\(run.output)")
  }

  /// As of a checkout of another user's, or a volume that is mounted read-only.
  @Test(.enabled(if: geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0))
  func `migrates stores that this user may only read, also in a sticky folder`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    for name in ["closed", "sticky"] {
      let place = folder.path("stores/" + name)
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
      try StoreGenerator(FixtureModels.Recipes.one.model(), options: StoreOptions(seed: 3, rows: 9))
        .write(to: place + "/a.sqlite")
      #expect(chmod(place + "/a.sqlite", 0o644) == 0)
    }
    let temporary = folder.path("temporary")
    try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: true)
    #expect(chmod(folder.path("stores/sticky"), 0o1777) == 0 && chmod(temporary, 0o777) == 0)
    let before = try folder.storeContents()
    let run = try Godwit.run(
      [
        "rehearse", folder.root.path + "/Fixtures/Recipes.xcdatamodeld", "--stores",
        folder.path("stores"), "--json",
      ],
      temporaryFolder: temporary,
      wrapper: ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
    #expect(run.status == 0 && run.counts == "2 found, 2 migrated", "\(run.output)")
    #expect(try folder.storeContents() == before)
  }

  @Test func `prints a table with versions, rows and losses, which do not change the exit code`()
    throws
  {
    let folder = try PipelineFolder("recipes-2.0")
    try StoreGenerator(FixtureModels.Recipes.one.model(), options: StoreOptions(seed: 3, rows: 9))
      .write(to: folder.path("stores/old.sqlite"))
    try StoreGenerator(FixtureModels.Recipes.two.model(), options: StoreOptions(seed: 3, rows: 9))
      .write(to: folder.path("stores/new.store"))
    let junit = folder.path("out.xml")
    let run = try Self.rehearse(folder, Self.bundle, ["--junit", junit, "--quiet"])
    #expect(run.status == 0 && run.messages.isEmpty, "\(run.messages)")
    let lines = run.output.split(separator: "\n").map {
      $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
    }
    #expect(lines.first == "store version found verdict rows losses reason")
    #expect(lines.contains("new.store Recipes 2 same-model - -"))
    #expect(lines.contains { $0.hasPrefix("old.sqlite Recipes migrated ") })
    #expect(run.output.contains("Recipe.isFavorite: "))
    let xml = try String(contentsOfFile: junit, encoding: .utf8)
    #expect(xml.contains("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"0\""))
    #expect(xml.contains("<system-out>loss: Recipe.isFavorite has no successor"))
  }

  @Test func `is told losses of a version that is not among the models, which stay losses`() throws
  {
    let folder = try PipelineFolder("recipes-2.0")
    try StoreGenerator(FixtureModels.Recipes.one.model(), options: StoreOptions(seed: 3, rows: 9))
      .write(to: folder.path("stores/old.sqlite"))
    let run = try Self.rehearse(
      folder, Self.bundle + "/Recipes 2.xcdatamodel", ["--to", "Recipes 2"])
    #expect(run.status == 0, "\(run.output)")
    #expect(run.output.contains("Recipe.isFavorite: "))
  }

  /// To YAML, U+0085 in a text is a line break and U+007F no character at all.
  @Test(arguments: ["arch\u{85}ive", "del\u{7F}", "a\u{2028}b", "\u{FEFF}a"])
  func `is of the folder that was named, whatever its name has in it`(name: String) throws {
    let folder = try PipelineFolder("recipes-2.0")
    try FileManager.default.createDirectory(
      atPath: folder.path(name), withIntermediateDirectories: true)
    try StoreGenerator(FixtureModels.Recipes.two.model(), options: StoreOptions(seed: 3, rows: 9))
      .write(to: folder.path(name) + "/right.sqlite")
    let run = try Godwit.run([
      "rehearse", Self.bundle, "--stores", folder.path(name), "--json",
    ])
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.results.keys.map { ($0 as NSString).lastPathComponent } == ["right.sqlite"])
  }

  @Test func `names patterns that mean nothing where somebody gave them`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    try StoreGenerator(FixtureModels.Recipes.two.model(), options: StoreOptions(seed: 3, rows: 9))
      .write(to: folder.path("stores/new.store"))
    #expect(try Self.rehearse(folder, Self.bundle).messages.isEmpty)
    let patterns = ["--include", "*.store", "--include", "x/*"]
    let run = try Self.rehearse(folder, Self.bundle, patterns)
    #expect(run.messages == "x/* of --include means no file.\n")
    #expect(try Self.rehearse(folder, Self.bundle, patterns + ["--quiet"]).messages.isEmpty)
  }

  @Test func `ends with 3 where a store would not migrate, and says which and why`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    try StoreGenerator(FixtureModels.Recipes.one.model(), options: StoreOptions(seed: 3, rows: 9))
      .write(to: folder.path("stores/a.sqlite"))
    try folder.writeBad("bad")
    let before = try folder.storeContents()
    let junit = folder.path("out.xml")
    let run = try Self.rehearse(
      folder, Self.bundle, ["--to", "Recipes 2 M", "--junit", junit])
    #expect(run.status == 3)
    #expect(run.output.contains("a.sqlite (Core Data 134110): Ingredient becomes abstract"))
    #expect(run.output.contains("bad.sqlite (Core Data 134080): "))
    #expect(run.output.contains("2 stores: 0 migrated, 2 refused"))
    let xml = try String(contentsOfFile: junit, encoding: .utf8)
    #expect(xml.contains("tests=\"2\" failures=\"2\" errors=\"0\" skipped=\"0\""))
    #expect(xml.contains("name=\"a.sqlite\"") && xml.contains("type=\"abstract-with-rows\""))
    #expect(try folder.storeContents() == before)
    #expect(try folder.names(in: "temporary") == [])
  }

  @Test func `names the mapping model where a change is not lightweight`() throws {
    let folder = try PipelineFolder.orders()
    let run = try Self.rehearse(
      folder, folder.path("Orders.xcdatamodeld"),
      ["--to", "Orders 2", "--mapping", folder.path("orders.mapping.yaml")])
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.output.contains("Orders → Orders 2: not lightweight, by "))
    #expect(run.output.contains("orders.mapping.yaml"))
    #expect(run.output.contains("rehearsal: 2 stores: 2 migrated"))
  }

  @Test func `says how many symbolic links it does not follow`() throws {
    let folder = try PipelineFolder.orders(["a"])
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("stores/link.sqlite"), withDestinationPath: folder.path("stores/a.sqlite")
    )
    let run = try Self.rehearse(
      folder, folder.path("Orders.xcdatamodeld"), ["--mapping", folder.path("orders.mapping.yaml")])
    #expect(run.status == 0 && run.messages.contains("1 symbolic link is not followed."))
  }

  /// Before any work is done.
  @Test(arguments: [
    (["--include", "../*"], 64, "--include: ../* is not a path below --stores"),
    (["--include", ""], 64, "--include: an empty text is not a path below --stores"),
    (["--junit", "none/out.xml"], 73, "there is no folder"),
    (["--chain", "staged"], 64, "--chain staged requires an executable that registers stages."),
    (["--to", "Recipes 9"], 65, "nor a model at that path. Check --to and the models."),
  ])
  func `names the option that cannot be meant`(
    options: [String], status: Int32, message: String
  ) throws {
    let folder = try PipelineFolder("recipes-2.0")
    let run = try Self.rehearse(
      folder, Self.bundle,
      options.map {
        $0.hasPrefix("none/") ? folder.path($0) : $0
      })
    #expect(run.status == status && run.messages.contains(message), "\(run.messages)")
    // The options become a pipeline that nobody can correct.
    #expect(!run.messages.contains("pipeline.yaml"), "\(run.messages)")
  }

  @Test func `takes a destination in a folder that has a colon in its name`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    try StoreGenerator(FixtureModels.Recipes.one.model(), options: StoreOptions(seed: 3, rows: 9))
      .write(to: folder.path("stores/a.sqlite"))
    let place = folder.path("17:05")
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: Self.bundle, toPath: place + "/R.xcdatamodeld")
    let run = try Godwit.run(
      [
        "rehearse", "R.xcdatamodeld", "--stores", folder.path("stores"), "--to",
        "R.xcdatamodeld:Recipes 2", "--json",
      ], workingFolder: place)
    #expect(run.status == 0 && run.counts == "1 found, 1 migrated", "\(run.messages)")
  }

  @Test func `is never a success over no stores`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    let none = try Self.rehearse(folder, Self.bundle)
    #expect(none.status == 65 && none.messages.contains("There is no store below"))
    let wrong = try Godwit.run([
      "rehearse", Self.bundle, "--stores", folder.path("elsewhere"),
    ])
    #expect(wrong.status == 65 && wrong.messages.contains("is not a folder"))
    let version = try Self.rehearse(folder, Self.bundle, ["--to", "Recipes 9"])
    #expect(version.status == 65 && version.messages.contains("There is no version Recipes 9"))
    #expect(try Self.rehearse(folder, Self.bundle, ["--workers", "0"]).status == 64)
  }

  @Test(arguments: [1, 2])
  func `that is stopped ends with 75 and leaves nothing behind`(signals: Int) throws {
    let folder = try PipelineFolder.orders((1...30).map { "s\($0)" })
    let before = try folder.storeContents()
    let place = folder.path("temporary")
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    let run = try Godwit.run(
      [
        "rehearse", folder.path("Orders.xcdatamodeld"), "--stores", folder.path("stores"), "--to",
        "Orders 2", "--mapping", folder.path("orders.mapping.yaml"), "--workers", "1", "--json",
      ], stopAt: #""verdict":"migrated""#, signals: signals, temporaryFolder: place)
    #expect(run.status == 75, "\(run.messages)")
    #expect(run.summary["event"] as? String == "summary" && run.summary["found"] as? Int == 30)
    let migrated = run.summary["migrated"] as? Int ?? 0
    #expect(migrated > 0 && run.summary["pending"] as? Int == 30 - migrated, "\(run.summary)")
    let told = run.lines("result")
    #expect(told.filter { $0["verdict"] as? String == "migrated" }.count == migrated)
    // A second signal leaves no time to name the others.
    if signals == 1 { #expect(told.count == 30) }
    #expect(!"\(told)\(run.messages)".contains("to resume"))
    #expect(try folder.names(in: "temporary") == [])
    #expect(try folder.storeContents() == before)
  }
}
