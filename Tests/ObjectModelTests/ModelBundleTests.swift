import Foundation
import GodwitDurableFiles
import SystemPackage
import Testing

@testable import GodwitObjectModel

/// An `.xcdatamodeld` folder for the length of a test.
private struct Bundle: ~Copyable {
  let folder: URL
  let path: String

  init(_ versions: [String: String], current: String? = nil) throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent(
      "godwit-bundle-\(UUID().uuidString)")
    path = folder.appendingPathComponent("Shop.xcdatamodeld").path
    for (name, body) in versions {
      let version = path + "/\(name).xcdatamodel"
      try FileManager.default.createDirectory(
        atPath: version, withIntermediateDirectories: true)
      try Data(Samples.text(body).utf8).write(to: URL(fileURLWithPath: version + "/contents"))
    }
    if let current { try ModelBundle(path: path).setCurrent(current) }
  }

  var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  func bytes(_ name: String) -> Data? { FileManager.default.contents(atPath: path + "/" + name) }

  deinit { try? FileManager.default.removeItem(at: folder) }
}

@Suite struct `A bundle of versions` {
  @Test func `gets a version that equals another byte for byte`() throws {
    let bundle = try Bundle(["Shop": "<entity name=\"A\"/>"])
    let made = try ModelBundle(path: bundle.path).addVersion("Shop 2")
    #expect(made.lastComponent?.string == "Shop 2.xcdatamodel")
    #expect(
      bundle.bytes("Shop 2.xcdatamodel/contents") == bundle.bytes("Shop.xcdatamodel/contents"))
    #expect(bundle.names == [".xccurrentversion", "Shop 2.xcdatamodel", "Shop.xcdatamodel"])
  }

  @Test func `keeps its current version when one is added`() throws {
    let bundle = try Bundle(["Shop": ""])
    _ = try ModelBundle(path: bundle.path).addVersion("Shop 2")
    #expect(try ModelFile.version(at: bundle.path).name == "Shop")
  }

  @Test func `goes on naming a current version that it lacks, until it gets it`() throws {
    let bundle = try Bundle(["Shop": ""])
    try ModelBundle.currentVersionFile("Shop 2").write(
      toFile: bundle.path + "/.xccurrentversion", atomically: true, encoding: .utf8)
    #expect(
      throws: ModelError.noCurrentVersion(path: bundle.path, named: "Shop 2", known: ["Shop"])
    ) { try ModelBundle(path: bundle.path).addVersion("Shop 2") }
    _ = try ModelBundle(path: bundle.path).addVersion("Shop 2", from: "Shop")
    #expect(try ModelFile.version(at: bundle.path).name == "Shop 2")
  }

  @Test func `keeps the link that names its current version, and what it leads to`() throws {
    let bundle = try Bundle(["Shop": "", "Shop 2": ""], current: "Shop")
    let (file, real) = (bundle.path + "/.xccurrentversion", bundle.path + "/current")
    try FileManager.default.moveItem(atPath: file, toPath: real)
    try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: "current")
    #expect(throws: ModelError.symbolicLink(path: file)) {
      try ModelBundle(path: bundle.path).setCurrent("Shop 2")
    }
    #expect(try ModelFile.version(at: bundle.path).name == "Shop")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: file) == "current")
  }

  @Test func `takes the copy from the version that is named, else the current one`() throws {
    let bundle = try Bundle(
      ["Shop": "<entity name=\"A\"/>", "Shop 2": "<entity name=\"B\"/>"], current: "Shop 2")
    _ = try ModelBundle(path: bundle.path).addVersion("Shop 3")
    _ = try ModelBundle(path: bundle.path).addVersion("Shop 4.xcdatamodel", from: "Shop")
    #expect(try ModelFile.model(at: bundle.path + ":Shop 3").entities.map(\.name) == ["B"])
    #expect(try ModelFile.model(at: bundle.path + ":Shop 4").entities.map(\.name) == ["A"])
  }

  @Test(arguments: ["Shop", "SHOP", "shop.xcdatamodel"])
  func `never overwrites a version`(name: String) throws {
    let bundle = try Bundle(["Shop": ""])
    let before = bundle.names
    #expect(throws: ModelError.versionExists(path: bundle.path, version: "Shop.xcdatamodel")) {
      try ModelBundle(path: bundle.path).addVersion(name)
    }
    #expect(bundle.names == before)
  }

  @Test(
    arguments: [
      "", ".", "..", "../Shop 2", "a/b", "/tmp/x", ".hidden", "a\u{0}b", "a\nb", "a:b",
      ".xcdatamodel", String(repeating: "n", count: 229),
    ])
  func `refuses a name that is no name`(name: String) throws {
    let bundle = try Bundle(["Shop": ""])
    #expect(throws: ModelError.self) { try ModelBundle(path: bundle.path).addVersion(name) }
    #expect(throws: ModelError.self) { try ModelBundle(path: bundle.path).setCurrent(name) }
    #expect(bundle.names == ["Shop.xcdatamodel"])
  }

  @Test func `may have a name of 228 bytes`() throws {
    let bundle = try Bundle(["Shop": ""])
    let name = String(repeating: "n", count: 228)
    _ = try ModelBundle(path: bundle.path).addVersion(name)
    #expect(try ModelFile.version(at: bundle.path + ":" + name).name == name)
  }

  @Test func `says which version is current as Xcode does`() throws {
    let bundle = try Bundle(["Shop": "", "Shop & 2": ""], current: "Shop & 2")
    let expected =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      + "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" "
      + "\"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n"
      + "<plist version=\"1.0\">\n<dict>\n\t<key>_XCCurrentVersionName</key>\n"
      + "\t<string>Shop &amp; 2.xcdatamodel</string>\n</dict>\n</plist>\n"
    #expect(bundle.bytes(".xccurrentversion") == Data(expected.utf8))
    #expect(try ModelFile.version(at: bundle.path).name == "Shop & 2")
  }

  @Test(arguments: ["Shop 2", "Shop 2.xcdatamodel"])
  func `says where the version is that it makes current`(given: String) throws {
    let bundle = try Bundle(["Shop": "", "Shop 2": ""], current: "Shop")
    let made = try ModelBundle(path: bundle.path).setCurrent(given)
    #expect(made.string == bundle.path + "/Shop 2.xcdatamodel")
  }

  @Test(arguments: ["", "/", "//", "/.", "/./", "/Shop.xcdatamodel/.."])
  func `is one by whatever path leads to it`(ending: String) throws {
    let bundle = try Bundle(["Shop": "", "Shop 2": ""], current: "Shop")
    let made = try ModelBundle(path: bundle.path + ending).setCurrent("Shop 2")
    #expect(made.string == bundle.path + "/Shop 2.xcdatamodel")
    let added = try ModelBundle.adding("Shop 3", to: bundle.path + ending)
    #expect(added.string == bundle.path + "/Shop 3.xcdatamodel")
  }

  @Test func `cannot make current what it does not have`() throws {
    let bundle = try Bundle(["Shop": "", "Shop 2": ""], current: "Shop")
    #expect(
      throws: ModelError.noSuchVersion(
        path: bundle.path, version: "Shop 3", known: ["Shop", "Shop 2"])
    ) { try ModelBundle(path: bundle.path).setCurrent("Shop 3") }
    #expect(try ModelFile.version(at: bundle.path).name == "Shop")
  }

  @Test func `names its versions as people count them`() throws {
    let bundle = try Bundle(["Shop": "", "Shop 2": "", "Shop 10": ""])
    let known = ["Shop", "Shop 2", "Shop 10"]
    #expect(
      throws: ModelError.noSuchVersion(path: bundle.path, version: "Shop 3", known: known)
    ) { try ModelBundle(path: bundle.path).setCurrent("Shop 3") }
  }

  @Test(arguments: ["junk", ""])
  func `whose current version cannot be read gets one`(current: String) throws {
    let bundle = try Bundle(["Shop": "", "Shop 2": ""])
    let file = bundle.path + "/.xccurrentversion"
    if !current.isEmpty { try Data(current.utf8).write(to: URL(fileURLWithPath: file)) }
    #expect(throws: ModelError.self) { try ModelFile.version(at: bundle.path) }
    try ModelBundle(path: bundle.path).setCurrent("Shop 2")
    #expect(try ModelFile.version(at: bundle.path).name == "Shop 2")
  }

  @Test func `is needed, not a version alone`() throws {
    let bundle = try Bundle(["Shop": ""])
    for path in [bundle.path + "/Shop.xcdatamodel", "/"] {
      #expect(throws: ModelError.notABundle(path: path)) { try ModelBundle(path: path) }
    }
    let path = bundle.path + "x"
    #expect(throws: ModelError.unreadable(path: path, reason: "it does not exist")) {
      try ModelBundle(path: path)
    }
  }

  @Test func `is named where a plain model has become one`() throws {
    let bundle = try Bundle(["Shop": ""])
    let plain = String(bundle.path.dropLast())
    #expect(
      throws: ModelError.unreadable(
        path: plain, reason: "it does not exist. Give \(bundle.path), which is there")
    ) { try ModelBundle.adding("Shop 2", to: plain) }
  }

  @Test func `takes no harm from what a crash left`() throws {
    let bundle = try Bundle(["Shop": ""])
    try FileManager.default.createDirectory(
      atPath: bundle.path + "/.Shop 2.xcdatamodel.partial-0/x", withIntermediateDirectories: true)
    _ = try ModelBundle(path: bundle.path).addVersion("Shop 2")
    #expect(bundle.names == [".xccurrentversion", "Shop 2.xcdatamodel", "Shop.xcdatamodel"])
    #expect(try ModelFile.read(bundle.path).map(\.name) == ["Shop", "Shop 2"])
  }
}

