import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `Rolling several runs back` {
  /// Stores of notes, and what they were before and after the first of two runs.
  private struct Notes {
    let folder: PipelineFolder
    let before: [String: Data]
    let between: [String: Data]
    /// The names of the two runs.
    let runs: [String]
  }

  private func write(_ name: String, version: String = "Notes", to folder: PipelineFolder) throws {
    let made = try Godwit.run([
      "fixture", folder.path("Notes.xcdatamodeld") + ":" + version, "--rows", "20", "--seed",
      "\(name.utf8.count)", "-o", folder.path("stores/\(name).sqlite"),
    ])
    try #require(made.status == 0, "\(made.messages)")
  }

  private func migrate(_ folder: PipelineFolder, to version: String) throws -> Godwit.Run {
    let lines = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
      .split(separator: "\n").filter { !$0.hasPrefix("destination:") }
    try (lines + ["destination: \(version)", ""]).joined(separator: "\n")
      .write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    let run = try Godwit.run(folder)
    try #require(run.status == 0, "\(run.messages)")
    return run
  }

  private func notes() throws -> Notes {
    let folder = try PipelineFolder("notes-progressive")
    for name in ["a", "ab"] { try write(name, to: folder) }
    let before = try folder.contentsOfStoresAlone()
    let first = try migrate(folder, to: "Notes 3")
    let between = try folder.contentsOfStoresAlone()
    let second = try migrate(folder, to: "Notes 5")
    return Notes(
      folder: folder, before: before, between: between,
      runs: [first, second].compactMap { $0.summary["run"] as? String })
  }

  @Test(arguments: ["", "--run", "--store"])
  func `leads back to the first, one after the other`(option: String) throws {
    let notes = try notes()
    func rollback(_ place: Int) throws -> Godwit.Run {
      let options: [String] =
        switch option {
        case "--run": ["--run", notes.runs[place]]
        case "--store":
          ["a", "ab"].flatMap { ["--store", notes.folder.path("stores/\($0).sqlite")] }
        default: []
        }
      return try notes.folder.godwit(["rollback"], options)
    }
    let last = try rollback(1)
    #expect(last.status == 0, "\(last.messages)")
    #expect(try notes.folder.contentsOfStoresAlone() == notes.between)
    let first = try rollback(0)
    #expect(first.status == 0, "\(first.messages)")
    #expect(first.summary["restored"] as? Int == 2)
    #expect(try notes.folder.contentsOfStoresAlone() == notes.before)
    #expect(try notes.folder.godwit(["rollback"]).summary["found"] as? Int == 0)
  }

  @Test func `refuses the first before the last`() throws {
    let notes = try notes()
    let rollback = try notes.folder.godwit(["rollback"], ["--run", notes.runs[0]])
    #expect(rollback.status == 3 && rollback.reason(of: "a") == "changed-since")
  }

  @Test func `refuses the first where an application wrote between the two`() throws {
    let folder = try PipelineFolder("notes-progressive")
    try write("a", to: folder)
    _ = try migrate(folder, to: "Notes 3")
    let connection = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
    try connection.execute("UPDATE ZNOTE SET Z_OPT = Z_OPT + 1")
    try connection.close()
    _ = try migrate(folder, to: "Notes 5")
    #expect(try folder.godwit(["rollback"]).status == 0)
    let between = try folder.contentsOfStoresAlone()
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 3 && rollback.reason(of: "a") == "changed-since")
    #expect(try folder.contentsOfStoresAlone() == between)
  }

  @Test func `one that was killed is finished, and nothing more is undone`() throws {
    let notes = try notes()
    var (step, kills) = (2, 0)
    while true {
      let rollback = try notes.folder.godwit(["rollback"], killAfter: step)
      if rollback.status == 0 { break }
      try #require(rollback.status == -SIGKILL, "step \(step): \(rollback.messages)")
      kills += 1
      step += 3
      // As often as it is needed, and once more.
      let isUndone = try notes.folder.contentsOfStoresAlone() == notes.between
      if isUndone { break }
    }
    #expect(kills > 3)
    // One that was killed when it had written down its end is not finished, but done.
    if try notes.folder.godwit(["history"]).lines.first?["ended"] == nil {
      #expect(try notes.folder.godwit(["rollback"]).status == 0)
    }
    #expect(try notes.folder.contentsOfStoresAlone() == notes.between)
  }

  @Test func `of a cohort finds the last run that replaced stores of it`() throws {
    let folder = try PipelineFolder("notes-progressive")
    for name in ["a", "ab"] { try write(name, to: folder) }
    let before = try folder.contentsOfStoresAlone()
    _ = try migrate(folder, to: "Notes 5")
    try write("abc", version: "Notes 3", to: folder)
    _ = try migrate(folder, to: "Notes 5")
    let rollback = try folder.godwit(["rollback"], ["--cohort", "Notes"])
    #expect(rollback.status == 0 && rollback.summary["restored"] as? Int == 2)
    #expect(
      try folder.contentsOfStoresAlone().filter { !$0.key.hasPrefix("abc.") } == before)
  }

  @Test func `takes a store by a relative path`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let before = try folder.storeContents()
    #expect(try Godwit.run(folder).status == 0)
    let rollback = try Godwit.run(
      ["rollback", "pipeline.yaml", "--store", "stores/a.sqlite"], workingFolder: folder.url.path)
    #expect(rollback.status == 0, "\(rollback.messages)")
    #expect(try folder.contentsOfStoresAlone() == before)
  }

  private func migratedWithExternalData() throws -> PipelineFolder {
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: 3, rows: 400, seed: 17)
    fleet.external = true
    try fleet.write(to: folder.path("stores"))
    #expect(try Godwit.run(folder).status == 0)
    return folder
  }

  @Test func `refuses a backup of which an external data file was written to`() throws {
    let folder = try migratedWithExternalData()
    // In place, so that the backup's own name of the file has the byte as well.
    let file = try #require(
      folder.storeFiles().first { $0.contains("/.Recipes_SUPPORT/_EXTERNAL_DATA/") })
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: folder.path("stores/" + file)))
    try handle.write(contentsOf: Data([0x5A]))
    try handle.close()
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 3 && rollback.summary["refused"] as? Int == 1)
    #expect(rollback.summary["restored"] as? Int == 2)
    let name = try #require(file.split(separator: "/").last)
    #expect(rollback.messages.contains(String(name)), "the file is named")
  }

  @Test func `leaves external data that no row refers to`() throws {
    let folder = try migratedWithExternalData()
    let user = try #require(
      folder.storeFiles().first { $0.contains("/.Recipes_SUPPORT/_EXTERNAL_DATA/") }?
        .split(separator: "/").first)
    // Of a store Recipes.db, which has the same folder.
    let other = "\(user)/.Recipes_SUPPORT/_EXTERNAL_DATA/9F1C2B61-0000-4000-8000-0000000000FF"
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: folder.path("stores/" + other)))
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 0, "\(rollback.messages)")
    #expect(try folder.bytes("stores/" + other) == Data([1, 2, 3]))
    #expect(try folder.godwit(["backups", "prune"], ["--keep", "0s"]).status == 0)
    #expect(try folder.bytes("stores/" + other) == Data([1, 2, 3]))
  }
}

