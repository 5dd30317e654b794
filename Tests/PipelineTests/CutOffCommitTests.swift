import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

/// Runs that were killed after a store's commit, and before that was written down.
@Suite struct `A commit that was cut off` {
  private static let names = ["a", "ab", "abc"]

  private func set(_ folder: PipelineFolder, _ keys: String...) throws {
    let lines = ["stores: { roots: stores }", "models: Notes.xcdatamodeld", "workers: 1"] + keys
    try (lines + [""]).joined(separator: "\n")
      .write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
  }

  /// Stores of notes, of which a direct mapping, or a chain, leads to version 4.
  private func notes(_ keys: String...) throws -> PipelineFolder {
    let folder = try PipelineFolder("notes-progressive")
    let model = try FixtureModels.model(at: folder.path("Notes.xcdatamodeld/Notes.xcdatamodel"))
    for (seed, name) in Self.names.enumerated() {
      try StoreGenerator(model, options: StoreOptions(seed: UInt64(seed), rows: 20))
        .write(to: folder.path("stores/\(name).sqlite"))
    }
    let lines = ["destination: Notes 4"] + keys
    try set(folder, lines.joined(separator: "\n"))
    return folder
  }

  /// A folder in which a run was killed, and what its stores were before.
  private struct Killed {
    let folder: PipelineFolder
    let before: [String: Data]
    /// The store that was committed and is in no list.
    let store: String

    var path: String { folder.path("stores/" + store) }
    var file: URL { URL(fileURLWithPath: path) }

    /// The backups that lie there, and those that are listed.
    func backups() throws -> (there: Set<String>, listed: Set<String>) {
      let list = try folder.godwit(["backups", "list"]).lines("backup")
      let there = folder.storeFiles()
        .filter { $0.contains(".godwit-backup-") && $0.hasSuffix(".sqlite") }
        .map { folder.path("stores/" + $0) }
      return (Set(there), Set(list.compactMap { $0["path"] as? String }))
    }

    func expectEveryBackupListed() throws {
      let (there, listed) = try backups()
      #expect(there.isSubset(of: listed) && !there.isEmpty)
    }
  }

  /// - Parameter first: The step at which the first of the runs is killed.
  private func killed(
    from first: Int = 14, _ make: () throws -> PipelineFolder
  ) throws -> Killed {
    // Results are written down together: what is replaced and not recorded at a step is a matter of chance.
    for _ in 1...16 {
      for step in first..<140 {
        let folder = try make()
        let before = try folder.contentsOfStoresAlone()
        guard try Godwit.run(folder, killAfter: step).status == -SIGKILL else { break }
        let known = (try? folder.bytes("state/ledger.jsonl")).map {
          String(decoding: $0, as: UTF8.self)
        }
        let after = try folder.contentsOfStoresAlone()
        let store = Self.names.map { $0 + ".sqlite" }.first {
          after[$0] != before[$0] && known?.contains("/\($0)\"") != true
        }
        if let store { return Killed(folder: folder, before: before, store: store) }
      }
    }
    throw KillError()
  }

  /// No step was met after which a store is replaced and not recorded.
  private struct KillError: Error {}

