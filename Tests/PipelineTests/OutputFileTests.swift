import Foundation
import GodwitSQLite
import Testing

/// A mistyped name must not cost a store.
@Suite struct `A file that a command writes by name` {
  /// The words of each such command, but for the name.
  enum Kind: String, CaseIterable {
    case plan, html, json, junit, rehearsal

    func words(_ folder: PipelineFolder) -> [String] {
      switch self {
      case .plan: ["plan", folder.url.path, "--samples", "0", "--out"]
      case .html, .json, .junit: ["report", folder.url.path, "--format", rawValue, "--output"]
      case .rehearsal:
        [
          "rehearse", folder.path("Orders.xcdatamodeld"), "--mapping",
          folder.path("orders.mapping.yaml"), "--stores", folder.path("stores"), "--junit",
        ]
      }
    }
  }

  private func folder() throws -> PipelineFolder {
    let folder = try PipelineFolder.orders(["a"])
    #expect(try Godwit.run(folder).status == 0)
    return folder
  }

  @Test(arguments: Kind.allCases)
  func `takes the place of an earlier one`(kind: Kind) throws {
    let folder = try folder()
    let words = kind.words(folder) + [folder.path("out")]
    for _ in 0..<2 {
      let run = try Godwit.run(words)
      #expect(run.status == 0, "\(run.messages)")
    }
    #expect(try !folder.bytes("out").isEmpty)
  }

  /// A report goes there; what has other results on standard output needs a file.
  @Test(arguments: Kind.allCases)
  func `is none of the name that stands for standard output`(kind: Kind) throws {
    let folder = try folder()
    let run = try Godwit.run(kind.words(folder) + ["-"], workingFolder: folder.url.path)
    let isReport = kind.words(folder).first == "report"
    #expect(run.status == (isReport ? 0 : 73) && run.output.isEmpty != isReport, "\(run.messages)")
    #expect(!FileManager.default.fileExists(atPath: folder.path("-")))
  }

  @Test func `is no store of the name that stands for standard output either`() throws {
    let folder = try folder()
    let store = folder.path("stores/a.sqlite")
    for words in [
      ["fixture", "Orders.xcdatamodeld", "-o"], ["repair", store, "-o"],
      ["migrate", store, "--models", "Orders.xcdatamodeld", "--output"],
      ["mapping", "infer", store, store, "-o"],
    ] {
      let run = try Godwit.run(words + ["-"], workingFolder: folder.url.path)
      #expect(run.status == 73, "\(words): \(run.messages)")
      #expect(!FileManager.default.fileExists(atPath: folder.path("-")))
    }
  }

  @Test(arguments: Kind.allCases)
  func `takes the place of nothing else`(kind: Kind) throws {
    let folder = try folder()
    try Data("# mine".utf8).write(to: URL(fileURLWithPath: folder.path("notes.md")))
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link"), withDestinationPath: folder.path("nowhere"))
    for name in ["stores/a.sqlite", "notes.md"] {
      let before = try folder.bytes(name)
      let run = try Godwit.run(kind.words(folder) + [folder.path(name)])
      #expect(run.status == 73)
      #expect(run.messages.contains("\(folder.path(name)) is not a"), "\(run.messages)")
      #expect(try folder.bytes(name) == before)
    }
    #expect(try Godwit.run(kind.words(folder) + [folder.path("link")]).status == 73)
    #expect(!FileManager.default.fileExists(atPath: folder.path("nowhere")))
  }

  @Test(arguments: Kind.allCases)
  func `has a name that leaves place for a longer one while it is written`(kind: Kind) throws {
    let folder = try folder()
    for (bytes, status) in [(244, 0), (245, 73)] as [(Int, Int32)] {
      let name = folder.path(String(repeating: "n", count: bytes))
      let run = try Godwit.run(kind.words(folder) + [name])
      #expect(run.status == status, "\(run.messages)")
      #expect(FileManager.default.fileExists(atPath: name) == (status == 0))
      // Before any work is done.
      #expect(run.messages.contains("may have 244 bytes") == (status != 0), "\(run.messages)")
    }
  }

