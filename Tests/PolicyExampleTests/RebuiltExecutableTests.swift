import Foundation
import Testing

/// Checkpoints are of one plan; a plan with policies is of one build of them.
@Suite(.serialized) struct `A rebuilt executable` {
  private struct Line: Decodable {
    struct Plan: Decodable { var fingerprint: String }
    var plan: Plan
  }

  private func fingerprint(_ executable: URL, _ mapping: String, _ store: String) throws -> String {
    let process = Process()
    process.executableURL = executable
    process.arguments = [
      "plan", store, "--models", LibraryFixture.models, "--mapping", mapping, "--json",
    ]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let said = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let last = String(decoding: said, as: UTF8.self).split(separator: "\n").last ?? ""
    return try JSONDecoder().decode(Line.self, from: Data(last.utf8)).plan.fingerprint
  }

  private func rebuilt(in library: LibraryFixture) throws -> URL {
    let new = library.scratch.appendingPathComponent("rebuilt")
    try FileManager.default.copyItem(at: LibraryFixture.executable, to: new)
    // Bytes after the end of an ELF file change nothing but its digest.
    let file = try FileHandle(forWritingTo: new)
    try file.seekToEnd()
    try file.write(contentsOf: Data([0]))
    try file.close()
    return new
  }

  private func pipeline(of library: LibraryFixture) throws -> URL {
    let files = FileManager.default
    let folder = library.scratch.appendingPathComponent("pipeline")
    try files.createDirectory(
      at: folder.appendingPathComponent("stores/north"), withIntermediateDirectories: true)
    try files.copyItem(
      atPath: library.store, toPath: folder.path + "/stores/north/Library.sqlite")
    for name in ["pipeline.yaml", "Library.xcdatamodeld", "Library.mapping.yaml"] {
      try files.copyItem(
        at: LibraryFixture.folder.appendingPathComponent(name),
        to: folder.appendingPathComponent(name))
    }
    return folder
  }

