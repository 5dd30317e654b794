import Foundation
import StoreFixtures
import Testing

@Suite struct `A command that is stopped` {
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
      let process = Process()
      process.executableURL = URL(fileURLWithPath: Godwit.path)
      process.arguments = words
      process.environment = ProcessInfo.processInfo.environment
        .merging(["TMPDIR": temporary]) { $1 }
      process.standardOutput = FileHandle.nullDevice
      process.standardError = FileHandle.nullDevice
      try process.run()
      Thread.sleep(forTimeInterval: Double(milliseconds) / 1_000)
      process.terminate()
      process.waitUntilExit()
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
}
