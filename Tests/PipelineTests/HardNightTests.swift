import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

/// The pipelines of the documentation for fleets in which not all is well.
@Suite struct `A pipeline for` {
  @Test func `a rehearsal leaves every store as it is and reports`() throws {
    let folder = try PipelineFolder("recipes-rehearsal")
    try folder.writeSeededStores(seed: 3)
    let before = try folder.contentsOfStoresAlone()
    let run = try Godwit.run(folder)
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.counts == "3 found, 2 migrated, 1 same-model")
    for (store, bytes) in before { #expect(try folder.bytes("stores/" + store) == bytes) }
    #expect(folder.storeFiles().count { $0.hasSuffix("-rehearsed.sqlite") } == 2)
    let report = try Godwit.run(["report", folder.url.path, "--format", "junit"])
    #expect(report.output.contains(#"tests="3" failures="0" errors="0""#))
    #expect(try folder.bytes("rehearsal.html").count > 1_000)
  }

  @Test func `damaged and busy stores migrates the others, and sets apart what fails twice`() throws
  {
    let folder = try PipelineFolder("recipes-troubled")
    var fleet = RecipesFleet(stores: 10, rows: 60, seed: 6)
    fleet.version = .one
    try fleet.write(to: folder.path("stores"))
    let stores = folder.storeFiles().filter { $0.hasSuffix(".sqlite") }
    let (damaged, busy) = ("stores/" + stores[2], "stores/" + stores[7])
    var bytes = try folder.bytes(damaged)
    bytes.replaceSubrange(8_192..<12_288, with: repeatElement(0xA5, count: 4_096))
    try bytes.write(to: URL(fileURLWithPath: folder.path(damaged)))
    let application = try Connection(path: folder.path(busy), mode: .readWrite)
    _ = try application.rows("SELECT count(*) FROM ZRECIPE")
    for night in 1...2 {
      let run = try Godwit.run(folder)
      #expect(run.status == 75, "night \(night): \(run.messages)")
      #expect(run.counts == "10 found, 8 migrated, 1 refused, 1 pending", "night \(night)")
      #expect(run.results[folder.path(busy)]?["verdict"] as? String == "pending")
      #expect(try folder.bytes(damaged) == bytes)
    }
    try application.close()
    let third = try Godwit.run(folder)
    #expect(third.results[folder.path(damaged)]?["verdict"] as? String == "quarantined")
    #expect(third.results[folder.path(busy)]?["verdict"] as? String == "migrated")
    #expect(third.status == 3)
    #expect(try folder.bytes(damaged) == bytes)
  }

  @Test func `rows that break the rules migrates the rest and accounts for every one`() throws {
    let folder = try PipelineFolder("set-aside")
    try folder.write(
      "stores/a.sqlite", "Parcels.xcdatamodeld/Parcels",
      """
      INSERT INTO ZPARCEL (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZWEIGHT, ZCUSTOMER) VALUES
        (1, 1, 1, 10, 2, 'Ada'), (2, 1, 1, 11, -1, 'Bo'), (3, 1, 1, 12, NULL, NULL);
      INSERT INTO ZSTOP (Z_PK, Z_ENT, Z_OPT, ZPLACE, ZPARCEL) VALUES
        (1, 2, 1, 'Oslo', 1), (2, 2, 1, 'Rome', 2)
      """)
    let run = try Godwit.run(folder)
    #expect(run.status == 0, "\(run.messages)")
    let result = try #require(run.results.values.first)
    #expect(result["setAside"] as? Int == 2)
    #expect(try folder.table("stores/a.sqlite", "SELECT ZSENDER FROM ZPARCEL") == ["Ada"])
    let stops = try folder.table(
      "stores/a.sqlite", "SELECT ZPLACE, ZPARCEL FROM ZSTOP ORDER BY 1")
    #expect(stops == ["Oslo 1", "Rome -"], "a stop needs no parcel")
    let rejects = try #require(folder.storeFiles().first { $0.contains(".godwit-rejects-") })
    #expect(
      try folder.table(
        "stores/" + rejects, "SELECT entity, Z_PK, property FROM ZREJECT ORDER BY Z_PK")
        == ["Parcel 2 weight", "Parcel 3 sender"])
  }
}
