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
}