  /// A pipeline's folder with an output beside its store.
  ///
  /// - Parameter isOfEarlierVersion: Whether the progress is as an earlier version left it, which told models and code
  ///   in one.
  private func migrated(_ library: LibraryFixture, isOfEarlierVersion: Bool) throws -> URL {
    let folder = try pipeline(of: library)
    let file = folder.appendingPathComponent("pipeline.yaml")
    let text = try String(contentsOf: file, encoding: .utf8)
    try (text + "\ncommit: { beside: -2 }\n").write(to: file, atomically: true, encoding: .utf8)
    let first = try LibraryFixture.run(["run", folder.path])
    try #require(first.status == 0, "\(first.errors)")
    guard isOfEarlierVersion else { return folder }
    let progress = folder.appendingPathComponent("state/ledger.jsonl")
    let lines = try String(contentsOf: progress, encoding: .utf8)
    let earlier = lines.replacing(/,"digest":"[0-9a-f]{64}"}\n/, with: "}\n")
      .replacing(/"settings":"([0-9a-f]{64})-[0-9a-f]{64}"/) { "\"settings\":\"\($0.1)\"" }
    try #require(earlier.contains(/"settings":"[0-9a-f]{64}"/))
    try earlier.write(to: progress, atomically: true, encoding: .utf8)
    return folder
  }

  @Test(arguments: [false, true])
  func `counts what the older one wrote beside a store as migrated, for a plan, too`(
    isOfEarlierVersion: Bool
  ) throws {
    let library = try LibraryFixture(
      "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 11, 1, 'a')")
    let folder = try migrated(library, isOfEarlierVersion: isOfEarlierVersion)
    let output = folder.appendingPathComponent("stores/north/Library-2.sqlite")
    let before = try Data(contentsOf: output)
    let new = try rebuilt(in: library)
    for command in ["plan", "run", "run"] {
      let outcome = try LibraryFixture.run([command, folder.path], of: new)
      #expect(outcome.status == 0, "\(outcome.errors)")
      let line = try #require(outcome.lines.first { $0.contains("\"event\":\"result\"") })
      let result = try JSONDecoder().decode(
        LibraryFixture.Outcome.Result.self, from: Data(line.utf8))
      #expect(result.verdict == "migrated")
      #expect(result.notes?.contains { $0.contains("by another build") } == true, "\(line)")
    }
    #expect(try Data(contentsOf: output) == before)
  }

  @Test(arguments: [false, true])
  func `does not count what the older one wrote by another model`(isOfEarlierVersion: Bool) throws {
    let library = try LibraryFixture(
      "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 11, 1, 'a')")
    let folder = try migrated(library, isOfEarlierVersion: isOfEarlierVersion)
    let output = folder.appendingPathComponent("stores/north/Library-2.sqlite")
    let before = try Data(contentsOf: output)
    let model = folder.appendingPathComponent(
      "Library.xcdatamodeld/Library 2.xcdatamodel/contents")
    let text = try String(contentsOf: model, encoding: .utf8)
    let city = #"<attribute name="city" optional="YES" attributeType="String"/>"#
    let other = text.replacing(
      city, with: city + city.replacing("city", with: "country"), maxReplacements: 1)
    try #require(other != text)
    try other.write(to: model, atomically: true, encoding: .utf8)
    let new = try rebuilt(in: library)
    for command in ["plan", "run"] {
      let outcome = try LibraryFixture.run([command, folder.path], of: new)
      #expect(outcome.status == 3)
      let line = try #require(outcome.lines.first { $0.contains("\"event\":\"result\"") })
      let result = try JSONDecoder().decode(
        LibraryFixture.Outcome.Result.self, from: Data(line.utf8))
      #expect(result.reasons?.map(\.reason) == ["output"], "\(line)")
    }
    #expect(try Data(contentsOf: output) == before)
  }

  /// Another machine may have an older copy, at the same path.
  @Test func `does nothing of a bundle that another build has cut, and is named`() throws {
    let files = FileManager.default
    let library = try LibraryFixture(
      "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 11, 1, 'a')")
    let folder = try pipeline(of: library)
    let command = ["run", folder.path, "--engine", "array", "--detach"]
    #expect(try LibraryFixture.run(command).status == 0)
    let arrays = folder.path + "/state/cluster"
    let array = try #require(try files.contentsOfDirectory(atPath: arrays).first)
    let new = try rebuilt(in: library)
    let task = try Process.run(
      new, arguments: ["worker", "--manifest", "\(arrays)/\(array)/manifest.jsonl", "--index", "0"])
    task.waitUntilExit()
    #expect(task.terminationStatus == 0)
    let run = try LibraryFixture.run(command)
    #expect(run.status == 75)
    let result = try #require(run.lines.first { $0.contains("\"event\":\"result\"") })
    let reason = try #require(
      try JSONDecoder().decode(LibraryFixture.Outcome.Result.self, from: Data(result.utf8))
        .reasons?.first)
    #expect(reason.reason == "other-build" && reason.message.hasPrefix("\(new.path) on "))
  }

  @Test func `does not go on with what the older one has made, where policies are called`() throws {
    let library = try LibraryFixture(
      "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 11, 1, 'a')")
    let plain = library.scratch.appendingPathComponent("plain.yaml").path
    try """
    mapping-model: 1
    entity-mappings: [{ source: Tag, destination: Tag }]
    """.write(toFile: plain, atomically: true, encoding: .utf8)
    let old = LibraryFixture.executable
    let new = try rebuilt(in: library)

    let mapping = LibraryFixture.mapping
    let first = try fingerprint(old, mapping, library.store)
    #expect(try fingerprint(old, mapping, library.store) == first)
    #expect(try fingerprint(new, mapping, library.store) != first)
    // Without policies any build does the same.
    #expect(
      try fingerprint(new, plain, library.store) == fingerprint(old, plain, library.store))
  }
}