@Suite struct `Rolling a run back that migrated stores twice` {
  /// Three stores of notes that one run found at Notes, took to Notes 3 and, when it was resumed after its
  /// destination had changed, to Notes 5: `abc` was in use at first.
  private func twice(
    between action: (PipelineFolder) throws -> Void = { _ in }
  ) throws -> (PipelineFolder, before: [String: Data]) {
    let folder = try PipelineFolder("notes-progressive")
    for name in ["a", "ab", "abc"] {
      let made = try Godwit.run([
        "fixture", folder.path("Notes.xcdatamodeld") + ":Notes", "--rows", "20", "--seed",
        "\(name.utf8.count)", "-o", folder.path("stores/\(name).sqlite"),
      ])
      try #require(made.status == 0, "\(made.messages)")
    }
    let before = try folder.contentsOfStoresAlone()
    let application = try FileHandle(
      forReadingFrom: URL(fileURLWithPath: folder.path("stores/abc.sqlite")))
    let first = try migrate(folder, to: "Notes 3")
    #expect(first.status == 75 && first.counts == "3 found, 2 migrated, 1 pending")
    try application.close()
    try action(folder)
    let second = try migrate(folder, to: "Notes 5")
    #expect(second.status == 0 && second.summary["migrated"] as? Int == 3, "\(second.messages)")
    #expect(second.summary["run"] as? String == first.summary["run"] as? String)
    return (folder, before)
  }

