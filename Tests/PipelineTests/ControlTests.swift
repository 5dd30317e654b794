import Foundation
import Testing

@Suite struct `godwit control` {
  @Test func `says that no run is going on`() throws {
    let folder = try PipelineFolder.orders(["a"])
    for action in [["pause"], ["resume"], ["status"], ["limit", "workers=1"]] {
      let run = try Godwit.run(["control", folder.url.path] + action)
      #expect(run.status == 69)
      #expect(run.messages.contains("No run of"))
    }
    #expect(try Godwit.run(folder).status == 0)
    #expect(try Godwit.run(["control", folder.url.path, "status"]).status == 69, "it is over")
  }

  @Test(arguments: [
    ["limit"], ["limit", "io=fast"], ["limit", "io=80MiB"], ["limit", "workers=0"],
    ["limit", "speed=1"], ["limit", "load=-1"], ["pause", "io=1MiB/s"], ["stop"],
  ])
  func `refuses what it does not understand`(arguments: [String]) throws {
    #expect(try Godwit.run(["control", "."] + arguments).status == 64)
  }

  @Test func `pauses a run, shows it, changes its limits and lets it go on`() throws {
    // So slow that it would not end in this test's time.
    let names = (1...6).map { "s\($0)" }
    let folder = try PipelineFolder.orders(names, "limits: { io: 1KiB/s }\nworkers: 1")
    var said: [Godwit.Run] = []
    let run = try Godwit.run(
      ["run", folder.url.path, "--json"], at: #""event":"plan""#,
      { _ in
        for words in [
          ["pause"], ["status", "--json"], ["limit", "io=none", "workers=2"], ["resume"],
        ] {
          said.append(try Godwit.run(["control", folder.url.path] + words))
        }
      })
    #expect(run.status == 0 && run.counts == "6 found, 6 migrated", "\(run.messages)")
    #expect(said.allSatisfy { $0.status == 0 }, "\(said.map(\.messages))")
    #expect(said[0].output.contains("paused"))
    #expect(said[1].summary["event"] as? String == "progress")
    #expect(said[2].output.contains("no I/O limit, 2 workers"))
    #expect(said[3].output.contains("running"))
    #expect(!FileManager.default.fileExists(atPath: folder.path("state/progress.json")))
  }

  @Test
  func `has no folder in its file's place, which a run tells at its end, and the next refuses`()
    throws
  {
    let folder = try PipelineFolder.orders((1...24).map { "s\($0)" }, "workers: 1")
    let place = folder.path("state/control.json")
    let run = try Godwit.run(["run", folder.url.path, "--json"], at: #""event":"plan""#) { _ in
      try FileManager.default.createDirectory(
        atPath: place, withIntermediateDirectories: false)
    }
    #expect(run.status == 0 && run.counts == "24 found, 24 migrated", "\(run.messages)")
    #expect(run.messages.contains("control.json is a folder"), "\(run.messages)")
    let history = try folder.godwit(["history"])
    #expect(history.lines.map { $0["exitCode"] as? Int } == [0])
    let next = try Godwit.run(folder)
    #expect(
      next.status == 78 && next.messages.contains("control.json is a folder"), "\(next.messages)")
  }

  /// Here its dead man's switch asks; the start before it was killed while it was paused.
  @Test func `takes what is asked of a run that is starting, and tells of no earlier start`() throws
  {
    let folder = try PipelineFolder.orders(
      ["a", "b"], "report: { ping: \"https://ping.invalid/x\" }")
    func control(_ action: String, _ name: String) -> String {
      "'\(Godwit.path)' control '\(folder.url.path)' \(action) --json >'\(folder.path(name))'"
    }
    let bin = try folder.program(
      "curl",
      "grep -q /start || exit 0\n\(control("status", "said"))\n\(control("pause", "answer"))")
    let progress = folder.path("state/progress.json")
    let results = folder.path("state/ledger.jsonl")
    func isEmpty() -> Bool { (FileManager.default.contents(atPath: results) ?? Data()).isEmpty }
    let killed = try Godwit.run(
      ["run", folder.url.path, "--json"], at: #""event":"pipeline""#, programs: bin
    ) { process in
      let end = Date(timeIntervalSinceNow: 60)
      while !FileManager.default.fileExists(atPath: progress), Date() < end {
        Thread.sleep(forTimeInterval: 0.02)
      }
      kill(process, SIGKILL)
    }
    try #require(killed.status == -SIGKILL && isEmpty(), "\(killed.output) \(killed.messages)")
    try #require(FileManager.default.fileExists(atPath: progress))
    let run = try Godwit.run(
      ["run", folder.url.path, "--json"], at: #""event":"pipeline""#, programs: bin
    ) { _ in
      Thread.sleep(forTimeInterval: 1.5)
      #expect(isEmpty(), "nothing begins")
      let resumed = try Godwit.run(["control", folder.url.path, "resume"])
      #expect(resumed.status == 0, "\(resumed.messages)")
    }
    #expect(run.status == 0 && run.counts == "2 found, 2 migrated", "\(run.messages)")
    let said = String(decoding: try folder.bytes("said"), as: UTF8.self)
    #expect(said.contains(#""found":0"#) && !said.contains(#""process""#), "\(said)")
    let answer = String(decoding: try folder.bytes("answer"), as: UTF8.self)
    #expect(answer.contains(#""isPaused":true"#), "\(answer)")
  }
}
