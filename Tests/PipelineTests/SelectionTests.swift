import Foundation
import Testing

@Suite struct `godwit run with some of its stores` {
  @Test func `takes up those that a pattern means`() throws {
    let folder = try PipelineFolder.orders(["a", "b", "c"])
    let run = try Godwit.run(
      ["run", folder.url.path, "--json", "--only", "a.*", "--only", folder.path("stores/c.sqlite")])
    #expect(run.status == 0)
    #expect(run.counts == "2 found, 2 migrated")
    #expect(
      Set(run.results.keys.map { ($0 as NSString).lastPathComponent }) == ["a.sqlite", "c.sqlite"])
    #expect(try Godwit.run(folder).counts == "3 found, 1 migrated, 2 same-model")
  }

  @Test func `takes a whole path as the root is written, be that a link or not`() throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    try FileManager.default.moveItem(
      atPath: folder.path("stores"), toPath: folder.path("elsewhere"))
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("stores"), withDestinationPath: folder.path("elsewhere"))
    for (pattern, count) in [("a.sqlite", 1), ("*.sqlite", 2), ("c.sqlite", 0)] {
      let run = try Godwit.run(
        ["run", folder.url.path, "--json", "--only", folder.path("stores/\(pattern)")])
      #expect(run.results.count == count, "\(pattern): \(run.messages)")
    }
  }

  @Test(arguments: ["", "../a", "a//b"])
  func `calls a pattern that could mean no store a wrong use, and does nothing`(pattern: String)
    throws
  {
    let folder = try PipelineFolder.orders(["a"])
    let run = try Godwit.run(["run", folder.url.path, "--only", pattern])
    #expect(run.status == 64 && run.messages.contains("is not a pattern"), "\(run.messages)")
    #expect(try folder.godwit(["history"]).status == 78, "nothing was begun")
  }

  @Test func `says even to --quiet which patterns and paths are none of its stores`() throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    let pattern = try Godwit.run([
      "run", folder.url.path, "--only", "a.*", "--only", "[b].sqlite", "--quiet",
    ])
    #expect(pattern.status == 3)
    #expect(
      pattern.messages.contains("warning: --only [b].sqlite means none of the stores."))
    #expect(pattern.messages.contains("Brackets and braces stand for themselves"))
    let list = folder.path("list")
    let paths = ["b", "gone", "lost"].map { folder.path("stores/\($0).sqlite") }
    try paths.joined(separator: "\n").write(toFile: list, atomically: true, encoding: .utf8)
    let listed = try Godwit.run(["run", folder.url.path, "--files-from", list, "--quiet"])
    #expect(listed.status == 3)
    #expect(listed.messages.contains("gone.sqlite and 1 more path of the list are not among"))
    #expect(listed.messages.split(separator: "\n").count == 1, "\(listed.messages)")
    // What was meant was migrated, and a list that means nothing asks for nothing.
    try "".write(toFile: list, atomically: true, encoding: .utf8)
    let empty = try Godwit.run(["run", folder.url.path, "--files-from", list, "--quiet"])
    #expect(empty.status == 0 && empty.messages.isEmpty)
    #expect(try Godwit.run(folder).counts == "2 found, 2 same-model")
  }

  @Test func `says that what is no file is no store, whatever its name`() throws {
    let folder = try PipelineFolder.orders(["a"])
    #expect(mkfifo(folder.path("stores/b.sqlite"), 0o600) == 0)
    #expect(mkfifo(folder.path("stores/b.log"), 0o600) == 0)
    let run = try Godwit.run(["run", folder.url.path])
    #expect(run.status == 0)
    #expect(run.messages.contains("stores.include means 1 FIFO, socket or device, left out"))
    let found = try Godwit.run(folder).lines("pipeline").first
    #expect(found?["special"] as? Int == 1)
  }

  @Test(arguments: [("b.*", 0, nil), ("c.*", 3, 1)] as [(String, Int32, Int?)])
  func `is a success where the list leaves out what a pattern means, unless that is no store`(
    pattern: String, status: Int32, unknown: Int?
  ) throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    let list = folder.path("list")
    try folder.path("stores/a.sqlite").write(toFile: list, atomically: true, encoding: .utf8)
    let run = try folder.godwit(["run"], ["--files-from", list, "--only", pattern])
    #expect(run.status == status && run.summary["found"] as? Int == 0, "\(run.messages)")
    #expect(run.summary["unknown"] as? Int == unknown)
  }

  @Test func `reads the list from a pipe, and from no device`() throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    let pipe = folder.path("pipe")
    #expect(mkfifo(pipe, 0o600) == 0)
    let writer = Process()
    writer.executableURL = URL(fileURLWithPath: "/bin/sh")
    writer.arguments = [
      "-c", "sleep 0.2; echo \"$1\" > \"$0\"", pipe, folder.path("stores/b.sqlite"),
    ]
    try writer.run()
    let run = try folder.godwit(["run"], ["--files-from", pipe])
    writer.waitUntilExit()
    #expect(run.status == 0 && run.counts == "1 found, 1 migrated", "\(run.messages)")
    let device = try folder.godwit(["run"], ["--files-from", "/dev/null"])
    #expect(device.status == 65)
    #expect(device.messages.contains("Give the path of a regular file"), "\(device.messages)")
    #expect(!device.messages.contains("Remove"))
  }

  @Test func `finds below each of two roots what lies in both`() throws {
    let folder = try PipelineFolder.orders(["in/a", "b"])
    try folder.set("", stores: "{ roots: [stores, stores/in] }")
    for status in ["2 found, 2 migrated", "2 found, 2 same-model"] {
      let run = try Godwit.run(folder)
      #expect(run.status == 0 && run.counts == status, "\(run.messages)")
    }
    #expect(
      try folder.godwit(["run"], ["--only", "a.sqlite"]).counts == "1 found, 1 same-model",
      "relative to the inner root")
  }

  @Test(arguments: [false, true])
  func `takes up those of a list, and names what is none of them`(isPartedByZero: Bool) throws {
    let folder = try PipelineFolder.orders(["a", "b"])
    let end = isPartedByZero ? "\0" : "\n"
    let list = folder.path("list")
    try "\(folder.path("stores/b.sqlite"))\(end)\(folder.path("stores/gone.sqlite"))\(end)"
      .write(toFile: list, atomically: true, encoding: .utf8)
    let run = try Godwit.run(
      ["run", folder.url.path, "--json", "--files-from", list]
        + (isPartedByZero ? ["--null"] : []))
    #expect(run.status == 3 && run.counts == "1 found, 1 migrated")
    #expect(run.summary["unknown"] as? Int == 1)
    #expect(run.messages.contains("gone.sqlite of the list is not among the pipeline's stores"))
    #expect(run.lines.first?["unknown"] as? [String] == [folder.path("stores/gone.sqlite")])
  }

  @Test func `opens nothing when a path of the list lies outside of the roots`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let list = folder.path("list")
    try "\(folder.path("stores/a.sqlite"))\n/etc/passwd\n"
      .write(toFile: list, atomically: true, encoding: .utf8)
    let before = try folder.bytes("stores/a.sqlite")
    let run = try Godwit.run(["run", folder.url.path, "--files-from", list])
    #expect(run.status == 65)
    #expect(run.messages.contains("/etc/passwd lies outside of the pipeline's roots"))
    #expect(try folder.bytes("stores/a.sqlite") == before)
    #expect(try Godwit.run(["run", folder.url.path, "--null"]).status == 64)
  }

  @Test func `forgets the progress of earlier runs, but not a commit that was cut off`() throws {
    // A store of several shards keeps its checkpoints.
    let folder = try PipelineFolder.orders(["a"], "shard: { bytes: 1 }")
    var (step, resumed, fresh) = (5, 0, 0)
    while true {
      let killed = try Godwit.run(folder, killAfter: step)
      guard killed.status == -SIGKILL else { break }
      step += 6
      let state = try FileManager.default.subpathsOfDirectory(atPath: folder.path("state"))
      let wasCommitting = state.contains { $0.hasSuffix("journal.json") }
      let run = try Godwit.run(["run", folder.url.path, "--json", "--fresh"])
      #expect(run.status == 0 && run.counts == "1 found, 1 migrated", "\(run.messages)")
      #expect(
        try folder.table("stores/a.sqlite", "SELECT ZNUMBER, ZTOTALCOST FROM ZORDER") == ["A 5.0"])
      let wasResumed = run.results.values.first?["resumed"] as? Bool == true
      if wasResumed { resumed += 1 } else { fresh += 1 }
      #expect(!wasResumed || wasCommitting)
      try FileManager.default.removeItem(atPath: folder.path("stores"))
      try FileManager.default.createDirectory(
        atPath: folder.path("stores"), withIntermediateDirectories: true)
      try FileManager.default.removeItem(atPath: folder.path("state"))
      try folder.writeOrder("a")
    }
    #expect(fresh > 3)
  }
}
