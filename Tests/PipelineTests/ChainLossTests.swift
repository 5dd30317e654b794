import Foundation
import GodwitSQLite
import Testing

/// Two relationships without inverses become inverses of each other, and a later version adds an attribute.
@Suite struct `What only the rows of a chain's step show to be lost` {
  private static func model(hasInverses: Bool, hasRank: Bool) -> String {
    func many(_ name: String, _ destination: String, _ inverse: String) -> String {
      let back = hasInverses ? #"inverseName="\#(inverse)" inverseEntity="\#(destination)""# : ""
      return #"<relationship name="\#(name)" optional="YES" toMany="YES" deletionRule="Nullify" "#
        + #"destinationEntity="\#(destination)" \#(back)/>"#
    }
    let rank =
      #"<attribute name="rank" attributeType="Integer 16" defaultValueString="7" usesScalarValueType="NO"/>"#
    return """
      <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
      <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" \
      userDefinedModelVersionIdentifier="">
        <entity name="Note">\(many("tags", "Tag", "notes"))</entity>
        <entity name="Tag">\(hasRank ? rank : "")\(many("notes", "Note", "tags"))</entity>
      </model>
      """
  }

  /// A tag has a note that does not have the tag, and the other way round.
  private func folder() throws -> PipelineFolder {
    let folder = try PipelineFolder("total-cost")
    for (name, text) in [
      ("Notes", Self.model(hasInverses: false, hasRank: false)),
      ("Notes 2", Self.model(hasInverses: true, hasRank: false)),
      ("Notes 3", Self.model(hasInverses: true, hasRank: true)),
    ] {
      let path = folder.path("Notes.xcdatamodeld/\(name).xcdatamodel")
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try text.write(toFile: path + "/contents", atomically: true, encoding: .utf8)
    }
    try folder.write(
      "stores/a.sqlite", "Notes.xcdatamodeld/Notes",
      """
      INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);
      INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 2, 1);
      """)
    let store = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
    for (table, end) in [("ZNOTE", "NOTES"), ("ZTAG", "TAGS")] {
      let owner = try #require(
        try store.drawn(
          "SELECT name FROM pragma_table_info('\(table)') WHERE name LIKE 'Z%\(end)'"
        ).first)
      try store.execute("UPDATE \(table) SET \"\(owner)\" = 1 WHERE Z_PK = 2")
    }
    return folder
  }

  private func run(_ folder: PipelineFolder, _ command: String, _ losses: String) throws
    -> Godwit.Run
  {
    try Godwit.run(
      [command, folder.path("stores/a.sqlite"), "--models", folder.path("Notes.xcdatamodeld")]
        + ["--to", "Notes 3", "--chain", "progressive", "--json", "--losses", losses])
  }

  @Test func `is counted`() throws {
    let folder = try folder()
    for command in ["plan", "migrate"] {
      let run = try run(folder, command, "warn")
      #expect(run.status == 0, "\(run.messages)")
      let losses = run.lines.last?["losses"] as? [[String: Any]] ?? []
      #expect(losses.map { $0["kind"] as? String } == ["relationship"], "\(command)")
      #expect(losses.first?["count"] as? Int == 1)
    }
  }

  @Test func `is refused where nothing may be lost`() throws {
    let folder = try folder()
    let before = try folder.bytes("stores/a.sqlite")
    for command in ["plan", "migrate"] {
      let run = try run(folder, command, "refuse")
      #expect(run.status == 65, "\(run.messages)")
      let reasons = run.lines.last?["reasons"] as? [[String: Any]] ?? []
      #expect(reasons.map { $0["reason"] as? String } == ["lost-relationship"], "\(command)")
    }
    #expect(try folder.bytes("stores/a.sqlite") == before)
    #expect(folder.storeFiles() == ["a.sqlite"])
  }
}

/// A part lost its item, and each version has another type of the item's number.
@Suite struct `Damage that the steps of a chain carry` {
  private func folder() throws -> PipelineFolder {
    let folder = try PipelineFolder("total-cost")
    for (name, type) in [
      ("Shop", "Integer 16"), ("Shop 2", "Integer 32"), ("Shop 3", "Integer 64"),
    ] {
      let path = folder.path("Shop.xcdatamodeld/\(name).xcdatamodel")
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try """
      <model>
        <entity name="Item">
          <attribute name="n" optional="YES" attributeType="\(type)"/>
          <relationship name="parts" optional="YES" toMany="YES" deletionRule="Nullify" \
      destinationEntity="Part" inverseName="item" inverseEntity="Part"/>
        </entity>
        <entity name="Part">
          <relationship name="item" optional="YES" maxCount="1" deletionRule="Nullify" \
      destinationEntity="Item" inverseName="parts" inverseEntity="Item"/>
        </entity>
      </model>
      """.write(toFile: path + "/contents", atomically: true, encoding: .utf8)
    }
    try folder.write(
      "stores/a.sqlite", "Shop.xcdatamodeld/Shop",
      "INSERT INTO ZPART (Z_PK, Z_ENT, Z_OPT, ZITEM) VALUES (1, 2, 1, 99)")
    return folder
  }

  @Test(arguments: ["direct", "progressive"])
  func `is told once`(chain: String) throws {
    let folder = try folder()
    let run = try Godwit.run(
      ["migrate", folder.path("stores/a.sqlite"), "--models", folder.path("Shop.xcdatamodeld")]
        + ["--to", "Shop 3", "--chain", chain, "--json"])
    #expect(run.status == 0, "\(run.messages)")
    let findings = run.lines.last?["findings"] as? [[String: Any]] ?? []
    #expect(findings.map { $0["kind"] as? String } == ["dangling"], "\(findings)")
  }
}
