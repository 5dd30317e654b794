import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

/// A disk changed what the steps of a chain had written, with size and times as they were.
@Suite struct `A chain of versions whose step was damaged after it was killed` {
  private static let text = "SELECT ztext FROM znote WHERE length(ztext) > 20 LIMIT 1"

  private func notes() throws -> (folder: PipelineFolder, words: [String]) {
    let folder = try PipelineFolder("notes-progressive")
    let model = try FixtureModels.model(at: folder.path("Notes.xcdatamodeld/Notes.xcdatamodel"))
    try StoreGenerator(model, options: StoreOptions(seed: 3, rows: 40))
      .write(to: folder.path("stores/a.sqlite"))
    let words = [
      "migrate", folder.path("stores/a.sqlite"), "--models", folder.path("Notes.xcdatamodeld"),
      "--chain", "progressive", "--workers", "1", "--json",
    ]
    return (folder, words)
  }

  /// A run that was killed when so many steps were finished, and before its commit.
  private func killed(after step: Int) throws -> (folder: PipelineFolder, words: [String]) {
    for kill in stride(from: 40, to: 240, by: 3) {
      let made = try notes()
      guard try Godwit.run(made.words, killAfter: kill).status == -SIGKILL else { break }
      let state = made.folder.path("stores/a.sqlite.godwit")
      if FileManager.default.fileExists(atPath: state + "/steps/\(step)/done.json"),
        !FileManager.default.fileExists(atPath: state + "/journal.json")
      {
        return made
      }
    }
    throw KillError()
  }

  /// No step was met at which that is so.
  private struct KillError: Error {}

  private func rows(_ folder: PipelineFolder) throws -> [String] {
    try folder.table("stores/a.sqlite", "SELECT z_pk, ztext FROM znote ORDER BY 1")
  }

  @Test(arguments: [(1, "store.sqlite"), (2, "store.sqlite"), (2, "done.json")])
  func `comes to what an undisturbed one does`(step: Int, file: String) throws {
    let clean = try notes()
    #expect(try Godwit.run(clean.words).status == 0)
    let (folder, words) = try killed(after: step)
    let name = "stores/a.sqlite.godwit/steps/\(step)/\(file)"
    let path = folder.path(name)
    let bytes = try folder.bytes(name)
    if file == "done.json" {
      let key = try #require(bytes.range(of: Data(#""losses""#.utf8)))
      try folder.changeUnseen(path, at: UInt64(key.lowerBound + 3))
    } else {
      let store = try Connection(path: path, mode: .immutable)
      let text = try #require(try store.rows(Self.text).first?.first?.text)
      let place = try #require(bytes.range(of: Data(text.utf8)))
      try folder.changeUnseen(path, at: UInt64(place.lowerBound + 3))
    }
    let again = try Godwit.run(words)
    #expect(again.status == 0, "\(again.messages)")
    #expect(try rows(folder) == rows(clean.folder))
    let told = again.summary["notes"] as? [String] ?? []
    #expect(told.contains { $0.contains("steps/\(step)/\(file) is not as") }, "\(told)")
  }

  /// https://sqlite.org/howtocorrupt.html §2.5
  @Test func `keeps no second name of the store with --keep-state`() throws {
    let (folder, words) = try notes()
    #expect(try Godwit.run(words + ["--keep-state"]).status == 0)
    let files = FileManager.default
    let state = folder.path("stores/a.sqlite.godwit")
    #expect(files.fileExists(atPath: state + "/steps/2/done.json"))
    #expect(!files.fileExists(atPath: state + "/steps/2/store.sqlite"))
    let found = try files.attributesOfItem(atPath: folder.path("stores/a.sqlite"))
    #expect(found[.referenceCount] as? Int == 1)
  }
}

/// `result.json`, which tells what was set aside, is not what was written, or is gone.
@Suite struct `A commit that was cut off and whose result was damaged` {
  private func run(_ damage: (URL) throws -> Void) throws -> [String: Any] {
    for kill in stride(from: 40, to: 140, by: 2) {
      let folder = try PipelineFolder("set-aside")
      let model = try FixtureModels.model(
        at: folder.path("Parcels.xcdatamodeld/Parcels.xcdatamodel"))
      try StoreGenerator(model, options: StoreOptions(seed: 2, rows: 200))
        .write(to: folder.path("stores/a.sqlite"))
      let words = [
        "migrate", folder.path("stores/a.sqlite"), "--models", folder.path("Parcels.xcdatamodeld"),
        "--mapping", folder.path("parcels.mapping.yaml"), "--invalid", "set-aside", "--workers",
        "1", "--json",
      ]
      guard try Godwit.run(words, killAfter: kill).status == -SIGKILL else { break }
      let state = folder.url.appendingPathComponent("stores/a.sqlite.godwit")
      let result = state.appendingPathComponent("result.json")
      let journal = state.appendingPathComponent("journal.json").path
      guard FileManager.default.fileExists(atPath: journal),
        FileManager.default.fileExists(atPath: result.path)
      else { continue }
      try damage(result)
      let again = try Godwit.run(words)
      #expect(again.status == 0, "\(again.messages)")
      return again.summary
    }
    throw KillError()
  }

  /// No step was met at which that is so.
  private struct KillError: Error {}

  @Test func `says what was set aside, and that the rest is not known`() throws {
    let whole = try run { _ in }
    let count = try #require(whole["setAside"] as? Int)
    #expect(count > 0)
    for isRemoved in [true, false] {
      let result = try run { path in
        if isRemoved { return try FileManager.default.removeItem(at: path) }
        var bytes = try Data(contentsOf: path)
        let key = try #require(bytes.range(of: Data(#""losses""#.utf8)))
        bytes[key.lowerBound + 3] ^= 2
        try bytes.write(to: path)
      }
      #expect(result["setAside"] as? Int == count)
      #expect(result["rejects"] as? String != nil)
      #expect(result["counts"] as? [String: Int] == whole["counts"] as? [String: Int])
      #expect(result["rows"] as? Int == whole["rows"] as? Int)
      func lost(_ result: [String: Any]) -> Int {
        (result["losses"] as? [[String: Any]] ?? [])
          .filter { $0["kind"] as? String == "set-aside" }
          .reduce(0) { $0 + ($1["count"] as? Int ?? 0) }
      }
      #expect(lost(result) == lost(whole))
      let notes = result["notes"] as? [String] ?? []
      #expect(notes.contains { $0.contains("result.json") && $0.contains("may be missing") })
    }
  }
}
