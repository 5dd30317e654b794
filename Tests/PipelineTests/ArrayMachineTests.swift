import Foundation
import StoreFixtures
import Testing

/// Tasks on machines that are not as the one of `run`.
@Suite struct `Machines of a cluster` {
  /// Two stores in one bundle, which was submitted.
  private func submitted(_ pipeline: String = "") throws -> PipelineFolder {
    let folder = try PipelineFolder.orders(["s0", "s1"])
    try folder.addToPipeline("engine: { array: { bundle: { stores: 2 } } }\n" + pipeline)
    let run = try folder.godwit(["run"], ["--detach"])
    try #require(run.status == 0, "\(run.messages)")
    return folder
  }

  /// The folder of the array.
  private func array(_ folder: PipelineFolder) throws -> String {
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path("state/cluster"))
    return folder.path("state/cluster/\(try #require(names.first))")
  }

  private func doBundle(_ folder: PipelineFolder) throws {
    let manifest = try array(folder) + "/manifest.jsonl"
    let run = try Godwit.run(["worker", "--manifest", manifest, "--index", "0"])
    #expect(run.status == 0, "\(run.messages)")
  }

  /// Results as a machine writes them whose clock is wrong.
  private func moveClock(by seconds: Double, _ folder: PipelineFolder) throws {
    let array = try array(folder)
    let names = try FileManager.default.contentsOfDirectory(atPath: array)
    let path = array + "/" + (try #require(names.first { $0.contains("results") }))
    let file = try #require(FileHandle(forUpdatingAtPath: path))
    let text = String(decoding: try #require(try file.readToEnd()), as: UTF8.self)
    let moved = text.replacing(/"(started|ended)":([0-9.]+)/) { match in
      "\"\(match.output.1)\":\((Double(match.output.2) ?? 0) + seconds)"
    }
    // Without their digests, as an earlier version wrote them; the end of the bundle says how many bytes there are.
    let plain = moved.replacing(/,"digest":"[0-9a-f]{64}"}\n/, with: "}\n")
    try #require(moved != text && plain != moved)
    let rest = String(repeating: "\n", count: max(0, text.utf8.count - plain.utf8.count))
    try file.truncate(atOffset: 0)
    try file.seek(toOffset: 0)
    try file.write(contentsOf: Data((plain + rest).utf8))
    try file.close()
  }

  @Test func `keep the backups that they have just made, although their clock is behind`() throws {
    let folder = try submitted("backups: { keep: 14d }")
    let before = try folder.contentsOfStoresAlone()
    try doBundle(folder)
    try moveClock(by: -15 * 86_400, folder)
    let run = try folder.godwit(["run"])
    #expect(run.counts == "2 found, 2 migrated", "\(run.messages)")
    #expect(run.summary["prunedBackups"] as? Int ?? 0 == 0, "\(run.messages)")
    #expect(run.messages.components(separatedBy: "The clock of").count == 2, "it is said once")
    #expect(run.messages.contains("15 d behind"))
    #expect(try folder.godwit(["backups", "prune"]).summary["left"] as? Int == 2)
    #expect(try folder.godwit(["rollback"]).summary["restored"] as? Int == 2)
    #expect(try folder.contentsOfStoresAlone() == before)
  }

  @Test func `keep their backups though nobody has taken over the results of a wrong clock`() throws
  {
    let folder = try submitted("backups: { keep: 14d }")
    try doBundle(folder)
    try moveClock(by: -15 * 86_400, folder)
    try FileManager.default.removeItem(atPath: array(folder) + "/permit")
    #expect(try folder.godwit(["backups", "prune"]).summary["left"] as? Int == 2)
    #expect(try folder.godwit(["rollback"]).summary["restored"] as? Int == 2)
  }

  @Test func `make backups that get older, although their clock is ahead`() throws {
    let folder = try submitted()
    try doBundle(folder)
    try moveClock(by: 365 * 86_400, folder)
    let run = try folder.godwit(["run"])
    #expect(run.counts == "2 found, 2 migrated" && run.messages.contains("365 d ahead of"))
    let pruned = try folder.godwit(["backups", "prune"], ["--keep", "0s"])
    #expect(pruned.summary["pruned"] as? Int == 2, "\(pruned.output)")
  }

  /// Does something on a machine that has another volume in the place of the stores.
  private func elsewhere(_ folder: PipelineFolder, _ work: () throws -> Void) throws {
    let (files, stores) = (FileManager.default, folder.path("stores"))
    try files.moveItem(atPath: stores, toPath: stores + "-here")
    try files.moveItem(atPath: stores + "-there", toPath: stores)
    try work()
    try files.moveItem(atPath: stores, toPath: stores + "-there")
    try files.moveItem(atPath: stores + "-here", toPath: stores)
  }

  @Test func `say nothing of the stores here where they have another disk`() throws {
    let folder = try submitted()
    let before = try folder.storeContents()
    try FileManager.default.copyItem(
      atPath: folder.path("stores"), toPath: folder.path("stores-there"))
    try elsewhere(folder) { try doBundle(folder) }
    let first = try folder.godwit(["run"], ["--detach"])
    #expect(first.status == 0, "they are looked at again: \(first.messages)")
    try elsewhere(folder) { try doBundle(folder) }
    let run = try folder.godwit(["run"])
    #expect(run.status != 0 && run.counts == "2 found, 2 failed", "\(run.messages)")
    #expect(run.messages.contains("is another file on"), "\(run.messages)")
    #expect(try folder.storeContents() == before)
    #expect(try folder.godwit(["run"], ["--engine", "local"]).counts == "2 found, 2 migrated")
    #expect(try folder.godwit(["rollback"]).summary["restored"] as? Int == 2)
  }

  @Test func `are named where stores are missing there that are here`() throws {
    let folder = try submitted()
    try FileManager.default.createDirectory(
      atPath: folder.path("stores-there"), withIntermediateDirectories: false)
    try elsewhere(folder) { try doBundle(folder) }
    let run = try folder.godwit(["run"])
    #expect(run.status == 75 && run.messages.contains("is here, and was not there on"))
    #expect(try folder.godwit(["run"], ["--engine", "local"]).counts == "2 found, 2 migrated")
  }

  @Test func `leave folders alone that somebody keeps among the bundles`() throws {
    let folder = try submitted()
    let notes = folder.path("state/cluster/incident-4711")
    let copy = folder.path("state/cluster/000009-abcdef01")
    for (path, name) in [(notes, "manifest.jsonl"), (copy, "notes.txt")] {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      try "the only copy".write(toFile: path + "/" + name, atomically: true, encoding: .utf8)
    }
    let run = try folder.godwit(["run"], ["--detach"])
    #expect(run.messages.components(separatedBy: "is left alone").count == 3, "\(run.messages)")
    #expect(
      try String(contentsOfFile: notes + "/manifest.jsonl", encoding: .utf8) == "the only copy")
    #expect(try String(contentsOfFile: copy + "/notes.txt", encoding: .utf8) == "the only copy")
  }
}
