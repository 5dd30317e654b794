import ArgumentParser
import Foundation
import GodwitObjectModel
import SystemPackage
import Testing

@testable import GodwitCommands

/// The package's folder.
private let root = URL(fileURLWithPath: #filePath)
  .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
private let recipes = root + "/Fixtures/Recipes.xcdatamodeld"

@Suite struct `A catalog of models` {
  @Test func `takes the current version of the last bundle for the destination`() throws {
    let catalog = try ModelCatalog([recipes, recipes + "/Recipes.xcdatamodel"])
    #expect(catalog.currents.last?.name == "Recipes 2")
    #expect(catalog.versions.count == 5)
  }

  @Test func `takes a version that was asked for by name`() throws {
    let catalog = try ModelCatalog([recipes + ":Recipes 1.1"])
    #expect(catalog.currents.last?.name == "Recipes 1.1")
    #expect(catalog.versions.map(\.name) == ["Recipes 1.1"])
  }

  @Test(arguments: ["Recipes 1.1", recipes + ":Recipes 1.1", recipes + "/Recipes 1.1.xcdatamodel"])
  func `finds a destination by name or path`(name: String) throws {
    #expect(try ModelCatalog([recipes]).destinations(named: name).map(\.name) == ["Recipes 1.1"])
  }

  /// Such as one that is named for a time.
  @Test(arguments: ["/R.xcdatamodeld:Recipes 2", "/R.xcdatamodeld/Recipes 2.xcdatamodel"])
  func `finds a destination in a folder that has a colon in its name`(path: String) throws {
    let place = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: place) }
    let folder = place + "/17:05"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: recipes, toPath: folder + "/R.xcdatamodeld")
    let catalog = try ModelCatalog([folder + "/R.xcdatamodeld"])
    #expect(try catalog.destinations(named: folder + path).map(\.name) == ["Recipes 2"])
    let error = #expect(throws: CommandError.self) {
      try catalog.destinations(named: folder + "/S.xcdatamodeld:Recipes 2")
    }
    #expect(error?.ending == .badInput)
  }

  @Test func `finds every destination of one name`() throws {
    let catalog = try ModelCatalog([recipes, recipes + "/Recipes 2.xcdatamodel", recipes])
    let found = try catalog.destinations(named: "Recipes 2")
    #expect(found.map(\.name) == ["Recipes 2", "Recipes 2", "Recipes 2"])
    let request = catalog.request(for: "store", named: found)
    #expect(request.destination?.path == found.last?.path && request.named.count == 3)
    #expect(catalog.request(for: "store", named: []).destination?.name == "Recipes 2")
  }

  // To this file system two folders.
  @Test func `tells versions apart whose names differ only in Unicode normalisation`() throws {
    let files = FileManager.default
    let folder = NSTemporaryDirectory() + "godwit-catalog-\(UUID().uuidString)"
    defer { try? files.removeItem(atPath: folder) }
    let bundle = folder + "/M.xcdatamodeld"
    try files.createDirectory(atPath: bundle, withIntermediateDirectories: true)
    let names = ["2\u{E9}", "2e\u{301}"]
    for name in names {
      try files.copyItem(
        atPath: recipes + "/Recipes.xcdatamodel", toPath: "\(bundle)/\(name).xcdatamodel")
    }
    for name in names {
      let found = try ModelCatalog([bundle]).destinations(named: name)
      #expect(found.map { NameKey($0.name) } == [NameKey(name)])
    }
    let error = #expect(throws: CommandError.self) {
      try ModelCatalog(["\(bundle):\(names[0])"]).destinations(named: names[1])
    }
    #expect(error?.description.contains("looks the same") == true)
  }

  @Test func `says which versions there are`() throws {
    let catalog = try ModelCatalog([recipes])
    let error = #expect(throws: CommandError.self) { try catalog.destinations(named: "Recipes 9") }
    #expect(error?.ending == .badInput)
    #expect(error?.description.contains("Recipes 2") == true)
  }

  @Test func `is empty without arguments`() throws {
    let catalog = try ModelCatalog([])
    #expect(catalog.versions.isEmpty)
    #expect(catalog.currents.isEmpty)
  }
}

