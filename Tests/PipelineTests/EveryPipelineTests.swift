import Foundation
import GodwitObjectModel
import StoreFixtures
import Testing

extension PipelineFolder {
  /// Fills `stores` with a few seeded stores of each pipeline's first version.
  func writeSeededStores(seed: UInt64) throws {
    switch url.lastPathComponent {
    case "bucket":
      let model = try FixtureModels.model(at: path("Things.xcdatamodeld/Things.xcdatamodel"))
      _ = try ThingsFleet(stores: 2, things: 60, seed: seed).write(model, to: path("stores"))
    case let name where name.hasPrefix("recipes-") && name != "recipes-ingredients":
      var fleet = RecipesFleet(stores: 3, rows: 300, seed: seed)
      fleet.version = url.lastPathComponent == "recipes-1.1" ? .one : .mixed
      fleet.logs = .some
      fleet.external = true
      try fleet.write(to: path("stores"))
    case "recipes-ingredients":
      try RecipesFleet(stores: 2, rows: 300, seed: seed).write(to: path("stores"))
    default:
      let bundles = try names(in: ".").filter { $0.hasSuffix(".xcdatamodeld") }
      let bundle = try #require(bundles.first, "no stores are known for \(url.lastPathComponent)")
      let name = String(bundle.dropLast(".xcdatamodeld".count))
      let model = try FixtureModels.model(at: path("\(bundle)/\(name).xcdatamodel"))
      for (number, leavesWAL) in [false, true].enumerated() {
        var options = StoreOptions(seed: seed + UInt64(number), rows: 90)
        options.leavesWAL = leavesWAL
        try FileManager.default.createDirectory(
          atPath: path("stores/\(number)"), withIntermediateDirectories: true)
        try StoreGenerator(model, options: options).write(to: path("stores/\(number)/a.sqlite"))
      }
    }
  }
}

@Suite struct `Every pipeline` {
  @Test func `of the documentation is there`() {
    let wanted: Set = [
      "bucket", "celsius", "escaped-keys", "notes-progressive", "recipes-1.1", "recipes-2.0",
      "recipes-canary", "recipes-in-use", "recipes-ingredients", "recipes-rehearsal",
      "recipes-troubled", "set-aside", "total-cost", "trades",
    ]
    #expect(wanted.isSubset(of: PipelineFolder.names))
  }

  @Test(arguments: PipelineFolder.names)
  func `ends with the same stores however often it is killed`(name: String) throws {
    let seed: UInt64 = 4
    let (calm, stormy) = (try PipelineFolder(name), try PipelineFolder(name))
    try calm.writeSeededStores(seed: seed)
    // Bytes, not only content: backups are compared, too.
    for entry in try calm.names(in: "stores") {
      try FileManager.default.copyItem(
        atPath: calm.path("stores/" + entry), toPath: stormy.path("stores/" + entry))
    }
    let sources = calm.storeFiles().filter { $0.hasSuffix(".sqlite") }
    let before = try sources.map { try calm.bytes("stores/" + $0) }
    let run = try Godwit.run(calm)
    #expect(run.status == 0, "seed \(seed): \(run.messages)")

    var kills = 0
    // Every run gets a little farther than the one before, so that there is an end.
    var step = 3
    while true {
      let run = try Godwit.run(stormy, killAfter: step)
      if run.status == 0 { break }
      try #require(run.status == -SIGKILL, "seed \(seed), step \(step): \(run.messages)")
      kills += 1
      step += 13 + step / 6
      // At a store's place there is always a whole one.
      for source in sources { _ = try stormy.content("stores/" + source) }
    }
    #expect(kills > 0)
    // The names of backups and rejects hold the run's.
    func names(_ folder: PipelineFolder) -> [String] {
      folder.storeFiles().map { name in
        name.firstRange(of: ".godwit-rejects-").map { String(name[..<$0.upperBound]) } ?? name
      }.filter { !$0.contains(".godwit-backup-") }
    }
    #expect(names(stormy) == names(calm))
    for store in names(calm) where store.hasSuffix(".sqlite") {
      #expect(
        try stormy.content("stores/" + store) == calm.content("stores/" + store),
        "seed \(seed), \(store)")
    }
    for folder in [calm, stormy] {
      #expect(try folder.names(in: "state/stores") == [], "a finished store leaves nothing")
      for (source, bytes) in zip(sources, before) {
        try expectKept(bytes, of: source, in: folder)
      }
    }
    #expect(try Godwit.run(stormy).status == 0, "and runs again")
  }

  /// The source is where it was, or beside its destination as a backup, byte for byte.
  private func expectKept(_ bytes: Data, of source: String, in folder: PipelineFolder) throws {
    let kept = folder.storeFiles().filter {
      $0 == source || $0.hasPrefix(source + ".godwit-backup-")
    }
    let found = try kept.contains { try folder.bytes("stores/" + $0) == bytes }
    #expect(found, "\(source) is lost")
  }

  @Test(
    .enabled(if: OracleJudge.isHere, "skipped: ../shared is not there"),
    arguments: PipelineFolder.names
  )
  func `gives stores that the oracle finds sound`(name: String) throws {
    let folder = try PipelineFolder(name)
    try folder.writeSeededStores(seed: 9)
    let run = try Godwit.run(folder)
    #expect(run.status == 0, "\(run.messages)")
    let model = folder.path("destination.xcdatamodel")
    try FileManager.default.createDirectory(atPath: model, withIntermediateDirectories: true)
    try FileManager.default.copyItem(
      atPath: try destinationModel(of: folder) + "/contents", toPath: model + "/contents")
    var judged = 0
    for result in run.results.values where result["verdict"] as? String == "migrated" {
      let output = try #require(result["output"] as? String)
      for arguments in [["ddl", output], ["check", output, "--validation"]] {
        let verdict = try OracleJudge.run(arguments + ["--model", model])
        #expect(verdict.status == 0, "\(arguments): \(verdict.output)")
      }
      judged += 1
    }
    #expect(judged > 0 || name == "recipes-1.1")
  }

  private func destinationModel(of folder: PipelineFolder) throws -> String {
    switch folder.url.lastPathComponent {
    case "notes-progressive": return folder.path("Notes.xcdatamodeld/Notes 5.xcdatamodel")
    case "recipes-1.1": return FixtureModels.Recipes.onePointOne.path
    case "recipes-ingredients": return FixtureModels.Recipes.twoWithMapping.path
    case let name where name.hasPrefix("recipes-"): return FixtureModels.Recipes.two.path
    default:
      let bundle = try #require(
        try folder.names(in: ".").first { $0.hasSuffix(".xcdatamodeld") })
      let name = String(bundle.dropLast(".xcdatamodeld".count))
      return folder.path("\(bundle)/\(name) 2.xcdatamodel")
    }
  }
}
