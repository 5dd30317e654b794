import Foundation
import Testing

@Suite struct `A store whose name or path is too long` {
  private func folder(_ bytes: Int, _ keys: String = "") throws -> (PipelineFolder, name: String) {
    let name = String(repeating: "n", count: bytes - ".sqlite".utf8.count)
    let folder = try PipelineFolder.orders(["a"], keys)
    // Under such a name SQLite itself may not be able to write it.
    try FileManager.default.copyItem(
      atPath: folder.path("stores/a.sqlite"), toPath: folder.path("stores/\(name).sqlite"))
    return (folder, name)
  }

  @Test func `is not replaced, and the plan says so as the run does`() throws {
    let (folder, name) = try folder(191)
    for command in [["plan"], ["run"], ["run"]] {
      let run = try folder.godwit(command)
      #expect(run.status == 3, "\(command)")
      #expect("\(run.lines)".contains("long-name"), "\(run.output)")
    }
    let run = try Godwit.run(folder)
    #expect(run.counts == "2 found, 1 same-model, 1 refused")
    let alone = try Godwit.run([
      "migrate", folder.path("stores/\(name).sqlite"), "--models",
      folder.path("Orders.xcdatamodeld"),
      "--mapping", folder.path("orders.mapping.yaml"), "--json",
    ])
    #expect(alone.status == 65 && alone.reason(of: name) == "long-name")
    #expect(alone.messages.contains("191 bytes") && alone.messages.contains("may have 190"))
    #expect(folder.storeFiles().filter { $0.contains(name) } == ["\(name).sqlite"])
  }

  @Test func `is replaced and put back where all names fit`() throws {
    let (folder, name) = try folder(190)
    let before = try folder.bytes("stores/\(name).sqlite")
    #expect(try Godwit.run(folder).counts == "2 found, 2 migrated")
    #expect(try folder.godwit(["rollback"]).status == 0)
    #expect(try folder.bytes("stores/\(name).sqlite") == before)
  }

