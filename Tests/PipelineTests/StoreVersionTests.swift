import Foundation
import GodwitKeyedArchive
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Testing

/// Three versions; each has an attribute more than the one before.
private struct Versions {
  let folder: PipelineFolder
  let models: [ManagedObjectModel]

  /// - Parameter configurations: As XML.
  init(_ entities: [String], configurations: String = "") throws {
    let folder = try PipelineFolder.orders([])
    self.folder = folder
    models = try (1...3).map { version in
      let attributes = (1...version).map {
        "<attribute name=\"x\($0)\" optional=\"YES\" attributeType=\"String\"/>"
      }.joined()
      let bodies = entities.map { "<entity name=\"\($0)\">\(attributes)</entity>" }.joined()
      let bundle = URL(fileURLWithPath: folder.path("\(version).xcdatamodel"))
      try FileManager.default.createDirectory(at: bundle, withIntermediateDirectories: true)
      try Data(
        ("<model type=\"com.apple.IDECoreDataModeler.DataModel\" documentVersion=\"1.0\">"
          + bodies + configurations + "</model>").utf8
      ).write(to: bundle.appendingPathComponent("contents"))
      return try FixtureModels.model(at: bundle.path)
    }
  }

  /// Sets the one value of a control table, as Core Data would have written it.
  func set(_ assigned: String, of store: String, to bytes: [UInt8]) throws {
    let file = try Connection(path: folder.path(store), mode: .readWrite)
    _ = try file.rows("UPDATE \(assigned) = ?1", [.blob(bytes)])
    try file.close()
  }

  func metadata(_ store: String) throws -> PropertyList {
    let file = try Connection(path: folder.path(store), mode: .immutable)
    let plist = try file.rows("SELECT Z_PLIST FROM Z_METADATA").first?[0].blob
    return try PropertyList(bytes: try #require(plist))
  }
}

@Suite struct `A store of one configuration that goes from version to version` {
  @Test(arguments: ["direct", "progressive"])
  func `stays one, and its cache says so`(chain: String) throws {
    let versions = try Versions(
      ["A", "B"],
      configurations: "<configuration name=\"Cloud\"><memberEntity name=\"A\"/></configuration>"
        + "<configuration name=\"Local\"><memberEntity name=\"B\"/></configuration>")
    let folder = versions.folder
    let part = try #require(versions.models[0].restricted(to: "Cloud"))
    try StoreGenerator(part, options: StoreOptions(seed: 5, rows: 3))
      .write(to: folder.path("1.sqlite"))
    try versions.set(
      "Z_MODELCACHE SET Z_CONTENT", of: "1.sqlite", to: versions.models[0].modelCacheBytes())
    for version in 2...3 {
      let run = try Godwit.run([
        "migrate", folder.path("\(version - 1).sqlite"), "--chain", chain,
        "--models", folder.path("\(version).xcdatamodel"),
        "--output", folder.path("\(version).sqlite"),
      ])
      #expect(run.status == 0, "\(run.messages)")
      let names = "SELECT Z_NAME FROM Z_PRIMARYKEY"
      #expect(try folder.table("\(version).sqlite", names) == ["A"])
    }
    let shown = try Godwit.run(["model", "show", folder.path("3.sqlite"), "--json"])
    let configurations = shown.lines.first?["configurations"] as? [String: [String]]
    #expect(configurations == ["Cloud": ["A"], "Local": ["B"]], "\(shown.output)\(shown.messages)")
    let repaired = try Godwit.run([
      "repair", folder.path("3.sqlite"), "--output", folder.path("4.sqlite"),
    ])
    #expect(repaired.status == 0, "\(repaired.messages)")
    let again = try Godwit.run(["model", "show", folder.path("4.sqlite"), "--json"])
    #expect(again.lines.first?["configurations"] as? [String: [String]] == configurations)
  }
}

@Suite struct `A compiled bundle with another version hash than the computed one` {
  @Test func `has it in every store that it opens`() throws {
    let versions = try Versions(["A"])
    let folder = versions.folder
    let recorded = Array(repeating: UInt8(0x5A), count: 32)
    let bundle = folder.path("Shop.momd")
    try FileManager.default.createDirectory(atPath: bundle, withIntermediateDirectories: true)
    var hashes = PropertyListDictionary()
    // Of a modifier beside a constraint it is not known how it enters a hash.
    let models = try versions.models.prefix(2).map { model in
      var model = model
      let place = try #require(model.entities.firstIndex { $0.name == "A" })
      let attribute = try #require(model.entities[place].properties.first { $0.attribute != nil })
      model.entities[place].versionHashModifier = "m"
      model.entities[place].uniquenessConstraints = [[attribute.name]]
      return model
    }
    for (place, model) in models.enumerated() {
      let name = "\(place + 1)"
      try Data(model.archiveBytes()).write(to: URL(fileURLWithPath: "\(bundle)/\(name).mom"))
      let computed = try #require(try EntityHierarchy(model).versionHashes["A"]?.bytes)
      hashes[name] = .dictionary(["A": .data(place == 0 ? computed : recorded)])
    }
    let list = PropertyList.dictionary([
      "NSManagedObjectModel_CurrentVersionName": .string("2"),
      "NSManagedObjectModel_VersionHashes": .dictionary(hashes),
    ])
    try Data(list.binary()).write(to: URL(fileURLWithPath: bundle + "/VersionInfo.plist"))
    let options = StoreOptions(seed: 5, rows: 3)
    try StoreGenerator(models[0], options: options).write(to: folder.path("1.sqlite"))
    let given = ["--models", bundle, "--json"]
    let run = try Godwit.run(
      ["migrate", folder.path("1.sqlite"), "--output", folder.path("2.sqlite")] + given)
    #expect(run.status == 0 && run.output.contains("For A, VersionInfo.plist"), "\(run.messages)")
    let stamped = try versions.metadata("2.sqlite")["NSStoreModelVersionHashes"]?["A"]?.data
    #expect(stamped == recorded)
    let verified = try Godwit.run(["verify", folder.path("2.sqlite")] + given)
    #expect(verified.status == 0, "\(verified.output)")
    for (version, verdict) in [("2", "same-model"), ("1", "migrated")] {
      let run = try Godwit.run(
        ["migrate", folder.path("2.sqlite"), "--to", version]
          + ["--output", folder.path("back.sqlite")] + given)
      #expect(run.results.values.first?["verdict"] as? String == verdict, "\(run.output)")
    }
  }
}
