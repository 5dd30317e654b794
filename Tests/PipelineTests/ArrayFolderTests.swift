import Foundation
import StoreFixtures
import Testing

/// Arrays whose files are no longer what `run` wrote.
@Suite struct `Bundles that were changed meanwhile` {
  /// Stores in bundles of two, which were submitted.
  private func submitted(_ count: Int) throws -> PipelineFolder {
    let folder = try PipelineFolder.orders((0..<count).map { "s\($0)" })
    try folder.addToPipeline("engine: { array: { bundle: { stores: 2 } } }\n")
    let run = try folder.godwit(["run"], ["--detach"])
    try #require(run.status == 0, "\(run.messages)")
    return folder
  }

  /// The folder of the array.
  private func array(_ folder: PipelineFolder) throws -> String {
    let arrays = folder.path("state/cluster")
    let names = try FileManager.default.contentsOfDirectory(atPath: arrays)
    return "\(arrays)/\(try #require(names.first))"
  }

  private func task(_ array: String, _ index: Int) throws -> Godwit.Run {
    try Godwit.run(["worker", "--manifest", array + "/manifest.jsonl", "--index", "\(index)"])
  }

  /// Changes the text of a manifest, whose private file it stays.
  private func change(_ array: String, _ change: (String) -> String) throws {
    let file = try #require(FileHandle(forUpdatingAtPath: array + "/manifest.jsonl"))
    let text = String(decoding: try #require(try file.readToEnd()), as: UTF8.self)
    try file.truncate(atOffset: 0)
    try file.write(contentsOf: Data(change(text).utf8))
    try file.close()
  }

  @Test(arguments: ["commit: { beside: \"-2.0\" }", "nonsense: 1", "# nothing"])
  func `are left alone by a task whose pipeline's file was changed`(line: String) throws {
    let folder = try submitted(2)
    let contents = try folder.storeContents()
    let array = try array(folder)
    try folder.addToPipeline(line + "\n")
    let run = try task(array, 0)
    #expect(run.status == 0, "another start would not help: \(run.messages)")
    #expect(try folder.storeContents() == contents)
    let results = try FileManager.default.contentsOfDirectory(atPath: array)
      .filter { $0.contains("results") }
      .map { try String(contentsOfFile: "\(array)/\($0)", encoding: .utf8) }
    #expect(results.joined().components(separatedBy: "\"changed\"").count == 3)
  }

  @Test(arguments: [true, false])
  func `keep their results where the manifest cannot be used`(isPermitted: Bool) throws {
    let folder = try submitted(4)
    let array = try array(folder)
    #expect(try task(array, 0).status == 0)
    if !isPermitted { try FileManager.default.removeItem(atPath: array + "/permit") }
    try change(array) { String($0.prefix(100)) }
    #expect(try folder.godwit(["run"], ["--detach"]).messages.contains("was taken back"))
    let left = try self.array(folder)
    #expect(left != array, "it is cut anew")
    for index in 0..<2 { #expect(try task(left, index).status == 0) }
    let run = try folder.godwit(["run"])
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.counts == "4 found, 4 migrated")
  }

  @Test func `are not removed where their results cannot be read`() throws {
    let folder = try submitted(2)
    let array = try array(folder)
    #expect(try task(array, 0).status == 0)
    try change(array) { String($0.prefix(100)) }
    let names = try FileManager.default.contentsOfDirectory(atPath: array)
    let results = array + "/" + (try #require(names.first { $0.contains("results") }))
    try FileManager.default.setAttributes([.posixPermissions: 0o622], ofItemAtPath: results)
    let run = try folder.godwit(["run"])
    #expect(run.status == 78, "\(run.messages)")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: results)
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    #expect(try task(self.array(folder), 0).status == 0)
    #expect(try folder.godwit(["run"]).counts == "2 found, 2 migrated")
  }

  /// The line may tell of a commit: nothing else says where the backup is.
  @Test func `are not removed where a whole line of their results cannot be read`() throws {
    let folder = try submitted(2)
    let array = try array(folder)
    #expect(try task(array, 0).status == 0)
    try FileManager.default.removeItem(atPath: array + "/permit")
    let names = try FileManager.default.contentsOfDirectory(atPath: array)
    let results = array + "/" + (try #require(names.first { $0.contains("results") }))
    let whole = try Data(contentsOf: URL(fileURLWithPath: results))
    var damaged = whole
    damaged[damaged.startIndex] ^= 1
    let file = try #require(FileHandle(forWritingAtPath: results))
    try file.write(contentsOf: damaged)
    for command in [["run"], ["rollback"], ["verify"], ["status"]] {
      let run = try folder.godwit(command)
      #expect(run.status == 78, "\(command): \(run.messages)")
      #expect(run.messages.contains("the line at byte 0"), "\(run.messages)")
    }
    try file.seek(toOffset: 0)
    try file.write(contentsOf: whole)
    #expect(try folder.godwit(["rollback"]).summary["restored"] as? Int == 2)
  }

  @Test func `are left alone in a copy of their folder`() throws {
    let folder = try submitted(2)
    let array = try array(folder)
    try FileManager.default.copyItem(atPath: array, toPath: array + "-copy")
    let contents = try folder.storeContents()
    let run = try task(array + "-copy", 0)
    #expect(run.status == 78 && run.messages.contains("its place is"), "\(run.messages)")
    #expect(try folder.storeContents() == contents)
  }

  /// As a start that follows them leaves them when it is stopped, or dies.
  @Test func `are put back though nobody has taken their results over`() throws {
    let folder = try submitted(4)
    let before = try folder.contentsOfStoresAlone()
    let array = try array(folder)
    #expect(try task(array, 0).status == 0)
    #expect(try folder.godwit(["rollback"]).status == 11, "they are under way")
    try FileManager.default.removeItem(atPath: array + "/permit")
    #expect(try folder.godwit(["verify"]).summary["found"] as? Int == 2)
    #expect(try folder.godwit(["rollback"]).summary["restored"] as? Int == 2)
    #expect(try folder.contentsOfStoresAlone() == before)
    let run = try folder.godwit(["run"], ["--engine", "local"])
    #expect(run.counts == "4 found, 4 migrated", "\(run.messages)")
  }

  @Test func `are done again for a store that was put back before its result was read`() throws {
    let folder = try submitted(2)
    let array = try array(folder)
    let before = try folder.bytes("stores/s0.sqlite")
    #expect(try task(array, 0).status == 0)
    try before.write(to: URL(fileURLWithPath: folder.path("stores/s0.sqlite")))
    #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
    let left = try self.array(folder)
    #expect(left != array)
    #expect(try task(left, 0).status == 0)
    #expect(try folder.godwit(["run"]).counts == "2 found, 2 migrated")
    #expect(try folder.bytes("stores/s0.sqlite") != before)
  }

  @Test func `never lead a task to a store that the pipeline does not mean`() throws {
    let folder = try submitted(2)
    let array = try array(folder)
    // Names of the same length, so that the bundle's place stays true.
    let (inside, outside) = (folder.path("stores/s0.sqlite"), folder.path("secret/s0.sqlite"))
    try FileManager.default.createDirectory(
      atPath: folder.path("secret"), withIntermediateDirectories: false)
    try FileManager.default.copyItem(atPath: inside, toPath: outside)
    let content = try Data(contentsOf: URL(fileURLWithPath: outside))
    try change(array) { $0.replacing("stores/s0.sqlite", with: "secret/s0.sqlite") }
    let run = try task(array, 0)
    #expect(run.status == 78, "\(run.messages)")
    #expect(try Data(contentsOf: URL(fileURLWithPath: outside)) == content)
  }
}