@Suite struct `The arguments of a migration` {
  private func parse(_ arguments: String...) throws -> MigrationArguments {
    try MigrationArguments.parse(arguments)
  }

  @Test func `put the run directory beside what is written`() throws {
    #expect(try parse("a.sqlite").runDirectoryPath == "a.sqlite.godwit")
    #expect(try parse("a.sqlite", "--output", "b").runDirectoryPath == "b.godwit")
    #expect(try parse("a.sqlite", "--output", "b/").runDirectoryPath == "b.godwit")
    #expect(try parse("a.sqlite", "--output", "b", "--state", "c").runDirectoryPath == "c")
  }

  @Test func `may repeat models`() throws {
    #expect(try parse("a", "--models", "b", "--models", "c").models == ["b", "c"])
  }

  @Test(arguments: [
    ["--workers", "0"], ["--workers", "257"], ["--shard-bytes", "0"], ["--output", ""],
  ])
  func `are refused where they mean nothing`(extra: [String]) {
    #expect(throws: (any Error).self) { try MigrationArguments.parse(["a"] + extra) }
  }

  @Test(arguments: [
    ["plan", "a.sqlite", "--samples", "3"], ["plan", "a.sqlite", "--verbose"],
    ["run", "pipeline.yaml", "--log-format", "json"],
  ])
  func `are refused where they would change nothing`(words: [String]) async {
    #expect(await CommandLineTool.run(words) == .usage)
  }

  @Test func `give numbers that a machine can use`() throws {
    #expect(try parse("a", "--shard-bytes", "64KiB").shardBytes.bytes == 65_536)
    #expect((1...8).contains(try parse("a").workerCount))
    #expect(try parse("a", "--workers", "12").workerCount == 12)
  }
}

@Suite struct `The check of a model's changes` {
  /// The version that something becomes, and how the check ends.
  @Test(arguments: [
    ("Recipes.xcdatamodel", "Recipes.xcdatamodel", GodwitCommands.ExitStatus.success),
    ("Recipes.xcdatamodel", "Recipes 1.1.xcdatamodel", .success),  // a class name only
  ])
  func `ends with an exit code`(
    source: String, destination: String, status: GodwitCommands.ExitStatus
  ) async {
    let found = await CommandLineTool.run(
      ["model", "diff", recipes + "/" + source, recipes + "/" + destination, "--check"])
    #expect(found == status)
  }

  @Test(arguments: [
    (
      "title", "<attribute name=\"title\" attributeType=\"String\"/>",
      GodwitCommands.ExitStatus.success
    ),
    ("renamed", "<attribute name=\"t\" elementID=\"title\" attributeType=\"String\"/>", .success),
    ("number", "<attribute name=\"title\" attributeType=\"Integer 16\"/>", .badInput),
    ("nothing", "", .badInput),
    (
      "required",
      "<attribute name=\"title\" attributeType=\"String\"/><attribute name=\"size\" attributeType=\"Integer 16\"/>",
      .badInput
    ),
    (
      "default",
      "<attribute name=\"title\" attributeType=\"String\"/><attribute name=\"size\" attributeType=\"Integer 16\" defaultValueString=\"1\"/>",
      .success
    ),
    ("abstract", "<attribute name=\"title\" attributeType=\"String\"/>", .badInput),
  ])
  func `fails where values would be lost`(
    name: String, attribute: String, status: GodwitCommands.ExitStatus
  ) async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/check-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    func model(_ name: String, _ attribute: String) throws -> String {
      let path = "\(folder)/\(name).xcdatamodel"
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      let traits = name == "abstract" ? " isAbstract=\"YES\"" : ""
      try Data("<model><entity name=\"Book\"\(traits)>\(attribute)</entity></model>".utf8).write(
        to: URL(fileURLWithPath: path + "/contents"))
      return path
    }
    let old = try model("old", "<attribute name=\"title\" attributeType=\"String\"/>")
    let found = await CommandLineTool.run(
      ["model", "diff", old, try model(name, attribute), "--check"])
    #expect(found == status)
  }
}