  @Test func `of a pipeline's key report is not put over another file, which a warning says`()
    throws
  {
    let keys = "report: { html: page.html, metrics: godwit.prom }"
    let folder = try PipelineFolder.orders(["a"], keys)
    try Data("<!DOCTYPE html><title>mine</title>".utf8).write(
      to: URL(fileURLWithPath: folder.path("page.html")))
    for _ in 0..<2 {
      let run = try Godwit.run(folder)
      #expect(run.status == 0)
      #expect(run.messages.contains("page.html is not a report"), "\(run.messages)")
      #expect(!run.messages.contains("godwit.prom"), "\(run.messages)")
    }
    #expect(
      String(decoding: try folder.bytes("page.html"), as: UTF8.self).hasSuffix("mine</title>"))
    #expect(try folder.bytes("godwit.prom").starts(with: Data("# HELP".utf8)))
  }

  @Test(arguments: ["New.cdm", "New.xcmappingmodel", "New.xcmappingmodel/"])
  func `has no name of a form that is not written`(name: String) throws {
    let folder = try PipelineFolder("total-cost")
    let bundle = folder.path("Orders.xcdatamodeld")
    let commands = [
      ["new", bundle + ":Orders", bundle], ["infer", bundle + ":Orders", bundle],
      ["convert", folder.path("orders.mapping.yaml")],
    ]
    for words in commands {
      let run = try Godwit.run(["mapping"] + words + ["--output", folder.path(name)])
      #expect(run.status == 64)
      #expect(run.messages.contains("New.mapping.yaml"), "\(run.messages)")
    }
    #expect(!FileManager.default.fileExists(atPath: folder.path(name)))
  }

  @Test func `of a new mapping model says what is left to write, and so does the command`() throws {
    let folder = try PipelineFolder("recipes-ingredients")
    let bundle = folder.path("../../Fixtures/Recipes.xcdatamodeld")
    let file = folder.path("new.mapping.yaml")
    let pair = [bundle + ":Recipes", bundle + ":Recipes 2 M"]
    let run = try Godwit.run(["mapping", "new"] + pair + ["-o", file])
    let gap = "the source entity Ingredient has no destination: its objects are dropped"
    #expect(run.status == 0 && run.messages.contains("to write: \(gap)"), "\(run.messages)")
    let text = String(decoding: try folder.bytes("new.mapping.yaml"), as: UTF8.self)
    #expect(text.hasPrefix("# yaml-language-server") && text.contains("#   \(gap)\n"))
    let check = try Godwit.run(["mapping", "check", file] + pair)
    #expect(check.status == 0)
    #expect(check.output.contains("warning uncovered-source in Ingredient"), "\(check.output)")
  }

  @Test func `of a second pass is checked after the first, whose entity mappings it names`() throws
  {
    let folder = try PipelineFolder("recipes-ingredients")
    let bundle = folder.path("../../Fixtures/Recipes.xcdatamodeld")
    let pair = [bundle + ":Recipes", bundle + ":Recipes 2 M"]
    let (first, second) = (folder.path("first.mapping.yaml"), folder.path("second.mapping.yaml"))
    try #require(try Godwit.run(["mapping", "new"] + pair + ["-o", first]).status == 0)
    try """
    mapping-model: 1
    entity-mappings:
      - name: Again
        source: Recipe
        destination: Recipe
        others: none
        attributes:
          name: FUNCTION($manager, "destinationInstancesForEntityMappingNamed:sourceInstances:", \
    "RecipeToRecipe", $source).name
    """.write(toFile: second, atomically: true, encoding: .utf8)
    let alone = try Godwit.run(["mapping", "check", second] + pair)
    #expect(alone.status == 65 && alone.output.contains("unknown-mapping"), "\(alone.output)")
    let after = try Godwit.run(["mapping", "check", second, "--after", first] + pair)
    #expect(!after.output.contains("unknown-mapping"), "\(after.output)")
    #expect(try Godwit.run(["mapping", "check", second, "--after", first]).status == 64)
  }

  // Escapes are for terminals: in a YAML file they are another name.
  @Test func `holds the same bytes as standard output`() throws {
    let folder = try folder()
    let models = try ["a", "b"].map { name in
      let package = folder.path("\(name).xcdatamodel")
      try FileManager.default.createDirectory(
        atPath: package, withIntermediateDirectories: true)
      let attributes = ["x\u{202E}y", name].map {
        #"<attribute name="\#($0)" attributeType="String" optional="YES"/>"#
      }.joined()
      try "<model><entity name=\"A\">\(attributes)</entity></model>"
        .write(toFile: package + "/contents", atomically: true, encoding: .utf8)
      return package
    }
    let words = ["mapping", "infer"] + models
    let run = try Godwit.run(words)
    #expect(run.status == 0, "\(run.messages)")
    #expect(try Godwit.run(words + ["--output", folder.path("m.yaml")]).status == 0)
    let text = try String(decoding: folder.bytes("m.yaml"), as: UTF8.self)
    #expect(text.contains("x\u{202E}y") && run.output == text)
    let shown = try Godwit.run(["model", "show", models[0], "--format", "dot"])
    #expect(shown.output.contains("x\u{202E}y"))
  }
}

@Suite struct `A run's log` {
  private static let places = [
    "ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-journal", "state", "state/lock",
    "state/run.log",
    "state/cluster/../ledger.jsonl", "link/lock",
  ]

  /// Before its first start, and after it.
  @Test(arguments: places)
  func `is none of what its runs keep, whether that is there yet or not`(place: String) throws {
    let folder = try PipelineFolder.orders(["a"])
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link"), withDestinationPath: folder.path("state"))
    func refused() throws {
      let contents = try folder.storeContents()
      let run = try folder.godwit(["run"], ["--log", folder.path(place)])
      #expect(run.status == 73 && run.messages.contains("Give another path"), "\(run.messages)")
      #expect(try folder.storeContents() == contents)
    }
    if !place.hasPrefix("link/") && !place.contains("..") { try refused() }
    #expect(try Godwit.run(folder).counts == "1 found, 1 migrated")
    try FileManager.default.createDirectory(
      atPath: folder.path("state/cluster"), withIntermediateDirectories: true)
    try refused()
    #expect(try folder.godwit(["run"], ["--log", folder.path("run.log")]).status == 0)
    #expect(try folder.godwit(["status"]).status == 0, "the ledger is whole")
  }
}
