import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `godwit migrate --output` {
  /// A migration by a mapping model, or one that is inferred.
  enum Kind: String, CaseIterable { case mapped, inferred, progressive }

  private func folder() throws -> PipelineFolder {
    let folder = try PipelineFolder("total-cost")
    try folder.write(
      "stores/a.sqlite", "Orders.xcdatamodeld/Orders",
      """
      INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT)
      VALUES (1, 1, 1, 'A', 5), (2, 1, 1, 'B', 7)
      """)
    return folder
  }

  private func words(_ kind: Kind, _ folder: PipelineFolder) throws -> [String] {
    var words = ["migrate", folder.path("stores/a.sqlite"), "--json"]
    words += ["--output", folder.path("stores/b.sqlite")]
    switch kind {
    case .mapped:
      words += ["--models", folder.path("Orders.xcdatamodeld")]
      words += ["--mapping", folder.path("orders.mapping.yaml")]
    case .inferred, .progressive:
      // Versions that differ by an attribute each.
      for number in 1...3 {
        let package = folder.path("V\(number).xcdatamodel")
        try FileManager.default.createDirectory(
          atPath: package, withIntermediateDirectories: true)
        let fresh = (1..<number).map {
          // A type on the way that is not jumped over.
          #"<attribute name="n\#($0)" optional="YES" attributeType="\#(number == 3 ? "Double" : "Integer 32")"/>"#
        }
        let original = try String(
          contentsOfFile: folder.path("Orders.xcdatamodeld/Orders.xcdatamodel/contents"),
          encoding: .utf8)
        let text = original.replacingOccurrences(
          of: "</entity>", with: fresh.joined() + "</entity>")
        try text.write(toFile: package + "/contents", atomically: true, encoding: .utf8)
        words += ["--models", package]
      }
      words += ["--to", "V3", "--chain", kind == .inferred ? "direct" : "progressive"]
    }
    return words
  }

  private struct Mark: Equatable {
    var bytes: Data
    var inode: UInt64?
    var time: Date?

    init(_ path: String) throws {
      bytes = try Data(contentsOf: URL(fileURLWithPath: path))
      let facts = try FileManager.default.attributesOfItem(atPath: path)
      inode = (facts[.systemFileNumber] as? NSNumber)?.uint64Value
      time = facts[.modificationDate] as? Date
    }
  }

  // SQLite would delete the new store, and Core Data find a file where it keeps a folder.
  @Test(arguments: [
    ["migrate", "--output", "a.sqlite-wal"], ["plan", "--output", "a.sqlite-journal"],
    ["migrate", "--output", ".a_SUPPORT"], ["migrate", "--output", "a.db"],
    ["plan", "--output", "a"], ["migrate", "--state", "a.sqlite-wal"],
    ["migrate", "--state", ".a_SUPPORT"], ["plan", "--uri-table", ".a_SUPPORT"],
    ["migrate", "--uri-table", "a.sqlite-shm"], ["repair", "--output", "a.sqlite-wal"],
    ["repair", "--output", "a.db"], ["fixture", "--output", "a.sqlite-shm"],
    ["fixture", "--output", "a.db"], ["infer", "--output", "a.sqlite-journal"],
  ])
  func `and its like put nothing where a store has its own files`(words: [String]) throws {
    let folder = try folder()
    let (store, model) = (folder.path("stores/a.sqlite"), folder.path("Orders.xcdatamodeld"))
    if words[2].first == "a" {
      // What the store keeps outside of its file.
      try FileManager.default.createDirectory(
        atPath: folder.path("stores/.a_SUPPORT/_EXTERNAL_DATA"), withIntermediateDirectories: true)
    }
    let files = folder.storeFiles()
    let option = [words[1], folder.path("stores/" + words[2])]
    let run =
      switch words[0] {
      case "repair": try Godwit.run(["repair", store] + option)
      case "fixture": try Godwit.run(["fixture", model] + option)
      case "infer":
        try Godwit.run(["mapping", "infer", model + ":Orders", model + ":Orders"] + option)
      default:
        try Godwit.run(
          [words[0], store, "--models", model, "--mapping", folder.path("orders.mapping.yaml")]
            + option)
      }
    #expect(run.status == 73, "\(run.output) \(run.messages)")
    #expect(folder.storeFiles() == files)
  }

  @Test func `never goes into the run directory, which is removed`() throws {
    let folder = try folder()
    let state = folder.path("state")
    try FileManager.default.createDirectory(
      atPath: state, withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o700])
    let run = try Godwit.run([
      "migrate", folder.path("stores/a.sqlite"), "--models", folder.path("Orders.xcdatamodeld"),
      "--mapping", folder.path("orders.mapping.yaml"), "--state", state, "--output",
      state + "/b.sqlite",
    ])
    #expect(run.status == 73, "\(run.output) \(run.messages)")
  }

  // The application has upgraded the store itself, and what an earlier run wrote is still there.
  @Test(arguments: ["plan", "migrate"])
  func `is in nobody's way where nothing is to be done`(command: String) throws {
    let folder = try folder()
    var words = try words(.inferred, folder)
    #expect(try Godwit.run(words).status == 0)
    let output = folder.path("stores/b.sqlite")
    try folder.bytes("stores/b.sqlite").write(
      to: URL(fileURLWithPath: folder.path("stores/a.sqlite")))
    let mark = try Mark(output)
    words[0] = command
    let again = try Godwit.run(words)
    #expect(again.status == 0, "\(again.messages)")
    #expect(again.summary["verdict"] as? String == "same-model")
    #expect(try Mark(output) == mark)
  }

  @Test(arguments: Kind.allCases)
  func `again is done, and leaves the output and its folder as they are`(kind: Kind) throws {
    let folder = try folder()
    let words = try words(kind, folder)
    #expect(try Godwit.run(words).status == 0)
    let (output, files) = (folder.path("stores/b.sqlite"), folder.storeFiles())
    let mark = try Mark(output)
    let again = try Godwit.run(words)
    #expect(again.status == 0, "\(again.messages)")
    #expect(again.summary["verdict"] as? String == "migrated")
    #expect((again.summary["path"] as? [String])?.count == (kind == .progressive ? 2 : nil))
    #expect(try Mark(output) == mark)
    #expect(folder.storeFiles() == files)
    let plan = try Godwit.run(["plan"] + words.dropFirst())
    #expect(plan.status == 0)
  }

  @Test(arguments: Kind.allCases)
  func `does not take another state of the store for it`(kind: Kind) throws {
    let folder = try folder()
    let words = try words(kind, folder)
    #expect(try Godwit.run(words).status == 0)
    let output = folder.path("stores/b.sqlite")
    let mark = try Mark(output)
    let source = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
    try source.execute("UPDATE ZORDER SET ZAMOUNT = 6 WHERE Z_PK = 2")
    try source.close()
    let files = folder.storeFiles()
    #expect(try Godwit.run(words).status == 73)
    #expect(try Mark(output) == mark)
    #expect(folder.storeFiles() == files)
  }

  @Test func `does not take an output for it that somebody wrote to`() throws {
    let folder = try folder()
    let words = try words(.inferred, folder)
    #expect(try Godwit.run(words).status == 0)
    let output = folder.path("stores/b.sqlite")
    let store = try Connection(path: output, mode: .readWrite)
    try store.execute("UPDATE ZORDER SET ZAMOUNT = 6 WHERE Z_PK = 2")
    try store.close()
    let mark = try Mark(output)
    #expect(try Godwit.run(words).status == 73)
    #expect(try Mark(output) == mark)
  }

  @Test func `asks nothing of a view that stands there`() throws {
    let folder = try folder()
    try folder.write("stores/b.sqlite", "Orders.xcdatamodeld/Orders 2", "SELECT 1")
    try folder.makeMetadataEndless("stores/b.sqlite")
    #expect(try Godwit.run(words(.mapped, folder)).status == 73)
  }

  enum Change: CaseIterable { case none, destination, source }

  /// A run that was killed in its commit, which the next one brings to its end.
  private func killed(_ kind: Kind) throws -> (folder: PipelineFolder, words: [String]) {
    for step in 4..<200 {
      let folder = try folder()
      let words = try words(kind, folder)
      guard try Godwit.run(words, killAfter: step).status == -SIGKILL else { break }
      if FileManager.default.fileExists(
        atPath: folder.path("stores/b.sqlite.godwit/journal.json"))
      {
        return (folder, words)
      }
    }
    throw KillError()
  }

  @Test(arguments: Kind.allCases, Change.allCases)
  func `of a run that was killed is the next one's where that asks for the same`(
    kind: Kind, change: Change
  ) throws {
    let (folder, first) = try killed(kind)
    if change == .source {
      let source = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
      try source.execute("UPDATE ZORDER SET ZAMOUNT = 6 WHERE Z_PK = 2")
      try source.close()
    }
    let words = change == .destination ? first.map { $0 == "V3" ? "V2" : $0 } : first
    let isSame = change != .source && words == first
    let next = try Godwit.run(words)
    #expect(next.status == (isSame ? 0 : 73), "\(next.messages)")
    #expect(next.summary["verdict"] as? String == (isSame ? "migrated" : "failed"))
    let notes = (next.summary["notes"] as? [String] ?? []).joined(separator: "\n")
    #expect(notes.contains("The commit of an earlier run was finished."))
    #expect(notes.contains("and wrote \(folder.path("stores/b.sqlite")).") == !isSame, "\(notes)")
    let mark = try Mark(folder.path("stores/b.sqlite"))
    // Whoever asks once more is told the same.
    #expect(try Godwit.run(words).status == next.status)
    #expect(try Mark(folder.path("stores/b.sqlite")) == mark)
  }
}

