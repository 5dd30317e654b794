import Foundation
import Testing

@Suite(.serialized) struct `A rehearsal by an executable with policies` {
  /// Two archived stores, one of which a policy refuses.
  private func archive() throws -> (folder: URL, kept: [LibraryFixture]) {
    let kept = try ["1", "0"].map { cents in
      try LibraryFixture(
        "INSERT INTO ZPAYMENT (Z_PK, Z_ENT, Z_OPT, ZCENTS) VALUES (1, 7, 1, \(cents))")
    }
    defer { withExtendedLifetime(kept) {} }
    let folder = kept[0].scratch.appendingPathComponent("archive")
    for (name, library) in zip(["1.0", "1.1"], kept) {
      let place = folder.appendingPathComponent(name)
      try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
      try FileManager.default.copyItem(
        atPath: library.store, toPath: place.path + "/Library.sqlite")
    }
    return (folder, kept)
  }

  private func contents(of folder: URL) throws -> [String: Data] {
    let names =
      FileManager.default.enumerator(atPath: folder.path)?
      .compactMap { $0 as? String } ?? []
    return Dictionary(
      uniqueKeysWithValues: names.map { name in
        (name, FileManager.default.contents(atPath: folder.path + "/" + name) ?? Data())
      })
  }

  @Test func `runs them, names what they refuse, and leaves the stores as they are`() throws {
    let (folder, kept) = try archive()
    defer { withExtendedLifetime(kept) {} }
    let before = try contents(of: folder)
    let temporary = kept[0].scratch.appendingPathComponent("temporary")
    try FileManager.default.createDirectory(at: temporary, withIntermediateDirectories: true)
    let run = try LibraryFixture.run(
      [
        "rehearse", LibraryFixture.models, "--stores", folder.path, "--mapping",
        LibraryFixture.mapping, "--workers", "1",
      ], environment: ["TMPDIR": temporary.path])
    #expect(run.status == 3, "\(run.errors)")
    let results = try run.lines.filter { $0.contains("\"event\":\"result\"") }.map {
      try JSONDecoder().decode(LibraryFixture.Outcome.Result.self, from: Data($0.utf8))
    }
    #expect(results.compactMap(\.verdict).sorted() == ["migrated", "refused"])
    #expect(results.compactMap(\.reasons?.first?.error?.code) == [1])
    #expect(try contents(of: folder) == before)
    #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == [])
  }

  @Test func `says of an executable without them that they are missing`() throws {
    let (folder, kept) = try archive()
    defer { withExtendedLifetime(kept) {} }
    let plain = LibraryFixture.executable.deletingLastPathComponent()
      .appendingPathComponent("godwit")
    try #require(FileManager.default.isExecutableFile(atPath: plain.path))
    let run = try LibraryFixture.run(
      [
        "rehearse", LibraryFixture.models, "--stores", folder.path, "--mapping",
        LibraryFixture.mapping,
      ], of: plain)
    #expect(run.status != 0)
    #expect((run.errors + run.lines.joined()).contains("Policy"))
  }
}
