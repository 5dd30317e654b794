import Foundation
import GodwitSQLite
import Testing

/// Core Data leaves values in a table's columns of other entities than the row's own, such as a default that was
/// new once. They are nobody's.
/// Source: `core-data-sqlite-format.md` §5.
@Suite struct `A value in a column of another entity` {
  /// A parent, two sub-entities of which one has what the strays lie in, and what that refers to.
  private struct Model {
    var parent = ""
    var child = ""
    var target = ""
    /// `fetchIndex` or `uniquenessConstraints` of the child.
    var childEnd = ""

    var text: String {
      """
      <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
      <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" \
      userDefinedModelVersionIdentifier="">
      <entity name="R"><attribute name="r" optional="YES" attributeType="String"/>\(parent)</entity>
      <entity name="A" parentEntity="R"><attribute name="x" optional="YES" attributeType="String"/>\(child)
      <relationship name="o" optional="YES" maxCount="1" deletionRule="Nullify" destinationEntity="O" \
      inverseName="members" inverseEntity="O"/>\(childEnd)</entity>
      <entity name="B" parentEntity="R"><attribute name="y" optional="YES" attributeType="String"/></entity>
      <entity name="O"><attribute name="n" optional="YES" attributeType="String"/>\(target)
      <relationship name="members" optional="YES" toMany="YES" deletionRule="Nullify" \
      destinationEntity="A" inverseName="o" inverseEntity="A"/></entity>
      </model>
      """
    }
  }

  private static let more = #"<attribute name="m" optional="YES" attributeType="String"/>"#
  private static let index =
    #"<fetchIndex name="byX"><fetchIndexElement property="x" type="Binary" order="ascending"/></fetchIndex>"#
  private static let constraint =
    #"<uniquenessConstraints><uniquenessConstraint><constraint value="x"/></uniquenessConstraint></uniquenessConstraints>"#
  private static let count =
    #"<attribute name="c" optional="YES" attributeType="Integer 64" derived="YES" derivationExpression="members.@count"/>"#

  private static func number(_ entity: String) -> String {
    "(SELECT Z_ENT FROM Z_PRIMARYKEY WHERE Z_NAME = '\(entity)')"
  }

  /// One object that is a member, and two rows of another entity with its values.
  private static let rows = """
    INSERT INTO ZO (Z_PK, Z_ENT, Z_OPT) VALUES (1, \(number("O")), 1);
    INSERT INTO ZR (Z_PK, Z_ENT, Z_OPT, ZX, ZO) VALUES
      (1, \(number("A")), 1, 'own', 1), (2, \(number("B")), 1, 'stray', 1),
      (3, \(number("B")), 1, 'stray', 1);
    """

  private func migrated(
    from old: Model, to new: Model, mapping: String? = nil
  ) throws -> PipelineFolder {
    let folder = try PipelineFolder("total-cost")
    for (name, model) in [("Old", old), ("New", new)] {
      let path = folder.path("M.xcdatamodeld/\(name).xcdatamodel")
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try model.text.write(toFile: path + "/contents", atomically: true, encoding: .utf8)
    }
    try folder.write("stores/a.sqlite", "M.xcdatamodeld/Old", Self.rows)
    var words = ["migrate", folder.path("stores/a.sqlite"), "--to", "New", "--json"]
    words += ["--models", folder.path("M.xcdatamodeld")]
    if let mapping {
      try mapping.write(toFile: folder.path("m.yaml"), atomically: true, encoding: .utf8)
      words += ["--mapping", folder.path("m.yaml")]
    }
    let run = try Godwit.run(words)
    #expect(run.status == 0, "\(run.messages)")
    return folder
  }

  private func values(_ folder: PipelineFolder) throws -> [String] {
    try folder.table("stores/a.sqlite", "SELECT Z_PK, ZX, ZO FROM ZR ORDER BY Z_PK")
  }

  @Test func `stays behind, and no index has it`() throws {
    let folder = try migrated(
      from: Model(childEnd: Self.index), to: Model(parent: Self.more, childEnd: Self.index))
    #expect(try values(folder) == ["1 own 1", "2 - -", "3 - -"])
    #expect(try folder.table("stores/a.sqlite", "PRAGMA integrity_check") == ["ok"])
  }

  @Test func `is no duplicate under a constraint that is new`() throws {
    let folder = try migrated(from: Model(), to: Model(childEnd: Self.constraint))
    #expect(try values(folder) == ["1 own 1", "2 - -", "3 - -"])
  }

  @Test func `is not counted by an attribute that is new`() throws {
    let folder = try migrated(from: Model(), to: Model(target: Self.count))
    #expect(try folder.table("stores/a.sqlite", "SELECT ZC FROM ZO") == ["1"])
    #expect(try values(folder) == ["1 own 1", "2 - -", "3 - -"])
  }

  @Test func `is no reference to a mapping model`() throws {
    let folder = try migrated(
      from: Model(), to: Model(parent: Self.more),
      mapping: """
        mapping-model: 1
        entity-mappings:
          - { source: R, destination: R }
          - { source: A, destination: A }
          - { source: B, destination: B }
          - { source: O, destination: O }

        """)
    #expect(try values(folder) == ["1 own 1", "2 - -", "3 - -"])
  }
}
