import Foundation
import StoreFixtures
import Testing

@Suite struct `A pipeline that means less than it says` {
  @Test(arguments: ["run", "plan"])
  func `names the patterns and the roots that mean nothing`(command: String) throws {
    let folder = try PipelineFolder("recipes-2.0")
    try RecipesFleet(stores: 1, rows: 20, seed: 5).write(to: folder.path("stores"))
    try FileManager.default.createDirectory(
      atPath: folder.path("more"), withIntermediateDirectories: true)
    let store = try #require(folder.storeFiles().first { $0.hasSuffix(".sqlite") })
    let text = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
    let rest = text.split(separator: "\n", omittingEmptySubsequences: false)
      .filter { !$0.hasPrefix("stores:") && !$0.hasPrefix("  ") }
    let stores = #"""
      stores:
        roots: [stores, more]
        include: ["\#(store)", "{a,b}/*.sqlite", "[1]/*.sqlite"]

      """#
    try (stores + rest.joined(separator: "\n")).write(
      toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    let run = try Godwit.run([command, folder.url.path])
    #expect(run.status == 0, "\(run.messages)")
    let said = run.messages + run.output
    #expect(
      said.contains("{a,b}/*.sqlite and 1 more pattern of stores.include mean no file."), "\(said)"
    )
    #expect(said.contains("Brackets and braces stand for themselves in patterns."))
    #expect(said.contains("more is without a store."))
  }

  @Test func `is told by the doctor what lies in the place of its state folder`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    try RecipesFleet(stores: 1, rows: 20, seed: 5).write(to: folder.path("stores"))
    try Data().write(to: URL(fileURLWithPath: folder.path("state")))
    let doctor = try Godwit.run(["doctor", folder.url.path])
    #expect(doctor.status == 78 && doctor.output.contains("state is a regular file, not a folder."))
    let run = try Godwit.run(folder)
    #expect(run.status == 78 && run.messages.contains("state is a regular file, not a folder."))
  }

  @Test func `is told by the doctor what no run would replace`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    try RecipesFleet(stores: 1, rows: 20, seed: 5).write(to: folder.path("stores"))
    let text = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
    try (text + "\nreport: { html: page.html, metrics: state/m.prom }\n").write(
      toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    try Data("mine".utf8).write(to: URL(fileURLWithPath: folder.path("page.html")))
    let doctor = try Godwit.run(["doctor", "pipeline.yaml"], workingFolder: folder.url.path)
    #expect(doctor.status == 78)
    #expect(doctor.output.contains("WARNING  report.html: ./page.html is not a report of Godwit"))
    #expect(doctor.output.contains("ok       report.metrics: "), "\(doctor.output)")
    let run = try Godwit.run(["run", "pipeline.yaml"], workingFolder: folder.url.path)
    #expect(run.status == 0 && run.messages.contains("page.html is not a report of Godwit"))
    #expect(!run.messages.contains("m.prom"), "\(run.messages)")
  }

  /// A command that only reads would find nothing there, or an error of each file.
  @Test(arguments: [
    ["plan", "."], ["status", "."], ["history", "."], ["verify", "."],
    ["report", ".", "--json"],
    ["rollback", "."], ["backups", "list", "."], ["quarantine", "list", "."],
    ["control", ".", "status"],
  ])
  func `is told by every command what lies in the place of its state folder`(words: [String]) throws
  {
    let folder = try PipelineFolder("recipes-2.0")
    try RecipesFleet(stores: 1, rows: 20, seed: 5).write(to: folder.path("stores"))
    try #require(mkfifo(folder.path("state"), 0o600) == 0)
    let states: [(place: [String], kind: String)] = [
      ([], "a FIFO"), (["--state", "pipeline.yaml/state"], "a regular file"),
    ]
    for (place, kind) in states {
      let run = try Godwit.run(words + place, workingFolder: folder.url.path)
      #expect(run.status == 78, "\(place): \(run.messages)")
      #expect(run.messages.contains(" is \(kind)"), "\(place): \(run.messages)")
      #expect(run.messages.contains(", not a folder. Move it away, or give another path."))
    }
  }
}

/// Two composites of one form: the first by name has the first columns, and no version hash tells which it is.
@Suite struct `A store that opens without a migration, and is read otherwise than it was written` {
  private func folder() throws -> PipelineFolder {
    let folder = try PipelineFolder("recipes-2.0")
    for (version, name) in [("M", #"name="home""#), ("M 2", #"name="zhome" elementID="home""#)] {
      let place = folder.path("M.xcdatamodeld/\(version).xcdatamodel")
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
      let composite = #"optional="YES" attributeType="Composite" elements="Address"/>"#
      try """
      <?xml version="1.0"?>
      <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
        <composite name="Address">
          <attribute name="street" optional="YES" attributeType="String"/>
        </composite>
        <entity name="Person">
          <attribute \(name) \(composite)
          <attribute name="work" \(composite)
        </entity>
      </model>
      """.write(toFile: place + "/contents", atomically: true, encoding: .utf8)
    }
    let bundle = folder.path("M.xcdatamodeld")
    let made = try Godwit.run(["model", "set-current", bundle, "M 2", "--json"])
    #expect(made.status == 0)
    #expect((made.summary["path"] as? String)?.hasSuffix("M.xcdatamodeld/M 2.xcdatamodel") == true)
    let store = folder.path("stores/a.sqlite")
    #expect(try Godwit.run(["fixture", bundle + ":M", "--rows", "3", "-o", store]).status == 0)
    try "stores: { roots: stores }\nmodels: M.xcdatamodeld".write(
      toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    return folder
  }

  private static let note =
    "Person.work.street is read as String in ZSTREET, where home.street was written, and was written as"

  @Test func `fails the check of the two models`() throws {
    let folder = try folder()
    let bundle = folder.path("M.xcdatamodeld")
    let run = try Godwit.run(["model", "diff", "--check", bundle + ":M", bundle + ":M 2"])
    #expect(run.status == 65 && run.output.contains(Self.note), "\(run.output)")
  }

  @Test func `is noted by rehearse, and in its JUnit report`() throws {
    let folder = try folder()
    let junit = folder.path("out.xml")
    let run = try Godwit.run([
      "rehearse", folder.path("M.xcdatamodeld"), "--stores", folder.path("stores"), "--junit",
      junit,
    ])
    #expect(run.status == 0 && run.output.contains(Self.note), "\(run.output)")
    #expect(
      String(decoding: try folder.bytes("out.xml"), as: UTF8.self).contains("note: The store"))
  }

  @Test func `is noted by every run, and in its report`() throws {
    let folder = try folder()
    for _ in 0..<2 {
      let run = try Godwit.run(["run", folder.url.path])
      #expect(run.status == 0 && run.output.contains(Self.note), "\(run.output)")
      #expect(run.output.contains("(1 store)"))
      let report = try Godwit.run(["report", folder.url.path, "--json"]).lines.first
      let store = try #require((report?["stores"] as? [[String: Any]])?.first)
      let reasons = try #require(store["reasons"] as? [[String: Any]])
      #expect(reasons.map { $0["reason"] as? String } == ["note"])
      #expect((reasons.first?["message"] as? String)?.contains(Self.note) == true)
      #expect((report?["failures"] as? [Any])?.isEmpty == true)
    }
    let page = try Godwit.run(["report", folder.url.path, "--format", "html"]).output
    #expect(page.contains("note: The store opens"))
  }
}
