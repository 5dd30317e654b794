import Foundation
import GodwitKeyedArchive
import Testing

@testable import GodwitObjectModel

/// A folder of its own for a test, removed with it.
private final class Folder {
  let path = NSTemporaryDirectory() + "godwit-models-\(UUID().uuidString)"
  deinit { try? FileManager.default.removeItem(atPath: path) }

  @discardableResult func write(_ name: String, _ bytes: [UInt8]) throws -> String {
    let url = URL(fileURLWithPath: path + "/" + name)
    try FileManager.default.createDirectory(
      at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: url)
    return url.path
  }

  func write(_ name: String, model: String) throws {
    try write(name + "/contents", Array(Samples.text("<entity name=\"\(model)\"/>").utf8))
  }
}

@Suite struct `A model file` {
  private static func current(_ name: String) -> [UInt8] {
    Array(
      "<plist version=\"1.0\"><dict><key>_XCCurrentVersionName</key><string>\(name)</string></dict></plist>"
        .utf8)
  }

  @Test func `of several versions lists them as people count`() throws {
    let folder = Folder()
    for name in ["Shop 10", "Shop 2", "Shop"] {
      try folder.write("Shop.xcdatamodeld/\(name).xcdatamodel", model: "A")
    }
    try folder.write("Shop.xcdatamodeld/.xccurrentversion", Self.current("Shop 2.xcdatamodel"))
    let versions = try ModelFile.read(folder.path + "/Shop.xcdatamodeld/")
    #expect(versions.map(\.name) == ["Shop", "Shop 2", "Shop 10"])
    #expect(versions.map(\.isCurrent) == [false, true, false])
    #expect(try ModelFile.version(at: folder.path + "/Shop.xcdatamodeld").name == "Shop 2")
    #expect(try ModelFile.version(at: folder.path + "/Shop.xcdatamodeld:Shop 10").name == "Shop 10")
    #expect(throws: ModelError.self) {
      try ModelFile.version(at: folder.path + "/Shop.xcdatamodeld:Shop 3")
    }
  }

  @Test(arguments: ["", "/", "//", "/.", "/contents", "/./contents", "/../Shop 2.xcdatamodel/."])
  func `has the name of its folder, by whatever path it is read`(ending: String) throws {
    let folder = Folder()
    let path = folder.path + "/Shop.xcdatamodeld/Shop 2.xcdatamodel"
    try folder.write("Shop.xcdatamodeld/Shop 2.xcdatamodel", model: "A")
    #expect(try ModelFile.read(path + ending).map(\.name) == ["Shop 2"])
    let versions = try ModelFile.read(path + "/..")
    #expect(versions.map(\.name) == ["Shop 2"] && versions.map(\.bundleName) == ["Shop"])
  }

  @Test func `has versions whatever letter stands before a dot or a colon`() throws {
    let folder = Folder()
    try folder.write("S\u{6DD}.xcdatamodeld/S\u{6DD}.xcdatamodel", model: "A")
    try folder.write("S\u{6DD}.xcdatamodeld/\u{301}2.xcdatamodel", model: "A")
    let path = folder.path + "/S\u{6DD}.xcdatamodeld"
    #expect(try Set(ModelFile.read(path).map(\.name)) == ["S\u{6DD}", "\u{301}2"])
    #expect(try ModelFile.version(at: path + ":\u{301}2").name == "\u{301}2")
    let list = ModelBundle.currentVersionFile("a<\u{338}b")
    #expect(list.utf8.contains("a&lt;\u{338}b".utf8))
  }

  // To this file system two folders.
  @Test func `tells versions apart whose names differ only in Unicode normalisation`() throws {
    let folder = Folder()
    let path = folder.path + "/Shop.xcdatamodeld"
    let versions = [("2\u{E9}", "A"), ("2e\u{301}", "B")]
    try folder.write("Shop.xcdatamodeld/\(versions[0].0).xcdatamodel", model: "A")
    let error = #expect(throws: ModelError.self) {
      try ModelFile.version(at: "\(path):\(versions[1].0)")
    }
    #expect("\(try #require(error))".contains("looks the same"))
    try folder.write("Shop.xcdatamodeld/\(versions[1].0).xcdatamodel", model: "B")
    for (name, entity) in versions {
      let asked = try ModelFile.model(at: "\(path):\(name)")
      #expect(asked.entities.map(\.name.rawValue) == [entity])
      try folder.write("Shop.xcdatamodeld/.xccurrentversion", Self.current(name + ".xcdatamodel"))
      #expect(try ModelFile.model(at: path).entities.map(\.name.rawValue) == [entity])
    }
  }

  @Test func `that does not say which version is current asks for one`() throws {
    let folder = Folder()
    try folder.write("Shop.xcdatamodeld/1.xcdatamodel", model: "A")
    #expect(try ModelFile.version(at: folder.path + "/Shop.xcdatamodeld").isCurrent)
    try folder.write("Shop.xcdatamodeld/2.xcdatamodel", model: "A")
    let path = folder.path + "/Shop.xcdatamodeld"
    #expect(throws: ModelError.noCurrentVersion(path: path, known: ["1", "2"])) {
      try ModelFile.model(at: path)
    }
    let versions = try ModelFile.read(path)
    #expect(try ModelVersion.lacks(ofCurrent: versions) == ["\(path) has no current version"])
    try ModelBundle.currentVersionFile("7").write(
      toFile: path + "/.xccurrentversion", atomically: true, encoding: .utf8)
    let missing = ModelError.noCurrentVersion(path: path, named: "7", known: ["1", "2"])
    #expect(throws: missing) { try ModelFile.model(at: path) }
    #expect("\(missing)".contains("names 7 as its current version and does not have it"))
    #expect(
      try ModelVersion.lacks(ofCurrent: versions) == [
        "\(path) names 7 as its current version and does not have it"
      ])
  }

  @Test(
    arguments: [
      (["Shop"], nil, "Shop"), (["Shop"], "Shop", "Shop"), (["Shop"], "Shop 2", nil),
      (["Shop", "Shop 0"], "Shop 2", nil), (["Shop", "Shop 0"], "Shop 0", "Shop 0"),
      (["1", "2\u{E9}"], "2e\u{301}", "2\u{E9}"), (["2\u{E9}", "2e\u{301}"], "2\u{E9}", "2\u{E9}"),
    ] as [([String], String?, String?)])
  func `of a bundle is current where the bundle names it, a sole one where it names none`(
    versions: [String], named: String?, current: String?
  ) throws {
    let folder = Folder()
    for name in versions {
      try folder.write("Shop.xcdatamodeld/\(name).xcdatamodel", model: "A")
    }
    if let named {
      try folder.write("Shop.xcdatamodeld/.xccurrentversion", Self.current(named + ".xcdatamodel"))
    }
    let read = try ModelFile.read(folder.path + "/Shop.xcdatamodeld")
    #expect(read.filter(\.isCurrent).map(\.name) == [current].compactMap(\.self))
  }

  /// Files and records by name, each with the attribute of its model.
  @Test(
    arguments: [
      (["Shop": "a"], ["Shop": "a"], nil, "Shop"),
      (["Shop": "a"], ["Shop": "b"], "Shop", "Shop"),
      (["Shop": "a"], ["Shop": "a", "Shop 2": "b"], "Shop 2", nil),
      (["Shop": "a", "Other": "c"], ["Shop": "a", "Shop 2": "b"], "Shop 2", nil),
      (["Shop": "a", "Other": "b"], ["Shop": "a", "Shop 2": "b"], "Shop 2", "Other"),
      (["Wire": "a"], ["shop": "a"], "shop", "Wire"),
      (["Wire": "a"], ["shop": "b"], "shop", nil),
      (["Wire": "a"], [:], "shop", nil), (["Wire": "a"], [:], nil, "Wire"),
    ] as [([String: String], [String: String], String?, String?)])
  func `of a compiled bundle is current where its name or its hashes are the named one's`(
    files: [String: String], records: [String: String], named: String?, current: String?
  ) throws {
    func model(_ attribute: String) -> ManagedObjectModel {
      let attribute = AttributeDescription(
        traits: PropertyTraits(name: attribute), type: .string)
      return ManagedObjectModel(entities: [
        EntityDescription(name: "E", properties: [.attribute(attribute)])
      ])
    }
    let folder = Folder()
    for (name, attribute) in files {
      try folder.write("Shop.momd/\(name).mom", try model(attribute).archiveBytes())
    }
    var recorded = PropertyListDictionary()
    for (name, attribute) in records {
      let hash = try #require(try EntityHierarchy(model(attribute)).versionHashes["E"])
      recorded[name] = .dictionary(["E": .data(hash.bytes)])
    }
    var list: PropertyListDictionary = [
      "NSManagedObjectModel_VersionHashes": .dictionary(recorded)
    ]
    list["NSManagedObjectModel_CurrentVersionName"] = named.map { .string($0) }
    try folder.write("Shop.momd/VersionInfo.plist", PropertyList.dictionary(list).binary())
    let read = try ModelFile.read(folder.path + "/Shop.momd")
    #expect(read.filter(\.isCurrent).map(\.name) == [current].compactMap(\.self))
    for version in read where records[version.name] == nil && version.name != current {
      #expect(version.recordedHashes == nil)
    }
  }

  @Test func `in a compiled bundle keeps what was recorded, even under another name`() throws {
    let folder = Folder()
    let model = try Samples.model(Samples.everything)
    let hierarchy = try EntityHierarchy(model)
    try folder.write("Shop.momd/Wire.mom", try model.archiveBytes())
    var hashes = PropertyListDictionary()
    for (name, hash) in hierarchy.versionHashes { hashes[name.rawValue] = .data(hash.bytes) }
    hashes["Soup"] = .data(Array(repeating: 0, count: 32))
    let list = PropertyList.dictionary([
      "NSManagedObjectModel_CurrentVersionName": .string("shop"),
      "NSManagedObjectModel_VersionHashes": .dictionary(["shop": .dictionary(hashes)]),
    ])
    try folder.write("Shop.momd/VersionInfo.plist", list.binary())
    let version = try ModelFile.version(at: folder.path + "/Shop.momd")
    #expect(version.name == "Wire" && version.model == model)
    #expect(version.disagreements(with: hierarchy) == ["Soup"])
    // It may be another version's.
    #expect(try version.hierarchy().versionHashes == hierarchy.versionHashes)
    #expect(try version.noteOfRecordedHashes() == nil)
  }

  /// Of a modifier beside a constraint it is not known how it enters a hash.
  @Test(arguments: [
    (["E"], true, true), (["E"], false, false), (["E", "F"], true, false), ([], true, false),
  ])
  func `has the hashes of a record of just its entities, where its own are not certain`(
    recorded: [String], isUnsettled: Bool, counts: Bool
  ) throws {
    var entity = EntityDescription(name: "E")
    entity.versionHashModifier = "m"
    entity.properties = [
      .attribute(AttributeDescription(traits: PropertyTraits(name: "k"), type: .string))
    ]
    if isUnsettled { entity.uniquenessConstraints = [["k"]] }
    let model = ManagedObjectModel(entities: [entity])
    let hash = try #require(VersionHash(bytes: Array(repeating: 7, count: 32)))
    let version = ModelVersion(
      name: "1", model: model, isCurrent: true,
      recordedHashes: Dictionary(uniqueKeysWithValues: recorded.map { (EntityName($0), hash) }),
      path: "1")
    let hierarchy = try version.hierarchy()
    #expect((hierarchy.versionHashes["E"] == hash) == counts)
    #expect(try (version.noteOfRecordedHashes() != nil) == counts)
    let plain = try EntityHierarchy(model)
    #expect(hierarchy.computedHashes == plain.versionHashes)
    #expect(try (hierarchy.identityBytes() == plain.identityBytes()) != counts)
    #expect(try hierarchy.restricted(to: ["E"]).versionHashes == hierarchy.versionHashes)
    let other = ModelVersion(
      name: "2", model: ManagedObjectModel(entities: [EntityDescription(name: "G")]),
      isCurrent: true, path: "2")
    let merged = try ModelVersion.merging([version, other]).hierarchy().versionHashes
    #expect((merged["E"] == hash) == counts && merged.count == 2)
  }

  @Test func `in a compiled bundle is told from one whose name differs in normalisation alone`()
    throws
  {
    let folder = Folder()
    let names = ["caf\u{E9}", "cafe\u{301}"]
    var hashes: [String: VersionHash] = [:]
    var recorded = PropertyListDictionary()
    for (name, attribute) in zip(names, ["a", "b"]) {
      let model = ManagedObjectModel(entities: [
        EntityDescription(
          name: "E",
          properties: [
            .attribute(AttributeDescription(traits: PropertyTraits(name: attribute), type: .string))
          ])
      ])
      try folder.write("Shop.momd/\(name).mom", try model.archiveBytes())
      let hash = try #require(try EntityHierarchy(model).versionHashes["E"])
      hashes[attribute] = hash
      recorded[name] = .dictionary(["E": .data(hash.bytes)])
    }
    let list = PropertyList.dictionary([
      "NSManagedObjectModel_CurrentVersionName": .string(names[1]),
      "NSManagedObjectModel_VersionHashes": .dictionary(recorded),
    ])
    try folder.write("Shop.momd/VersionInfo.plist", list.binary())
    let versions = try ModelFile.read(folder.path + "/Shop.momd")
    #expect(versions.count == 2)
    for version in versions {
      let isSecond = version.name.unicodeScalars.count == names[1].unicodeScalars.count
      #expect(version.isCurrent == isSecond)
      #expect(version.recordedHashes?["E"] == hashes[isSecond ? "b" : "a"])
    }
  }

  @Test func `takes the composite of just its name`() throws {
    let names = ["caf\u{E9}", "cafe\u{301}"]
    let composites = zip(names, ["a", "b"]).map {
      "<composite name=\"\($0)\"><attribute name=\"\($1)\" attributeType=\"String\"/></composite>"
    }.joined()
    for (name, element) in zip(names, ["a", "b"]) {
      let model = try Samples.model(
        "<entity name=\"E\"><attribute name=\"p\" attributeType=\"Composite\" elements=\"\(name)\"/>"
          + "</entity>" + composites)
      let elements = model.entities[0].properties[0].attribute?.compositeElements
      #expect(elements?.map(\.name) == [element])
    }
  }

  @Test func `in a compiled bundle that lacks files is named as missing`() throws {
    let folder = Folder()
    let model = try Samples.model(Samples.everything)
    let hashes = PropertyList.dictionary(["Soup": .data(Array(repeating: 0, count: 32))])
    let list = PropertyList.dictionary([
      "NSManagedObjectModel_CurrentVersionName": .string("3"),
      "NSManagedObjectModel_VersionHashes": .dictionary(["3": hashes]),
    ])
    let path = folder.path + "/Shop.momd"
    try folder.write("Shop.momd/VersionInfo.plist", list.binary())
    try folder.write("Shop.momd/3.omo", Array("momv2$xxxx".utf8))
    let optimized = try #require(throws: ModelError.self) { try ModelFile.read(path) }
    #expect("\(optimized)".contains(".omo files alone"))
    for name in ["1", "2"] { try folder.write("Shop.momd/\(name).mom", try model.archiveBytes()) }
    #expect(throws: ModelError.noCurrentVersion(path: path, named: "3", known: ["1", "2"])) {
      try ModelFile.version(at: path)
    }
    let missing = try #require(throws: ModelError.self) {
      try ModelFile.version(at: path + ":3")
    }
    #expect("\(missing)".contains("3.mom cannot be read"))
    #expect(throws: ModelError.noSuchVersion(path: path, version: "4", known: ["1", "2"])) {
      try ModelFile.version(at: path + ":4")
    }
  }

  @Test(arguments: [
    ("empty", [UInt8]()), ("an optimised model", Array("momv2$xxxx".utf8)),
    ("a store", Array("SQLite format 3\0".utf8)), ("text", Array("hello".utf8)),
    ("another property list", PropertyList.array([]).binary()),
  ])
  func `of another kind is told apart`(what: String, bytes: [UInt8]) throws {
    let folder = Folder()
    let path = try folder.write("file", bytes)
    #expect(throws: ModelError.self) { try ModelFile.read(path) }
  }

  @Test func `of Xcode 3 is named as such`() throws {
    let folder = Folder()
    var archive = KeyedArchiveWriter()
    let root = archive.object("XDPMModel", [])
    try folder.write("Old.xcdatamodel/elements", archive.bytes(root: root))
    let path = folder.path + "/Old.xcdatamodel"
    #expect(throws: ModelError.oldBinaryModel(path: path)) { try ModelFile.read(path) }
    #expect(throws: ModelError.oldBinaryModel(path: path + "/elements")) {
      try ModelFile.read(path + "/elements")
    }
  }

  @Test func `that is not there or is no file is an error`() throws {
    let folder = Folder()
    #expect(throws: ModelError.self) { try ModelFile.read(folder.path + "/none") }
    try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
    #expect(throws: ModelError.self) { try ModelFile.read(folder.path) }
    #expect(throws: ModelError.self) { try ModelFile.read("/dev/zero") }
    let pipe = folder.path + "/pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    #expect(throws: ModelError.self) { try ModelFile.read(pipe) }
  }
}
