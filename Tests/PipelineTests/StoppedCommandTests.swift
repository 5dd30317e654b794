import Foundation
import StoreFixtures
import Testing

@Suite struct `A command that is stopped` {
  private func stopped(
    _ words: [String], after milliseconds: Int, temporaryFolder: String? = nil
  ) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Godwit.path)
    process.arguments = words
    process.environment = ProcessInfo.processInfo.environment
    if let temporaryFolder { process.environment?["TMPDIR"] = temporaryFolder }
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    Thread.sleep(forTimeInterval: Double(milliseconds) / 1_000)
    process.terminate()
    process.waitUntilExit()
    return process
  }

  /// Of a store with a WAL each makes a private copy, and `plan` of a pipeline migrates some.
  @Test(arguments: ["verify", "inspect", "plan", "plan PIPELINE", "rehearse"])
  func `leaves nothing in the folder for temporary files`(command: String) throws {
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: 1, rows: 2_000, seed: 4)
    fleet.logs = .all
    try fleet.write(to: folder.path("stores"))
    let store = try #require(folder.storeFiles().first { $0.hasSuffix(".sqlite") })
    let models = folder.path("../../Fixtures/Recipes.xcdatamodeld")
    let words =
      switch command {
      case "plan PIPELINE": ["plan", folder.url.path]
      case "rehearse": ["rehearse", models, "--stores", folder.path("stores")]
      default: [command, folder.path("stores/" + store), "--models", models]
      }
    let temporary = folder.path("temporary")
    for milliseconds in [20, 80, 160] {
      try FileManager.default.createDirectory(
        atPath: temporary, withIntermediateDirectories: true)
      let process = try stopped(words, after: milliseconds, temporaryFolder: temporary)
      // Before anything is installed a signal ends the process by itself.
      #expect(
        process.terminationReason == .uncaughtSignal || [0, 75].contains(process.terminationStatus))
      // The processes of its own come to their end by themselves.
      let end = Date(timeIntervalSinceNow: 20)
      while try !FileManager.default.contentsOfDirectory(atPath: temporary).isEmpty, Date() < end {
        Thread.sleep(forTimeInterval: 0.01)
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: temporary) == [])
      try FileManager.default.removeItem(atPath: temporary)
    }
  }

  @Test func `leaves no draft of a repaired store`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    try RecipesFleet(stores: 1, rows: 20_000, seed: 4).write(to: folder.path("stores"))
    let store = try #require(folder.storeFiles().first { $0.hasSuffix(".sqlite") })
    for milliseconds in [50, 150, 300] {
      _ = try stopped(
        ["repair", folder.path("stores/" + store), "-o", folder.path("whole.sqlite")],
        after: milliseconds)
      let left = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
      #expect(!left.contains { $0.hasPrefix(".whole.sqlite") }, "after \(milliseconds) ms: \(left)")
      for name in left where name.hasPrefix("whole") {
        try FileManager.default.removeItem(atPath: folder.path(name))
      }
    }
  }

  /// `timeout`, a service manager and a scheduler signal every process of a run.
  @Test func `says what became of each store where all of its processes are signalled`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    try RecipesFleet(stores: 24, rows: 400, seed: 11).write(to: folder.path("stores"))
    let before = try folder.contentsOfStoresAlone()
    var starts = 0
    while starts < 40 {
      starts += 1
      let run = try Godwit.run(
        ["run", folder.url.path, "--json"], at: #""event":"result""#
      ) { process in
        try #require(getpgid(process) == process)
        Thread.sleep(forTimeInterval: 0.005 * Double(starts % 5))
        kill(-process, SIGTERM)
      }
      #expect([0, 75].contains(run.status), "\(run.messages)")
      #expect(run.summary["failed"] as? Int == 0, "\(run.messages)")
      for (store, result) in run.results where result["verdict"] as? String == "pending" {
        let name = String(store.dropFirst(folder.path("stores").count + 1))
        let now = try Data(contentsOf: URL(fileURLWithPath: store))
        #expect(now == before[name], "\(name) is pending, and has changed")
      }
      if run.status == 0 { break }
    }
    #expect(try Godwit.run(folder).counts == "24 found, 24 migrated")
  }

  @Test func `verifies what it has begun, and counts the rest`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    try RecipesFleet(stores: 40, rows: 100, seed: 5).write(to: folder.path("stores"))
    try #require(try Godwit.run(folder).status == 0)
    var (starts, stops) = (0, 0)
    while stops == 0, starts < 20 {
      starts += 1
      let verify = try Godwit.run(
        ["verify", folder.url.path, "--json"], stopAt: #""event":"result""#)
      let (sound, pending) = (verify.results.count, verify.summary["pending"] as? Int)
      #expect(verify.summary["sound"] as? Int == sound)
      #expect(verify.summary["found"] as? Int == 40 && sound + (pending ?? 0) == 40)
      #expect(verify.status == (pending == nil ? 0 : 75), "\(verify.messages)")
      if pending != nil { stops += 1 }
    }
    #expect(stops > 0)
  }

  /// A pager that waits, or a log shipper that hangs: the tool cannot say a last word.
  @Test func `ends at the second signal though nobody reads its output`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    try RecipesFleet(stores: 60, rows: 10, seed: 3).write(to: folder.path("stores"))
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Godwit.path)
    process.arguments = ["run", folder.url.path, "--json"]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    var (held, seen) = (Int32(-1), Int32(0))
    while held != seen || seen < 32 << 10, process.isRunning {
      seen = held
      Thread.sleep(forTimeInterval: 0.4)
      _ = ioctl(output.fileHandleForReading.fileDescriptor, UInt(FIONREAD), &held)
    }
    try #require(process.isRunning, "its output came to \(held) bytes alone")
    process.terminate()
    Thread.sleep(forTimeInterval: 0.2)
    process.terminate()
    let end = Date(timeIntervalSinceNow: 7)
    while process.isRunning, Date() < end { Thread.sleep(forTimeInterval: 0.02) }
    #expect(!process.isRunning)
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
    #expect(process.terminationStatus == 75)
    #expect(try Godwit.run(folder).counts == "60 found, 60 migrated")
  }
}