  @Test func `is migrated beside it, and left alone where it is of the version already`() throws {
    let (folder, name) = try folder(200, "commit: { beside: -2 }")
    #expect(try Godwit.run(folder).counts == "2 found, 2 migrated")
    let files = FileManager.default
    try files.removeItem(atPath: folder.path("stores/\(name).sqlite"))
    try files.moveItem(
      atPath: folder.path("stores/a-2.sqlite"), toPath: folder.path("stores/\(name).sqlite"))
    try files.removeItem(atPath: folder.path("stores/\(String(name))-2.sqlite"))
    try folder.set("")
    #expect(
      try Godwit.run(folder).results.values.count { $0["verdict"] as? String == "same-model" } == 1)
  }

  private static func volume(of path: String) -> UInt64 {
    var status = stat()
    return stat(path, &status) == 0 ? UInt64(status.st_dev) : 0
  }

  // There the output is assembled beside its place, under a longer name.
  @Test(
    .enabled(if: ![0, volume(of: NSTemporaryDirectory())].contains(volume(of: "/dev/shm"))),
    arguments: [(bytes: 216, status: 0), (217, 65)] as [(bytes: Int, status: Int32)])
  func `is written to no other volume than the run directory's`(bytes: Int, status: Int32) throws {
    let folder = try PipelineFolder.orders(["a"])
    let place = "/dev/shm/godwit-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: place) }
    for command in ["plan", "migrate"] {
      let run = try Godwit.run([
        command, folder.path("stores/a.sqlite"), "--models", folder.path("Orders.xcdatamodeld"),
        "--mapping", folder.path("orders.mapping.yaml"), "--state", folder.path("run"), "--output",
        "\(place)/" + String(repeating: "n", count: bytes - ".sqlite".utf8.count) + ".sqlite",
        "--json",
      ])
      #expect(run.status == status, "\(command): \(run.messages)")
      #expect("\(run.lines)".contains("long-name") == (status != 0), "\(command): \(run.output)")
      #expect(!"\(run.lines)".contains("validate") || status == 0, "\(command)")
    }
  }

  /// The bytes of an output's name, how it ends, and where the run directory lies.
  @Test(
    arguments: [
      (235, "", ["--state", "run"], 0),  // the folder of external data
      (236, "", ["--state", "run"], 65), (242, ".sqlite", ["--state", "run"], 0),
      (243, ".sqlite", ["--state", "run"], 65),
      (202, "", ["--state", "run", "--invalid", "set-aside"], 0),  // rejects
      (203, "", ["--state", "run", "--invalid", "set-aside"], 65),
      (251, ".store-of-all-orders", ["--state", "run"], 0),  // a log
      (252, ".store-of-all-orders", ["--state", "run"], 65),
      (248, ".store-of-all-orders", [], 0),  // the run directory
      (249, ".store-of-all-orders", [], 65),
    ] as [(Int, String, [String], Int32)])
  func `is no output, and the plan says so as the migration does`(
    bytes: Int, ending: String, options: [String], status: Int32
  ) throws {
    let folder = try PipelineFolder.orders(["a"])
    let output = String(repeating: "n", count: bytes - ending.utf8.count) + ending
    for command in ["plan", "migrate"] {
      let run = try Godwit.run(
        [
          command, "stores/a.sqlite", "--models", "Orders.xcdatamodeld", "--mapping",
          "orders.mapping.yaml", "--output", output, "--json",
        ] + options, workingFolder: folder.url.path)
      #expect(run.status == status, "\(command): \(run.messages)")
      #expect("\(run.lines)".contains("long-name") == (status != 0), "\(command): \(run.output)")
    }
    #expect(FileManager.default.fileExists(atPath: folder.path(output)) == (status == 0))
    #expect(!FileManager.default.fileExists(atPath: folder.path("run")))
  }

  @Test(arguments: [(244, 0), (245, 73)] as [(Int, Int32)])
  func `is no table of object URIs, and the plan says so as the migration does`(
    bytes: Int, status: Int32
  ) throws {
    let folder = try PipelineFolder.orders(["a"])
    for command in ["plan", "migrate"] {
      let run = try Godwit.run(
        [
          command, "stores/a.sqlite", "--models", "Orders.xcdatamodeld", "--mapping",
          "orders.mapping.yaml", "--output", "out.sqlite", "--uri-table",
          String(repeating: "n", count: bytes), "--json",
        ], workingFolder: folder.url.path)
      #expect(run.status == status, "\(command): \(run.messages)")
    }
    #expect(FileManager.default.fileExists(atPath: folder.path("out.sqlite")) == (status == 0))
  }

  @Test func `is not opened where SQLite could not`() throws {
    let (folder, name) = try folder(252)
    #expect(try Godwit.run(folder).reason(of: name) == "long-name")
    #expect(try folder.godwit(["plan"]).output.contains("a store may have 251"))
    let deep = try PipelineFolder.orders(["a"])
    let place =
      deep.path("stores") + "/" + String(repeating: "d", count: 180) + "/"
      + String(repeating: "e", count: 180)
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    let path = place + "/" + String(repeating: "f", count: 505 - place.utf8.count - 8) + ".sqlite"
    #expect(path.utf8.count == 505)
    try FileManager.default.copyItem(atPath: deep.path("stores/a.sqlite"), toPath: path)
    let run = try Godwit.run(deep)
    let reasons = run.results[path]?["reasons"] as? [[String: Any]]
    #expect(reasons?.first?["reason"] as? String == "long-name")
    #expect((reasons?.first?["message"] as? String)?.contains("at most 504") == true)
  }
}

@Suite struct `A link to a folder whose name is not UTF-8` {
  private let folder: PipelineFolder
  private let link: String

  /// Beside the folder that has the text of its name.
  init() throws {
    folder = try PipelineFolder.orders(["a"])
    link = folder.path("link")
    let place = open(folder.url.path, O_RDONLY | O_DIRECTORY)
    defer { close(place) }
    let name = [CChar(0x6D), CChar(bitPattern: 0xE4), 0]
    try #require(mkdirat(place, name, 0o700) == 0 && symlinkat(name, place, "link") == 0)
    let files = FileManager.default
    try files.createDirectory(
      atPath: folder.path("m\u{FFFD}"), withIntermediateDirectories: false)
    for place in [link, folder.path("m\u{FFFD}")] {
      try files.copyItem(atPath: folder.path("stores/a.sqlite"), toPath: place + "/a.sqlite")
    }
    try files.copyItem(atPath: folder.path("pipeline.yaml"), toPath: link + "/pipeline.yaml")
  }

