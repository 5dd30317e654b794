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

  /// A to-one relationship without an inverse becomes to-many: each object of its entity may be in one only.
  @Test(arguments: [("allow", "drops references"), ("warn", "is refused")])
  func `says what becomes of references without room in a later step`(
    losses: String, said: String
  ) throws {
    let folder = try PipelineFolder("total-cost")
    let label = #"<attribute name="label" optional="YES" attributeType="String"/>"#
    for (name, count, tag) in [
      ("Tags", #"maxCount="1""#, ""), ("Tags 2", #"maxCount="1""#, label),
      ("Tags 3", #"toMany="YES""#, label),
    ] {
      let path = folder.path("Tags.xcdatamodeld/\(name).xcdatamodel")
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try """
      <model><entity name="Item">
        <relationship name="tag" optional="YES" \(count) deletionRule="Nullify" destinationEntity="Tag"/>
      </entity><entity name="Tag">\(tag)</entity></model>
      """.write(toFile: path + "/contents", atomically: true, encoding: .utf8)
    }
    try folder.write(
      "stores/a.sqlite", "Tags.xcdatamodeld/Tags",
      """
      INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1);
      INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZTAG) VALUES (1, 1, 1, 1), (2, 1, 1, 1)
      """)
    func run(_ command: String) throws -> Godwit.Run {
      try Godwit.run(
        [command, folder.path("stores/a.sqlite"), "--models", folder.path("Tags.xcdatamodeld")]
          + ["--to", "Tags 3", "--chain", "progressive", "--losses", losses, "--json"])
    }
    let notes = try run("plan").lines.last?["notes"] as? [String] ?? []
    let later = notes.filter { $0.hasPrefix("Step 2, ") }
    #expect(
      later.count == 1 && later.first?.contains(": inferred, \(said) where") == true, "\(notes)")
    let migration = try run("migrate")
    #expect(migration.status == (losses == "allow" ? 0 : 65), "\(migration.messages)")
  }
}
