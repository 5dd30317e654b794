import Foundation
import Testing

/// An entity gets an attribute, and becomes abstract one version later.
@Suite struct `A plan of several steps` {
  private func folder(rows: String) throws -> PipelineFolder {
    let folder = try PipelineFolder("total-cost")
    let rank = #"<attribute name="rank" optional="YES" attributeType="Integer 16"/>"#
    for (name, item) in [
      ("Shop", #"<entity name="Item"/>"#), ("Shop 2", #"<entity name="Item">\#(rank)</entity>"#),
      ("Shop 3", #"<entity name="Item" isAbstract="YES">\#(rank)</entity>"#),
    ] {
      let path = folder.path("Shop.xcdatamodeld/\(name).xcdatamodel")
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try "<model>\(item)</model>".write(
        toFile: path + "/contents", atomically: true, encoding: .utf8)
    }
    try folder.write("stores/a.sqlite", "Shop.xcdatamodeld/Shop", rows)
    return folder
  }

  @Test(arguments: [true, false])
  func `says what a later step asks of the rows that it finds`(isRefused: Bool) throws {
    let folder = try folder(
      rows: isRefused ? "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1)" : "SELECT 1")
    func run(_ command: String) throws -> Godwit.Run {
      try Godwit.run(
        [command, folder.path("stores/a.sqlite"), "--models", folder.path("Shop.xcdatamodeld")]
          + ["--to", "Shop 3", "--chain", "progressive", "--json"])
    }
    let plan = try run("plan")
    #expect(plan.status == 0, "\(plan.messages)")
    let notes = plan.lines.last?["notes"] as? [String] ?? []
    #expect(
      notes.contains {
        $0.hasPrefix("Step 2, Shop 2 → Shop 3: inferred, is refused where this holds")
          && $0.contains("Item becomes abstract and Item has objects")
      }, "\(notes)")
    let migration = try run("migrate")
    #expect(migration.status == (isRefused ? 65 : 0), "\(migration.messages)")
    #expect((migration.lines.last?["verdict"] as? String) == (isRefused ? "refused" : "migrated"))
  }
}