  @Test func `leads to no store, no output, no state and no pipeline`() throws {
    let before = try folder.bytes("m\u{FFFD}/a.sqlite")
    let migrate = [
      "migrate", "--models", folder.path("Orders.xcdatamodeld"), "--mapping",
      folder.path("orders.mapping.yaml"),
    ]
    let store = folder.path("stores/a.sqlite")
    let commands: [(words: [String], status: Int32)] = [
      (["inspect", link + "/a.sqlite"], 65),
      (migrate + [link + "/a.sqlite"], 65),
      (migrate + [link + "/a.sqlite", "--output", folder.path("b.sqlite")], 65),
      (migrate + [store, "--output", link + "/b.sqlite"], 73),
      (migrate + [store, "--state", link + "/state"], 73),
      (["rehearse", folder.path("Orders.xcdatamodeld"), "--stores", link], 65),
      (["run", link], 78),
    ]
    for (words, status) in commands {
      let run = try Godwit.run(words)
      #expect(run.status == status, "\(words): \(run.messages)")
      #expect((run.output + run.messages).contains(#"/m\xe4"#), "\(words): \(run.messages)")
    }
    #expect(try folder.names(in: "m\u{FFFD}") == ["a.sqlite"])
    #expect(try folder.bytes("m\u{FFFD}/a.sqlite") == before)
  }

  @Test func `is no working directory`() throws {
    let run = try Godwit.run(["inspect", "a.sqlite"], workingFolder: link)
    #expect(run.status == 64 && run.messages.contains(#"/m\xe4'"#), "\(run.messages)")
  }
}

@Suite struct `What a pipeline's commands say` {
  @Test func `names keys, not options of migrate`() throws {
    let folder = try PipelineFolder.orders(["a"], "destination: Nope")
    let version = try Godwit.run(["run", folder.url.path])
    #expect(version.status == 65 && version.messages.contains("key destination"))
    #expect(!version.messages.contains("--to"), "\(version.messages)")
    try folder.set("chain: staged")
    for command in ["run", "plan"] {
      let staged = try Godwit.run([command, folder.url.path])
      #expect(staged.status == 78, "\(staged.messages)")
      #expect(staged.messages.contains("key chain") && !staged.messages.contains("Usage"))
    }
    try folder.set("commit: { beside: -2 }")
    try FileManager.default.copyItem(
      atPath: folder.path("stores/a.sqlite"), toPath: folder.path("stores/a-2.sqlite"))
    let beside = try Godwit.run(["run", folder.url.path])
    #expect(beside.messages.contains("key commit") && !beside.messages.contains("Remove"))
  }
}

/// Swift takes them for one text.
@Suite struct `Stores whose names differ in their normal form alone` {
  private func folder(_ keys: String = "") throws -> PipelineFolder {
    try PipelineFolder.orders(["caf\u{e9}", "cafe\u{301}"], keys)
  }

  @Test func `are two stores for a run, a rollback and its report`() throws {
    let folder = try folder()
    let bytes = try folder.bytes("stores/cafe\u{301}.sqlite")
    #expect(try folder.godwit(["run"]).counts == "2 found, 2 migrated")
    #expect(try folder.bytes("stores/cafe\u{301}.sqlite") != bytes)
    #expect(try folder.godwit(["run"]).counts == "2 found, 2 same-model")
    #expect(try folder.godwit(["verify"]).summary["found"] as? Int == 2)
    #expect(try folder.godwit(["rollback"]).summary["restored"] as? Int == 2)
    #expect(try folder.bytes("stores/caf\u{e9}.sqlite") == bytes)
    #expect(try folder.bytes("stores/cafe\u{301}.sqlite") == bytes)
  }

  @Test func `are two stores of the waves of a run that was cut off, and of a plan`() throws {
    let folder = try folder("limits: { failure-budget: 1 }\ncanary: [1, 100%]")
    let plan = folder.path("plan.json")
    #expect(try Godwit.run(["plan", folder.url.path, "--out", plan]).status == 0)
    #expect(
      try Godwit.run(["run", folder.url.path, "--plan", plan, "--json"], killAfter: 12).status < 0)
    #expect(try folder.godwit(["run"]).counts == "2 found, 2 migrated")
  }
}