/// A plain `.xcdatamodel` folder for the length of a test.
private struct PlainModel: ~Copyable {
  let folder: URL
  let path: String

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent(
      "godwit-plain-\(UUID().uuidString)")
    path = folder.appendingPathComponent("Shop.xcdatamodel").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    try Data(Samples.text("<entity name=\"A\"/>").utf8)
      .write(to: URL(fileURLWithPath: path + "/contents"))
  }

  /// Everything below the folder.
  var names: [String] {
    (FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? [])
      .sorted()
  }

  deinit { try? FileManager.default.removeItem(at: folder) }
}

@Suite struct `A plain model` {
  @Test(arguments: ["", "/", "/."])
  func `becomes a bundle when it gets a version`(ending: String) throws {
    let model = try PlainModel()
    let contents = FileManager.default.contents(atPath: model.path + "/contents")
    let made = try ModelBundle.adding("Shop 2", to: model.path + ending)
    #expect(made.lastComponent?.string == "Shop 2.xcdatamodel")
    #expect(
      model.names == [
        "Shop.xcdatamodeld", "Shop.xcdatamodeld/.xccurrentversion",
        "Shop.xcdatamodeld/Shop 2.xcdatamodel", "Shop.xcdatamodeld/Shop 2.xcdatamodel/contents",
        "Shop.xcdatamodeld/Shop.xcdatamodel", "Shop.xcdatamodeld/Shop.xcdatamodel/contents",
      ])
    let bundle = model.path + "d"
    #expect(try ModelFile.version(at: bundle).name == "Shop")
    for version in ["Shop", "Shop 2"] {
      #expect(
        FileManager.default.contents(atPath: bundle + "/\(version).xcdatamodel/contents")
          == contents)
    }
  }

  @Test(
    arguments: [
      ("Shop", nil),  // its own name
      ("SHOP.xcdatamodel", nil), ("a/b", nil), ("Shop 2", "Other"),
    ] as [(String, String?)])
  func `stays as it is when the version cannot be added`(name: String, from: String?) throws {
    let model = try PlainModel()
    let before = model.names
    #expect(throws: ModelError.self) {
      try ModelBundle.adding(name, to: model.path, from: from)
    }
    #expect(model.names == before)
  }

  @Test(arguments: ["docs", "more", "contents"])
  func `stays as it is where it holds more than files`(name: String) throws {
    let model = try PlainModel()
    let files = FileManager.default
    let path = model.path + "/" + name
    if name == "docs" {
      try files.createDirectory(atPath: path, withIntermediateDirectories: true)
      try Data("important".utf8).write(to: URL(filePath: path + "/notes.txt"))
    } else {
      if name == "contents" { try files.moveItem(atPath: path, toPath: model.path + ".old") }
      try files.createSymbolicLink(atPath: path, withDestinationPath: "../Shop.xcdatamodel.old")
    }
    let before = model.names
    #expect(throws: ModelError.moreThanFiles(path: model.path, name: name)) {
      try ModelBundle.adding("Shop 2", to: model.path)
    }
    #expect(model.names == before)
  }

  @Test func `is not put over a bundle of its name, nor taken out of one`() throws {
    let model = try PlainModel()
    try FileManager.default.createDirectory(
      atPath: model.path + "d", withIntermediateDirectories: true)
    #expect(throws: ModelError.bundleExists(path: model.path + "d")) {
      try ModelBundle.adding("Shop 2", to: model.path)
    }
    let bundle = try Bundle(["Shop": ""])
    #expect(throws: ModelError.self) {
      try ModelBundle.adding("Shop 2", to: bundle.path + "/Shop.xcdatamodel")
    }
    #expect(bundle.names == ["Shop.xcdatamodel"])
  }

  @Test func `is not followed through a symbolic link, which would lead nowhere afterwards`() throws
  {
    let model = try PlainModel()
    let link = URL(fileURLWithPath: model.path).deletingLastPathComponent()
      .appendingPathComponent("Link.xcdatamodel").path
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: model.path)
    let before = model.names
    #expect(throws: ModelError.symbolicLink(path: link)) {
      try ModelBundle.adding("Shop 2", to: link)
    }
    #expect(model.names == before)
  }

  @Test func `is not made a bundle when it is no model`() throws {
    let model = try PlainModel()
    try Data("<model".utf8).write(to: URL(fileURLWithPath: model.path + "/contents"))
    #expect(throws: ModelError.self) { try ModelBundle.adding("Shop 2", to: model.path) }
    #expect(model.names == ["Shop.xcdatamodel", "Shop.xcdatamodel/contents"])
  }
}
