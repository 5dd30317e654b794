import Foundation
import StoreFixtures
import Testing

@Suite struct `A commit that was cut off before the key commit was changed` {
  private static let beside = "commit: { beside: -2 }"

  /// A store with a WAL, whose commit makes a clone: it has many steps.
  ///
  /// - Returns: Nil where the run ends before that step.
  private func killed(_ key: String, after step: Int) throws -> (PipelineFolder, Bool)? {
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: 1, rows: 5, seed: 21)
    fleet.logs = .all
    try fleet.write(to: folder.path("stores"))
    try set(key, folder)
    guard try Godwit.run(folder, killAfter: step).status == -SIGKILL else { return nil }
    let stores = folder.path("state/stores")
    let names = (try? FileManager.default.contentsOfDirectory(atPath: stores)) ?? []
    let hasJournal = names.contains {
      FileManager.default.fileExists(atPath: "\(stores)/\($0)/journal.json")
    }
    return (folder, hasJournal)
  }

  private func set(_ key: String, _ folder: PipelineFolder) throws {
    try """
    stores: { roots: stores, include: "*/Recipes.sqlite" }
    models: ../../Fixtures/Recipes.xcdatamodeld
    destination: Recipes 2
    workers: 1
    \(key)
    """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
  }

  @Test(arguments: [
    ("", beside, [], 3), ("", beside, ["--fresh"], 9), (beside, "", [], 3),
    (beside, "commit: { beside: -3 }", ["--fresh"], 3),
  ])
  func `comes to its end first, at whichever step`(
    earlier: String, later: String, options: [String], stride: Int
  ) throws {
    var (step, cutOff) = (17, 0)
    while let (folder, hasJournal) = try killed(earlier, after: step) {
      step += stride
      guard hasJournal else { continue }
      cutOff += 1
      try set(later, folder)
      let run = try Godwit.run(["run", folder.url.path, "--json"] + options)
      #expect(run.status == 0, "step \(step - stride): \(run.output) \(run.messages)")
      let left = folder.storeFiles()
      #expect(
        !left.contains { $0.contains("-clone") || $0.contains(".partial-") }, "\(left)")
      #expect(try folder.names(in: "state/stores").isEmpty, "step \(step - stride)")
      let list = try folder.godwit(["backups", "list"]).lines("backup")
      let backups = left.filter { $0.contains(".godwit-backup-") && $0.hasSuffix(".sqlite") }
      #expect(
        Set(list.compactMap { $0["path"] as? String })
          == Set(backups.map { folder.path("stores/" + $0) }), "step \(step - stride)")
      #expect(!list.contains { $0["state"] as? String == "unlisted" }, "step \(step - stride)")
    }
    #expect(cutOff > 1)
  }
}