  @Test(arguments: ["chain: direct", "chain: progressive"])
  func `is written down for itself where the destination has changed since`(chain: String) throws {
    let killed = try killed { try notes(chain) }
    let folder = killed.folder
    try set(folder, "destination: Notes 3", chain)
    let run = try Godwit.run(folder)
    #expect(run.status == 0 && run.counts == "3 found, 3 migrated", "\(run.messages)")
    try killed.expectEveryBackupListed()
    let history = try folder.godwit(["history"], [killed.path])
    let attempts = history.lines.compactMap { $0["attempt"] as? [String: Any] }
      .filter { $0["verdict"] as? String == "migrated" }
    #expect(
      Set(attempts.map { "\($0["sourceVersion"] ?? "") → \($0["destinationVersion"] ?? "")" })
        == ["Notes → Notes 4", "Notes 4 → Notes 3"])
    let told = run.results[killed.path]?["notes"] as? [String] ?? []
    #expect(told.contains { $0.contains(".godwit-backup-") })
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 0, "\(rollback.messages)")
    #expect(try folder.contentsOfStoresAlone() == killed.before)
  }

  @Test func `is put back by a rollback where a disk has damaged the new store since`() throws {
    let killed = try killed { try notes() }
    // The kind of a page.
    try killed.folder.changeUnseen(killed.path, at: 8192)
    let run = try Godwit.run(killed.folder)
    #expect(run.status == 3 && run.counts.contains("1 failed"), "\(run.messages)")
    let name = killed.file.deletingPathExtension().lastPathComponent
    #expect(run.reason(of: name) == "run-directory")
    let rollback = try killed.folder.godwit(["rollback"])
    #expect(rollback.status == 0, "\(rollback.messages)")
    #expect(try killed.folder.contentsOfStoresAlone() == killed.before)
  }

  /// What is written down without the state in which the store was left is never put back.
  @Test(.timeLimit(.minutes(3)))
  func `is written down once the store can be read, and not before`() throws {
    let killed = try killed { try notes() }
    let folder = killed.folder
    try set(folder, "destination: Notes 3")
    var holder = FileLeaseHolder(killed.path)
    guard holder != nil else { return print("skipped: no leases here") }
    let held = try Godwit.run(folder)
    #expect(held.status == 75 && held.counts.contains("1 pending"), "\(held.messages)")
    holder = nil
    let run = try Godwit.run(folder)
    #expect(run.status == 0, "\(run.messages)")
    try killed.expectEveryBackupListed()
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 0, "\(rollback.messages)")
    #expect(try folder.contentsOfStoresAlone() == killed.before)
  }

  @Test func `is written down for itself where the store is refused now`() throws {
    let killed = try killed { try notes() }
    try set(killed.folder, "destination: Notes 3", "infer: false")
    let run = try Godwit.run(killed.folder)
    #expect(run.status == 3 && run.counts == "3 found, 3 needs-mapping", "\(run.messages)")
    try killed.expectEveryBackupListed()
    #expect(try killed.folder.godwit(["rollback"]).status == 0)
    #expect(try killed.folder.contentsOfStoresAlone() == killed.before)
  }

  @Test func `is written down for itself where another pipeline takes the store up`() throws {
    let killed = try killed { try notes() }
    let folder = killed.folder
    let first = folder.path("pipeline.yaml")
    let text = try String(contentsOfFile: first, encoding: .utf8)
    try ("name: other\n" + text.replacing("Notes 4", with: "Notes 3"))
      .write(toFile: folder.path("other.yaml"), atomically: true, encoding: .utf8)
    let run = try Godwit.run(["run", folder.path("other.yaml"), "--json"])
    #expect(run.status == 0 && run.counts == "3 found, 3 migrated", "\(run.messages)")
    let told = run.results[killed.path]?["notes"] as? [String] ?? []
    #expect(told.contains { $0.contains("/pipeline.yaml had begun that commit") }, "\(told)")
    let files = [folder.path("other.yaml"), first]
    for file in files {
      #expect(try Godwit.run(["rollback", file, "--json"]).status == 0)
    }
    #expect(try folder.contentsOfStoresAlone() == killed.before)
  }

  @Test func `keeps its backup where a pipeline that keeps none brings it to its end`() throws {
    let killed = try killed { try notes() }
    let folder = killed.folder
    let first = folder.path("pipeline.yaml")
    let text = try String(contentsOfFile: first, encoding: .utf8)
    try
      ("name: other\nbackups: { keep: 0s }\ninfer: false\n"
      + text.replacing("Notes 4", with: "Notes 3"))
      .write(toFile: folder.path("other.yaml"), atomically: true, encoding: .utf8)
    let run = try Godwit.run(["run", folder.path("other.yaml"), "--json"])
    #expect(run.status == 3 && run.counts == "3 found, 3 needs-mapping", "\(run.messages)")
    let rollback = try Godwit.run(["rollback", first, "--json"])
    #expect(rollback.status == 0, "\(rollback.messages)")
    #expect(try folder.contentsOfStoresAlone() == killed.before)
  }

  @Test func `is none of what another pipeline's rollback would put back`() throws {
    let killed = try killed { try notes() }
    let folder = killed.folder
    let other = folder.path("other.yaml")
    let text = try String(contentsOfFile: folder.path("pipeline.yaml"), encoding: .utf8)
    try ("name: other\n" + text.replacing("Notes 4", with: "Notes 3"))
      .write(toFile: other, atomically: true, encoding: .utf8)
    for options in [["--dry-run"], []] {
      let rollback = try Godwit.run(["rollback", other, "--json"] + options)
      #expect(rollback.status == 0 && rollback.results.isEmpty, "\(options): \(rollback.output)")
    }
  }

  @Test func `keeps its backup from what an application wrote after it`() throws {
    let killed = try killed { try notes() }
    let connection = try Connection(path: killed.path, mode: .readWrite)
    try connection.execute("UPDATE ZNOTE SET Z_OPT = Z_OPT + 1")
    try connection.close()
    #expect(try Godwit.run(killed.folder).status == 0)
    let written = try killed.folder.bytes("stores/" + killed.store)
    let rollback = try killed.folder.godwit(["rollback"])
    #expect(rollback.status == 3)
    #expect(
      rollback.reason(of: killed.file.deletingPathExtension().lastPathComponent) == "changed-since")
    #expect(try killed.folder.bytes("stores/" + killed.store) == written)
  }

  @Test func `is brought to its end by a rollback, and put back with the others`() throws {
    let killed = try killed { try notes() }
    let before = try killed.folder.storeContents()
    let dry = try killed.folder.godwit(["rollback"], ["--dry-run"])
    #expect(dry.status == 0 && dry.results.keys.contains(killed.path), "\(dry.messages)")
    #expect(try killed.folder.storeContents() == before)
    let rollback = try killed.folder.godwit(["rollback"])
    #expect(rollback.status == 0 && rollback.results.keys.contains(killed.path))
    #expect(dry.summary["restored"] as? Int == rollback.summary["restored"] as? Int)
    #expect(dry.summary["run"] as? String == rollback.summary["run"] as? String)
    #expect(try killed.folder.contentsOfStoresAlone() == killed.before)
    let run = try Godwit.run(killed.folder)
    #expect(run.status == 0 && run.counts == "3 found, 3 migrated", "\(run.messages)")
    try killed.expectEveryBackupListed()
  }

  @Test func `is rolled back whichever step the run was killed at`() throws {
    var cutOff = 0
    for step in 14..<140 {
      let folder = try notes("chain: progressive")
      let before = try folder.contentsOfStoresAlone()
      guard try Godwit.run(folder, killAfter: step).status == -SIGKILL else { break }
      // The first steps come before the ledger knows of the run.
      guard folder.names(at: "ledger.sqlite") else { continue }
      if try folder.contentsOfStoresAlone() != before { cutOff += 1 }
      let rollback = try folder.godwit(["rollback"])
      #expect(rollback.status == 0, "step \(step): \(rollback.messages)")
      #expect(try folder.contentsOfStoresAlone() == before, "step \(step)")
    }
    #expect(cutOff > 1, "some are killed in a commit")
  }

  @Test func `is put back where its store is gone`() throws {
    let killed = try killed { try notes() }
    try FileManager.default.removeItem(atPath: killed.path)
    let dry = try killed.folder.godwit(["rollback"], ["--dry-run"])
    #expect(dry.status == 0, "\(dry.messages)")
    let rollback = try killed.folder.godwit(["rollback"])
    #expect(rollback.status == 0, "\(rollback.messages)")
    #expect(try killed.folder.contentsOfStoresAlone() == killed.before)
  }

  @Test func `is named by a rollback that may not open its store`() throws {
    let killed = try killed { try notes() }
    let folder = killed.folder
    let text = try String(contentsOfFile: folder.path("pipeline.yaml"), encoding: .utf8)
    try FileManager.default.createDirectory(
      atPath: folder.path("empty"), withIntermediateDirectories: false)
    try text.replacing("roots: stores", with: "roots: empty")
      .write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    let files = try folder.storeContents()
    let rollback = try folder.godwit(["rollback"])
    #expect(rollback.status == 3)
    let reasons = rollback.results[killed.path]?["reasons"] as? [[String: Any]]
    #expect(reasons?.first?["reason"] as? String == "outside-roots")
    #expect(try folder.storeContents() == files)
  }

  @Test func `of a chain tells its steps, and what was noted of them`() throws {
    func migrate(_ folder: PipelineFolder, killAfter step: Int? = nil) throws -> Godwit.Run {
      try Godwit.run(
        [
          "migrate", folder.path("stores/a.sqlite"), "--models", folder.path("Notes.xcdatamodeld"),
          "--to", "Notes 5", "--chain", "progressive", "--json",
        ], killAfter: step)
    }
    let whole = try migrate(notes()).summary
    let notesOfWhole = whole["notes"] as? [String] ?? []
    try #require(!notesOfWhole.isEmpty)
    for step in stride(from: 120, to: 400, by: 3) {
      let folder = try notes()
      let before = try folder.bytes("stores/a.sqlite")
      guard try migrate(folder, killAfter: step).status == -SIGKILL else { break }
      guard try folder.bytes("stores/a.sqlite") != before else { continue }
      let run = try migrate(folder)
      #expect(run.status == 0, "\(run.messages)")
      #expect(run.summary["path"] as? [String] == whole["path"] as? [String])
      let told = run.summary["notes"] as? [String] ?? []
      #expect(
        told.starts(with: notesOfWhole + ["The commit of an earlier run was finished."]), "\(told)")
      return
    }
    throw KillError()
  }

  @Test func `of a single store is named where more was done`() throws {
    for step in 4..<60 {
      let folder = try notes()
      let store = folder.path("stores/a.sqlite")
      func migrate(_ version: String, killAfter step: Int? = nil) throws -> Godwit.Run {
        try Godwit.run(
          [
            "migrate", store, "--models", folder.path("Notes.xcdatamodeld"), "--to", version,
            "--json",
          ], killAfter: step)
      }
      let before = try folder.bytes("stores/a.sqlite")
      guard try migrate("Notes 4", killAfter: step).status == -SIGKILL else { break }
      guard try folder.bytes("stores/a.sqlite") != before else { continue }
      let second = try migrate("Notes 3")
      #expect(second.status == 0, "\(second.messages)")
      let told = second.summary["notes"] as? [String] ?? []
      let first = folder.storeFiles().map { folder.path("stores/" + $0) }.filter {
        $0.contains(".godwit-backup-") && $0.hasSuffix(".sqlite")
          && $0 != second.summary["backup"] as? String
      }
      try #require(first.count == 1)
      #expect(told.contains { $0.contains(first[0]) })
      return
    }
    throw KillError()
  }
}

extension PipelineFolder {
  fileprivate func names(at name: String) -> Bool {
    FileManager.default.fileExists(atPath: path(name))
  }
}