  private func migrate(_ folder: PipelineFolder, to version: String) throws -> Godwit.Run {
    let lines = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
      .split(separator: "\n").filter { !$0.hasPrefix("destination:") }
    try (lines + ["destination: \(version)", ""]).joined(separator: "\n")
      .write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    return try Godwit.run(folder)
  }

  @Test func `leads back to what they were before the first time, one result a store`() throws {
    let (folder, before) = try twice()
    let report = try folder.godwit(["report"])
    let totals = report.lines.last?["totals"] as? [String: Any]
    #expect(totals?["backups"] as? Int == 5)
    let dry = try folder.godwit(["rollback"], ["--dry-run"])
    #expect(dry.status == 0 && dry.summary["restored"] as? Int == 3, "\(dry.messages)")
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 0, "\(rollback.messages)")
    #expect(rollback.summary["found"] as? Int == 3 && rollback.summary["restored"] as? Int == 3)
    #expect(try folder.contentsOfStoresAlone() == before)
    let again = try folder.godwit(["rollback"])
    #expect(again.status == 0 && again.summary["found"] as? Int == 0, "nothing is left to undo")
  }

  @Test func `knows of each backup which version it is of`() throws {
    let (folder, before) = try twice()
    let between = try folder.godwit(["rollback"], ["--cohort", "Notes 3"])
    #expect(between.status == 0 && between.summary["found"] as? Int == 0, "no run began with it")
    let rollback = try folder.godwit(["rollback"], ["--cohort", "Notes"])
    #expect(rollback.status == 0 && rollback.summary["restored"] as? Int == 3)
    #expect(try folder.contentsOfStoresAlone() == before)
  }

  @Test func `goes one step back for a store by its name`() throws {
    let (folder, before) = try twice()
    let store = ["--store", folder.path("stores/a.sqlite")]
    #expect(try folder.godwit(["rollback"], store).status == 0)
    #expect(try folder.bytes("stores/a.sqlite") != before["a.sqlite"])
    #expect(try folder.godwit(["rollback"]).summary["restored"] as? Int == 3)
    #expect(try folder.contentsOfStoresAlone() == before)
  }

  @Test func `is not done where one step is undone and the backup of the other removed`() throws {
    let (folder, _) = try twice()
    let store = ["--store", folder.path("stores/a.sqlite")]
    #expect(try folder.godwit(["rollback"], store).status == 0)
    #expect(try folder.godwit(["backups", "prune"], ["--keep", "0s"]).status == 0)
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 3, "\(rollback.messages)")
    #expect(rollback.reason(of: "a") == "no-backup", "\(rollback.output)")
  }

  @Test func `refuses a store that an application wrote to in between`() throws {
    var written = Data()
    let (folder, before) = try twice { folder in
      let connection = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
      try connection.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1")
      try connection.close()
      written = try folder.bytes("stores/a.sqlite")
    }
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 3 && rollback.summary["restored"] as? Int == 2)
    #expect(rollback.reason(of: "a") == "changed-since")
    #expect(try folder.bytes("stores/ab.sqlite") == before["ab.sqlite"])
    let store = ["--store", folder.path("stores/a.sqlite")]
    #expect(try folder.godwit(["rollback"], store).status == 0)
    #expect(try folder.bytes("stores/a.sqlite") == written)
  }
}
