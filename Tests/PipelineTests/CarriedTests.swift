import Foundation
import GodwitSQLite
import Testing

private func model(_ entities: [String]) -> String {
  """
  <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
  <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" \
  userDefinedModelVersionIdentifier="">\(entities.joined())</model>
  """
}

private func entity(_ name: String, id: String? = nil, _ properties: String...) -> String {
  let id = id.map { #" elementID="\#($0)""# } ?? ""
  return #"<entity name="\#(name)"\#(id)>\#(properties.joined())</entity>"#
}

private func text(_ name: String, id: String? = nil, more: String = "") -> String {
  let id = id.map { #" elementID="\#($0)""# } ?? ""
  return #"<attribute name="\#(name)"\#(id) optional="YES" attributeType="String" \#(more)/>"#
}

@Suite struct `What a migration carries as it is` {
  private func migrated(
    from source: [String], to destination: [String], rows: String, mapping: String? = nil
  ) throws -> (folder: PipelineFolder, result: [String: Any]) {
    let (folder, run) = try migration(
      from: source, to: destination, rows: rows, mapping: mapping)
    #expect(run.status == 0, "\(run.messages)")
    return (folder, try #require(run.lines.last))
  }

  private func migration(
    from source: [String], to destination: [String], rows: String, mapping: String? = nil,
    _ more: [String] = []
  ) throws -> (folder: PipelineFolder, run: Godwit.Run) {
    let folder = try PipelineFolder("total-cost")
    for (name, entities) in [("Old", source), ("New", destination)] {
      let path = folder.path("M.xcdatamodeld/\(name).xcdatamodel")
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try model(entities).write(
        toFile: path + "/contents", atomically: true, encoding: .utf8)
    }
    try folder.write("stores/a.sqlite", "M.xcdatamodeld/Old", rows)
    var words = ["migrate", folder.path("stores/a.sqlite"), "--to", "New", "--json"] + more
    words += ["--models", folder.path("M.xcdatamodeld")]
    if let mapping {
      try mapping.write(toFile: folder.path("m.yaml"), atomically: true, encoding: .utf8)
      words += ["--mapping", folder.path("m.yaml")]
    }
    return (folder, try Godwit.run(words))
  }

  // MARK: Triggers

  /// What becomes of `A.x` in the second version, which has an attribute more.
  enum Change: String, CaseIterable {
    case nothing, entitiesSwap, propertiesSwap, another, handedOn

    var isCarried: Bool { self == .nothing }

    var destination: [String] {
      let b = entity("B", text("x"), text("y"))
      return switch self {
      case .nothing: [entity("A", text("x"), text("y"), text("n")), b]
      case .entitiesSwap:
        [
          entity("B", id: "A", text("x"), text("y"), text("n")),
          entity("A", id: "B", text("x"), text("y")),
        ]
      case .propertiesSwap: [entity("A", text("x", id: "y"), text("y", id: "x"), text("n")), b]
      case .another: [entity("A", text("x", id: "other"), text("y"), text("n")), b]
      case .handedOn: [entity("A", text("x", id: "y"), text("z", id: "x"), text("n")), b]
      }
    }

    /// The same by a mapping model.
    var mapping: String {
      func rows(_ source: String, _ destination: String, _ rows: String) -> String {
        "\n  - { source: \(source), destination: \(destination), attributes: { \(rows) } }"
      }
      let (own, b) = ("x: $source.x, y: $source.y", rows("B", "B", "x: $source.x, y: $source.y"))
      let text =
        switch self {
        case .nothing: rows("A", "A", own) + b
        case .entitiesSwap: rows("A", "B", own) + rows("B", "A", own)
        case .propertiesSwap: rows("A", "A", "x: $source.y, y: $source.x") + b
        case .another: rows("A", "A", "x: $source.y, y: $source.y") + b
        case .handedOn: rows("A", "A", "x: $source.y, z: $source.x") + b
        }
      return "mapping-model: 1\nentity-mappings:" + text
    }
  }

  @Test(arguments: Change.allCases, [true, false])
  func `are triggers whose tables and columns are the successors' of the same name`(
    change: Change, isInferred: Bool
  ) throws {
    let trigger = "CREATE TRIGGER watch AFTER UPDATE OF ZX ON ZA BEGIN SELECT 1; END"
    let (folder, result) = try migrated(
      from: [entity("A", text("x"), text("y"))]
        + [entity("B", text("x"), text("y"))],
      to: change.destination, rows: trigger, mapping: isInferred ? nil : change.mapping)
    let found = try folder.table(
      "stores/a.sqlite", "SELECT sql FROM sqlite_master WHERE type = 'trigger'")
    #expect(found == (change.isCarried ? [trigger] : []))
    let notes = (result["notes"] as? [String] ?? []).filter { $0.contains("trigger watch") }
    #expect(notes.count == (change.isCarried ? 0 : 1))
  }

  // MARK: External data

  @Test(arguments: [true, false])
  func `is missing external data, which is said`(isInferred: Bool) throws {
    let photo = text(
      "photo", more: #"allowsExternalBinaryDataStorage="YES""#
    ).replacingOccurrences(of: "String", with: "Binary")
    let mapping = """
      mapping-model: 1
      entity-mappings: [{ source: A, destination: A, attributes: { photo: $source.photo } }]
      """
    let (_, result) = try migrated(
      from: [entity("A", photo)], to: [entity("A", photo, text("n"))],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZPHOTO)
        VALUES (7, 1, 1, CAST(x'02' || '00000000-0000-4000-8000-000000000001' || x'00' AS BLOB))
        """, mapping: isInferred ? nil : mapping)
    let findings = result["findings"] as? [[String: Any]] ?? []
    #expect(findings.count == 1)
    #expect(findings.first?["property"] as? String == "photo")
    #expect((findings.first?["message"] as? String)?.contains("there is no such folder") == true)
    #expect(findings.first?["examples"] as? [Int] == [7])
  }

  // MARK: Indexes

  /// Each of two indexes has the b-tree of the other: their entries are in order, and of other columns.
  @Test(arguments: [true, false])
  func `is no index that disagrees with its table, whatever is accepted`(isAccepted: Bool) throws {
    let indexes = ["x", "y"].map {
      #"<fetchIndex name="by_\#($0)"><fetchIndexElement property="\#($0)" type="Binary" "#
        + #"order="ascending"/></fetchIndex>"#
    }
    let rest = [text("x"), text("y")] + indexes
    func exchange(_ one: String, _ other: String) -> String {
      let names = "name IN ('\(one)', '\(other)')"
      return """
        UPDATE sqlite_master
           SET rootpage = (SELECT sum(rootpage) FROM sqlite_master WHERE \(names)) - rootpage
         WHERE \(names)
        """
    }
    let (folder, run) = try migration(
      from: [entity("A", rest.joined())], to: [entity("A", text("n"), rest.joined())],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX, ZY)
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
          SELECT i, 1, 1, 'x' || (i % 100), 'y' || (i % 7) FROM n;
        PRAGMA writable_schema = ON;
        \(exchange("Z_A_x", "Z_A_y")); \(exchange("Z_A_by_x", "Z_A_by_y"))
        """, isAccepted ? ["--accept-damage"] : [])
    #expect(run.status == 65, "\(run.messages)")
    let reasons = run.lines.last?["reasons"] as? [[String: Any]] ?? []
    #expect(reasons.map { $0["reason"] as? String } == ["file"])
    #expect(try folder.table("stores/a.sqlite", "PRAGMA integrity_check") != ["ok"])
  }

  // MARK: References that do not go over as they are

  /// Seats of the first version, which refer to an entity of two that share a table, and of the
  /// second, which have an attribute more; the column that refers to it, in the order of seats.
  private func migratedSeats(
    to target: String, rows: String, _ more: [String] = []
  ) throws -> [String] {
    let people = [
      entity("Person", text("name")),
      entity("Pupil", text("grade")).replacingOccurrences(
        of: "<entity ", with: #"<entity parentEntity="Person" "#),
    ]
    let relationship = """
      <relationship name="\(target.lowercased())" optional="YES" maxCount="1" \
      destinationEntity="\(target)"/>
      """
    let (folder, run) = try migration(
      from: people + [entity("Seat", relationship)],
      to: people + [entity("Seat", relationship, text("n"))], rows: rows, more)
    #expect(run.status == 0, "\(run.messages)")
    #expect(try folder.table("stores/a.sqlite", "PRAGMA integrity_check") == ["ok"])
    return try folder.table(
      "stores/a.sqlite", "SELECT ifnull(Z\(target.uppercased()), 0) FROM ZSEAT ORDER BY Z_PK")
  }

  /// Nothing says of which entity an object is that does not exist, and the source's index does.
  @Test func `is no index entry of a reference without a target`() throws {
    let people = try migratedSeats(
      to: "Person",
      rows: """
        INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1);
        INSERT INTO ZSEAT (Z_PK, Z_ENT, Z_OPT, ZPERSON, Z1_PERSON) VALUES
          (1, 3, 1, 1, 2), (2, 3, 1, 9, 1)
        """)
    #expect(people == ["1", "9"])
  }

  @Test func `is the index entry of a reference to a wrong entity, which is carried`() throws {
    let pupils = try migratedSeats(
      to: "Pupil",
      rows: """
        INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 2, 1);
        INSERT INTO ZSEAT (Z_PK, Z_ENT, Z_OPT, ZPUPIL) VALUES (1, 3, 1, 1), (2, 3, 1, 2)
        """, ["--accept-damage"])
    #expect(pupils == ["1", "2"])
  }

  // MARK: History

  @Test(arguments: ["ACHANGE (Z_PK INTEGER PRIMARY KEY, ZENTITY)", "aChange (id, zEntity INTEGER)"])
  func `is history, with the new numbers of entities, whatever letters its names have`(
    table: String
  ) throws {
    let (folder, _) = try migrated(
      from: [entity("X", text("x"))], to: [entity("A", text("a")), entity("X", text("x"))],
      rows: "CREATE TABLE \(table); INSERT INTO ACHANGE VALUES (1, 1)")
    #expect(try folder.table("stores/a.sqlite", "SELECT ZENTITY FROM ACHANGE") == ["2"])
  }

  @Test func `is no history whose keys are numbers of entities`() throws {
    let (folder, run) = try migration(
      from: [entity("X", text("x"))], to: [entity("A", text("a")), entity("X", text("x"))],
      rows:
        "CREATE TABLE ACHANGE (ZENTITY INTEGER PRIMARY KEY, n); INSERT INTO ACHANGE VALUES (1, 5)")
    #expect(run.status == 65 && run.messages.contains("ACHANGE"), "\(run.messages)")
    #expect(try folder.table("stores/a.sqlite", "SELECT ZENTITY FROM ACHANGE") == ["1"])
  }

  // MARK: An application's own constraints

  /// SQLite judges none in a file that it only reads, so neither `verify` nor `plan` could tell.
  @Test func `is a row that breaks its own table's CHECK constraint`() throws {
    let (folder, _) = try migrated(
      from: [entity("A", text("x"))], to: [entity("A", text("x"), text("m"))],
      rows: """
        PRAGMA ignore_check_constraints = ON;
        CREATE TABLE loose (a CHECK (a > 5)); INSERT INTO loose VALUES (1), (7);
        """)
    #expect(try folder.table("stores/a.sqlite", "SELECT a FROM loose ORDER BY 1") == ["1", "7"])
  }

  /// A new entity takes the first number, by which a join table is named; a column is renamed.
  @Test func `says which foreign keys of an application lead nowhere`() throws {
    func many(_ name: String, _ entity: String, _ inverse: String) -> String {
      """
      <relationship name="\(name)" optional="YES" toMany="YES" destinationEntity="\(entity)" \
      inverseName="\(inverse)" inverseEntity="\(entity)"/>
      """
    }
    let (x, y) = (many("ys", "Y", "xs"), many("xs", "X", "ys"))
    let (_, result) = try migrated(
      from: [entity("X", text("code"), x), entity("Y", y)],
      to: [entity("A", text("n")), entity("X", text("key", id: "code"), x), entity("Y", y)],
      rows: """
        CREATE TABLE pairs (x, y, FOREIGN KEY (x, y) REFERENCES Z_1YS (Z_1XS, Z_2YS));
        CREATE TABLE codes (c REFERENCES ZX (ZCODE)); CREATE TABLE keys (k REFERENCES ZX (Z_PK));
        """)
    let notes = result["notes"] as? [String] ?? []
    #expect(notes.contains { $0.hasPrefix("The table pairs refers to Z_1YS") })
    #expect(notes.contains { $0.hasPrefix("The table codes refers to ZX, and ZCODE") })
    #expect(!notes.contains { $0.contains("The table keys") }, "\(notes)")
  }

  /// The application may have given a column of the model a collation or a function that only it has.
  @Test(arguments: [true, false])
  func `is no table of the model that SQLite cannot read without the application`(
    isInferred: Bool
  ) throws {
    let mapping = """
      mapping-model: 1
      entity-mappings: [{ source: A, destination: A, attributes: { x: $source.x } }]
      """
    let (folder, run) = try migration(
      from: [entity("A", text("x"))], to: [entity("A", text("x"), text("m"))],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (1, 1, 1, 'x');
        PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET sql = replace(sql, 'ZX VARCHAR', 'ZX VARCHAR COLLATE LOCALIZED')
         WHERE name = 'ZA'
        """, mapping: isInferred ? nil : mapping)
    #expect(run.status == 65, "\(run.messages)")
    #expect(run.messages.contains("ZA") && run.messages.contains("LOCALIZED"), "\(run.messages)")
    let rest = [folder.path("stores/a.sqlite"), "--models", folder.path("M.xcdatamodeld")]
    let plan = try Godwit.run(
      ["plan", "--to", "New"] + rest
        + (isInferred ? [] : ["--mapping", folder.path("m.yaml")]))
    #expect(plan.status == 65, "\(plan.messages)")
    let repair = try Godwit.run(["repair", "--output", folder.path("repaired.sqlite")] + rest)
    #expect(repair.status == 0, "\(repair.messages)")
  }

  // MARK: Numbers

  /// SQLite keeps a whole number as an integer where it writes to a column of dates or decimals, and takes
  /// either form for the same.
  @Test(arguments: ["Date", "Decimal"], [false, true])
  func `is a whole number that the store has as a real`(type: String, isRenumbered: Bool) throws {
    let number = #"<attribute name="d" optional="YES" attributeType="\#(type)"/>"#
    let (folder, _) = try migrated(
      from: [entity("A", number)],
      to: isRenumbered
        ? [entity("AAA", text("x")), entity("A", number)] : [entity("A", number, text("m"))],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZD) VALUES (1, 1, 1, 5), (2, 1, 1, 0.5), (3, 1, 1, 0);
        CREATE TABLE loose (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZD);
        INSERT INTO loose VALUES (1, 1, 1, 5.0), (2, 1, 1, 0.5), (3, 1, 1, -0.0);
        PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET rootpage =
          (SELECT sum(rootpage) FROM sqlite_master WHERE name IN ('ZA', 'loose')) - rootpage
         WHERE name IN ('ZA', 'loose')
        """)
    #expect(
      try folder.table("stores/a.sqlite", "SELECT ZD + 0.0 FROM ZA ORDER BY Z_PK")
        == ["5.0", "0.5", "0.0"])
    #expect(try folder.table("stores/a.sqlite", "PRAGMA integrity_check") == ["ok"])
  }
}
