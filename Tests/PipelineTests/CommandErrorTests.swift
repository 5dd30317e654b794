import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `An error of a command itself` {
  /// The reason, the words, and the exit code.
  private static let commands: [(String, [String], Int32)] = [
    ("not-a-store", ["repair", "notes.md", "-o", "out.sqlite"], 65),
    ("nothing-left", ["repair", "stores/lost.sqlite", "-o", "out.sqlite"], 65),
    ("temporary-folder", ["mapping", "infer", "stores/a.sqlite", "stores/a.sqlite"], 73),
    ("stores", ["rehearse", "Orders.xcdatamodeld", "--stores", "Orders.xcdatamodeld"], 65),
    ("no-run", ["control", ".", "status"], 69),
    ("list", ["run", ".", "--files-from", "nowhere"], 65),
    ("usage", ["doctor", "nothere"], 64),
    ("output", ["model", "add-version", "Orders.xcdatamodeld", "Orders 2"], 73),
    ("usage", ["model", "add-version", "Orders.xcdatamodeld", "a/b"], 64),
    ("link", ["model", "add-version", "Link.xcdatamodel", "Orders 3"], 65),
  ]

  @Test(arguments: commands)
  func `has its word in the result`(reason: String, words: [String], status: Int32) throws {
    let folder = try PipelineFolder.orders(["a", "lost"])
    try Data("# mine".utf8).write(to: URL(fileURLWithPath: folder.path("notes.md")))
    try Self.losePages(of: folder.path("stores/lost.sqlite"))
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("Link.xcdatamodel"),
      withDestinationPath: "Orders.xcdatamodeld/Orders.xcdatamodel")
    let nowhere = reason == "temporary-folder" ? folder.path("nowhere") : nil
    let run = try Godwit.run(
      words + ["--json"], temporaryFolder: nowhere, workingFolder: folder.url.path)
    #expect(run.status == status, "\(run.messages)")
    let found = (run.summary["reasons"] as? [[String: Any]])?.first?["reason"] as? String
    #expect(found == reason, "\(run.output)")
    #expect(run.summary["verdict"] as? String == "failed")
  }

  /// What a command finds only when it runs.
  @Test(arguments: [
    ["backups", "prune", "."], ["plan", ".", "--models", "x"],
    ["plan", "stores/a.sqlite", "--out", "x"], ["run", ".", "--detach"],
    ["fixture", "Orders.xcdatamodeld", "--entity-rows", "Nope=3", "-o", "x.sqlite"],
  ])
  func `in its arguments has the usage of that command`(words: [String]) throws {
    let folder = try PipelineFolder.orders(["a"])
    let run = try Godwit.run(words, workingFolder: folder.url.path)
    let name = "godwit " + words.prefix(words[0] == "backups" ? 2 : 1).joined(separator: " ")
    #expect(run.status == 64)
    #expect(run.messages.hasPrefix("Error: "))
    #expect(run.messages.contains("\nUsage: \(name) "), "\(run.messages)")
    #expect(run.messages.contains("\n  See '\(name) --help' for more information."))
  }

  @Test(arguments: ["GODWIT_LEASE=5m", "GODWIT_LEASE=0", "GODWIT_WORKER_TIMEOUT=-1"])
  func `is a variable of the environment that is no time`(setting: String) throws {
    let folder = try PipelineFolder.orders(["a"])
    let run = try Godwit.run(
      ["run", folder.url.path, "--json"], wrapper: ["/usr/bin/env", setting])
    #expect(run.status == 64 && run.messages.contains(setting.prefix { $0 != "=" }))
    let sound = try Godwit.run(
      ["run", folder.url.path, "--json"], wrapper: ["/usr/bin/env", "GODWIT_LEASE=2.5"])
    #expect(sound.status == 0)
  }

  /// What becomes of a store's file: its end is lost, its header, or what a control table says.
  @Test(arguments: ["end", "header", "control"])
  func `about a damaged store names the command that saves what can be saved`(damage: String) throws
  {
    let folder = try PipelineFolder.orders(["a"])
    let store = folder.path("stores/a.sqlite")
    if damage == "control" {
      let connection = try Connection(path: store, mode: .readWrite)
      try connection.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = 0")
      try connection.close()
    } else {
      let file = try FileHandle(forUpdating: URL(fileURLWithPath: store))
      if damage == "end" { try file.truncate(atOffset: 20_000) }
      try file.seek(toOffset: 16)
      if damage == "header" { try file.write(contentsOf: Data([0x12, 0x34])) }
      try file.close()
    }
    let models = ["--models", folder.path("Orders.xcdatamodeld")]
    let mapping = ["--mapping", folder.path("orders.mapping.yaml")]
    let run = try Godwit.run(
      ["migrate", store] + models + mapping + ["--output", folder.path("out.sqlite")])
    #expect(run.status == 65)
    #expect(run.messages.contains("`godwit repair`"), "\(run.messages)")
  }

  /// As in a bare chroot of cron's. Swift finds no arguments there without `/proc`.
  @Test(
    .enabled(if: geteuid() == 0 && access("/usr/bin/unshare", X_OK) == 0),
    arguments: [("umount -l /proc", "/proc"), ("mount -t tmpfs none /dev", "/dev/null")])
  func `names what the system lacks`(loss: String, name: String) throws {
    let folder = try PipelineFolder.orders(["a"])
    let before = try folder.contentsOfStoresAlone()
    for words in [["run", folder.url.path], ["status", folder.url.path], ["nonsense"]] {
      let run = try Godwit.run(
        words,
        wrapper: ["/usr/bin/unshare", "-m", "/bin/sh", "-c", "\(loss) && exec \"$0\" \"$@\""])
      #expect(run.status == 78, "\(words): \(run.output)\(run.messages)")
      #expect(run.messages.contains("\(name) "), "\(words): \(run.messages)")
    }
    #expect(try folder.contentsOfStoresAlone() == before)
  }

  @Test func `says how to do without Graphviz`() throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    let model = FixtureModels.folder.appendingPathComponent("Recipes.xcdatamodeld").path
    // The reason, graphviz, is in no result: a diagram is not JSON.
    process.arguments = ["PATH=/nowhere", Godwit.path, "model", "show", model, "--format", "svg"]
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 69, "graphviz")
  }

  /// Takes the rows of the only table with objects, whose number of rows another place still tells.
  static func losePages(of path: String) throws {
    let store = try Connection(path: path, mode: .readWrite)
    guard
      case .integer(let root)? = try store.rows(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'ZORDER'"
      ).first?.first
    else { return }
    try store.close()
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try file.seek(toOffset: UInt64(root - 1) * 4096)
    try file.write(contentsOf: Data(repeating: 0xA5, count: 4096))
    try file.close()
  }
}
