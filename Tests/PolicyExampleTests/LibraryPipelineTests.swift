import Foundation
import GodwitSQLite
import Testing

@Suite(.serialized) struct `A pipeline with policies` {
  @Test func `brings a fleet over, and refuses the store that a policy refuses`() throws {
    let files = FileManager.default
    let kept = try ["1", "0"].map { cents in
      try LibraryFixture(
        "INSERT INTO ZPAYMENT (Z_PK, Z_ENT, Z_OPT, ZCENTS) VALUES (1, 7, 1, \(cents))")
    }
    defer { withExtendedLifetime(kept) {} }
    let folder = kept[0].scratch.appendingPathComponent("pipeline")
    for (name, library) in zip(["north", "south"], kept) {
      let place = folder.appendingPathComponent("stores/\(name)")
      try files.createDirectory(at: place, withIntermediateDirectories: true)
      try files.copyItem(atPath: library.store, toPath: place.path + "/Library.sqlite")
    }
    for name in ["pipeline.yaml", "Library.xcdatamodeld", "Library.mapping.yaml"] {
      try files.copyItem(
        at: LibraryFixture.folder.appendingPathComponent(name),
        to: folder.appendingPathComponent(name))
    }
    let run = try LibraryFixture.run(["run", folder.path, "--workers", "1"])
    #expect(run.status == 3, "\(run.errors)")
    let results = try run.lines.filter { $0.contains("\"event\":\"result\"") }.map {
      try JSONDecoder().decode(LibraryFixture.Outcome.Result.self, from: Data($0.utf8))
    }
    #expect(Set(results.map(\.verdict)) == ["migrated", "refused"])
    #expect(results.compactMap(\.reasons?.first?.error?.code) == [1])
    let north = try Connection(
      path: folder.path + "/stores/north/Library.sqlite", mode: .immutable)
    #expect(
      try north.rows("SELECT name FROM sqlite_master WHERE name = 'ZAUTHOR'").count == 1,
      "the destination has taken the source's place")
    #expect(
      try Data(contentsOf: folder.appendingPathComponent("stores/south/Library.sqlite"))
        == Data(contentsOf: URL(fileURLWithPath: kept[1].store)))
  }
}
