import Foundation
import GodwitKeyedArchive
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `The bucket` {
  private func first(_ folder: PipelineFolder) throws -> ManagedObjectModel {
    try FixtureModels.model(at: folder.path("Things.xcdatamodeld/Things.xcdatamodel"))
  }

  @Test func `gives its property to an attribute, and keeps the others`() throws {
    let folder = try PipelineFolder("bucket")
    let fleet = ThingsFleet(stores: 3, things: 40, seed: 11)
    let written = try fleet.write(try first(folder), to: folder.path("stores"))
    let run = try Godwit.run(folder)
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.counts == "3 found, 3 migrated")
    for store in written {
      let connection = try Connection(path: store.path, mode: .immutable)
      let rows = try connection.rows(
        """
        SELECT Z_PK, ZEXTENDEDNAME, ZMETADATA2, ZNAME, ZINDEX, ZMETADATA1 FROM ZTHING ORDER BY Z_PK
        """)
      #expect(rows.count == 40)
      for ((row, name), others) in zip(zip(rows, store.extendedNames), store.otherKeys) {
        let key = name.key
        #expect(row[0] == .integer(key))
        #expect(row[1] == name.name.map { .text($0) } ?? .null, "thing \(key), seed \(fleet.seed)")
        #expect(Array(row[3...]) == [.text("thing \(key)"), .integer(key), .text("spare \(key)")])
        guard let names = others.names else {
          #expect(row[2] == .null)
          continue
        }
        guard case .blob(let bytes) = row[2],
          let left = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
            as? [String: Any]
        else {
          Issue.record("thing \(key) has lost its bucket")
          continue
        }
        #expect(left.keys.sorted() == names)
        #expect((left["badge"] as? Data)?.count == 16)
        #expect(left["seen"] as? Date == Date(timeIntervalSinceReferenceDate: 7e8))
        #expect((left["inner"] as? [String: Int]) == ["depth": Int(key) - 1])
      }
    }
  }

  @Test func `that is damaged fails its store by name, and no other`() throws {
    let folder = try PipelineFolder("bucket")
    let written = try ThingsFleet(stores: 3, things: 12, seed: 5, damaged: 1)
      .write(try first(folder), to: folder.path("stores"))
    let damaged = try Data(contentsOf: URL(fileURLWithPath: written[1].path))
    let run = try Godwit.run(folder)
    #expect(run.status == 3)
    #expect(run.summary["migrated"] as? Int == 2)
    let result = try #require(run.results.first { $0.key.hasSuffix("user-0002/Things.sqlite") })
    let reasons = "\(result.value["reasons"] ?? "")"
    #expect(reasons.contains("Thing with Z_PK \(ThingsFleet.damagedKey)"))
    #expect(reasons.contains("extendedName") || reasons.contains("metadata2"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: written[1].path)) == damaged)
    #expect(try folder.names(in: "stores/user-0002") == ["Things.sqlite"])

    // Mended, the same command does what is left.
    let connection = try Connection(path: written[1].path, mode: .readWrite)
    let empty = PropertyList.dictionary(PropertyListDictionary()).binary()
    _ = try connection.rows(
      "UPDATE ZTHING SET ZMETADATA2 = ?1 WHERE Z_PK = ?2",
      [.blob(empty), .integer(ThingsFleet.damagedKey)])
    try connection.close()
    let again = try Godwit.run(folder)
    #expect(again.status == 0, "\(again.messages)")
    #expect(again.counts == "3 found, 1 migrated, 2 same-model")
  }
}
