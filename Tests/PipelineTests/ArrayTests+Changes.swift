import Foundation
import StoreFixtures
import Testing

/// What was changed, or taken back, between the starts.
extension `Stores in bundles` {
  @Test(arguments: [["-s", "-1"], ["-s", "0"]])
  func `are not believed where results were cut off after their end`(size: [String]) throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try folder.doAll()
    let array = URL(fileURLWithPath: try #require(try folder.manifests().first))
      .deletingLastPathComponent().path
    let names = try FileManager.default.contentsOfDirectory(atPath: array)
    let results = "\(array)/\(try #require(names.first { $0.hasPrefix("0.results-") }))"
    let process = try Process.run(
      URL(fileURLWithPath: "/usr/bin/env"), arguments: ["truncate"] + size + [results])
    process.waitUntilExit()
    for command in [["verify"], ["backups", "list"], ["run"]] {
      let run = try folder.godwit(command)
      #expect(run.status == 78, "\(command): \(run.output)")
      #expect(run.messages.contains("cut off or removed"), "\(run.messages)")
    }
    #expect(try entries(of: array).contains("0.done"))
  }

  func entries(of path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path)
  }

  @Test func `are cut again where their state folder was moved`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try FileManager.default.moveItem(atPath: folder.path("state"), toPath: folder.path("moved"))
    let state = ["--state", folder.path("moved")]
    let run = try folder.godwit(["run"], ["--detach"] + state)
    #expect(run.status == 0, "\(run.messages)")
    let arrays = folder.path("moved/cluster")
    for name in try entries(of: arrays) {
      let run = try Godwit.task("\(arrays)/\(name)/manifest.jsonl", 0)
      #expect(run.status == 0, "\(run.messages)")
    }
    #expect(try folder.godwit(["run"], state).counts == "2 found, 2 migrated")
  }

  @Test func `are not passed over by verify where a line of their results is damaged`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifest = try #require(try folder.manifests().first)
    #expect(try Godwit.task(manifest, 0).status == 0)
    let array = URL(fileURLWithPath: manifest).deletingLastPathComponent().path
    let names = try FileManager.default.contentsOfDirectory(atPath: array)
    let results = "\(array)/\(try #require(names.first { $0.hasPrefix("0.results-") }))"
    var text = try String(contentsOfFile: results, encoding: .utf8)
    text.replace(#""result":"#, with: #""resu t":"#, maxReplacements: 1)
    try text.write(toFile: results, atomically: true, encoding: .utf8)
    let verify = try folder.godwit(["verify"])
    #expect(verify.status == 78, "\(verify.output)")
    #expect(verify.messages.contains(results), "\(verify.messages)")
  }

  @Test func `are taken back by a signal, with what was committed`() throws {
    let folder = try orders(4)
    let stopped = try Godwit.run(
      ["run", folder.url.path, "--json"], stopAt: "\"event\":\"submit\"")
    #expect(stopped.status == 75)
    // Nothing is left for others to do, and the engine local goes on.
    let run = try folder.godwit(["run"], ["--engine", "local"])
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.counts == "4 found, 4 migrated")
  }

  @Test func `are taken back where the operator has left out their stores since`() throws {
    let folder = try orders(4)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let old = try folder.manifests()
    let run = try folder.godwit(["run"], ["--detach", "--only", "s1.sqlite"])
    #expect(run.status == 0, "\(run.messages)")
    #expect(try Set(folder.manifests()).isDisjoint(with: old))
    try folder.doAll()
    let end = try folder.godwit(["run"], ["--only", "s1.sqlite"])
    #expect(end.counts == "1 found, 1 migrated")
    #expect(folder.storeFiles().filter { $0.contains(".godwit-backup-") }.count == 1)
  }

  @Test func `are taken back where what may be lost has changed since`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach", "--losses", "allow"]).status == 0)
    let old = try folder.manifests()
    #expect(try folder.godwit(["run"], ["--detach", "--losses", "refuse"]).status == 0)
    #expect(try Set(folder.manifests()).isDisjoint(with: old))
    let same = try folder.manifests()
    #expect(try folder.godwit(["run"], ["--detach", "--losses", "refuse"]).status == 0)
    #expect(try folder.manifests() == same)
  }

  @Test func `of another destination are not the present one's`() throws {
    let folder = try PipelineFolder("total-cost")
    func set(_ destination: String) throws {
      try """
      name: total-cost
      stores: { roots: stores }
      models: ../../Fixtures/Recipes.xcdatamodeld
      destination: \(destination)
      engine: array
      """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    }
    try folder.write(
      "stores/a.sqlite", "../../Fixtures/Recipes.xcdatamodeld/Recipes", "")
    func version() throws -> String? {
      let run = try Godwit.run(
        ["inspect", folder.path("stores/a.sqlite"), "--json"]
          + ["--models", folder.path("../../Fixtures/Recipes.xcdatamodeld")])
      return run.lines.last?["version"] as? String
    }
    for destination in ["Recipes 2", "Recipes"] {
      try set(destination)
      #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
      try folder.doAll()
      if destination == "Recipes 2" { #expect(try version() == destination) }
    }
    #expect(try folder.godwit(["run"]).status == 0)
    #expect(try version() == "Recipes")
  }

  @Test func `are left to the pipeline that cut them`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try folder.doAll()
    let other = folder.path("other.yaml")
    try FileManager.default.copyItem(atPath: folder.path("pipeline.yaml"), toPath: other)
    for engine in ["array", "local"] {
      let run = try Godwit.run(["run", other, "--engine", engine, "--json"])
      #expect(run.status == 11)
      #expect(run.messages.contains("pipeline.yaml are on a cluster"), "\(run.messages)")
    }
    let run = try folder.godwit(["run"])
    #expect(run.status == 0 && run.counts == "2 found, 2 migrated", "\(run.messages)")
    #expect(try folder.godwit(["rollback"]).status == 0)
  }

  @Test func `end though a store was deleted since the search`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try FileManager.default.removeItem(atPath: folder.path("stores/s1.sqlite"))
    let manifest = try #require(try folder.manifests().first)
    #expect(try Godwit.task(manifest, 0).status == 0)
    let run = try folder.godwit(["run"])
    #expect(run.counts == "1 found, 1 migrated", "\(run.messages)")
  }

  @Test func `say which stores failed, and go on with the others`() throws {
    let folder = try orders(4)
    try Data("no store".utf8).write(to: URL(fileURLWithPath: folder.path("stores/s1.sqlite")))
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    try folder.doAll()
    let run = try folder.godwit(["run"])
    #expect(run.status == 3)
    #expect(run.counts == "4 found, 3 migrated, 1 refused")
  }

  @Test func `of a wave wait for the wave before`() throws {
    let folder = try orders(4, pipeline: "limits: { failure-budget: 1 }\ncanary: [1, 100%]")
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    #expect(try folder.manifests().map(Godwit.bundles) == [1], "the first wave has one store")
    try folder.doAll()
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    #expect(try folder.manifests().map(Godwit.bundles) == [2], "the rest")
    try folder.doAll()
    #expect(try folder.godwit(["run"]).counts == "4 found, 4 migrated")
  }

  @Test func `are refused where the manifest has no such bundle`() throws {
    let folder = try orders(2)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let manifest = try #require(try folder.manifests().first)
    #expect(try Godwit.task(manifest, 7).status == 78)
    #expect(try Godwit.task(folder.path("pipeline.yaml"), 0).status == 78)
    #expect(
      try Godwit.run(["worker", "--manifest", manifest, "--index-from", "GODWIT_NOTHING"]).status
        == 64)
  }

  /// The script for GNU parallel of the page "On a cluster", for this machine alone; nil where that is not installed.
  private func parallelScript(for folder: PipelineFolder) throws -> String? {
    for program in ["/usr/bin/parallel", "/usr/bin/jq"]
    where !FileManager.default.isExecutableFile(atPath: program) {
      print("skipped: \(program) is not installed")
      return nil
    }
    let page = FixtureModels.packageRoot
      .appendingPathComponent("Sources/Godwit/Godwit.docc/OnACluster.md")
    let text = try String(contentsOf: page, encoding: .utf8)
    let title = try #require(text.range(of: "A script for GNU parallel, which is tested:\n\n"))
    let lines = text[title.upperBound...].split(separator: "\n", omittingEmptySubsequences: false)
      .prefix { $0.hasPrefix("    ") }
    let script = lines.joined(separator: "\n")
    try #require(script.contains("--sshlogin n1,n2"))
    let path = folder.root.appendingPathComponent("script.sh").path
    try
      ("PIPELINE=$2\n" + script.replacingOccurrences(of: "--sshlogin n1,n2", with: "--sshlogin :"))
      .write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  /// A folder with a command `godwit`, which does something first.
  private func commands(in folder: PipelineFolder, _ first: String = "") throws -> String {
    let bin = folder.root.appendingPathComponent("bin").path
    try FileManager.default.createDirectory(atPath: bin, withIntermediateDirectories: true)
    try "#!/bin/sh\n\(first)\nexec '\(Godwit.path)' \"$@\"\n"
      .write(toFile: "\(bin)/godwit", atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: "\(bin)/godwit")
    return bin
  }

  @Test(arguments: ["plain", "two words", "it's {} {2} $HOME \"q\" %&;(\\", "two\nlines"])
  func `are done by GNU parallel, whatever the name of their folder has in it`(name: String) throws
  {
    let folder = try orders(5, pipeline: "limits: { failure-budget: 1 }\ncanary: [1, 100%]")
    guard let script = try parallelScript(for: folder) else { return }
    let place = folder.url.deletingLastPathComponent().appendingPathComponent(name)
    try FileManager.default.moveItem(at: folder.url, to: place)
    let run = try Godwit.run(
      [place.path], programs: try commands(in: folder), wrapper: ["/bin/sh", script])
    #expect(run.status == 0, "\(run.messages)")
    let next = try Godwit.run(["run", place.path, "--json"])
    #expect(next.counts == "5 found, 5 same-model", "\(run.messages)")
  }

  @Test func `that GNU parallel cannot begin are not begun for ever`() throws {
    let folder = try orders(2)
    guard let script = try parallelScript(for: folder) else { return }
    let programs = try commands(in: folder, "[ \"$1\" = worker ] && exit 69")
    let run = try Godwit.run(
      [folder.url.path], programs: programs, wrapper: ["/bin/sh", script])
    #expect(run.status == 75, "\(run.messages)")
    #expect(run.messages.contains("No task gets on"), "\(run.messages)")
    #expect(try folder.manifests().count == 1)
  }

  @Test func `that hold no store have GNU parallel end as the last start does`() throws {
    let folder = try orders(1)
    try Data("no store".utf8).write(to: URL(fileURLWithPath: folder.path("stores/s0.sqlite")))
    guard let script = try parallelScript(for: folder) else { return }
    let run = try Godwit.run(
      [folder.url.path], programs: try commands(in: folder), wrapper: ["/bin/sh", script])
    #expect(run.status == 3, "\(run.messages)")
  }
}