/// No step was met after which a commit is under way.
private struct KillError: Error {}

@Suite struct `A result that nobody can read` {
  private func status(of script: String, _ arguments: String...) throws -> (Int32, String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", script, Godwit.path] + arguments
    let messages = Pipe()
    process.standardInput = FileHandle.nullDevice
    process.standardError = messages
    try process.run()
    let said = messages.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: said, as: UTF8.self))
  }

  @Test(arguments: [#""$0" "$@" > /dev/full"#, #""$0" "$@" >&-"#])
  func `is an error, and the work is done`(script: String) throws {
    let folder = try PipelineFolder("total-cost")
    try folder.write("stores/a.sqlite", "Orders.xcdatamodeld/Orders", "SELECT 1")
    let before = try folder.bytes("stores/a.sqlite")
    let (status, said) = try status(of: script, "run", folder.url.path)
    #expect(status == 74)
    #expect(said.contains("standard output"))
    #expect(try folder.bytes("stores/a.sqlite") != before)
    let store = try Connection(path: folder.path("stores/a.sqlite"), mode: .immutable)
    #expect(try store.rows("PRAGMA quick_check").first?.first?.text == "ok")
    for words in ["--version", "--help"] {
      #expect(try self.status(of: script, words).0 == 74)
    }
  }

  @Test func `never ends the tool by a signal`() throws {
    let folder = try PipelineFolder("total-cost")
    try folder.write("stores/a.sqlite", "Orders.xcdatamodeld/Orders", "SELECT 1")
    let script = #"{ "$0" "$@"; echo "ended $?" >&2; } | sleep 0"#
    let (_, said) = try status(of: script, "run", folder.url.path, "--json")
    // Whether the reader was quicker is not said.
    #expect(said.contains("ended 74") || said.contains("ended 0"), "\(said)")
  }
}
